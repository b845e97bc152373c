//! The part of a play that one ReplicaSet has: its snapshot and its pods.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use nodewise_planner::{
    plan::{Action, ActionKind, Plan, Status},
    replicaset::{self, ReplicaSet, plan_cache::PlanCache},
    report::OutcomeResult,
    snapshot::{Bucket, Options, Pod, Snapshot, State},
};

use crate::world::{self, World};

/// The parts of the pods. Only parts that have changed are looked at again.
const BUCKETS: usize = 16;

/// A ReplicaSet and its pods.
pub(crate) struct SetPlay {
    pub(crate) snapshot: Snapshot<ReplicaSet>,
    cache: PlanCache,
    /// The pods of each bucket, by name.
    buckets: Vec<BTreeMap<String, Pod>>,
    /// The buckets whose pods have changed since they were shown to the planner.
    changed: HashSet<usize>,
    versions: u64,
    /// Whether something has changed since the last plan.
    pub(crate) is_dirty: bool,
    /// The virtual time at which the last plan asked to plan again.
    due: Option<Duration>,
}

impl SetPlay {
    /// A ReplicaSet without pods.
    pub(crate) fn new(workload: ReplicaSet, options: Options, now: jiff::Timestamp) -> Self {
        Self {
            snapshot: Snapshot {
                now,
                workload,
                revisions: Vec::new(),
                buckets: vec![Bucket::default(); BUCKETS],
                state: State::default(),
                own_writes: Vec::new(),
                options,
            },
            cache: PlanCache::default(),
            buckets: vec![BTreeMap::new(); BUCKETS],
            changed: (0..BUCKETS).collect(),
            versions: 0,
            is_dirty: true,
            due: None,
        }
    }

    /// Whether there is neither a pod nor the wish for one.
    pub(crate) fn is_empty(&self) -> bool {
        self.snapshot.workload.replicas == 0 && self.buckets.iter().all(BTreeMap::is_empty)
    }

    /// Sees a change of a pod.
    pub(crate) fn see(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        let Snapshot { workload, state, .. } = &mut self.snapshot;
        world::note_used_name(state, ("ReplicaSet", &workload.uid), before, after);
        let Some(pod) = after.or(before) else { return };
        let index = pod.name.bytes().map(usize::from).sum::<usize>() % BUCKETS;
        match after {
            Some(after) => self.buckets[index].insert(after.name.clone(), after.clone()),
            None => self.buckets[index].remove(&pod.name),
        };
        self.changed.insert(index);
        self.is_dirty = true;
    }

    /// Whether a plan is needed at this virtual time.
    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        self.is_dirty || self.due.is_some_and(|due| due <= elapsed)
    }

    /// The time until the last plan asked to plan again.
    pub(crate) fn wait(&self, elapsed: Duration) -> Option<Duration> {
        self.due.map(|due| due.saturating_sub(elapsed))
    }

    /// Plans. `None` if stopped.
    pub(crate) fn plan(&mut self, world: &World, stop: &dyn Fn() -> bool) -> Option<Plan> {
        for index in self.changed.drain() {
            self.versions += 1;
            let pods = self.buckets[index].values().cloned().collect();
            self.snapshot.buckets[index].pods = world::list(pods, self.versions);
        }
        self.snapshot.now = world.now();
        self.is_dirty = false;
        let plan = replicaset::plan_until(&self.snapshot, &mut self.cache, stop)?;
        let requeue = plan.requeue.as_ref();
        self.due = requeue.map(|requeue| world.elapsed().saturating_add(requeue.delay));
        Some(plan)
    }

    /// The available pods that a plan deletes.
    pub(crate) fn available_pods_that_go(&self, plan: &Plan) -> u32 {
        let (seconds, now) = (self.snapshot.workload.min_ready_seconds, self.snapshot.now);
        let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
        let is_available = |action: &&Action| {
            let ActionKind::DeletePod { pod, .. } = &action.kind else {
                return false;
            };
            let mut pods = self.buckets.iter().filter_map(|bucket| bucket.get(&pod.name));
            pods.any(|pod| world::is_available(pod, seconds, now))
        };
        let deleted = batches.flat_map(|batch| &batch.actions).filter(is_available);
        u32::try_from(deleted.count()).unwrap_or(u32::MAX)
    }

    /// Applies a plan.
    pub(crate) fn apply(&mut self, world: &mut World, plan: &Plan) {
        let status = &mut self.snapshot.workload.status;
        let state = world.apply(plan, &self.snapshot.options, &mut |_, action| {
            // Apart from pods, a plan for a ReplicaSet writes only its status.
            match (&action.kind, &plan.status) {
                (ActionKind::PatchObject { .. }, Some(Status::ReplicaSet(new))) => {
                    status.clone_from(new);
                    OutcomeResult::Succeeded
                }
                _ => OutcomeResult::Failed,
            }
        });
        self.snapshot.state = state;
        self.is_dirty = true;
    }
}
