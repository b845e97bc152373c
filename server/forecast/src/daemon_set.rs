//! Plays a DaemonSet.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::ControlFlow,
};

use nodewise_planner::{
    daemonset::{self, DaemonSet, UpdateStrategy, plan_cache::PlanCache},
    plan::{Action, ActionKind, Plan, Rollout, Status},
    report::OutcomeResult,
    rollout::status::State,
    snapshot::{Bucket, Pod, Snapshot},
};
use nodewise_simulator::{Patch, Resource};
use serde_json::Value;

use crate::{
    Assumptions, Bounds, Budget, Counts, End, Error, Forecast, Step, failing, objects, policies,
    recorder::{self, Recorder},
    world::{self, World},
};

/// Plays the snapshot of a DaemonSet to its end. `each` gets each step, and may end the play. `stop` is polled.
///
/// # Errors
///
/// The snapshot has more nodes than the bounds allow, or two objects with the same name.
pub fn daemon_set(
    snapshot: Snapshot<DaemonSet>,
    assumptions: &Assumptions,
    bounds: &Bounds,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Step) -> ControlFlow<()>,
) -> Result<Forecast, Error> {
    let found = snapshot.nodes().count();
    if found > bounds.nodes {
        return Err(Error::TooLarge {
            what: "nodes",
            found,
            most: bounds.nodes,
        });
    }
    let mut recorder = Recorder::new(*bounds, stop, each);
    let Some(mut play) = Play::new(snapshot, assumptions, stop)? else {
        return Ok(recorder.finish(End::Cancelled, 0));
    };
    let end = play.run(&mut recorder);
    let forecast = recorder.finish(end, play.world.failed_pods);
    Ok(Forecast {
        failing_nodes: play.world.failing.nodes.into_iter().collect(),
        ..forecast
    })
}

struct Play {
    snapshot: Snapshot<DaemonSet>,
    world: World,
    cache: PlanCache,
    /// The index of the bucket of each node.
    bucket_of: HashMap<String, usize>,
    /// The pods of each bucket, by name.
    buckets: Vec<BTreeMap<String, Pod>>,
    versions: u64,
    counts: Counts,
    rollout: Rollout,
}

impl Play {
    /// `None` if stopped.
    fn new(
        mut snapshot: Snapshot<DaemonSet>,
        assumptions: &Assumptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Error> {
        let mut world = World::new(&snapshot.workload.namespace, *assumptions, snapshot.now);
        let Some(failing) = failing_nodes(&snapshot, assumptions, stop) else {
            return Ok(None);
        };
        world.failing.nodes = failing;
        let mut bucket_of = HashMap::new();
        let mut buckets = vec![BTreeMap::new(); snapshot.buckets.len()];
        for (index, bucket) in snapshot.buckets.iter().enumerate() {
            for node in bucket.nodes.iter() {
                world.cluster.add_node(node.name(), &[]);
                if node.ready() == Some(false) {
                    // The node was added just now.
                    let _ = world.cluster.break_node(node.name());
                }
                bucket_of.insert(node.name().to_owned(), index);
            }
        }
        for (index, bucket) in snapshot.buckets.iter().enumerate() {
            for pod in bucket.pods.iter() {
                if stop() {
                    return Ok(None);
                }
                if let Some(node) = pod.target_node() {
                    bucket_of.entry(node.to_owned()).or_insert(index);
                }
                world.load_pod(pod.to_pod())?;
                buckets[index].insert(pod.name().to_owned(), pod.to_pod());
            }
        }
        for revision in &snapshot.revisions {
            let object = objects::revision_json(revision);
            let loaded = world
                .cluster
                .load(Resource::Revisions, &snapshot.workload.namespace, object);
            loaded.map_err(|refusal| world::refused(format!("revision {}", revision.name), refusal))?;
        }
        snapshot.state = nodewise_planner::snapshot::State {
            expectations: None,
            ..snapshot.state
        };
        snapshot.own_writes = Vec::new();
        let mut play = Self {
            snapshot,
            world,
            cache: PlanCache::default(),
            bucket_of,
            buckets,
            versions: 0,
            counts: Counts::default(),
            rollout: Rollout::default(),
        };
        play.number_nodes();
        play.show();
        Ok(Some(play))
    }

    /// Gives the nodes digests, so that plans need not look at unchanged ones again.
    fn number_nodes(&mut self) {
        for bucket in &mut self.snapshot.buckets {
            self.versions += 1;
            let mut digest = [1; 32];
            digest[..8].copy_from_slice(&self.versions.to_le_bytes());
            bucket.nodes = bucket.nodes.numbered(digest);
        }
        for index in 0..self.buckets.len() {
            self.show_bucket(index);
        }
    }

    /// Shows the planner the present state.
    fn show(&mut self) {
        let mut changed = HashSet::new();
        for (before, after) in self.world.catch_up() {
            let Snapshot { workload, state, .. } = &mut self.snapshot;
            world::note_used_name(
                state,
                ("DaemonSet", &workload.uid),
                before.as_ref(),
                after.as_ref(),
            );
            for (pod, is_there) in [(before, false), (after, true)] {
                let Some(pod) = pod else { continue };
                let node = pod.target.node().unwrap_or_default();
                let index = *self.bucket_of.get(node).unwrap_or(&0);
                let Some(bucket) = self.buckets.get_mut(index) else {
                    continue;
                };
                changed.insert(index);
                if is_there {
                    bucket.insert(pod.name.clone(), pod);
                } else {
                    bucket.remove(&pod.name);
                }
            }
        }
        for index in changed {
            self.show_bucket(index);
        }
        self.snapshot.now = self.world.now();
    }

    fn show_bucket(&mut self, index: usize) {
        self.versions += 1;
        let pods = self.buckets[index].values().cloned().collect();
        let Bucket { pods: shown, .. } = &mut self.snapshot.buckets[index];
        *shown = world::list(pods, self.versions);
    }

    fn run(&mut self, recorder: &mut Recorder<'_>) -> End {
        loop {
            let Some(plan) = daemonset::plan_until(&self.snapshot, &mut self.cache, recorder.stop()) else {
                return End::Cancelled;
            };
            self.read(&plan);
            let deleted = self.available_nodes_that_lose_their_pod(&plan);
            let worst = self.counts.unavailable.saturating_add(deleted);
            recorder.add(self.world.elapsed(), &plan, self.counts, self.budget(), worst);
            let wrote = recorder::writes(&plan);
            self.apply(&plan);
            self.show();
            if recorder.is_stopped() {
                return End::Cancelled;
            }
            if wrote && recorder.may_plan_again() {
                continue;
            }
            let requeue = plan.requeue.as_ref().map(|requeue| requeue.delay);
            let ticks = self.world.ticks_to(requeue);
            let next = ticks.map(|ticks| self.world.elapsed() + std::time::Duration::from_secs(ticks));
            if let Some(end) = recorder.close(next) {
                return end;
            }
            if !wrote && self.is_done() {
                return End::Done;
            }
            if recorder.is_idle() || !self.world.skip(requeue) {
                return self.stuck(plan.error.as_deref());
            }
            self.show();
        }
    }

    fn read(&mut self, plan: &Plan) {
        if let Some(rollout) = &plan.rollout {
            self.rollout = rollout.clone();
        }
        let Some(status) = plan.status.as_ref().and_then(Status::daemon_set) else {
            return;
        };
        let number = |count: i32| u32::try_from(count).unwrap_or_default();
        self.counts = Counts {
            desired: number(status.desired_number_scheduled),
            updated: number(status.updated_number_scheduled),
            ready: number(status.number_ready),
            available: number(status.number_available),
            unavailable: number(status.number_unavailable),
            surging: self.rollout.surging,
        };
    }

    fn budget(&self) -> Budget {
        Budget {
            max_unavailable: self.rollout.max_unavailable,
            max_surge: self.rollout.max_surge,
        }
    }

    fn is_done(&self) -> bool {
        let Counts {
            desired,
            updated,
            available,
            ..
        } = self.counts;
        let is_over = match policies::state(&self.snapshot.workload) {
            Some(state) => matches!(state, State::Complete | State::RolledBack),
            None => updated == desired,
        };
        is_over && available == desired && !self.world.pods().any(|pod| pod.deleting)
    }

    /// The nodes that have an available pod now, and none after the deletes of a plan.
    fn available_nodes_that_lose_their_pod(&self, plan: &Plan) -> u32 {
        let actions = plan.phases.iter().flat_map(|phase| &phase.batches);
        let mut deleted: HashMap<&str, HashSet<&str>> = HashMap::new();
        for action in actions.flat_map(|batch| &batch.actions) {
            if let ActionKind::DeletePod { pod, node_name, .. } | ActionKind::EvictPod { pod, node_name } =
                &action.kind
            {
                deleted.entry(node_name).or_default().insert(&pod.name);
            }
        }
        let (seconds, now) = (self.snapshot.workload.min_ready_seconds, self.snapshot.now);
        let loses = |node: &str, names: &HashSet<&str>| {
            let bucket = self
                .bucket_of
                .get(node)
                .and_then(|index| self.buckets.get(*index));
            let on_node = bucket.into_iter().flat_map(BTreeMap::values);
            let mut available = on_node
                .filter(|pod| pod.target.node() == Some(node))
                .filter(|pod| world::is_available(pod, seconds, now))
                .peekable();
            available.peek().is_some() && available.all(|pod| names.contains(pod.name.as_str()))
        };
        let losing = deleted.iter().filter(|(node, names)| loses(node, names)).count();
        u32::try_from(losing).unwrap_or(u32::MAX)
    }

    fn apply(&mut self, plan: &Plan) {
        let Self {
            world,
            snapshot: Snapshot {
                workload, options, ..
            },
            ..
        } = self;
        let mut are_revisions_new = false;
        let state = world.apply(plan, options, &mut |world, action| {
            if let ActionKind::UpdateStatus {
                status, collision, ..
            } = &action.kind
            {
                match collision {
                    Some(collision) => workload.collision_count = Some(collision.count),
                    None => workload.status = *status,
                }
                return OutcomeResult::Succeeded;
            }
            if let Some(result) = policies::write(&mut workload.rollout, action, world.now()) {
                return result;
            }
            are_revisions_new = true;
            write_revision(world, action)
        });
        self.snapshot.state = state;
        if are_revisions_new {
            let revisions = self.world.cluster.list(Resource::Revisions);
            self.snapshot.revisions = revisions.map(objects::read_revision).collect();
        }
    }

    fn stuck(&self, error: Option<&str>) -> End {
        let unready = self.world.unready();
        let Counts {
            desired,
            updated,
            unavailable,
            ..
        } = self.counts;
        let allowed = self.rollout.max_unavailable;
        let nodes = match unavailable {
            1 => "1 node stays".to_owned(),
            more => format!("{more} nodes stay"),
        };
        let cause = if let Some(error) = error {
            error.to_owned()
        } else if let Some(waits) = policies::message(&self.snapshot.workload) {
            waits
        } else if self.snapshot.workload.strategy == UpdateStrategy::OnDelete && updated < desired {
            "the strategy is OnDelete: old pods stay until somebody deletes them".to_owned()
        } else if self.rollout.max_surge > 0 && updated < desired && !unready.is_empty() {
            format!(
                "pods that are not ready: {}; maxSurge allows {}",
                unready.len(),
                self.rollout.max_surge
            )
        } else if updated < desired && unavailable >= allowed {
            format!("{nodes} without an available pod, and maxUnavailable allows {allowed}")
        } else {
            format!("{nodes} without an available pod")
        };
        End::Stuck {
            cause,
            blocking: world::named(&unready),
        }
    }
}

/// The nodes whose new pods never become ready. `None` if stopped.
fn failing_nodes(
    snapshot: &Snapshot<DaemonSet>,
    assumptions: &Assumptions,
    stop: &dyn Fn() -> bool,
) -> Option<BTreeSet<String>> {
    if assumptions.failing <= 0.0 {
        return Some(BTreeSet::new());
    }
    let mut nodes = Vec::new();
    daemonset::explain_each(snapshot, None, stop, &mut |node| {
        if node.should_run {
            nodes.push(node.node_name);
        }
    })?;
    Some(failing::choose(nodes, assumptions.failing, assumptions.seed))
}

fn write_revision(world: &mut World, action: &Action) -> OutcomeResult {
    let namespace = world.namespace.clone();
    let key = |name: &str| world.key(Resource::Revisions, name);
    match &action.kind {
        ActionKind::CreateRevision { manifest, .. } => {
            let object: Value = world::json(manifest);
            world::of(&world.cluster.create(Resource::Revisions, &namespace, object))
        }
        ActionKind::UpdateRevision { revision, patch, .. } => {
            let key = key(&revision.name);
            world::of(&world.cluster.patch(&key, &Patch::Merge(world::json(patch))))
        }
        ActionKind::AdoptRevision { revision, patch } | ActionKind::ReleaseRevision { revision, patch } => {
            let key = key(&revision.name);
            world::of(&world.cluster.patch(&key, &Patch::Strategic(world::json(patch))))
        }
        ActionKind::DeleteRevision { revision, .. } => {
            let key = key(&revision.name);
            world::of(&world.cluster.delete(&key, Some(&revision.uid)))
        }
        // A plan for a DaemonSet has no other actions.
        _ => OutcomeResult::Failed,
    }
}
