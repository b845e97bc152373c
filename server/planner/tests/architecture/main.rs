//! What may depend on what: the crates among each other, and the files within a crate.

mod imports;

use std::{collections::BTreeSet, fs, path::Path};

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

/// Crates whose files import each other in one direction only.
const WITHOUT_CIRCLES: [&str; 7] = [
    "cli",
    "clients/rust",
    "proto",
    "server",
    "server/planner",
    "telemetry",
    "tls",
];

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for krate in WITHOUT_CIRCLES {
        let circles = imports::circles(&root.join(krate).join("src"));
        assert!(circles.is_empty(), "{krate}: {circles:#?}");
    }
}

#[test]
fn circles_are_found_however_an_import_is_written() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("circles");
    let circles = |files: &[(&str, &str)]| {
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        }
        imports::circles(&root)
    };
    for import in [
        "use crate::a::A;",
        "use super::a;",
        "use crate::{c, a::{self as other}};",
        "fn f() { crate::a::f() }",
        "fn f() { println!(\"{}\", crate::a::f()) }",
        "mod inner { fn f(_: &crate::a::A) {} }",
    ] {
        let files = [
            ("lib.rs", "mod a; mod b; use a::A; use b::B;"),
            ("a.rs", "use crate::b::inner::C;"),
            ("b/inner.rs", "use super::super::c::D;"),
            ("c.rs", "use crate::b::B;"),
            ("b.rs", import),
        ];
        let found = circles(&files);
        assert_eq!(found.len(), 1, "{import}: {found:#?}");
    }
    let files = [
        ("lib.rs", "use a::A;"),
        (
            "a.rs",
            "mod inner; use inner::C; use crate::b::B; #[cfg(test)] mod tests { use crate::c::D; }",
        ),
        ("a/inner.rs", "use super::A;"),
        ("b.rs", ""),
        ("c.rs", "use crate::a::A;"),
    ];
    assert_eq!(circles(&files), [[""; 0]; 0]);
}
