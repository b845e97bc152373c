//! Checks dependencies: between crates, and between the files of a crate.

mod imports;

use std::{collections::BTreeSet, fs, path::Path};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// All normal and build dependencies of a workspace crate, transitively.
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
fn planner_simulator_and_forecast_depend_on_no_transport_no_runtime_and_no_cluster() {
    for krate in ["nodewise-planner", "nodewise-simulator", "nodewise-forecast"] {
        let linked = closure(&metadata(), krate);
        for forbidden in [
            "tokio",
            "tonic",
            "prost",
            "kube",
            "k8s-openapi",
            "nodewise-proto",
            "hyper",
            "rand",
        ] {
            assert!(
                !linked.contains(forbidden),
                "{krate} must not depend on {forbidden}"
            );
        }
        assert!(linked.contains("serde_json"), "the walk sees dependencies at all");
    }
}

#[test]
fn the_simulator_depends_on_no_crate_of_the_workspace_and_reads_no_clock() {
    let linked = closure(&metadata(), "nodewise-simulator");
    let ours: Vec<_> = linked
        .iter()
        .filter(|name| name.starts_with("nodewise"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simulator/src");
    for entry in fs::read_dir(sources).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let text = fs::read_to_string(&path).expect("the file is readable");
        for clock in ["Timestamp::now", "Zoned::now", "Instant", "SystemTime"] {
            assert!(!text.contains(clock), "{} uses {clock}", path.display());
        }
    }
}

#[test]
fn the_executor_depends_on_the_protocol_but_not_on_planner_and_server() {
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

#[test]
fn the_projection_needs_no_client_of_an_apiserver_or_a_service() {
    let linked = closure(&metadata(), "nodewise-projection");
    for forbidden in ["kube", "k8s-openapi", "nodewise-client"] {
        assert!(
            !linked.contains(forbidden),
            "nodewise-projection must not depend on {forbidden}"
        );
    }
    assert!(linked.contains("serde_json"), "the walk sees dependencies at all");
}

#[test]
fn the_runtime_names_no_kind_of_workload() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../executor/runtime/src");
    let mut folders = vec![sources];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tests.rs") || path.ends_with("testing.rs") {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).expect("the file is readable");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for kind in ["DaemonSet", "daemonset", "daemon_set", "ReplicaSet", "Deployment"] {
                let mut lines = code.lines();
                let named = lines.find(|line| line.contains(kind));
                assert!(named.is_none(), "{} names {kind}: {named:?}", path.display());
            }
        }
    }
    assert!(files > 10, "the walk sees {files} files");
}

/// The crates of the workspace, from the top layer down.
const LAYERS: [&[&str]; 10] = [
    &[
        "nodewise-bench",
        "nodewise-e2e",
        "nodewise-fake-apiserver",
        "nodewise-fuzz",
        "nodewise-images",
        "nodewise-upstream-e2e",
    ],
    &["nodewise-compare", "nodewise-conformance"],
    &["nodewise-fixtures", "nodewise-testbed"],
    &["nodewise"],
    &["nodewise-executor", "nodewise-server"],
    &["nodewise-forecast"],
    &[
        "nodewise-client",
        "nodewise-dashboard",
        "nodewise-planner",
        "nodewise-runtime",
        "nodewise-simulator",
        "nodewise-status",
    ],
    &["nodewise-projection"],
    &["nodewise-api", "nodewise-proto", "nodewise-telemetry"],
    &["nodewise-tls"],
];

/// Every dependency between crates of the workspace that is not of their tests, and that does not lead to a lower one of
/// these layers.
fn misplaced<'a>(metadata: &'a Metadata, layers: &[&[&str]]) -> Vec<(&'a str, &'a str)> {
    let layer = |krate: &str| layers.iter().position(|layer| layer.contains(&krate));
    let mut misplaced = Vec::new();
    for package in metadata.workspace_packages() {
        for dependency in &package.dependencies {
            let is_ours = dependency.path.is_some();
            let leads_down = layer(&package.name).zip(layer(&dependency.name));
            let leads_down = leads_down.is_some_and(|(from, to)| from < to);
            if is_ours && dependency.kind != DependencyKind::Development && !leads_down {
                misplaced.push((package.name.as_str(), dependency.name.as_str()));
            }
        }
    }
    misplaced
}

#[test]
fn crates_depend_on_crates_of_lower_layers_only() {
    let metadata = metadata();
    let crates: BTreeSet<&str> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| package.name.as_str())
        .collect();
    let placed: BTreeSet<&str> = LAYERS.iter().copied().flatten().copied().collect();
    assert_eq!(placed, crates, "each crate of the workspace is in one layer");
    assert_eq!(misplaced(&metadata, &LAYERS), []);

    let mut swapped = LAYERS;
    swapped.swap(4, 6);
    assert!(misplaced(&metadata, &swapped).contains(&("nodewise-server", "nodewise-planner")));
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_cycle() {
    for package in metadata().workspace_packages() {
        let manifest = Path::new(package.manifest_path.as_str());
        let sources = manifest.with_file_name("src");
        let cycles = imports::cycles(&sources);
        assert!(cycles.is_empty(), "{}: {cycles:#?}", package.name);
    }
}

/// The files of the planner's root that are no kind of workload.
const NO_KIND: [&str; 4] = ["core", "fixtures", "lib", "rollout"];

#[test]
fn what_all_kinds_share_imports_no_kind_and_no_kind_imports_another() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let upward = |layer: &str, below: &[&str]| imports::upward(&sources, layer, below);
    assert_eq!(upward("core", &[]), [""; 0]);
    assert_eq!(upward("rollout", &["core"]), [""; 0]);
    let kinds = fs::read_dir(&sources)
        .expect("the folder is readable")
        .map(|entry| entry.expect("the entry is readable").path())
        .filter(|path| path.is_file())
        .map(|path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|stem| !NO_KIND.contains(&stem.as_str()));
    let kinds: Vec<_> = kinds.collect();
    assert!(kinds.iter().any(|kind| kind == "daemonset"), "{kinds:?}");
    for kind in kinds {
        assert_eq!(upward(&kind, &["core", "rollout"]), [""; 0]);
    }
}

#[test]
fn imports_of_a_layer_above_are_found_however_they_are_written() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layers");
    let upward = |import: &str| {
        let _ = fs::remove_dir_all(&root);
        let files = [
            ("lib.rs", "mod core; mod daemonset; pub use daemonset::DaemonSet;"),
            ("core.rs", "pub mod names; pub mod claims;"),
            ("core/claims.rs", ""),
            ("core/names.rs", import),
            ("daemonset.rs", "use crate::core::names; pub mod workload;"),
            ("daemonset/workload.rs", ""),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        }
        imports::upward(&root, "core", &[])
    };
    for import in [
        "use crate::daemonset::DaemonSet;",
        "use crate::{core::claims, daemonset::workload::DaemonSet};",
        "use super::super::daemonset;",
        "use crate::DaemonSet;",
        "use crate::*;",
        "fn f(_: &crate::daemonset::DaemonSet) {}",
        "mod inner { fn f() { println!(\"{}\", crate::daemonset::f()) } }",
    ] {
        assert_eq!(upward(import).len(), 1, "{import}");
    }
    let within = "use crate::core::claims; use super::claims::Claim; use std::fmt; pub(crate) struct S; \
                  #[cfg(test)] mod tests { use crate::DaemonSet; }";
    assert_eq!(upward(within), [""; 0]);
}

#[test]
fn cycles_are_found_however_an_import_is_written() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cycles");
    let cycles = |files: &[(&str, &str)]| {
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        }
        imports::cycles(&root)
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
        let found = cycles(&files);
        assert_eq!(found.len(), 1, "{import}: {found:#?}");
    }
    // A file and a file of its inner modules, by way of another.
    let through_inner = [
        ("lib.rs", "use a::A;"),
        ("a.rs", "mod inner; use inner::C;"),
        ("a/inner.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::A;"),
    ];
    assert_eq!(cycles(&through_inner).len(), 1);
    let files = [
        ("lib.rs", "mod a; mod b; pub use b::{B as C};"),
        ("a.rs", "use crate::C;"),
        ("b.rs", "use crate::a::A;"),
    ];
    assert_eq!(cycles(&files).len(), 1, "through a name that the root passes on");
    let files = [
        ("lib.rs", "use a::A;"),
        (
            "a.rs",
            "mod inner; pub use inner::C; use crate::b::B; #[cfg(test)] mod tests { use crate::c::D; }",
        ),
        ("a/inner.rs", "use super::A; use crate::c::D;"),
        ("b.rs", ""),
        ("c.rs", "use crate::a::A;"),
    ];
    assert_eq!(cycles(&files), [[""; 0]; 0]);
}
