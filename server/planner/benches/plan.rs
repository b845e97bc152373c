//! Measures the time of a plan per node: `cargo bench -p nodewise-planner`.
//!
//! Items are nodes, so the throughput is in nodes per second.

use divan::{Bencher, counter::ItemsCount};
use jiff::Timestamp;
use nodewise_planner::{
    daemonset::{
        DaemonSet, NodeSelectorRequirement, NodeSelectorTerm, RollingUpdate, RolloutInputs, Scheduling,
        UpdateStrategy, plan_cache::PlanCache,
    },
    plan::{ActionKind, DaemonSetStatus, PhaseKind, Plan, Status, Verdict},
    snapshot::{
        Bucket, ControllerRef, IntOrString, Labels, List, Node, Options, Pod, PodPhase, Revision, Selector,
        Snapshot, State, Taint, TaintEffect, Target, UsedPodName,
    },
};
use serde_json::{Value, json};

const NODES: [usize; 3] = [1_000, 5_000, 100_000];
const BUCKETS: usize = 64;

fn main() {
    divan::main();
}

/// Nothing to do: every node has its pod.
#[divan::bench(args = NODES)]
fn all_pods_in_place(bencher: Bencher, nodes: usize) {
    measure(bencher, &settled(nodes, 1, Scheduling::default()), nodes);
}

/// The same, with nodes and pods in buckets.
#[divan::bench(args = NODES)]
fn all_pods_in_place_in_buckets(bencher: Bencher, nodes: usize) {
    measure(bencher, &settled(nodes, BUCKETS, Scheduling::default()), nodes);
}

/// The same, with a node selector and a required affinity of two terms.
#[divan::bench(args = NODES)]
fn all_pods_in_place_with_affinity(bencher: Bencher, nodes: usize) {
    measure(bencher, &settled(nodes, 1, constrained()), nodes);
}

/// The same, with a few dozen affinity terms on a label whose values many nodes share.
#[divan::bench(args = NODES)]
fn all_pods_in_place_with_many_comparisons(bencher: Bencher, nodes: usize) {
    let scheduling = compared_often("topology.kubernetes.io/zone", "zone");
    measure(bencher, &settled(nodes, 1, scheduling), nodes);
}

/// The same, on a label that has another value on each node.
#[divan::bench(args = NODES)]
fn all_pods_in_place_with_many_comparisons_of_names(bencher: Bencher, nodes: usize) {
    let scheduling = compared_often("kubernetes.io/hostname", "node");
    measure(bencher, &settled(nodes, 1, scheduling), nodes);
}

/// The first plan of a new workload.
#[divan::bench(args = NODES)]
fn no_pod_yet(bencher: Bencher, nodes: usize) {
    let snapshot = Snapshot {
        buckets: divided((0..nodes).map(node).collect(), vec![], 1),
        ..settled(nodes, 1, Scheduling::default())
    };
    measure(bencher, &snapshot, nodes);
}

/// A new template, and a tenth of the nodes may be unavailable.
#[divan::bench(args = NODES)]
fn rolling_update(bencher: Bencher, nodes: usize) {
    let mut snapshot = settled(nodes, 1, Scheduling::default());
    snapshot.workload.template = template("img:2").into();
    measure(bencher, &snapshot, nodes);
}

/// One pod of a stable cluster has changed since the last plan.
#[divan::bench(args = NODES)]
fn one_pod_changed(bencher: Bencher, nodes: usize) {
    one_pod_changes(bencher, nodes, State::default());
}

/// The same in a rollout: the state has the names of a hundred pods that have been replaced.
#[divan::bench(args = NODES)]
fn one_pod_changed_and_names_are_held(bencher: Bencher, nodes: usize) {
    let used = |index| UsedPodName {
        node_name: node(index).name,
        pod_name: format!("agent-of-before-{index}"),
    };
    let state = State {
        used_pod_names: (nodes - 100..nodes).map(used).collect(),
        ..State::default()
    };
    one_pod_changes(bencher, nodes, state);
}

fn one_pod_changes(bencher: Bencher, nodes: usize, state: State) {
    let before = Snapshot {
        state,
        ..settled(nodes, BUCKETS, Scheduling::default())
    };
    let mut after = before.clone();
    let mut pods = before.buckets[0].pods.to_vec();
    pods[0].ready = false;
    after.buckets[0].pods = List::with_digest(pods, [1; 32]);
    let snapshots = [before, after];
    let mut cache = PlanCache::default();
    let mut turn = 0;
    bencher.counter(ItemsCount::new(nodes)).bench_local(|| {
        turn = 1 - turn;
        let snapshot = divan::black_box(&snapshots[turn]);
        cache.identify(&snapshot.buckets).expect("names are unique");
        nodewise_planner::daemonset::plan_until(snapshot, &mut cache, &|| false)
    });
}

fn measure(bencher: Bencher, snapshot: &Snapshot<DaemonSet>, nodes: usize) {
    bencher
        .counter(ItemsCount::new(nodes))
        .bench(|| nodewise_planner::daemonset::plan(divan::black_box(snapshot)));
}

/// A cluster with nothing to do: plans were applied until there was no action left.
fn settled(nodes: usize, buckets: usize, scheduling: Scheduling) -> Snapshot<DaemonSet> {
    let mut snapshot = Snapshot {
        now: Timestamp::UNIX_EPOCH,
        workload: daemon_set(scheduling),
        revisions: vec![],
        buckets: divided((0..nodes).map(node).collect(), vec![], buckets),
        state: State::default(),
        own_writes: vec![],
        options: Options {
            burst: nodes,
            ..Options::default()
        },
    };
    let first = nodewise_planner::daemonset::plan(&snapshot);
    let hash = first
        .rollout
        .as_ref()
        .map(|rollout| rollout.current_hash.clone())
        .expect("a rollout is described");
    snapshot.revisions = created_revisions(&first);
    snapshot.buckets = divided(
        (0..nodes).map(node).collect(),
        created_pods(&first, &hash),
        buckets,
    );
    snapshot.workload.status = nodewise_planner::daemonset::plan(&snapshot)
        .status
        .as_ref()
        .and_then(Status::daemon_set)
        .expect("nodes are counted");
    assert_eq!(
        nodewise_planner::daemonset::plan(&snapshot).verdict,
        Verdict::Noop,
        "the cluster has settled"
    );
    snapshot
}

/// Nodes and pods in buckets, each of which has a digest.
fn divided(nodes: Vec<Node>, pods: Vec<Pod>, buckets: usize) -> Vec<Bucket> {
    let number = |name: &str| {
        name.bytes()
            .filter(u8::is_ascii_digit)
            .fold(0_usize, |number, digit| number * 10 + usize::from(digit - b'0'))
    };
    let mut divided = Bucket::divide(nodes, pods, buckets, |name| number(name) % buckets);
    for (index, bucket) in divided.iter_mut().enumerate() {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&index.to_be_bytes());
        bucket.nodes = List::with_digest(bucket.nodes.to_vec(), digest);
        bucket.pods = List::with_digest(bucket.pods.to_vec(), digest);
    }
    divided
}

fn created_revisions(plan: &Plan) -> Vec<Revision> {
    let created = actions(plan, PhaseKind::Revisions).filter_map(|action| match action {
        ActionKind::CreateRevision { name, manifest } => {
            let object: Value = serde_json::from_slice(manifest).expect("a manifest is JSON");
            let labels = object["metadata"]["labels"]
                .as_object()
                .expect("a revision has labels");
            Some(Revision {
                name: name.clone(),
                uid: format!("{name}-uid"),
                labels: labels
                    .iter()
                    .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
                    .collect(),
                controller: Some(controller()),
                created: None,
                deleting: false,
                number: object["revision"].as_i64().expect("a revision has a number"),
                data: object["data"].clone().into(),
                read_after_name_collision: false,
            })
        }
        _ => None,
    });
    created.collect()
}

fn created_pods(plan: &Plan, hash: &str) -> Vec<Pod> {
    let created = actions(plan, PhaseKind::Creates).filter_map(|action| match action {
        ActionKind::CreatePod { pod_name, node_name } => Some(Pod {
            name: pod_name.clone(),
            uid: format!("{pod_name}-0123-4567-89ab-cdef"),
            labels: Labels::new(vec![
                ("app".to_owned(), "agent".to_owned()),
                ("controller-revision-hash".to_owned(), hash.to_owned()),
                ("pod-template-generation".to_owned(), "1".to_owned()),
            ]),
            controller: Some(controller().into()),
            target: Target::Bound(node_name.clone()),
            phase: PodPhase::Running,
            ready: true,
            ready_since: Some(Timestamp::UNIX_EPOCH),
            created: Some(Timestamp::UNIX_EPOCH),
            deleting: false,
            has_finalizers: false,
            deletion_cost: 0,
            restarts: 0,
            sidecar_restarts: 0,
        }),
        _ => None,
    });
    created.collect()
}

fn actions(plan: &Plan, kind: PhaseKind) -> impl Iterator<Item = &ActionKind> {
    let phases = plan.phases.iter().filter(move |phase| phase.kind == kind);
    let batches = phases.flat_map(|phase| &phase.batches);
    batches
        .flat_map(|batch| &batch.actions)
        .map(|action| &action.kind)
}

fn daemon_set(scheduling: Scheduling) -> DaemonSet {
    DaemonSet {
        name: "agent".to_owned(),
        namespace: "default".to_owned(),
        uid: "5f6d1c3a-agent".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(Selector {
            match_labels: Some(vec![("app".to_owned(), "agent".to_owned())]),
            match_expressions: None,
        }),
        template: template("img:1").into(),
        scheduling,
        strategy: UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable: Some(IntOrString::String("10%".to_owned())),
            max_surge: Some(IntOrString::Int(0)),
        })),
        min_ready_seconds: 0,
        revision_history_limit: Some(10),
        status: DaemonSetStatus::default(),
        collision_count: None,
        rollout: RolloutInputs::default(),
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]},
    })
}

fn constrained() -> Scheduling {
    let requirement = |key: &str, operator: &str, values: &[&str]| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let term = |requirement| NodeSelectorTerm {
        match_expressions: vec![requirement],
        match_fields: vec![],
    };
    Scheduling {
        node_selector: vec![("kubernetes.io/os".to_owned(), "linux".to_owned())],
        required_terms: Some(vec![
            term(requirement(
                "topology.kubernetes.io/zone",
                "In",
                &["zone-7", "zone-8"],
            )),
            term(requirement("kubernetes.io/arch", "NotIn", &["s390x"])),
        ]),
        ..Scheduling::default()
    }
}

/// Terms that each exclude a few values of a label.
fn compared_often(key: &str, values: &str) -> Scheduling {
    let term = |index: usize| NodeSelectorTerm {
        match_expressions: [
            "kubernetes.io/arch",
            "kubernetes.io/os",
            "node.kubernetes.io/instance-type",
            key,
        ]
        .map(|key| NodeSelectorRequirement {
            key: key.to_owned(),
            operator: "NotIn".to_owned(),
            values: (0..index).map(|value| format!("{values}-{value}")).collect(),
        })
        .to_vec(),
        match_fields: vec![],
    };
    Scheduling {
        required_terms: Some((1..=32).map(term).collect()),
        ..Scheduling::default()
    }
}

fn controller() -> ControllerRef {
    ControllerRef {
        kind: "DaemonSet".to_owned(),
        name: "agent".to_owned(),
        uid: "5f6d1c3a-agent".to_owned(),
    }
}

/// A node with the labels that a cloud provider sets. Every hundredth node is cordoned.
fn node(index: usize) -> Node {
    let name = format!("node-{index:06}");
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    let labels = [
        ("beta.kubernetes.io/arch", "amd64".to_owned()),
        ("beta.kubernetes.io/os", "linux".to_owned()),
        ("kubernetes.io/arch", "amd64".to_owned()),
        ("kubernetes.io/hostname", name.clone()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("node.kubernetes.io/instance-type", format!("type-{}", index % 5)),
        ("topology.kubernetes.io/region", "region-1".to_owned()),
        ("topology.kubernetes.io/zone", format!("zone-{}", index % 3)),
    ];
    Node {
        labels: labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        taints: if index.is_multiple_of(100) {
            vec![cordon]
        } else {
            vec![]
        },
        name,
        unschedulable: index.is_multiple_of(100),
        ready: Some(true),
        ready_since: None,
        in_maintenance: false,
    }
}
