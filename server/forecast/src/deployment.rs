//! Plays a Deployment: the planner runs for it and for each of its ReplicaSets.

use std::{collections::BTreeMap, ops::ControlFlow, time::Duration};

use nodewise_planner::{
    deployment::{self, Deployment, Strategy},
    plan::{Action, ActionKind, Plan, Resource, Status, Subresource},
    replicaset::ReplicaSet,
    report::OutcomeResult,
    snapshot::{Bucket, Pod, Snapshot, State},
};

use crate::{
    Assumptions, Bounds, Budget, Counts, End, Error, Forecast, Step,
    recorder::{self, Recorder},
    replica_set::{self, Related, options_of_sets, stay},
    set_play::SetPlay,
    sets, world,
    world::World,
};

/// Plays the snapshot of a Deployment to its end, as [`crate::daemon_set()`] does. The snapshot's buckets have the pods of its
/// ReplicaSets. New pods go to the nodes on which there are pods already.
///
/// # Errors
///
/// The Deployment wants more replicas than the bounds allow, or two pods have the same name.
pub fn deployment(
    snapshot: Snapshot<Deployment>,
    assumptions: &Assumptions,
    bounds: &Bounds,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Step) -> ControlFlow<()>,
) -> Result<Forecast, Error> {
    let desired = replica_set::desired(snapshot.workload.replicas, snapshot.pods().count(), bounds)?;
    let mut recorder = Recorder::new(*bounds, stop, each).without_nodes();
    let Some(world) = replica_set::world(&snapshot, assumptions, desired, stop)? else {
        return Ok(recorder.finish(End::Cancelled, 0));
    };
    let mut play = Play::new(snapshot, world, desired);
    let end = play.run(&mut recorder);
    Ok(recorder.finish(end, play.world.failed_pods))
}

struct Play {
    /// Without pods: a Deployment does not see them.
    snapshot: Snapshot<Deployment>,
    world: World,
    /// By uid. A ReplicaSet is in `snapshot`, too, as the Deployment sees it.
    sets: BTreeMap<String, SetPlay>,
    related: Related,
    desired: u32,
    counts: Counts,
    /// The number of ReplicaSets that were created.
    created: u64,
}

/// The result of planning for all ReplicaSets once.
enum Synced {
    Wrote,
    Settled,
    Stopped,
}

impl Play {
    fn new(mut snapshot: Snapshot<Deployment>, mut world: World, desired: u32) -> Self {
        let pods: Vec<Pod> = world.pods().cloned().collect();
        world.catch_up();
        snapshot.buckets = Vec::<Bucket>::new();
        snapshot.own_writes = Vec::new();
        snapshot.state = State {
            expectations: None,
            ..snapshot.state
        };
        let mut play = Self {
            snapshot,
            world,
            sets: BTreeMap::new(),
            related: Related::of(&[]),
            desired,
            counts: Counts::default(),
            created: 0,
        };
        play.follow_sets();
        for pod in &pods {
            play.see(None, Some(pod));
        }
        play
    }

    /// Brings the plays of the ReplicaSets up to date with the ReplicaSets that the Deployment has.
    fn follow_sets(&mut self) {
        let deployment = &self.snapshot.workload;
        let own = |set: &&deployment::Set| {
            let owner = set.controller.as_ref();
            owner.is_some_and(|owner| owner.uid == deployment.uid)
        };
        let mut present = BTreeMap::new();
        for set in deployment.sets.iter().filter(own) {
            let wanted = sets::workload(deployment, set);
            let mut play = self.sets.remove(&set.uid).unwrap_or_else(|| {
                let options = options_of_sets(&self.snapshot.options);
                SetPlay::new(wanted.clone(), options, self.snapshot.now)
            });
            let known = &mut play.snapshot.workload;
            let wanted = ReplicaSet {
                status: known.status.clone(),
                related_pods: std::mem::take(&mut known.related_pods),
                ..wanted
            };
            play.is_dirty |= known.generation != wanted.generation;
            *known = wanted;
            present.insert(set.uid.clone(), play);
        }
        self.sets = present;
    }

    fn see(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        self.related.see(before, after);
        let owner = |pod: Option<&Pod>| pod?.controller.as_ref().map(|owner| owner.uid.clone());
        let (old, new) = (owner(before), owner(after));
        if let Some(set) = new
            .as_ref()
            .or(old.as_ref())
            .and_then(|uid| self.sets.get_mut(uid))
        {
            set.see(before, after);
        }
    }

    /// Shows the planner the present state.
    fn show(&mut self) {
        for (before, after) in self.world.catch_up() {
            self.see(before.as_ref(), after.as_ref());
        }
        self.snapshot.now = self.world.now();
    }

    fn run(&mut self, recorder: &mut Recorder<'_>) -> End {
        self.show();
        loop {
            let Some(plan) = deployment::plan_until(&self.snapshot, recorder.stop()) else {
                return End::Cancelled;
            };
            self.read(&plan);
            let (at, budget) = (self.world.elapsed(), self.budget());
            recorder.add(at, &plan, self.counts, budget, self.counts.unavailable);
            let mut wrote = recorder::writes(&plan);
            self.apply(&plan);
            match self.sync_sets(recorder) {
                Synced::Stopped => return End::Cancelled,
                Synced::Wrote => wrote = true,
                Synced::Settled => {}
            }
            if recorder.is_stopped() {
                return End::Cancelled;
            }
            if wrote && recorder.may_plan_again() {
                continue;
            }
            let wait = self.wait(&plan);
            let next = self.world.ticks_to(wait);
            let next = next.map(|ticks| self.world.elapsed() + Duration::from_secs(ticks));
            if let Some(end) = recorder.close(next) {
                return end;
            }
            if !wrote && self.is_done() {
                return End::Done;
            }
            if recorder.is_idle() || !self.world.skip(wait) {
                return self.stuck(plan.error.as_deref());
            }
            self.show();
        }
    }

    /// The time until any plan asked to plan again.
    fn wait(&self, plan: &Plan) -> Option<Duration> {
        let elapsed = self.world.elapsed();
        let own = plan.requeue.as_ref().map(|requeue| requeue.delay);
        let sets = self.sets.values().filter_map(|set| set.wait(elapsed));
        own.into_iter().chain(sets).min()
    }

    /// Plans for each ReplicaSet of which something has changed, and applies the plans.
    fn sync_sets(&mut self, recorder: &mut Recorder<'_>) -> Synced {
        let elapsed = self.world.elapsed();
        let budget = self.budget();
        let mut synced = Synced::Settled;
        let uids: Vec<String> = self.sets.keys().cloned().collect();
        for uid in uids {
            let related = self.related.to_vec();
            let Some(set) = self.sets.get_mut(&uid) else {
                continue;
            };
            if !set.is_due(elapsed) || (set.is_empty() && !set.is_dirty) {
                continue;
            }
            set.snapshot.workload.related_pods = related;
            let Some(plan) = set.plan(&self.world, recorder.stop()) else {
                return Synced::Stopped;
            };
            let left = self
                .counts
                .available
                .saturating_sub(set.available_pods_that_go(&plan));
            let worst = self.desired.saturating_sub(left).max(self.counts.unavailable);
            recorder.add(elapsed, &plan, self.counts, budget, worst);
            if recorder::writes(&plan) {
                synced = Synced::Wrote;
                set.apply(&mut self.world, &plan);
                let status = set.snapshot.workload.status.clone();
                let mut sets = self.snapshot.workload.sets.iter_mut();
                if let Some(seen) = sets.find(|seen| seen.uid == uid) {
                    seen.status = status;
                }
                self.show();
            }
        }
        let unfinished: BTreeMap<String, u32> = self.unfinished();
        for set in &mut self.snapshot.workload.sets {
            set.unfinished_pods = unfinished.get(&set.uid).copied().unwrap_or_default();
        }
        synced
    }

    /// The pods of each ReplicaSet that have not finished. Only a plan for the strategy Recreate reads them.
    fn unfinished(&self) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        if self.snapshot.workload.strategy == Strategy::Recreate {
            for pod in self.world.pods().filter(|pod| !pod.phase.is_terminal()) {
                if let Some(owner) = &pod.controller {
                    *counts.entry(owner.uid.clone()).or_default() += 1;
                }
            }
        }
        counts
    }

    fn read(&mut self, plan: &Plan) {
        let Some(Status::Deployment(status)) = &plan.status else {
            return;
        };
        let number = |count: i32| u32::try_from(count).unwrap_or_default();
        let available = number(status.available_replicas);
        self.counts = Counts {
            desired: self.desired,
            updated: number(status.updated_replicas),
            ready: number(status.ready_replicas),
            available,
            unavailable: self.desired.saturating_sub(available),
            surging: number(status.replicas).saturating_sub(self.desired),
        };
    }

    fn budget(&self) -> Budget {
        let limits = deployment::limits(&self.snapshot.workload);
        Budget {
            max_unavailable: limits.max_unavailable,
            max_surge: limits.max_surge,
        }
    }

    fn is_done(&self) -> bool {
        let Counts {
            updated,
            available,
            surging,
            ..
        } = self.counts;
        (updated, available, surging) == (self.desired, self.desired, 0)
            && !self.world.pods().any(|pod| pod.deleting)
    }

    fn apply(&mut self, plan: &Plan) {
        let Self {
            world,
            snapshot: Snapshot {
                workload, options, ..
            },
            created,
            ..
        } = self;
        let state = world.apply(plan, options, &mut |world, action| {
            write(workload, plan, action, created, world.now())
        });
        self.snapshot.state = state;
        self.follow_sets();
    }

    fn stuck(&self, error: Option<&str>) -> End {
        let Counts {
            unavailable, updated, ..
        } = self.counts;
        let Budget {
            max_unavailable,
            max_surge,
        } = self.budget();
        let unready = self.world.unready();
        let cause = if let Some(error) = error {
            error.to_owned()
        } else if self.snapshot.workload.paused && updated < self.desired {
            "spec.paused is true: the rollout waits until somebody resumes it".to_owned()
        } else if updated < self.desired || !unready.is_empty() {
            format!(
                "new pods that are not ready: {}; maxUnavailable allows {max_unavailable}, maxSurge {max_surge}",
                unready.len()
            )
        } else {
            format!("{} without an available pod", stay(unavailable))
        };
        End::Stuck {
            cause,
            blocking: world::named(&unready),
        }
    }
}

/// Applies a write of a Deployment or of one of its ReplicaSets.
fn write(
    deployment: &mut Deployment,
    plan: &Plan,
    action: &Action,
    created: &mut u64,
    now: jiff::Timestamp,
) -> OutcomeResult {
    match &action.kind {
        ActionKind::CreateObject { manifest, .. } => {
            *created += 1;
            let set = sets::created(deployment, &world::json(manifest), *created, now);
            if deployment.sets.iter().any(|known| known.name == set.name) {
                return OutcomeResult::NameTaken;
            }
            deployment.sets.push(set);
        }
        ActionKind::PatchObject {
            resource: Resource::ReplicaSets,
            object,
            patch,
            claim,
            ..
        } => {
            let owner = sets::owner(deployment);
            let found = deployment.sets.iter_mut().find(|set| set.uid == object.uid);
            let Some(set) = found else {
                return OutcomeResult::NotFound;
            };
            sets::patch(set, &world::json(patch), *claim, owner);
        }
        ActionKind::PatchObject {
            resource: Resource::Deployments,
            subresource,
            patch,
            ..
        } => {
            let patch = world::json(patch);
            sets::annotate(&mut deployment.annotations, &patch);
            match (subresource, &plan.status) {
                (Subresource::Status, Some(Status::Deployment(status))) => {
                    deployment.status.clone_from(status);
                }
                (Subresource::Status, _) => {
                    let observed = patch["status"]["observedGeneration"].as_i64();
                    let status = &mut deployment.status;
                    status.observed_generation = observed.unwrap_or(status.observed_generation);
                }
                (Subresource::None, _) => sets::roll_back(deployment, &patch),
            }
        }
        ActionKind::DeleteObject { object, .. } => deployment.sets.retain(|set| set.uid != object.uid),
        // A plan for a Deployment has no other actions.
        _ => return OutcomeResult::Failed,
    }
    OutcomeResult::Succeeded
}
