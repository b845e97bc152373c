//! What is read from nodes.

use nodewise_status::NodeFacts;
use serde_json::json;

#[test]
fn the_pool_is_the_label_of_whoever_makes_nodes() {
    for (label, expected) in [
        ("cloud.google.com/gke-nodepool", "general"),
        ("eks.amazonaws.com/nodegroup", "general"),
        ("kubernetes.azure.com/agentpool", "general"),
        ("karpenter.sh/nodepool", "general"),
        ("example.org/pool", ""),
    ] {
        let labels = json!({label: "general", "topology.kubernetes.io/zone": "a"});
        let node = json!({"metadata": {"name": "n", "labels": labels}});
        let facts = NodeFacts::of(&node.to_string());
        assert_eq!((&*facts.pool, &*facts.zone), (expected, "a"), "{label}");
    }
    assert_eq!(NodeFacts::of("{}").pool, "");
}
