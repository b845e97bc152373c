//! Errors of a workload's owner: only plans for that workload are refused.

use nodewise_server::{Refusal, never};
use serde_json::{Value, json};

use super::{
    plan,
    support::{Cluster, engine, inline},
};

/// Puts a value into a DaemonSet.
type Change = fn(Value, &mut Value);

#[test]
fn an_invalid_workload_is_refused_and_others_are_planned() {
    let expression = json!({"key": "k", "operator": "Exists"});
    let table: [(&str, Change, Value); 5] = [
        (
            "tolerations",
            |v, d| d["spec"]["template"]["spec"]["tolerations"] = v,
            json!(vec![json!({}); 1_025]),
        ),
        (
            "selector",
            |v, d| d["spec"]["selector"]["matchExpressions"] = v,
            json!(vec![expression; 1_025]),
        ),
        (
            "annotation",
            |v, d| d["metadata"]["annotations"] = json!({"a": v}),
            json!("x".repeat(17 << 20)),
        ),
        (
            "operator",
            |v, d| d["spec"]["selector"]["matchExpressions"] = v,
            json!([{"key": "k", "operator": "Near"}]),
        ),
        (
            "node selector",
            |v, d| d["spec"]["template"]["spec"]["nodeSelector"] = v,
            (0..1_025)
                .map(|key| (key.to_string(), json!("")))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        ),
    ];
    for (what, change, value) in table {
        let mut cluster = Cluster::settled(2);
        change(value, &mut cluster.daemon_set);
        let refused = engine().plan(inline(&cluster), &never);
        let Err(Refusal::Invalid { violations, .. }) = refused else {
            panic!("{what}: expected a refusal, got {refused:?}")
        };
        assert!(
            violations
                .iter()
                .all(|at| at.field == "snapshot.workload.daemon_set.object"),
            "{what}: {violations:?}"
        );
        // Another workload, on the same nodes and with the pods of the first one.
        cluster.daemon_set = Cluster::empty(0).daemon_set;
        cluster.daemon_set["metadata"]["uid"] = json!("another");
        plan(&cluster);
    }
}
