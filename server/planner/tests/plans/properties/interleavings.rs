//! Properties under any sequence of plans, writes, cache updates and failures.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    daemonset::{DaemonSet, RollingUpdate, UpdateStrategy},
    plan::{ActionKind, PhaseKind, Plan, Reason},
    snapshot::{IntOrString, PodView, Snapshot, TaintEffect},
};
use proptest::prelude::*;

use super::keeps_bounds;
use super::world::{Event, World};
use crate::support::{Cluster, HASH_LABEL, actions};

/// The most nodes of a cluster.
const NODES: usize = 6;

fn sync() -> impl Strategy<Value = Event> {
    // Most actions succeed.
    (any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>()).prop_map(|(a, b, c, unclear)| Event::Sync {
        faults: a & b & c,
        unclear,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let index = || 0..16_usize;
    prop_oneof![
        8 => sync(),
        4 => Just(Event::Observe),
        4 => (1..4_usize).prop_map(Event::ObserveSome),
        4 => Just(Event::Vanish),
        6 => index().prop_map(Event::Ready),
        2 => index().prop_map(Event::Unready),
        2 => index().prop_map(Event::Fail),
        1 => index().prop_map(Event::Delete),
        1 => (index(), proptest::sample::select(&["a:NoSchedule", "a:NoExecute"][..]))
            .prop_map(|(node, taint)| Event::Taint(node, taint)),
        1 => index().prop_map(Event::Free),
        1 => index().prop_map(Event::Remove),
        1 => (0..NODES).prop_map(Event::Add),
        1 => (0..3_u8).prop_map(Event::Template),
        1 => Just(Event::Restart),
        2 => (0..20_u8).prop_map(Event::Wait),
        2 => Just(Event::LateCreate),
    ]
}

/// Events without those that remove pods outside of plans.
fn no_losses() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => sync(),
        4 => Just(Event::Observe),
        4 => (1..4_usize).prop_map(Event::ObserveSome),
        4 => Just(Event::Vanish),
        6 => (0..16_usize).prop_map(Event::Ready),
        1 => Just(Event::Restart),
        2 => (0..20_u8).prop_map(Event::Wait),
        2 => Just(Event::LateCreate),
    ]
}

/// Pairs of maxUnavailable and maxSurge that the apiserver accepts (D-115).
fn limits() -> impl Strategy<Value = (&'static str, &'static str)> {
    proptest::sample::select(
        &[
            ("1", "0"),
            ("2", "0"),
            ("40%", "0"),
            ("0", "1"),
            ("0", "3"),
            ("0%", "40%"),
        ][..],
    )
}

fn scaled(value: Option<&IntOrString>, desired: usize) -> usize {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => usize::try_from(*number).expect("the apiserver accepts it"),
        Some(IntOrString::String(text)) => {
            let percent: usize = text
                .trim_end_matches('%')
                .parse()
                .expect("the apiserver accepts it");
            (percent * desired).div_ceil(100)
        }
    }
}

fn is_available((ready, ready_since): (bool, Option<Timestamp>), min_ready: i32, now: Timestamp) -> bool {
    let since = |since: Timestamp| now.duration_since(since) >= SignedDuration::from_secs(min_ready.into());
    ready && (min_ready == 0 || ready_since.is_some_and(since))
}

/// The budgets of rolling updates, computed independently of the planner (D-41, D-45).
struct Budget {
    max_unavailable: usize,
    unavailable: usize,
    max_surge: usize,
    surging: usize,
}

impl Budget {
    fn of(snapshot: &Snapshot<DaemonSet>, hash: &str) -> Self {
        let mut entries: BTreeMap<&str, Vec<PodView<'_>>> = BTreeMap::new();
        for node in snapshot.nodes() {
            if node
                .taints()
                .iter()
                .all(|taint| taint.effect == TaintEffect::Other)
            {
                entries.insert(node.name(), vec![]);
            }
        }
        let desired = entries.len();
        for pod in snapshot.pods() {
            if !(pod.deleting() && pod.phase().is_terminal()) {
                entries
                    .entry(pod.target_node().expect("every pod has a node"))
                    .or_default()
                    .push(pod);
            }
        }
        let UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable,
            max_surge,
        })) = &snapshot.workload.strategy
        else {
            panic!("these worlds roll");
        };
        let min_ready = snapshot.workload.min_ready_seconds;
        let mut budget = Self {
            max_unavailable: scaled(max_unavailable.as_ref(), desired),
            unavailable: 0,
            max_surge: scaled(max_surge.as_ref(), desired),
            surging: 0,
        };
        for pods in entries.values() {
            let staying: Vec<PodView<'_>> = pods.iter().copied().filter(|pod| !pod.deleting()).collect();
            let available =
                |pod: PodView<'_>| is_available((pod.ready(), pod.ready_since()), min_ready, snapshot.now);
            let (new, old): (Vec<_>, Vec<_>) = staying
                .iter()
                .copied()
                .partition(|pod| pod.labels().get(HASH_LABEL) == Some(hash));
            let fine = matches!(staying[..], [only] if available(only));
            budget.unavailable += usize::from(!fine);
            let crowd = new.len() > 1 || old.len() > 1;
            let waiting = !new.is_empty() && !old.is_empty() && !new.iter().any(|pod| available(*pod));
            budget.surging += usize::from(crowd || waiting);
        }
        if desired > 0 && budget.max_unavailable == 0 && budget.max_surge == 0 {
            budget.max_unavailable = 1;
        }
        budget
    }
}

/// Checks that the plan exceeds no budget (D-41, D-42, D-45, D-46).
fn holds_budgets(snapshot: &Snapshot<DaemonSet>, plan: &Plan) -> Result<(), TestCaseError> {
    let Some(rollout) = &plan.rollout else {
        return Ok(());
    };
    let budget = Budget::of(snapshot, &rollout.current_hash);
    let count = |kind, reason| {
        actions(plan, kind)
            .into_iter()
            .filter(|action| action.reason == reason)
            .count()
    };
    let taken = count(PhaseKind::Deletes, Reason::RolloutWithinBudget);
    prop_assert!(
        taken <= budget.max_unavailable.saturating_sub(budget.unavailable),
        "D-42: {}",
        taken
    );
    let surged = count(PhaseKind::Creates, Reason::SurgeWithinBudget);
    prop_assert!(
        surged <= budget.max_surge.saturating_sub(budget.surging),
        "D-46: {}",
        surged
    );
    prop_assert!(
        taken == 0 || budget.max_surge == 0,
        "D-45: maxUnavailable plays no part"
    );

    let pods: BTreeMap<&str, PodView<'_>> = snapshot.pods().map(|pod| (pod.uid(), pod)).collect();
    let deleted: Vec<&str> = actions(plan, PhaseKind::Deletes)
        .into_iter()
        .filter_map(|action| match &action.kind {
            ActionKind::DeletePod { pod, .. } => Some(pod.uid.as_str()),
            _ => None,
        })
        .collect();
    for (uid, action) in deleted.iter().zip(actions(plan, PhaseKind::Deletes)) {
        let pod = pods[uid];
        let available = |pod: PodView<'_>| {
            is_available(
                (pod.ready(), pod.ready_since()),
                snapshot.workload.min_ready_seconds,
                snapshot.now,
            )
        };
        let stays = |other: &&PodView<'_>| {
            other.target_node() == pod.target_node() && !other.deleting() && !deleted.contains(&other.uid())
        };
        match action.reason {
            Reason::RolloutOldUnavailable => prop_assert!(!available(pod), "D-42"),
            // If an excess pod is deleted, another pod stays.
            Reason::ExcessPod | Reason::SurgeOldNotReady => {
                prop_assert!(pods.values().any(|pod| stays(&pod)), "D-31, D-34");
            }
            Reason::SurgeNewAvailable => {
                prop_assert!(
                    pods.values().filter(stays).any(|pod| available(*pod)),
                    "D-34, D-45"
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that each node has at most one live pod, or with surge two of different templates.
fn holds_one_pod_a_node(world: &World, surge: bool) -> Result<(), TestCaseError> {
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in world
        .live
        .pods
        .iter()
        .filter(|pod| !pod.deleting && !pod.phase.is_terminal())
    {
        let hash = pod.labels.get(HASH_LABEL).unwrap_or_default();
        nodes
            .entry(pod.target.node().expect("every pod has a node"))
            .or_default()
            .push(hash);
    }
    for (node, mut hashes) in nodes {
        let count = hashes.len();
        prop_assert!(count <= 1 + usize::from(surge), "{} has {} pods", node, count);
        hashes.sort_unstable();
        hashes.dedup();
        prop_assert_eq!(hashes.len(), count, "{} has two pods of one template", node);
    }
    Ok(())
}

/// Checks that no pod gets the name of the pod that it replaces.
fn holds_new_names(world: &World, plan: &Plan) -> Result<(), TestCaseError> {
    for action in actions(plan, PhaseKind::Creates) {
        if let ActionKind::CreatePod { pod_name, node_name } = &action.kind {
            prop_assert_ne!(world.vanished_from(node_name), Some(pod_name.as_str()), "D-82");
        }
    }
    Ok(())
}

/// Checks that every node that should run a pod has one of the current template, and that no node has a pod that it must not have.
fn holds_what_was_asked_for(world: &World) -> Result<(), TestCaseError> {
    let hash = world.live.current_hash();
    for node in &world.live.nodes {
        let (run, keep) = world.may(&node.name).expect("the node exists");
        let pods: Vec<_> = world
            .live
            .pods
            .iter()
            .filter(|pod| pod.target.node() == Some(&node.name))
            .collect();
        let most = usize::from(keep);
        prop_assert!(
            pods.len() <= most && (!run || pods.len() == 1),
            "{:?}: {:?}",
            node,
            pods
        );
        if run {
            prop_assert_eq!(pods[0].labels.get(HASH_LABEL), Some(hash.as_str()));
        }
    }
    let status = world.live.ds.status;
    prop_assert_eq!(status.observed_generation, world.live.ds.generation);
    prop_assert_eq!(status.desired_number_scheduled, status.number_available);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn budgets_hold_and_the_cluster_converges(
        nodes in 1..=NODES,
        (max_unavailable, max_surge) in limits(),
        min_ready in prop_oneof![Just(0), Just(10)],
        gate in any::<bool>(),
        rolling in any::<bool>(),
        events in proptest::collection::vec(any_event(), 0..60),
    ) {
        let mut cluster = Cluster::new(nodes).rolling(max_unavailable, max_surge).min_ready(min_ready);
        if rolling {
            cluster = cluster.with_old_pods();
        }
        let mut world = World::new(cluster, gate);
        for event in &events {
            if let Some((snapshot, plan)) = world.happen(event) {
                keeps_bounds(&snapshot, &plan)?;
                holds_budgets(&snapshot, &plan)?;
                holds_one_pod_a_node(&world, max_surge != "0")?;
                holds_new_names(&world, &plan)?;
            }
        }
        world.converge().map_err(TestCaseError::fail)?;
        holds_what_was_asked_for(&world)?;
    }

    // If no pod fails, a rollout never leaves more than maxUnavailable nodes without an available pod.
    #[test]
    fn a_rollout_keeps_enough_pods_available(
        nodes in 1..=NODES,
        (max_unavailable, max_surge) in limits(),
        min_ready in prop_oneof![Just(0), Just(10)],
        gate in any::<bool>(),
        events in proptest::collection::vec(no_losses(), 0..80),
    ) {
        let cluster = Cluster::new(nodes).rolling(max_unavailable, max_surge).min_ready(min_ready).with_old_pods();
        let mut world = World::new(cluster, gate);
        world.change_template("img:2");
        let down = if max_surge == "0" || max_surge == "0%" {
            scaled(crate::support::int_or_string(max_unavailable).as_ref(), nodes)
        } else {
            0
        };
        for event in &events {
            if let Some((snapshot, plan)) = world.happen(event) {
                keeps_bounds(&snapshot, &plan)?;
                holds_budgets(&snapshot, &plan)?;
            }
            let available = world.live.nodes.iter().filter(|node| {
                world.live.pods.iter().any(|pod| {
                    pod.target.node() == Some(&node.name)
                        && !pod.deleting
                        && is_available((pod.ready, pod.ready_since), min_ready, world.live.now)
                })
            });
            let available = available.count();
            prop_assert!(available + down >= nodes, "{} of {} available", available, nodes);
        }
        world.converge().map_err(TestCaseError::fail)?;
        holds_what_was_asked_for(&world)?;
    }
}
