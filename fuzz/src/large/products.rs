//! What the template or the workload's name says, times nodes or pods: each is cheap by itself, and an answer repeats the one
//! for each of the others.

use nodewise_proto::v1;
use serde_json::{Value, json};

use super::{
    Make,
    messages::{holding_in, items, tiny_node, tiny_pod, words},
};
use crate::cluster::Cluster;

/// What nodes of a few bytes each may take of an input without being refused for their number, and pods.
const NODES: usize = 25;
const PODS: usize = 16;

/// Many small nodes and a pod template with this.
fn nodes_with(field: &str, value: Value, bytes: usize) -> Vec<u8> {
    let mut cluster = Cluster::empty(0);
    cluster.daemon_set["spec"]["template"]["spec"][field] = value;
    holding_in(&cluster, Some(items(bytes / NODES, tiny_node)), None)
}

/// A workload that has such a name, namespace and uid, and selects what has no labels.
fn named(length: usize) -> Cluster {
    let mut cluster = Cluster::empty(0);
    for field in ["name", "namespace", "uid"] {
        cluster.daemon_set["metadata"][field] = json!("n".repeat(length));
    }
    cluster.daemon_set["spec"]["selector"] =
        json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
    cluster
}

/// Many small orphans.
fn orphans_of(length: usize, phase: v1::PodPhase, node: Option<&str>, bytes: usize) -> Vec<u8> {
    let orphan = |name: String| {
        let mut pod = tiny_pod(name);
        if let Some(node) = node {
            node.clone_into(&mut pod.node_name);
        }
        pod.phase = phase.into();
        pod
    };
    let nodes = items(1_000, tiny_node);
    holding_in(&named(length), Some(nodes), Some(items(bytes / PODS, orphan)))
}

fn affinity(expressions: &Value) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": expressions}]}}})
}

/// All of them.
pub(super) const REQUESTS: &[(&str, Make)] = &[
    ("selector-x-nodes", |bytes| {
        let entries: serde_json::Map<_, _> = words()
            .take(1_024)
            .map(|word| (word.repeat(40), json!("v")))
            .collect();
        nodes_with("nodeSelector", entries.into(), bytes)
    }),
    ("long-selector-x-nodes", |bytes| {
        nodes_with("nodeSelector", json!({"k": "v".repeat(bytes / 4)}), bytes)
    }),
    ("terms-x-nodes", |bytes| {
        let expression = |word: String| json!({"key": word.repeat(20), "operator": "Exists"});
        nodes_with(
            "affinity",
            affinity(&words().take(500).map(expression).collect()),
            bytes,
        )
    }),
    ("values-x-nodes", |bytes| {
        let values: Vec<_> = words().take(16_000).collect();
        let expression = json!([{"key": "k", "operator": "In", "values": values}]);
        nodes_with("affinity", affinity(&expression), bytes)
    }),
    ("no-value-x-nodes", |bytes| {
        let expression = json!([{"key": "k", "operator": "In", "values": ["!".repeat(bytes / 4)]}]);
        nodes_with("affinity", affinity(&expression), bytes)
    }),
    ("node-name-x-nodes", |bytes| {
        nodes_with("nodeName", json!("n".repeat(253)), bytes)
    }),
    ("long-node-name-x-nodes", |bytes| {
        nodes_with("nodeName", json!("n".repeat(bytes / 4)), bytes)
    }),
    ("long-name-x-nodes", |bytes| {
        holding_in(&named(253), Some(items(bytes / NODES, tiny_node)), None)
    }),
    ("name-beyond-all-x-orphans", |bytes| {
        orphans_of(100_000, v1::PodPhase::Running, None, bytes)
    }),
    ("long-name-x-orphans", |bytes| {
        orphans_of(253, v1::PodPhase::Running, None, bytes)
    }),
    ("name-x-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Running, None, bytes)
    }),
    ("name-x-failed-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Failed, None, bytes)
    }),
    ("name-x-excess-orphans", |bytes| {
        orphans_of(40, v1::PodPhase::Running, Some("a"), bytes)
    }),
];
