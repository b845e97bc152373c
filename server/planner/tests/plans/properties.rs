//! Properties that hold for every snapshot and every sequence of events.

mod interleavings;
mod plan_cache;
mod policies;
mod simulated;
mod world;

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    daemonset::{
        DaemonSet, UpdateStrategy,
        explain::{NodeState, PodExplanation},
    },
    plan::{ActionKind, NodeCounts, Plan, Reason},
    snapshot::{
        Bucket, Deviation, Expectations, ExpectedCreate, FailedPodBackoff, NodeView, Options, OwnWrite,
        PodView, Scope, Snapshot,
    },
};
use proptest::prelude::*;

use crate::support::{Cluster, collision, pod_changes, taint, used};

/// Words that describe a pod. The nodes `gone` and `lost` do not exist.
const NODES: [&str; 6] = ["node-0", "node-1", "node-2", "node-3", "gone", "lost"];
const TEMPLATES: [&str; 4] = ["new", "old", "by-generation", "stray"];
const OWNERS: [&str; 4] = ["", "", "orphan", "foreign"];
const TARGETS: [&str; 4] = ["", "", "unbound", "nowhere"];
const STATES: [&str; 6] = ["ready", "unready", "pending", "failed", "succeeded", "since=995"];
const LIMITS: [&str; 10] = ["0", "1", "2", "-1", "0%", "30%", "100%", "\"3\"", "x%", "-"];
const TAINTS: [&str; 4] = [
    "a:NoSchedule",
    "a:NoExecute",
    "a:PreferNoSchedule",
    "node.kubernetes.io/not-ready:NoExecute",
];

fn pick(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

fn pod() -> impl Strategy<Value = String> {
    (
        pick(&NODES),
        pick(&TEMPLATES),
        pick(&OWNERS),
        pick(&TARGETS),
        pick(&STATES),
        any::<bool>(),
        0..4_u8,
    )
        .prop_map(|(node, template, owner, target, state, deleting, created)| {
            let deleting = if deleting { "deleting" } else { "" };
            format!("@{node} {template} {state} t={created} {owner} {target} {deleting}")
        })
}

/// Times, including the least and the greatest.
fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (900..1_100_i64).prop_map(|seconds| Timestamp::from_second(seconds).expect("in range")),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let deviations = proptest::sample::subsequence(Deviation::ALL.to_vec(), 0..=Deviation::ALL.len());
    (deviations, 0..6_usize, any::<bool>()).prop_map(|(deviations, burst, operators)| Options {
        deviations: deviations.into_iter().collect(),
        toleration_comparison_operators: operators,
        burst,
        ..Options::default()
    })
}

/// Snapshots with any pods, taints, limits, state and clock, valid or not.
fn anything() -> impl Strategy<Value = Snapshot<DaemonSet>> {
    let objects = (
        proptest::collection::vec(pod(), 0..12),
        proptest::collection::vec(proptest::option::of(pick(&TAINTS)), 4),
        (
            pick(&LIMITS),
            pick(&LIMITS),
            any::<bool>(),
            prop_oneof![Just(0), Just(10), any::<i32>()],
        ),
    );
    let state = (
        moment(),
        proptest::option::of((moment(), pick(&NODES))),
        proptest::collection::vec(
            (0..2_i64, pick(&NODES), any::<std::time::Duration>(), moment()),
            0..4,
        ),
        (
            proptest::collection::vec((pick(&NODES), any::<u32>()), 0..3),
            proptest::collection::vec((pick(&NODES), "pod-[0-9]"), 0..3),
        ),
        proptest::collection::vec(("[0-9a]{0,3}", "[0-9a]{0,3}"), 0..2),
    );
    (objects, state, options(), any::<bool>()).prop_map(|((pods, taints, limits), state, options, rolled)| {
        let mut cluster = Cluster::new(4);
        for (index, text) in pods.iter().enumerate() {
            cluster.pod(&format!("pod-{index}{text}"));
        }
        for (node, key) in cluster.nodes.iter_mut().zip(taints) {
            node.taints = key.into_iter().map(taint).collect();
        }
        let (max_unavailable, max_surge, on_delete, min_ready) = limits;
        cluster = if on_delete {
            cluster.on_delete()
        } else {
            cluster.rolling(max_unavailable, max_surge)
        };
        cluster.ds.min_ready_seconds = min_ready;
        cluster.ds.annotations.push((
            "deprecated.daemonset.template.generation".to_owned(),
            "1".to_owned(),
        ));
        if rolled {
            cluster.change_template("img:2");
        }
        cluster.options = options;
        let (now, expected, backoffs, (collisions, gone), writes) = state;
        cluster.now = now;
        cluster.state.expectations = expected.map(|(set_at, node)| Expectations {
            set_at,
            creates: vec![ExpectedCreate {
                pod_name: String::new(),
                node_name: node.to_owned(),
            }],
            delete_uids: vec![],
        });
        let backoffs = backoffs
            .into_iter()
            .map(|(observed_generation, node, delay, last)| FailedPodBackoff {
                observed_generation,
                node_name: node.to_owned(),
                delay,
                last,
            });
        cluster.state.failed_pod_backoffs = backoffs.collect();
        cluster.state.pod_name_collisions = collisions
            .into_iter()
            .map(|(node, count)| collision(node, count, count % 5))
            .collect();
        cluster.state.used_pod_names = gone.iter().map(|(node, pod)| used(node, pod)).collect();
        let mut snapshot = cluster.snapshot();
        snapshot.own_writes = writes
            .into_iter()
            .map(|(written, observed)| OwnWrite {
                resource: "pods".to_owned(),
                written,
                observed,
            })
            .collect();
        snapshot
    })
}

/// Snapshots beside another controller. Most workloads ask for rollouts.
fn beside() -> impl Strategy<Value = Snapshot<DaemonSet>> {
    (anything(), pick(&LIMITS), 0..8_u8).prop_map(|(mut snapshot, budget, chance)| {
        snapshot.options.scope = Scope::Rollouts;
        let ds = &mut snapshot.workload;
        if chance > 0 {
            ds.strategy = UpdateStrategy::OnDelete;
        }
        if chance > 1 {
            let annotation = ("nodewise.dev/rollout".to_owned(), "managed".to_owned());
            ds.annotations.push(annotation);
        }
        let budget = budget.trim_matches('"').to_owned();
        ds.annotations
            .push(("nodewise.dev/max-unavailable".to_owned(), budget));
        ds.annotations.sort();
        snapshot
    })
}

/// The same snapshot with its lists in another order and in other buckets.
fn shuffled(snapshot: &Snapshot<DaemonSet>, seed: u64, buckets: usize) -> Snapshot<DaemonSet> {
    let mut other = snapshot.clone();
    let mut nodes: Vec<_> = snapshot.nodes().map(NodeView::to_node).collect();
    let mut pods: Vec<_> = snapshot.pods().map(PodView::to_pod).collect();
    shuffle(&mut nodes, seed);
    shuffle(&mut pods, seed);
    other.buckets = Bucket::divide(nodes, pods, buckets, |name| bucket_of(name, seed) % buckets);
    shuffle(&mut other.revisions, seed);
    other
}

/// A number for a node's name, to choose a bucket. It depends on the seed.
fn bucket_of(name: &str, seed: u64) -> usize {
    let hash = name.bytes().fold(seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    usize::try_from(hash >> 33).expect("31 bits")
}

/// The Fisher-Yates shuffle. The same seed gives the same order.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for index in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = (seed >> 33) % (index as u64 + 1);
        items.swap(index, usize::try_from(other).expect("it is an index"));
    }
}

/// The checks with which executors reject a plan (W15 of docs/writing-an-executor.md).
fn keeps_bounds(snapshot: &Snapshot<DaemonSet>, plan: &Plan) -> Result<(), TestCaseError> {
    let (creates, deletes) = pod_changes(plan);
    let burst = snapshot.options.burst;
    prop_assert!(creates.len() <= burst && deletes.len() <= burst);
    let actions = plan
        .phases
        .iter()
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions);
    let revisions = actions.filter(|action| matches!(action.kind, ActionKind::CreateRevision { .. }));
    prop_assert!(revisions.count() <= 1);
    let is_own = |pod: &PodView<'_>| {
        pod.controller()
            .is_some_and(|controller| controller.uid == snapshot.workload.uid)
    };
    let lives = |pod: &PodView<'_>| !pod.deleting() && !pod.phase().is_terminal();
    // The plan releases pods that the selector does not match.
    let selector = snapshot.workload.selector.as_ref();
    let is_selected = |pod: &PodView<'_>| selector.is_some_and(|selector| selector.selects(pod.labels()));
    let mut nodes = HashSet::new();
    for node in creates {
        prop_assert!(nodes.insert(node), "one create for {node}");
        prop_assert!(
            snapshot.nodes().any(|known| known.name() == node),
            "{node} exists"
        );
        let on_node = snapshot.pods().filter(|pod| pod.target_node() == Some(node));
        let live = on_node.filter(is_own).filter(is_selected).filter(lives).count();
        prop_assert!(live <= 1, "{node} has {live} pods already");
    }
    Ok(())
}

proptest! {
    // random choices of upstream are made in a fixed order.
    #[test]
    fn shuffled_input_gives_the_same_plan(snapshot in anything(), seed in any::<u64>(), buckets in 1..5_usize) {
        let other = shuffled(&snapshot, seed, buckets);
        let (plan, same) = (nodewise_planner::daemonset::plan(&snapshot), nodewise_planner::daemonset::plan(&other));
        prop_assert_eq!(format!("{plan:?}"), format!("{same:?}"));
        prop_assert_eq!(nodewise_planner::daemonset::explain(&snapshot, None), nodewise_planner::daemonset::explain(&other, None));
    }

    // D-75, D-71: the form of a plan.
    #[test]
    fn plans_are_well_formed(snapshot in prop_oneof![3 => anything(), 1 => beside()]) {
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        prop_assert!(plan.phases.is_sorted_by(|a, b| a.kind < b.kind), "each phase once and in order");
        for phase in &plan.phases {
            prop_assert!(!phase.batches.is_empty() && phase.batches.iter().all(|batch| !batch.actions.is_empty()));
        }
        let creates = pod_changes(&plan).0;
        let burst = snapshot.options.burst;
        prop_assert_eq!(plan.pod_manifest.is_some(), !creates.is_empty());
        keeps_bounds(&snapshot, &plan)?;
        for action in plan.phases.iter().flat_map(|phase| &phase.batches).flat_map(|batch| &batch.actions) {
            prop_assert!(!action.message.is_empty());
        }
        prop_assert!(plan.deviations.is_subset(&snapshot.options.deviations));
        if let Some(requeue) = &plan.requeue {
            prop_assert!(!requeue.reason.is_empty());
            prop_assert!(!requeue.delay.is_zero() || creates.len() == burst, "only what the burst cut goes on at once");
        }
    }

    // Beside another controller, Nodewise only deletes old pods, within the budget, of workloads that ask for it.
    #[test]
    fn a_companion_deletes_old_pods_within_the_budget(snapshot in beside(), seed in any::<u64>()) {
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        let asks = snapshot.workload.annotations.iter().any(|(key, _)| key == "nodewise.dev/rollout");
        let mut within_budget = 0;
        for action in plan.phases.iter().flat_map(|phase| &phase.batches).flat_map(|batch| &batch.actions) {
            match (&action.kind, action.reason) {
                (ActionKind::EmitEvent { .. }, Reason::InvalidAnnotation) => prop_assert!(asks),
                (ActionKind::DeletePod { .. }, Reason::RolloutOldUnavailable) => {}
                (ActionKind::DeletePod { .. }, Reason::RolloutWithinBudget) => within_budget += 1,
                other => prop_assert!(false, "{:?} is not allowed here", other),
            }
            prop_assert!(asks && snapshot.revisions.iter().any(|revision| revision.controller.is_some()));
        }
        if within_budget > 0 {
            let rollout = plan.rollout.as_ref().expect("it was decided about");
            prop_assert!(rollout.unavailable + within_budget <= rollout.max_unavailable);
        }
        let same = nodewise_planner::daemonset::plan(&shuffled(&snapshot, seed, 3));
        prop_assert_eq!(format!("{plan:?}"), format!("{same:?}"));
    }

    // Each node that should run a pod is counted once, settled or not.
    #[test]
    fn nodes_are_counted_once_by_what_they_have(snapshot in prop_oneof![3 => anything(), 1 => beside()]) {
        let snapshot = Snapshot { own_writes: vec![], ..snapshot };
        if let Some(rollout) = nodewise_planner::daemonset::plan(&snapshot).rollout {
            let mut expected = NodeCounts::default();
            for node in nodewise_planner::daemonset::explain(&snapshot, None).iter().filter(|node| node.should_run) {
                let is_there = |pod: &&PodExplanation| !(pod.deleting && pod.phase.is_terminal());
                let pods: Vec<_> = node.pods.iter().filter(is_there).collect();
                let updated = || pods.iter().filter(|pod| pod.updated);
                *match () {
                    () if pods.is_empty() => &mut expected.without_pod,
                    () if updated().count() == 0 => &mut expected.outdated,
                    () if updated().any(|pod| pod.available && !pod.deleting) => &mut expected.updated_available,
                    () => &mut expected.updated_unavailable,
                } += 1;
            }
            prop_assert_eq!(rollout.nodes, expected);
            let NodeCounts { without_pod, outdated, updated_unavailable, updated_available } = rollout.nodes;
            prop_assert_eq!(without_pod + outdated + updated_unavailable + updated_available, rollout.desired);
        }
    }

    // The explanation of a node agrees with the actions of the plan there.
    #[test]
    fn explanations_agree_with_the_plan(snapshot in prop_oneof![3 => anything(), 1 => beside()]) {
        let snapshot = Snapshot { own_writes: vec![], ..snapshot };
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        let explained = nodewise_planner::daemonset::explain(&snapshot, None);
        prop_assert!(explained.is_sorted_by(|a, b| a.node_name < b.node_name));
        let (creates, deletes) = pod_changes(&plan);
        for node in &explained {
            let created = creates.contains(&node.node_name.as_str());
            let deleted = node.pods.iter().any(|pod| deletes.contains(&pod.pod_name.as_str()));
            let changes = matches!(node.state, NodeState::Missing | NodeState::BeingReplaced | NodeState::MustNotRun);
            prop_assert!(changes || !(created || deleted), "{:?}", node);
            prop_assert!(node.should_run || !created, "{:?}", node);
            if matches!(snapshot.workload.strategy, UpdateStrategy::RollingUpdate(_)) && node.state == NodeState::Runs {
                prop_assert!(node.pods.iter().any(|pod| pod.updated && !pod.deleting), "{:?}", node);
            }
        }
    }

    // D-97, D-95: a plan neither drops nor shortens a running back-off.
    #[test]
    fn backoffs_only_grow_or_expire(snapshot in anything()) {
        let after = nodewise_planner::daemonset::plan(&Snapshot { own_writes: vec![], ..snapshot.clone() }).state;
        for entry in &snapshot.state.failed_pod_backoffs {
            let age = snapshot.now.duration_since(entry.last);
            if age > SignedDuration::from_mins(30) || age.is_negative() {
                continue;
            }
            let kept = after.failed_pod_backoffs.iter().any(|other| {
                (other.observed_generation, &other.node_name) == (entry.observed_generation, &entry.node_name)
                    && other.last >= entry.last
            });
            prop_assert!(kept, "{:?} is in {:?}", entry, after.failed_pod_backoffs);
        }
    }
}
