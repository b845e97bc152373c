//! Builds the plan of one sync: what the other modules decide, put into phases.
//!
//! Upstream writes the status up to three times in a sync, and the new ReplicaSet twice. The builder gathers these writes, so that a
//! plan has one write of the status and one of each ReplicaSet (P-3).

use std::collections::BTreeSet;

use crate::{
    core::{
        batches,
        cancellation::Cancellation,
        plan::{Action, Batch, Phase, PhaseKind, Plan, Reason, RequeueAfter, Verdict, When},
        snapshot::{Deviation, Snapshot},
        status::{Condition, DeploymentStatus, Status},
    },
    deployment::{
        annotations::{DESIRED_REPLICAS, MAX_REPLICAS, REVISION},
        fenceposts::Fenceposts,
        numbers::Numbers,
        progress,
        set_write::SetWrites,
        sets::{Claimed, NewSet},
        status::{self, Counted},
        status_write,
        workload::{Deployment, Set},
    },
};

/// How a sync ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a status without progress (P-58).
    PlainStatus,
    /// With the status of a rollout (P-58).
    RolloutStatus,
    /// Before a status is computed: only conditions, revision and collision count are written if they have changed.
    Early,
    /// Like `Early`, with an error.
    Error(String),
}

/// The plan of one sync, as far as it is decided.
pub(crate) struct PlanBuilder<'a> {
    pub(crate) snapshot: &'a Snapshot<Deployment>,
    pub(crate) deployment: &'a Deployment,
    pub(crate) numbers: Numbers,
    pub(crate) fenceposts: Fenceposts,
    /// The conditions, with the changes that upstream writes in the middle of a sync.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) collision_count: Option<i32>,
    pub(crate) claimed: Claimed<'a>,
    /// The old ReplicaSets by age.
    pub(crate) old: Vec<&'a Set>,
    pub(crate) new: Option<NewSet<'a>>,
    pub(crate) events: Vec<Action>,
    pub(crate) rollback: Option<Action>,
    pub(crate) create: Option<Action>,
    /// What to do if `create` fails.
    pub(crate) failure: Option<Action>,
    /// Writes whose failure ends the sync.
    pub(crate) sets: SetWrites<'a>,
    /// Writes of a rolling update whose failure upstream ignores (P-36).
    pub(crate) old_sets: SetWrites<'a>,
    pub(crate) cleanup: Vec<Action>,
    pub(crate) deviations: BTreeSet<Deviation>,
    /// The new revision of the Deployment.
    revision: Option<String>,
}

impl<'a> PlanBuilder<'a> {
    /// Starts a plan with claims. A set of the name `taken` that was read because of a name collision is left out. `None` if
    /// cancelled.
    pub(crate) fn new(
        snapshot: &'a Snapshot<Deployment>,
        taken: &str,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let deployment = &snapshot.workload;
        let numbers = Numbers::new(snapshot.options.deviates(Deviation::WideProportions));
        let claimed = Claimed::of(deployment, taken);
        let (new, old) = claimed.divide(deployment, cancellation)?;
        Some(Self {
            snapshot,
            deployment,
            fenceposts: Fenceposts::of(deployment, &numbers),
            numbers,
            conditions: deployment.status.conditions.clone(),
            collision_count: deployment.status.collision_count,
            claimed,
            old,
            new: new.map(NewSet::existing),
            events: Vec::new(),
            rollback: None,
            create: None,
            failure: None,
            sets: SetWrites::default(),
            old_sets: SetWrites::default(),
            cleanup: Vec::new(),
            deviations: BTreeSet::new(),
            revision: None,
        })
    }

    /// Whether a deviation is on.
    pub(crate) fn deviates(&self, deviation: Deviation) -> bool {
        self.snapshot.options.deviates(deviation)
    }

    /// The sets that a status counts, with the sizes before the plan.
    pub(crate) fn counted(&self) -> Counted<'_, 'a> {
        Counted {
            old: &self.old,
            new: self.new.as_ref(),
        }
    }

    /// All sets of the snapshot: the old ones by age, then the new one.
    pub(crate) fn all_sets(&self) -> impl Iterator<Item = &'a Set> {
        let new = self.new.as_ref().and_then(|new| new.set);
        self.old.iter().copied().chain(new)
    }

    /// The old sets with a size above 0, by age.
    pub(crate) fn active_old(&self) -> Vec<&'a Set> {
        self.old.iter().copied().filter(|set| set.is_active()).collect()
    }

    /// The most pods of a rollout.
    pub(crate) fn max_replicas(&self) -> i32 {
        self.fenceposts
            .max_replicas(self.deployment.replicas, &self.numbers)
    }

    /// Sets the Deployment's revision annotation.
    pub(crate) fn set_revision(&mut self, revision: &str) {
        let present = self.deployment.annotation(REVISION).unwrap_or_default();
        self.revision = (present != revision).then(|| revision.to_owned());
    }

    /// Whether the lookup of the new set, or the bookkeeping of a pause, has anything to write.
    pub(crate) fn has_early_writes(&self) -> bool {
        self.create.is_some()
            || self.revision.is_some()
            || self.sets.is_required()
            || self.conditions != self.deployment.status.conditions
    }

    /// Changes the size of a set and refreshes its annotations (P-45). Returns false if it has that size already.
    pub(crate) fn scale(&mut self, set: &'a Set, to: i32, reason: Reason, message: String) -> bool {
        if set.replicas == to {
            return false;
        }
        let (desired, max) = (self.deployment.replicas, self.max_replicas());
        refresh(&mut self.sets, set, desired, max);
        self.sets.of(set).resize(to, reason, message);
        true
    }

    /// Like [`Self::scale`], for the old sets of a rolling update. `from` is the size so far: a set may be scaled twice.
    pub(crate) fn scale_old(
        &mut self,
        set: &'a Set,
        (from, to): (i32, i32),
        reason: Reason,
        message: String,
    ) {
        if from != to {
            let (desired, max) = (self.deployment.replicas, self.max_replicas());
            refresh(&mut self.old_sets, set, desired, max);
            self.old_sets.of(set).resize(to, reason, message);
        }
    }

    /// Refreshes the annotations of a set, if they differ (P-45). Returns whether they do.
    pub(crate) fn refresh_annotations(&mut self, set: &'a Set) -> bool {
        let (desired, max) = (self.deployment.replicas, self.max_replicas());
        let differs = set.annotation(DESIRED_REPLICAS) != Some(&desired.to_string())
            || set.annotation(MAX_REPLICAS) != Some(&max.to_string());
        if differs {
            refresh(&mut self.sets, set, desired, max);
            let message = format!(
                "{} keeps its size, and its annotations say that {desired} replicas are desired",
                set.name
            );
            self.sets.of(set).explain(message);
        }
        differs
    }

    /// Puts the plan together.
    pub(crate) fn finish(mut self, ending: Ending) -> Plan {
        let status = self.status(&ending);
        let write = status_write::action(self.deployment, &status, self.revision.as_deref());
        let mut requeue = if write.is_none() && ending == Ending::RolloutStatus {
            self.requeue(&status)
        } else {
            None
        };
        let (phases, is_cut) = self.phases(write);
        if is_cut {
            requeue = Some(at_once());
        }
        if self.numbers.differ() {
            self.deviations.insert(Deviation::WideProportions);
        }
        let error = match ending {
            Ending::Error(error) => Some(error),
            _ => None,
        };
        let nothing = phases.is_empty() && error.is_none();
        Plan {
            verdict: if nothing { Verdict::Noop } else { Verdict::Apply },
            phases,
            pod_manifest: None,
            state: self.snapshot.state.clone(),
            requeue,
            error,
            status: Some(Status::Deployment(status)),
            rollout: None,
            deviations: self.deviations,
            policy_uids: Vec::new(),
        }
    }

    fn status(&self, ending: &Ending) -> DeploymentStatus {
        let (deployment, now) = (self.deployment, self.snapshot.now);
        if matches!(ending, Ending::Early | Ending::Error(_)) {
            return DeploymentStatus {
                conditions: self.conditions.clone(),
                collision_count: self.collision_count,
                ..deployment.status.clone()
            };
        }
        let mut status = status::count(
            deployment,
            self.counted(),
            (self.fenceposts, &self.numbers),
            self.snapshot.options.terminating_replicas,
            self.conditions.clone(),
            now,
        );
        if *ending == Ending::RolloutStatus {
            let name = self.new.as_ref().map(|new| &*new.name);
            progress::estimate(deployment, &mut status, name, now);
            status::take_over_failure(self.counted(), &mut status.conditions);
        }
        status
    }

    /// The timer for the progress deadline (P-62).
    fn requeue(&mut self, status: &DeploymentStatus) -> Option<RequeueAfter> {
        let now = self.snapshot.now;
        let upstream = progress::requeue(self.deployment, status, now);
        if !self.deviates(Deviation::NoHotRequeue) {
            return upstream;
        }
        let cool = progress::cool_requeue(self.deployment, status, now);
        if cool != upstream {
            self.deviations.insert(Deviation::NoHotRequeue);
        }
        cool
    }

    /// The phases, and whether there are more writes than one plan may have.
    fn phases(&mut self, status: Option<Action>) -> (Vec<Phase>, bool) {
        let mut left = self.snapshot.options.claims_per_plan();
        let mut claims = self.claimed.take_batches();
        let mut is_cut = batches::cut(&mut claims, &mut left);
        let mut phases = Phases(vec![]);
        phases.add(PhaseKind::Claims, claims, When::Always);
        if is_cut {
            // Everything else depends on all claims.
            return (phases.0, true);
        }
        phases.add(
            PhaseKind::Events,
            batches::at_once(std::mem::take(&mut self.events)),
            When::Always,
        );
        phases.one(PhaseKind::Rollback, self.rollback.take(), When::Always);
        phases.one(PhaseKind::Creates, self.create.take(), When::Always);
        if let Some(creates) = phases.get(PhaseKind::Creates)
            && self.replaces_lost_set()
        {
            creates.batches[0].confirm_workload = true;
            self.deviations.insert(Deviation::ConfirmBeforeCreates);
        }
        for (kind, actions) in [
            (
                PhaseKind::ReplicaSets,
                std::mem::take(&mut self.sets).into_actions(),
            ),
            (
                PhaseKind::OldReplicaSets,
                std::mem::take(&mut self.old_sets).into_actions(),
            ),
            (PhaseKind::Cleanup, std::mem::take(&mut self.cleanup)),
        ] {
            let mut batches = batches::one_by_one(actions).collect();
            is_cut |= batches::cut(&mut batches, &mut left);
            phases.add(kind, batches, When::AfterSuccess);
        }
        let when = self.settle_failures(&mut phases);
        phases.one(PhaseKind::Failure, self.failure.take(), When::AfterFailure);
        phases.one(PhaseKind::Status, status, when);
        (phases.0, is_cut)
    }

    /// Whether a status was written for this generation, so that its set existed. Somebody else may have deleted the set because the
    /// Deployment is gone, which the executor's watch may not show yet. Then a create needs a live read of the Deployment.
    fn replaces_lost_set(&self) -> bool {
        let observed = self.deployment.status.observed_generation;
        self.deviates(Deviation::ConfirmBeforeCreates) && observed == self.deployment.generation
    }

    /// Settles which failures count. A failed write of an old set in a rolling update ends that step, but not the sync (P-36).
    /// Returns when the status is written.
    fn settle_failures(&mut self, phases: &mut Phases) -> When {
        let creates = phases.get(PhaseKind::Creates).is_some();
        let cleans = phases.get(PhaseKind::Cleanup).is_some();
        if let (true, Some(cleanup)) = (creates, phases.get(PhaseKind::Cleanup)) {
            // Otherwise the status would say that the create failed. A later plan repeats the deletes.
            cleanup.ignores_failure = true;
        }
        // The creation of a set leads to another plan anyway.
        let retried = self.deviates(Deviation::RetryOldSetScaling) && !creates;
        let Some(old_sets) = phases.get(PhaseKind::OldReplicaSets) else {
            return When::AfterSuccess;
        };
        old_sets.ignores_failure = !retried;
        if !retried {
            return When::AfterSuccess;
        }
        self.deviations.insert(Deviation::RetryOldSetScaling);
        // If a delete fails, the status must not be written. A failed write of another set ends the plan anyway.
        if cleans { When::AfterSuccess } else { When::Always }
    }
}

/// The phases so far.
struct Phases(Vec<Phase>);

impl Phases {
    fn get(&mut self, kind: PhaseKind) -> Option<&mut Phase> {
        self.0.iter_mut().find(|phase| phase.kind == kind)
    }

    fn add(&mut self, kind: PhaseKind, batches: Vec<Batch>, when: When) {
        if !batches.is_empty() {
            self.0.push(Phase {
                when,
                ..Phase::new(kind, batches)
            });
        }
    }

    fn one(&mut self, kind: PhaseKind, action: Option<Action>, when: When) {
        self.add(kind, batches::at_once(action.into_iter().collect()), when);
    }
}

/// Sets the annotations about the desired and the most replicas.
fn refresh<'a>(writes: &mut SetWrites<'a>, set: &'a Set, desired: i32, max: i32) {
    let write = writes.of(set);
    write.annotate(DESIRED_REPLICAS, desired.to_string());
    write.annotate(MAX_REPLICAS, max.to_string());
}

/// The timer of a plan that has only some of the writes.
fn at_once() -> RequeueAfter {
    RequeueAfter {
        delay: std::time::Duration::ZERO,
        reason: "there are more ReplicaSets to write than one plan may".to_owned(),
    }
}
