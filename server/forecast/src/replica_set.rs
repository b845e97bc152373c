//! Plays a ReplicaSet.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use nodewise_planner::{
    plan::Status,
    replicaset::ReplicaSet,
    snapshot::{Options, Pod, PodView, Snapshot},
};

use crate::{
    Assumptions, Bounds, Budget, Counts, End, Error, Forecast, Step, failing,
    recorder::{self, Recorder},
    set_play::SetPlay,
    world::{self, World},
};

/// The node of new pods if no pod is on a node yet.
const ANY_NODE: &str = "any";

/// Plays the snapshot of a ReplicaSet until it has its pods, as [`crate::daemon_set()`] does. New pods go to the nodes on which there
/// are pods already.
///
/// # Errors
///
/// The ReplicaSet wants more replicas than the bounds allow, or two pods have the same name.
pub fn replica_set(
    snapshot: Snapshot<ReplicaSet>,
    assumptions: &Assumptions,
    bounds: &Bounds,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Step) -> ControlFlow<()>,
) -> Result<Forecast, Error> {
    let desired = desired(snapshot.workload.replicas, snapshot.pods().count(), bounds)?;
    let mut recorder = Recorder::new(*bounds, stop, each).without_nodes();
    let Some(mut world) = world(&snapshot, assumptions, desired, stop)? else {
        return Ok(recorder.finish(End::Cancelled, 0));
    };
    let Snapshot {
        workload,
        options,
        now,
        ..
    } = snapshot;
    let mut related = Related::of(&workload.related_pods);
    let mut play = SetPlay::new(workload, options, now);
    for pod in world.pods() {
        play.see(None, Some(pod));
    }
    world.catch_up();
    let end = run(&mut play, &mut world, &mut related, desired, &mut recorder);
    Ok(recorder.finish(end, world.failed_pods))
}

fn run(
    set: &mut SetPlay,
    world: &mut World,
    related: &mut Related,
    desired: u32,
    recorder: &mut Recorder<'_>,
) -> End {
    let mut counts = Counts {
        desired,
        ..Counts::default()
    };
    // A ReplicaSet has no budget: all of its pods may be unavailable.
    let budget = Budget {
        max_unavailable: desired,
        max_surge: 0,
    };
    loop {
        set.snapshot.workload.related_pods = related.to_vec();
        let Some(plan) = set.plan(world, recorder.stop()) else {
            return End::Cancelled;
        };
        if let Some(Status::ReplicaSet(status)) = &plan.status {
            let number = |count: i32| u32::try_from(count).unwrap_or_default();
            let (all, available) = (number(status.replicas), number(status.available_replicas));
            counts = Counts {
                desired,
                updated: all.min(desired),
                ready: number(status.ready_replicas),
                available,
                unavailable: desired.saturating_sub(available),
                surging: all.saturating_sub(desired),
            };
        }
        let left = counts.available.saturating_sub(set.available_pods_that_go(&plan));
        let worst = desired.saturating_sub(left);
        recorder.add(world.elapsed(), &plan, counts, budget, worst);
        let wrote = recorder::writes(&plan);
        set.apply(world, &plan);
        show(set, world, related);
        if recorder.is_stopped() {
            return End::Cancelled;
        }
        if wrote && recorder.may_plan_again() {
            continue;
        }
        let wait = set.wait(world.elapsed());
        let next = world.ticks_to(wait);
        let next = next.map(|ticks| world.elapsed() + std::time::Duration::from_secs(ticks));
        if let Some(end) = recorder.close(next) {
            return end;
        }
        let is_complete = (counts.updated, counts.available, counts.surging) == (desired, desired, 0);
        if !wrote && is_complete && !world.pods().any(|pod| pod.deleting) {
            return End::Done;
        }
        if recorder.is_idle() || !world.skip(wait) {
            let unready = world.unready();
            return End::Stuck {
                cause: plan
                    .error
                    .unwrap_or_else(|| format!("{} without an available pod", stay(counts.unavailable))),
                blocking: world::named(&unready),
            };
        }
        show(set, world, related);
    }
}

fn show(set: &mut SetPlay, world: &mut World, related: &mut Related) {
    for (before, after) in world.catch_up() {
        related.see(before.as_ref(), after.as_ref());
        set.see(before.as_ref(), after.as_ref());
    }
}

/// `3 replicas stay`.
pub(crate) fn stay(replicas: u32) -> String {
    match replicas {
        1 => "1 replica stays".to_owned(),
        more => format!("{more} replicas stay"),
    }
}

/// spec.replicas, if neither these nor the pods are too many.
pub(crate) fn desired(replicas: i32, pods: usize, bounds: &Bounds) -> Result<u32, Error> {
    let desired = u32::try_from(replicas).unwrap_or_default();
    let wanted = usize::try_from(desired).unwrap_or(usize::MAX);
    for (what, found) in [("replicas", wanted), ("pods", pods)] {
        if found > bounds.nodes.saturating_mul(if what == "pods" { 2 } else { 1 }) {
            return Err(Error::TooLarge {
                what,
                found,
                most: bounds.nodes,
            });
        }
    }
    Ok(desired)
}

/// A cluster with the pods of a snapshot, and their nodes. `None` if stopped.
pub(crate) fn world<W>(
    snapshot: &Snapshot<W>,
    assumptions: &Assumptions,
    desired: u32,
    stop: &dyn Fn() -> bool,
) -> Result<Option<World>, Error>
where
    Snapshot<W>: InNamespace,
{
    let mut world = World::new(snapshot.namespace(), *assumptions, snapshot.now);
    let most = usize::try_from(desired).unwrap_or(usize::MAX);
    world.failing.numbers = failing::choose_numbers(most, assumptions.failing, assumptions.seed);
    let nodes: BTreeSet<&str> = snapshot.pods().filter_map(PodView::target_node).collect();
    let any = nodes.is_empty().then_some(ANY_NODE);
    for node in nodes.into_iter().chain(any) {
        world.cluster.add_node(node, &[]);
    }
    for pod in snapshot.pods() {
        if stop() {
            return Ok(None);
        }
        world.load_pod(pod.to_pod())?;
    }
    Ok(Some(world))
}

/// A snapshot whose workload has a namespace.
pub(crate) trait InNamespace {
    /// metadata.namespace of the workload.
    fn namespace(&self) -> &str;
}

impl InNamespace for Snapshot<ReplicaSet> {
    fn namespace(&self) -> &str {
        &self.workload.namespace
    }
}

impl InNamespace for Snapshot<nodewise_planner::deployment::Deployment> {
    fn namespace(&self) -> &str {
        &self.workload.namespace
    }
}

/// The number of live pods on each node.
pub(crate) struct Related(BTreeMap<String, u32>);

impl Related {
    /// With these pods.
    pub(crate) fn of(pods: &[(String, u32)]) -> Self {
        Self(pods.iter().cloned().collect())
    }

    /// Sees a change of a pod.
    pub(crate) fn see(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        let live = |pod: Option<&Pod>| {
            let pod = pod.filter(|pod| !pod.deleting && !pod.phase.is_terminal())?;
            pod.target.node().map(str::to_owned)
        };
        if let Some(count) = live(before).and_then(|node| self.0.get_mut(&node)) {
            *count = count.saturating_sub(1);
        }
        if let Some(node) = live(after) {
            let count = self.0.entry(node).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Sorted by node.
    pub(crate) fn to_vec(&self) -> Vec<(String, u32)> {
        let counted = self.0.iter().filter(|(_, count)| **count > 0);
        counted.map(|(node, count)| (node.clone(), *count)).collect()
    }
}

/// The options for the ReplicaSets of a Deployment.
pub(crate) fn options_of_sets(options: &Options) -> Options {
    Options {
        burst: Options::REPLICA_SET_BURST,
        ..options.clone()
    }
}
