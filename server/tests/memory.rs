//! What the cache takes, counted by the allocator: a test binary of its own, since all of its memory counts.

mod support;

use nodewise_server::{ByteSize, Engine, Limits, never};
use peak_alloc::PeakAlloc;
use serde_json::json;
use support::{Cluster, Form};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const NODES: usize = 5_000;
/// What docs/architecture.md says of a node and, for each workload, of a pod, rounded up.
const MOST_PER_NODE: u64 = 650;
const MOST_PER_POD: u64 = 750;
/// What the cache's own tables may take.
const TABLES: u64 = 256 << 10;

/// An engine whose cache keeps everything, and what it takes more than now.
fn engine() -> (Engine, impl Fn() -> u64) {
    let before = ALLOCATED.current_usage();
    let engine = Engine::new(Limits::default(), ByteSize::mib(1024));
    let taken = move || ALLOCATED.current_usage().saturating_sub(before) as u64;
    (engine, taken)
}

fn plan(engine: &Engine, cluster: &Cluster) {
    let request = cluster.request(64, Form::InlineWithDigest);
    engine.plan(request, &never).expect("a plan");
}

/// Not tests of their own: two at a time cannot be told apart.
#[test]
fn the_cache_weighs_what_it_keeps() {
    pods_and_nodes_take_what_is_said_of_them();
    what_is_kept_of_a_workload_is_weighed();
    what_is_kept_of_nodes_without_pods_is_weighed();
}

fn pods_and_nodes_take_what_is_said_of_them() {
    const WORKLOADS: u64 = 4;
    let mut cluster = Cluster::settled(NODES);
    let (engine, taken) = engine();
    let mut weights = Vec::new();
    for workload in 0..WORKLOADS {
        let uid = format!("{workload:08}-2222-3333-4444-555555555555");
        cluster.daemon_set["metadata"]["uid"] = json!(uid);
        for revision in &mut cluster.revisions {
            revision["metadata"]["ownerReferences"][0]["uid"] = json!(uid);
        }
        for (index, pod) in cluster.pods.iter_mut().enumerate() {
            pod.uid = format!("{workload:08}-4444-5555-6666-{index:012}");
            pod.controller.as_mut().expect("an owner").uid.clone_from(&uid);
        }
        plan(&engine, &cluster);
        weights.push(engine.cache().bytes());
    }
    let (weight, taken) = (engine.cache().bytes(), taken());
    assert!(
        taken <= weight + TABLES,
        "{taken} bytes are kept, of which {weight} are weighed"
    );
    let per_pod = (weight - weights[0]) / ((WORKLOADS - 1) * NODES as u64);
    let per_node = weights[0] / NODES as u64 - per_pod;
    println!("weight: {per_node} bytes a node, {per_pod} a pod; {weight} of {taken} bytes");
    assert!(per_node <= MOST_PER_NODE, "{per_node} bytes a node");
    assert!(per_pod <= MOST_PER_POD, "{per_pod} bytes a pod");
}

/// Whoever sends large templates under ever new uids fills no memory that is not counted.
fn what_is_kept_of_a_workload_is_weighed() {
    let names: Vec<_> = (0..16_384).map(|number| format!("node-{number:05}")).collect();
    let mut cluster = Cluster::empty(1);
    cluster.daemon_set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]},
        ]},
    }});
    cluster.daemon_set["spec"]["selector"]["matchExpressions"] =
        json!([{"key": "app", "operator": "In", "values": names}]);
    let (engine, taken) = engine();
    for workload in 0..20 {
        cluster.daemon_set["metadata"]["uid"] = json!(format!("uid-{workload}"));
        plan(&engine, &cluster);
    }
    expect_weighed(&engine, taken());
}

/// What is kept is weighed, but for the tables that hold it.
fn expect_weighed(engine: &Engine, taken: u64) {
    let weight = engine.cache().bytes();
    assert!(
        taken <= weight + TABLES,
        "{taken} bytes are kept, of which {weight} are weighed"
    );
}

/// Of a DaemonSet whose pods are not there yet more is kept of each node than of one at rest.
fn what_is_kept_of_nodes_without_pods_is_weighed() {
    let mut cluster = Cluster::empty(NODES);
    let (engine, taken) = engine();
    for workload in 0..20 {
        cluster.daemon_set["metadata"]["uid"] = json!(format!("uid-{workload}"));
        plan(&engine, &cluster);
    }
    expect_weighed(&engine, taken());
}
