//! Memory of the caches per pod, measured with the allocator. This is a test binary of its own because the allocator
//! counts all memory of the process.

use nodewise_executor::daemon_set::{DAEMON_SETS, DaemonSets};
use nodewise_executor::metrics::Metrics;
use nodewise_executor::state::State;
use nodewise_projection::{Node, Pod, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::{Timestamp, v1};
use nodewise_runtime::Delta;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::snapshot::{self, LiveObjects};
use nodewise_runtime::store::Store;
use peak_alloc::PeakAlloc;
use prost::Message as _;
use serde_json::json;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const WORKLOADS: usize = 100;
const NODES: usize = 5_000;
const PODS: usize = WORKLOADS * NODES;
/// The documented maximum, in bytes.
const MOST_PER_POD: usize = 200;
/// The documented maximum while a list replaces an older one, in bytes.
const MOST_PER_POD_LISTED_AGAIN: usize = 500;

/// A name of 20 to 40 bytes, as names are in practice.
fn node_name(index: usize) -> String {
    let zone = ["eu-central-1", "us-east-1"][index % 2];
    format!(
        "node-{:03}-{:03}.{zone}.cluster.local",
        index / 1_000,
        index % 1_000
    )
}

fn workload(index: usize) -> Workload {
    let object = json!({
        "metadata": {"namespace": "kube-system", "name": format!("node-agent-{index:03}"), "uid": uid(0, index)},
        "spec": {"selector": {"matchLabels": {"app": format!("node-agent-{index:03}")}}},
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

fn uid(kind: usize, index: usize) -> String {
    format!("{kind:08x}-5f0e-4d1c-9a3b-{index:012x}")
}

fn label(key: &str, value: &str) -> v1::Label {
    v1::Label {
        key: key.into(),
        value: value.into(),
    }
}

fn pod(workload: usize, node: usize, version: usize) -> Pod {
    let app = format!("node-agent-{workload:03}");
    let at = |seconds: i64| Timestamp {
        seconds: 1_790_000_000 + seconds,
        nanos: 0,
    };
    Pod {
        namespace: "kube-system".into(),
        resource_version: (100_000_000 + version).to_string(),
        created_by: None,
        disruption: None,
        traceparent: None,
        unready: None,
        projection: v1::Pod {
            name: format!("{app}-{node:010x}{workload:08x}"),
            uid: uid(workload + 1, node),
            labels: vec![
                label("app", &app),
                label("controller-revision-hash", "5d9c6b8f7d"),
                label("pod-template-generation", "1"),
            ],
            controller: Some(v1::ControllerReference {
                kind: "DaemonSet".into(),
                name: app,
                uid: uid(0, workload),
            }),
            node_name: node_name(node),
            phase: v1::PodPhase::Running.into(),
            ready: v1::ConditionStatus::True.into(),
            ready_transition_time: Some(at(60)),
            creation_time: Some(at(0)),
            ..Default::default()
        },
    }
}

/// The encoded size of the fields that a pod does not share with others, in bytes.
fn own_size(pod: &Pod) -> usize {
    let own = v1::Pod {
        labels: Vec::new(),
        controller: None,
        ..pod.projection.clone()
    };
    own.encoded_len() + pod.resource_version.len()
}

fn apply_pods(store: &mut Store, workloads: usize, version: usize) {
    for workload in 0..workloads {
        for node in 0..NODES {
            let pod = pod(workload, node, version + workload * NODES + node);
            store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        }
    }
}

fn take_snapshots(store: &mut Store) {
    for index in 0..WORKLOADS {
        let now = Timestamp { seconds: 1, nanos: 0 };
        let state = v1::ReconcileState::default();
        snapshot::take::<DaemonSets>(
            store,
            &workload(index),
            state,
            &LiveObjects::default(),
            now,
            &Receiver::EMPTY,
        );
    }
}

#[test]
fn a_pod_takes_at_most_200_bytes() {
    let sample = pod(0, 0, 0).projection;
    assert!(sample.name.len() >= 30 && sample.uid.len() == 36);
    assert!((20..=40).contains(&sample.node_name.len()));

    let mut store = Store::new(&[DAEMON_SETS], 64);
    for index in 0..WORKLOADS {
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(workload(index)),
        ));
    }
    for index in 0..NODES {
        let node = json!({"metadata": {"name": node_name(index), "labels": {"zone": "a"}}});
        let node = Node::from_json(&node).expect("a node");
        store.apply(ClusterEvent::Nodes(Delta::Applied(node)));
    }
    let without_pods = ALLOCATED.current_usage();
    let per_pod = || (ALLOCATED.current_usage() - without_pods) / PODS;

    apply_pods(&mut store, WORKLOADS, 0);
    let first = per_pod();
    take_snapshots(&mut store);
    let sent = per_pod();
    apply_pods(&mut store, 10, PODS);
    let updated = per_pod();
    let own = own_size(&pod(0, 0, 0));
    println!("bytes per pod: {first} at first, {sent} after snapshots, {updated} after updates");
    println!("of these {own} are fields of its own and its resourceVersion");
    for bytes in [first, sent, updated] {
        assert!(bytes <= MOST_PER_POD, "{bytes} bytes per pod");
    }

    store.apply(ClusterEvent::Pods(Delta::Listed {
        objects: Vec::new(),
        resource_version: "200000000".into(),
    }));
    let left = ALLOCATED.current_usage().saturating_sub(without_pods);
    assert!(left < 1 << 16, "{left} bytes are left of pods that are gone");
    drop(store);
    a_list_takes_no_more_than_is_kept_of_it();
    labels_of_nodes_are_kept_once();
}

/// All labels of a node are cached, because a new DaemonSet may name any of them. Nodes have most labels in common, and a list of nodes comes
/// page by page. Not a `#[test]`, so that it does not run concurrently with the others.
fn labels_of_nodes_are_kept_once() {
    const LABELS: usize = 25;
    const LISTED: usize = 20 * NODES;
    const PAGE: usize = 1_000;
    const MOST_PER_NODE: usize = 150;
    let node = |index: usize| {
        let name = node_name(index);
        let mut labels: Vec<_> = (0..LABELS - 1)
            .map(|label_index| {
                label(
                    &format!("example.com/label-{label_index:02}"),
                    &format!("value-{}", index % 50),
                )
            })
            .collect();
        labels.push(label("kubernetes.io/hostname", &name));
        Node {
            resource_version: index.to_string(),
            projection: v1::Node {
                name,
                uid: uid(0, index),
                labels,
                ready: v1::ConditionStatus::True.into(),
                ..Default::default()
            },
        }
    };
    let page = |number: usize| (number * PAGE..(number + 1) * PAGE).map(node).collect();
    let mut store = Store::new(&[DAEMON_SETS], 64);
    let (empty, pages) = (ALLOCATED.current_usage(), LISTED / PAGE);
    ALLOCATED.reset_peak_usage();
    for number in 0..pages - 1 {
        let (nodes, is_first) = (page(number), number == 0);
        store.apply_each(ClusterEvent::NodePage { nodes, is_first }, &mut |_, _| ());
    }
    let last = ClusterEvent::Nodes(Delta::Listed {
        objects: page(pages - 1),
        resource_version: "200000000".into(),
    });
    store.apply_each(last, &mut |_, _| ());
    let most = (ALLOCATED.peak_usage() - empty) / LISTED;
    let kept = (ALLOCATED.current_usage() - empty) / LISTED;
    println!(
        "bytes per node with {LABELS} labels: {most} while a list is taken in, {kept} kept; its projection has {}",
        node(0).projection.encoded_len()
    );
    assert!(most <= MOST_PER_NODE, "{most} bytes per node");
}

/// A list of many pods comes page by page, and the decoded pods of a page are dropped with it. So the peak is not
/// higher than the final size of the cache. Not a `#[test]`, so that it does not run concurrently with the others.
fn a_list_takes_no_more_than_is_kept_of_it() {
    const LISTED: usize = 20 * NODES;
    const PAGE: usize = 1_000;
    let (mut state, metrics) = (
        State::of::<DaemonSets>(64, &v1::PlanOptions::default()),
        Metrics::new(),
    );
    for index in 0..20 {
        let event = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload(index)));
        state.handle_event(event, &metrics);
    }
    let page = |number: usize| -> Vec<Pod> {
        let indices = number * PAGE..(number + 1) * PAGE;
        indices
            .map(|index| pod(index / NODES, index % NODES, index))
            .collect()
    };
    let empty = ALLOCATED.current_usage();
    let pages = LISTED / PAGE;
    // (How many workloads the list wakes, and the documented maximum.) While a list replaces an older one, there are both.
    for (woken, most_per_pod) in [(20, MOST_PER_POD), (0, MOST_PER_POD_LISTED_AGAIN)] {
        ALLOCATED.reset_peak_usage();
        for number in 0..pages - 1 {
            let event = ClusterEvent::PodPage {
                pods: page(number),
                is_first: number == 0,
            };
            assert_eq!(state.handle_event(event, &metrics), []);
        }
        let event = ClusterEvent::Pods(Delta::Listed {
            objects: page(pages - 1),
            resource_version: "200000000".into(),
        });
        assert_eq!(state.handle_event(event, &metrics).len(), woken);
        let most = (ALLOCATED.peak_usage() - empty) / LISTED;
        let kept = (ALLOCATED.current_usage() - empty) / LISTED;
        println!("bytes per pod: {most} while a list is taken in, {kept} kept of it");
        assert!(most <= most_per_pod, "{most} bytes per pod");
        assert!(kept <= MOST_PER_POD, "{kept} bytes per pod are kept");
    }
}
