//! RolloutPolicies that are too large, as anyone may write who can create them in a namespace. What the executor keeps of them holds
//! the rollouts of their targets, and comes to rest.

use nodewise_projection::RolloutPolicy;
use nodewise_proto::v1::{self, action::Kind};
use serde_json::{Value, json};

use super::{
    ask, engine,
    support::{Cluster, actions, inline, rolling_update, rollout},
};

/// A policy with a query of this length.
fn policy(query: usize, status: &Value) -> RolloutPolicy {
    let check = json!({"name": "c", "successCondition": "result > 0",
        "prometheus": {"address": "http://prometheus:9090", "query": "q".repeat(query)}});
    let object = json!({
        "apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
        "metadata": {"namespace": "monitoring", "name": "agents", "uid": "p", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targets": {"names": ["node-agent"]}, "stages": [{"name": "canary", "analysis": [check]}]},
        "status": status,
    });
    RolloutPolicy::from_json(&object).expect("a policy")
}

/// A cluster whose template has changed, with the revision of it.
fn changed() -> Cluster {
    let mut cluster = rollout(3, rolling_update(1, 0));
    cluster.daemon_set["metadata"]["annotations"] = json!({"deprecated.daemonset.template.generation": "2"});
    let first = ask(&engine(), &inline(&cluster));
    let created = actions(&first).find_map(|action| match action.kind {
        Some(Kind::CreateRevision(create)) => Some(create.manifest),
        _ => None,
    });
    let mut revision: Value = serde_json::from_slice(&created.expect("a revision")).expect("JSON");
    revision["metadata"]["uid"] = json!("new");
    revision["metadata"]["namespace"] = json!("monitoring");
    cluster.revisions.push(revision);
    cluster
}

fn plan(cluster: &Cluster, policy: Option<&RolloutPolicy>) -> v1::Plan {
    let mut request = inline(cluster);
    let workload = request
        .snapshot
        .as_mut()
        .and_then(|snapshot| snapshot.workload.as_mut());
    let Some(v1::workload::Kind::DaemonSet(daemon_set)) =
        workload.and_then(|workload| workload.kind.as_mut())
    else {
        panic!("no DaemonSet");
    };
    let sent = policy.map(|policy| v1::RolloutPolicy {
        object: policy.object.clone(),
        ..v1::RolloutPolicy::default()
    });
    daemon_set.rollout_policies.extend(sent);
    ask(&engine(), &request)
}

fn deletes(plan: &v1::Plan) -> usize {
    actions(plan)
        .filter(|action| matches!(action.kind, Some(Kind::DeletePod(_))))
        .count()
}

/// The status that a plan writes to the policy.
fn status(plan: &v1::Plan) -> Option<Value> {
    actions(plan).find_map(|action| match &action.kind {
        Some(Kind::PatchObject(patch)) => {
            let mut patch: Value = serde_json::from_slice(&patch.patch).expect("JSON");
            assert_eq!(patch["metadata"]["resourceVersion"], "7");
            Some(patch["status"].take())
        }
        _ => None,
    })
}

// L-2
#[test]
fn what_is_kept_of_a_policy_that_is_too_large_holds_and_says_why() {
    let cluster = changed();
    assert!(
        deletes(&plan(&cluster, None)) > 0,
        "without a policy the rollout goes on"
    );
    let none = json!({});
    let too_large = policy(1 << 20, &none);
    let mark = policy(1, &none).mark("there are too many policies".to_owned());
    for (kept, why) in [
        (too_large, "bytes; at most 1048576 are taken"),
        (mark, "there are too many policies"),
    ] {
        assert!(kept.reduced.is_some());
        let held = plan(&cluster, Some(&kept));
        assert_eq!(deletes(&held), 0, "{why}");
        let written = status(&held).expect("a status");
        let accepted = &written["conditions"][0];
        assert_eq!(
            (&accepted["type"], &accepted["status"]),
            (&json!("Accepted"), &json!("False"))
        );
        let message = accepted["message"].as_str().expect("a message");
        assert!(message.contains(why), "{message}");

        let mut object: Value = serde_json::from_slice(&kept.object).expect("JSON");
        object["status"] = written;
        let mut later = kept.clone();
        later.object = object.to_string().into();
        let rested = plan(&cluster, Some(&later));
        assert_eq!((status(&rested), deletes(&rested)), (None, 0), "{why}");
    }
}
