//! The Cargo graph is the architecture: this holds it.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Everything that a workspace crate links into its own artifacts: normal and build dependencies, transitively.
fn closure(metadata: &Metadata, krate: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("the graph is resolved");
    let name = |id: &PackageId| metadata[id].name.to_string();
    let root = metadata
        .workspace_packages()
        .into_iter()
        .find(|package| package.name.as_str() == krate);
    let mut queue = vec![
        root.unwrap_or_else(|| panic!("{krate} is in the workspace"))
            .id
            .clone(),
    ];
    let mut seen = BTreeSet::new();
    while let Some(id) = queue.pop() {
        let node = resolve
            .nodes
            .iter()
            .find(|node| node.id == id)
            .expect("every package has a node");
        for dependency in &node.deps {
            let linked = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if linked && seen.insert(name(&dependency.pkg)) {
                queue.push(dependency.pkg.clone());
            }
        }
    }
    seen
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .other_options(vec!["--locked".into()])
        .exec()
        .expect("cargo metadata runs")
}

#[test]
fn the_planner_knows_no_transport_no_runtime_and_no_cluster() {
    let linked = closure(&metadata(), "nodewise-planner");
    for forbidden in [
        "tokio",
        "tonic",
        "prost",
        "kube",
        "k8s-openapi",
        "nodewise-proto",
        "hyper",
    ] {
        assert!(
            !linked.contains(forbidden),
            "nodewise-planner must not depend on {forbidden}"
        );
    }
    assert!(linked.contains("serde_json"), "the walk sees dependencies at all");
}

#[test]
fn the_executor_is_the_equal_of_executors_in_other_languages() {
    let linked = closure(&metadata(), "nodewise-executor");
    for forbidden in ["nodewise-planner", "nodewise-server"] {
        assert!(
            !linked.contains(forbidden),
            "nodewise-executor must not depend on {forbidden}"
        );
    }
    assert!(
        linked.contains("nodewise-proto"),
        "the walk sees dependencies at all"
    );
}
