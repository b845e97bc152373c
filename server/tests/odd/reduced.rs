//! Labels that no workload names do not change a plan, so executors may leave them out.

use nodewise_proto::v1;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    decided, junk, label, plan,
    support::{Cluster, node, pod},
};

const KEYS: [&str; 4] = ["app", "tier", "zone", "disk"];
const VALUES: [&str; 3] = ["", "1", "node-agent"];

fn word() -> impl Strategy<Value = (String, String)> {
    let (keys, values) = (prop::sample::select(&KEYS), prop::sample::select(&VALUES));
    (keys, values).prop_map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn labels() -> impl Strategy<Value = Vec<v1::Label>> {
    let entries = prop::collection::btree_map(
        prop::sample::select(&KEYS).prop_map(str::to_owned),
        prop::sample::select(&VALUES).prop_map(str::to_owned),
        0..4,
    );
    entries.prop_map(|entries| {
        entries
            .into_iter()
            .map(|(key, value)| label(key, value))
            .collect()
    })
}

fn requirements() -> impl Strategy<Value = Vec<Value>> {
    let operator = prop::sample::select(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let one = (word(), operator).prop_map(|((key, value), operator)| match operator {
        "In" | "NotIn" => json!({"key": key, "operator": operator, "values": [value, "2"]}),
        "Gt" | "Lt" => json!({"key": key, "operator": operator, "values": ["0"]}),
        _ => json!({"key": key, "operator": operator}),
    });
    prop::collection::vec(one, 0..3)
}

/// A workload with a selector, a node selector and an affinity.
fn workload() -> impl Strategy<Value = Value> {
    let expressions = requirements().prop_map(|mut all| {
        all.retain(|one| !matches!(one["operator"].as_str(), Some("Gt" | "Lt")));
        all
    });
    let terms = prop::option::of(prop::collection::vec(requirements(), 1..3));
    let selector = prop::option::of(word());
    (expressions, selector, terms).prop_map(|(expressions, node_selector, terms)| {
        let mut daemon_set = Cluster::empty(0).daemon_set;
        daemon_set["spec"]["selector"]["matchExpressions"] = json!(expressions);
        let spec = &mut daemon_set["spec"]["template"]["spec"];
        if let Some((key, value)) = node_selector {
            spec["nodeSelector"] = json!({key: value});
        }
        if let Some(terms) = terms {
            let terms: Vec<_> = terms
                .into_iter()
                .map(|all| json!({"matchExpressions": all}))
                .collect();
            spec["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        }
        daemon_set
    })
}

/// Clusters whose objects have labels that the workload may name.
fn clusters() -> impl Strategy<Value = Cluster> {
    let all = |count| prop::collection::vec((labels(), any::<bool>()), count);
    (workload(), all(0..6), all(0..8)).prop_map(|(daemon_set, nodes, pods)| {
        let mut cluster = Cluster::settled(nodes.len());
        cluster.daemon_set = daemon_set;
        for (node, (labels, tainted)) in cluster.nodes.iter_mut().zip(nodes) {
            node.labels.extend(labels);
            let effect = if tainted { "NoSchedule" } else { "PreferNoSchedule" };
            node.taints = vec![v1::Taint {
                key: "t".into(),
                value: String::new(),
                effect: effect.into(),
            }];
        }
        for (number, (labels, is_orphan)) in pods.into_iter().enumerate() {
            let mut more = pod(100 + number, "old");
            more.node_name = node(number % 4).name;
            more.labels
                .retain(|own| labels.iter().all(|label| label.key != own.key));
            more.labels.extend(labels);
            if is_orphan {
                more.controller = None;
            }
            cluster.pods.push(more);
        }
        cluster
    })
}

/// Whether a DaemonSet names a label key in its selector, node selector or affinity.
fn names(daemon_set: &Value, key: &str) -> bool {
    let template = &daemon_set["spec"]["template"]["spec"];
    let spec = &daemon_set["spec"]["selector"];
    let asks = [spec, &template["nodeSelector"], &template["affinity"]].map(Value::to_string);
    asks.iter().any(|text| text.contains(&format!("{key:?}")))
        || ["controller-revision-hash", "pod-template-generation"].contains(&key)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn labels_that_the_workload_does_not_name_do_not_change_the_plan(
        cluster in clusters(), at in any::<prop::sample::Index>(), many in prop::sample::select(&[0_usize, 3, 1_100]),
    ) {
        let (mut full, mut reduced) = (cluster.clone(), cluster);
        let count = full.nodes.len() + full.pods.len();
        prop_assume!(count > 0);
        let odd = at.index(count);
        let of_nodes = full.nodes.iter_mut().map(|node| &mut node.labels);
        let of_pods = full.pods.iter_mut().map(|pod| &mut pod.labels);
        of_nodes.chain(of_pods).nth(odd).expect("it is there").extend(junk(many));
        let named = |label: &v1::Label| names(&reduced.daemon_set, &label.key);
        for labels in reduced.nodes.iter_mut().map(|node| &mut node.labels)
            .chain(reduced.pods.iter_mut().map(|pod| &mut pod.labels)) {
            labels.retain(named);
        }
        let (full, reduced) = (plan(&full), plan(&reduced));
        prop_assert_eq!(full.warnings.len(), usize::from(many > 1_024));
        prop_assert_eq!(decided(full), decided(reduced));
    }
}
