//! Compares the memory that the cache says it takes with the memory that the allocator counts. In its own test binary, since the
//! allocator counts the whole process.

mod support;

use nodewise_server::{ByteSize, Engine, Limits, never};
use peak_alloc::PeakAlloc;
use serde_json::json;
use support::{Cluster, Form};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const NODES: usize = 5_000;
/// Bytes for each node, and for each pod of each workload, as docs/architecture.md says, rounded up.
const MOST_PER_NODE: u64 = 60;
const MOST_PER_POD: u64 = 200;
/// Bytes that the tables of the cache itself may take.
const TABLES: u64 = 256 << 10;

/// An engine whose cache evicts nothing, and a function for the bytes that were allocated since.
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

/// One test: tests that run at the same time would count each other's memory.
#[test]
fn the_cache_counts_the_memory_that_it_takes() {
    nodes_and_pods_take_the_documented_bytes();
    results_for_large_templates_are_counted();
    results_for_nodes_without_pods_are_counted();
}

fn nodes_and_pods_take_the_documented_bytes() {
    const WORKLOADS: u64 = 4;
    let mut cluster = Cluster::settled(NODES);
    let (engine, taken) = engine();
    let mut counted = Vec::new();
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
        counted.push(engine.cache().bytes());
    }
    let (bytes, taken) = (engine.cache().bytes(), taken());
    expect_counted(&engine, taken);
    let per_pod = (bytes - counted[0]) / ((WORKLOADS - 1) * NODES as u64);
    let per_node = counted[0] / NODES as u64 - per_pod;
    println!("{per_node} bytes a node, {per_pod} a pod; {bytes} of {taken} bytes");
    assert!(per_node <= MOST_PER_NODE, "{per_node} bytes a node");
    assert!(per_pod <= MOST_PER_POD, "{per_pod} bytes a pod");
}

/// A client that sends large templates with ever new uids cannot fill memory that is not counted.
fn results_for_large_templates_are_counted() {
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
    expect_counted(&engine, taken());
}

/// Checks that the cache counts all of its memory except its own tables.
fn expect_counted(engine: &Engine, taken: u64) {
    let bytes = engine.cache().bytes();
    assert!(
        taken <= bytes + TABLES,
        "{taken} bytes are allocated, and the cache counts {bytes}"
    );
}

/// The results for a node without a pod are larger than those for a node of a settled DaemonSet.
fn results_for_nodes_without_pods_are_counted() {
    let mut cluster = Cluster::empty(NODES);
    let (engine, taken) = engine();
    for workload in 0..20 {
        cluster.daemon_set["metadata"]["uid"] = json!(format!("uid-{workload}"));
        plan(&engine, &cluster);
    }
    expect_counted(&engine, taken());
}
