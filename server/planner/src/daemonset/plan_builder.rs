//! Builds a plan from the decisions of the other modules: phases, state and timers.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use jiff::SignedDuration;

use crate::{
    core::{
        batches,
        cancellation::Cancellation,
        expectations,
        identities::Identities,
        plan::{Action, Batch, Phase, PhaseKind, Plan, PodManifest, Reason, Rollout, Verdict},
        requeue::Timers,
        slow_start,
        snapshot::{Deviation, Snapshot, State},
        status::{DaemonSetStatus, Status},
    },
    daemonset::{
        backoff::Backoffs,
        bucket_summary::SettledNodes,
        companion,
        context::PlanContext,
        held_names, manifest, placement,
        pod_changes::{self, Create, Delete, Naming, PodChanges},
        policy::{self, Governed},
        policy_writes, requeue, revisions,
        rollout::{self, step::Step},
        slow_start as node_creates, status,
        workload::DaemonSet,
    },
};

/// How long it is the turn of one revision, if pods of two are to be created.
const TURN_SECONDS: i64 = 8;

/// Builds one plan.
pub(crate) struct PlanBuilder<'d, 'a> {
    snapshot: &'a Snapshot<DaemonSet>,
    context: &'d PlanContext<'a>,
    identities: Option<&'d Identities>,
    cancellation: Cancellation<'d>,
    step: Step<'a>,
    /// Whether the changes of this plan are those of the rollout.
    rolls_out: bool,
    /// How many nodes the rollout begins in this plan.
    begun: usize,
    phases: Vec<Phase>,
    pod_manifest: Option<PodManifest>,
    state: State,
    timers: Timers,
    /// Whether the executor must plan again at once, because the burst may have cut the creates.
    goes_on: bool,
    /// Whether the plan has only some of the claims. Then nothing that depends on claims may be planned.
    is_cut: bool,
    error: Option<String>,
    deviations: BTreeSet<Deviation>,
}

impl<'d, 'a> PlanBuilder<'d, 'a> {
    /// Starts a plan with revisions and claims.
    pub(crate) fn new(
        snapshot: &'a Snapshot<DaemonSet>,
        context: &'d PlanContext<'a>,
        identities: Option<&'d Identities>,
        cancellation: Cancellation<'d>,
    ) -> Self {
        let mut builder = Self {
            identities,
            ..Self::without_claims(snapshot, context, cancellation)
        };
        let mut left = snapshot.options.claims_per_plan();
        let (mut revisions, mut claims) = (
            context.resolution.batches.clone(),
            // One more than the limit, to find out whether there are more.
            context.view.claims.batches(snapshot.workload.owner(), left + 1),
        );
        if let Some(at) = context.resolution.claims_at {
            revisions.splice(at..at, claims.drain(..));
        }
        for batches in [&mut revisions, &mut claims] {
            builder.is_cut |= batches::cut(batches, &mut left);
        }
        builder.phase(PhaseKind::Revisions, revisions);
        builder.phase(PhaseKind::Claims, claims);
        builder
    }

    /// Starts a plan without revisions and claims, which another controller writes.
    pub(crate) fn without_claims(
        snapshot: &'a Snapshot<DaemonSet>,
        context: &'d PlanContext<'a>,
        cancellation: Cancellation<'d>,
    ) -> Self {
        Self {
            snapshot,
            context,
            identities: None,
            cancellation,
            step: rollout::step(snapshot, context),
            rolls_out: false,
            begun: 0,
            phases: Vec::new(),
            pod_manifest: None,
            state: snapshot.state.clone().not_after(snapshot.now),
            timers: Timers::default(),
            goes_on: false,
            is_cut: false,
            error: None,
            deviations: context.resolution.deviations.clone(),
        }
    }

    /// Whether there are more claims than one plan may have.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// A plan with the first of many claims and the status. Everything else depends on all claims, so it waits for the next plan,
    /// which follows at once.
    pub(crate) fn claims_only(mut self) -> Plan {
        self.timers
            .at_once("there are more revisions and pods to claim than one plan may");
        self.state.failed_pod_backoffs = Backoffs::of(self.snapshot).into_entries();
        self.slow_start(Vec::new(), &self.context.resolution.current_hash);
        let status = self.write_status(self.snapshot.workload.status.observed_generation);
        self.finish(Verdict::Apply, status)
    }

    /// A plan with claims and the status. Outstanding expectations hold up everything else, for at most `left` (D-71).
    pub(crate) fn status_only(mut self, left: Duration) -> Plan {
        self.timers.expectations(left);
        self.state.failed_pod_backoffs = Backoffs::of(self.snapshot).into_entries();
        self.slow_start(Vec::new(), &self.context.resolution.current_hash);
        let status = self.write_status(self.snapshot.workload.status.observed_generation);
        self.finish(Verdict::StatusOnly, status)
    }

    /// A plan while creates for the nodes in `unseen` are outstanding, for at most `left`. It only creates pods on other nodes
    /// that have none. Upstream would only write the status.
    pub(crate) fn creates_on_other_nodes(mut self, left: Duration, unseen: &BTreeSet<&str>) -> Option<Plan> {
        let backoffs = Backoffs::of(self.snapshot);
        let placement = placement::decide(self.snapshot, &self.context.view, &backoffs);
        let changes = node_creates::creates_on_other_nodes(placement.changes, &self.context.view, unseen);
        if changes.is_empty() {
            return Some(self.status_only(left));
        }
        self.timers.expectations(left);
        self.deviations.insert(Deviation::SlowStartAcrossPlans);
        let before = self.snapshot.state.expectations.clone();
        self.carry_out(changes, backoffs)?;
        if let (Some(expected), Some(before)) = (&mut self.state.expectations, before) {
            // Keep the older time: further creates must not extend the expectations of earlier ones.
            expected.set_at = expected.set_at.min(before.set_at);
            expected.creates.extend(before.creates);
        }
        let status = self.write_status(self.snapshot.workload.status.observed_generation);
        Some(self.finish(Verdict::Apply, status))
    }

    /// A whole plan: placement, rolling update, clean-up, status (D-71).
    pub(crate) fn in_full(mut self) -> Option<Plan> {
        let ds = &self.snapshot.workload;
        let backoffs = Backoffs::of(self.snapshot);
        let placement = placement::decide(self.snapshot, &self.context.view, &backoffs);
        requeue::failed_pods(&mut self.timers, &placement.waiting);
        self.deviations.extend(&placement.deviations);
        // The rolling update waits until placement has nothing to do (D-74).
        let changes = if placement.changes.is_empty() {
            self.deviations.extend(&self.step.deviations);
            self.error = self.step.error.take();
            self.rolls_out = true;
            std::mem::take(&mut self.step.changes)
        } else {
            placement.changes
        };
        self.carry_out(changes, backoffs)?;
        if self.error.is_none() {
            self.clean_up();
        }
        let status = self.write_status(ds.generation);
        let verdict = self.verdict();
        Some(self.finish(verdict, status))
    }

    /// A plan with only the rollout.
    pub(crate) fn rollout_only(mut self) -> Option<Plan> {
        let backoffs = Backoffs::of(self.snapshot);
        let placement = placement::decide(self.snapshot, &self.context.view, &backoffs);
        self.deviations.extend(&self.step.deviations);
        self.error = self.step.error.take();
        let step = std::mem::take(&mut self.step.changes);
        self.rolls_out = true;
        let changes = companion::changes(&self.context.resolution, &placement.changes, step);
        self.carry_out(changes, backoffs)?;
        let status = self.count_status(self.snapshot.workload.generation);
        let verdict = self.verdict();
        Some(self.finish(verdict, status))
    }

    /// A plan without actions. Outstanding expectations hold up the rollout, for at most `left`.
    pub(crate) fn rollout_held_up(mut self, left: Duration) -> Plan {
        self.timers.expectations(left);
        let status = self.count_status(self.snapshot.workload.status.observed_generation);
        self.finish(Verdict::StatusOnly, status)
    }

    fn verdict(&self) -> Verdict {
        if self.phases.is_empty() && self.error.is_none() {
            Verdict::Noop
        } else {
            Verdict::Apply
        }
    }

    fn phase(&mut self, kind: PhaseKind, batches: Vec<Batch>) {
        if !batches.is_empty() {
            self.phases.push(Phase::new(kind, batches));
        }
    }

    /// Inserts a phase at the place of its kind, after those of the same kind.
    fn insert(&mut self, phase: Phase) {
        let at = self.phases.iter().position(|other| other.kind > phase.kind);
        self.phases.insert(at.unwrap_or(self.phases.len()), phase);
    }

    /// Adds the phases for these changes, and updates the state. `None` if cancelled.
    fn carry_out(&mut self, mut changes: PodChanges<'a>, backoffs: Backoffs) -> Option<()> {
        let snapshot = self.snapshot;
        let options = &snapshot.options;
        self.finished_pods(&changes, backoffs);
        let creation = self.choose_revision(&mut changes);
        changes.cut(options.burst);
        let (hash, ds) = (creation.hash, &*creation.workload);
        if !changes.creates.is_empty() && pod_changes::lack_labels(ds, hash) {
            self.error = Some("unable to create pods, no labels".to_owned());
            changes.creates.clear();
        }
        let mut naming = Naming::new(snapshot, hash, self.identities);
        let creates = changes.create_actions(&self.context.view, &mut naming);
        let evicts = self
            .context
            .governed
            .as_ref()
            .is_some_and(|policy| policy.decision.evicts);
        let deletes = changes.delete_actions(options.deviates(Deviation::DeleteWithUid), evicts);
        if self.rolls_out {
            self.begun = changes.begun();
        }
        for (deviation, used) in [
            (Deviation::IdempotentCreates, !creates.is_empty()),
            (Deviation::DeleteWithUid, !deletes.is_empty()),
        ] {
            if used && options.deviates(deviation) {
                self.deviations.insert(deviation);
            }
        }
        let uids = changes
            .deletes
            .iter()
            .map(|delete| delete.pod.uid().to_owned())
            .collect();
        self.state.expectations = expectations::set(snapshot.now, expectations::of_creates(&creates), uids);
        self.state.pod_name_collisions = naming.into_collisions();
        held_names::keep_needed(&mut self.state, snapshot, &self.context.view, self.cancellation)?;
        if !creates.is_empty() {
            let naming = pod_changes::naming_of(&creates);
            self.pod_manifest = Some(manifest::pod_manifest(ds, hash, naming));
        }
        self.slow_start(creates, hash);
        self.phase(PhaseKind::Deletes, batches::at_once(deletes));
        Some(())
    }

    /// Adds the creates in batches, and updates the state of the slow start.
    fn slow_start(&mut self, creates: Vec<Action>, hash: &str) {
        let snapshot = self.snapshot;
        let first = (!creates.is_empty()).then(|| slow_start::first_batch(snapshot, hash));
        self.state.slow_start = slow_start::state_after_plan(snapshot, hash, first);
        self.goes_on = node_creates::plan_again_at_once(creates.len(), &snapshot.options);
        if self.goes_on {
            self.timers
                .at_once("as many pods as the burst were created; there may be more to create");
        }
        let remembers = creates.len() > 1 && first.is_some_and(|first| first > 1);
        if remembers || self.goes_on {
            self.deviations.insert(Deviation::SlowStartAcrossPlans);
        }
        self.phase(
            PhaseKind::Creates,
            batches::slow_start(creates, first.unwrap_or(1)),
        );
    }

    /// Adds the events of failed and succeeded pods among the deletes, and advances back-off. Upstream does this before the burst
    /// cuts the deletes.
    fn finished_pods(&mut self, changes: &PodChanges<'a>, mut backoffs: Backoffs) {
        let options = &self.snapshot.options;
        let is_finished =
            |delete: &&Delete<'_>| matches!(delete.reason, Reason::PodFailed | Reason::PodSucceeded);
        let (within, beyond) = changes.deletes.split_at(changes.deletes.len().min(options.burst));
        let beyond = if options.deviates(Deviation::DecideAfterCut) {
            if beyond.iter().any(|delete| is_finished(&delete)) {
                self.deviations.insert(Deviation::DecideAfterCut);
            }
            &[]
        } else {
            beyond
        };
        let mut events = Vec::new();
        for delete in within.iter().chain(beyond).filter(is_finished) {
            events.extend(pod_changes::finished_event(
                &self.snapshot.workload.namespace,
                delete,
            ));
            if delete.reason == Reason::PodFailed {
                backoffs.advance(delete.node);
            }
        }
        self.state.failed_pod_backoffs = backoffs.into_entries();
        self.phase(PhaseKind::Events, batches::at_once(events));
    }

    /// Deletes old revisions beyond the history limit, except those whose hash pods still carry (D-63).
    fn clean_up(&mut self) {
        let resolution = &self.context.resolution;
        let settled = self.context.view.settled != SettledNodes::default();
        let mut hashes: BTreeSet<&str> = settled.then_some(&*resolution.current_hash).into_iter().collect();
        // L-7.
        hashes.extend(self.context.governed.as_ref().and_then(Governed::stable_hash));
        let mut last = None;
        for pod in self.context.view.every_pod() {
            let hash = pod.hash(resolution);
            // Most pods are of one revision, and a comparison is faster than an insert.
            if hash != last {
                hashes.extend(hash);
                last = hash;
            }
        }
        let limit = self.snapshot.workload.revision_history_limit;
        let mut actions = revisions::cleanup(resolution, &hashes, limit);
        let most = self.snapshot.options.claims_per_plan();
        if actions.len() > most {
            actions.truncate(most);
            self.timers
                .at_once("there are more old revisions to delete than one plan may");
        }
        self.phase(PhaseKind::Cleanup, batches::one_by_one(actions).collect());
    }

    fn write_status(&mut self, observed_generation: i64) -> DaemonSetStatus {
        let ds = &self.snapshot.workload;
        let status = self.count_status(observed_generation);
        match status::write(ds, status, &self.snapshot.options) {
            status::Write::No => {}
            status::Write::OnlyUpstream => {
                self.deviations.insert(Deviation::SkipEqualStatusWrites);
            }
            // SLOW_START_ACROSS_PLANS is recorded already, because `goes_on` is set.
            status::Write::Yes(_) if self.goes_on && self.status_can_wait(&status) => {}
            status::Write::Yes(action) => self.phase(PhaseKind::Status, batches::at_once(vec![*action])),
        }
        status
    }

    /// Counts the status, and sets a timer for the next pod that becomes available.
    fn count_status(&mut self, observed_generation: i64) -> DaemonSetStatus {
        let (ds, view) = (&self.snapshot.workload, &self.context.view);
        let status = status::count(view, observed_generation);
        requeue::availability(&mut self.timers, ds, view, &status, self.snapshot.now);
        status
    }

    /// Whether the next plan, which follows at once, can write the status. While full bursts of creates follow each other within
    /// a second, the status is written after each quarter of the nodes.
    fn status_can_wait(&self, status: &DaemonSetStatus) -> bool {
        let (snapshot, hash) = (self.snapshot, &self.context.resolution.current_hash);
        slow_start::is_recent(snapshot, hash) && !status::is_urgent(&snapshot.workload.status, status)
    }

    fn finish(mut self, verdict: Verdict, status: DaemonSetStatus) -> Plan {
        let verdict = if self.write_policies(&status) && verdict == Verdict::Noop {
            Verdict::Apply
        } else {
            verdict
        };
        let rollout = self.rollout();
        let (requeue, differs) = self
            .timers
            .choose(self.snapshot.options.deviates(Deviation::EarliestRequeue));
        if differs {
            self.deviations.insert(Deviation::EarliestRequeue);
        }
        Plan {
            verdict,
            phases: self.phases,
            pod_manifest: self.pod_manifest,
            state: self.state,
            requeue,
            error: self.error,
            status: Some(Status::DaemonSet(status)),
            rollout: Some(rollout),
            deviations: self.deviations,
            policy_uids: Vec::new(),
        }
    }

    /// Adds the statuses of policies, and the measurements that their checks need. Returns whether there are any.
    fn write_policies(&mut self, status: &DaemonSetStatus) -> bool {
        let Some(governed) = &self.context.governed else {
            return false;
        };
        let now = self.snapshot.now;
        let blocked = policy::keep_blocked(&mut self.state.blocked_evictions, &self.context.view);
        for (eviction, _) in &blocked {
            let left = eviction.retry_at.duration_since(now).max(SignedDuration::ZERO);
            self.timers.at(left.unsigned_abs(), || {
                "an eviction is asked for again".to_owned()
            });
        }
        let counts = policy_writes::Counts {
            begun: self.begun,
            status,
            max_unavailable: self.step.limits.max_unavailable,
            blocked: &blocked,
        };
        let writes = policy_writes::of(governed, &counts, now);
        for (delay, reason) in &writes.again {
            self.timers.at(*delay, || reason.clone());
        }
        if !writes.events.is_empty() {
            self.insert(Phase::new(PhaseKind::Events, batches::at_once(writes.events)));
        }
        if !writes.statuses.is_empty() {
            // What the rollout does must be recorded before it is done. Placement does not wait for that.
            let changes_pods = |phase: &Phase| matches!(phase.kind, PhaseKind::Creates | PhaseKind::Deletes);
            let is_placement = !self.rolls_out && self.phases.iter().any(changes_pods);
            let phase = Phase {
                ignores_failure: is_placement,
                ..Phase::new(
                    PhaseKind::RolloutPolicies,
                    batches::one_by_one(writes.statuses).collect(),
                )
            };
            self.insert(phase);
        }
        if !writes.conflicts.is_empty() {
            // Whoever may write a policy that does not count can make its write fail. Nothing else depends on it.
            let phase = Phase {
                ignores_failure: true,
                ..Phase::new(
                    PhaseKind::RolloutPolicies,
                    batches::one_by_one(writes.conflicts).collect(),
                )
            };
            self.insert(phase);
        }
        if !writes.measurements.is_empty() {
            self.phases.push(Phase {
                ignores_failure: true,
                ..Phase::new(PhaseKind::Analysis, batches::at_once(writes.measurements))
            });
        }
        self.phases
            .iter()
            .any(|phase| matches!(phase.kind, PhaseKind::RolloutPolicies | PhaseKind::Analysis))
    }

    /// The revision of the pods that this plan creates, and the workload with its template. All pods of a plan are of one revision:
    /// if a policy needs pods of the stable revision as well, the others wait for the next plan.
    fn choose_revision(&mut self, changes: &mut PodChanges<'a>) -> Creation<'d, 'a> {
        let (ds, resolution) = (&self.snapshot.workload, &self.context.resolution);
        let current = Creation {
            hash: &resolution.current_hash,
            workload: Cow::Borrowed(ds),
        };
        let Some(governed) = &self.context.governed else {
            return current;
        };
        let Some(stable) = governed
            .stable_hash()
            .filter(|stable| *stable != resolution.current_hash)
        else {
            return current;
        };
        let is_stable = |create: &Create| governed.creates_stable(create.entry);
        let of_stable = changes.creates.iter().filter(|create| is_stable(create)).count();
        let of_both = of_stable > 0 && of_stable < changes.creates.len();
        // If both are needed, they take turns. So a template that the apiserver refuses keeps no pod of the other one away.
        let is_turn_of_stable = !of_both || self.snapshot.now.as_second() / TURN_SECONDS % 2 == 0;
        if of_both {
            self.timers
                .at_once("pods of another revision are to be created as well");
        }
        let Some(at_stable) = (of_stable > 0 && is_turn_of_stable)
            .then(|| policy::at_revision(ds, resolution, stable))
            .flatten()
        else {
            // Nodes that should have the stable revision wait for it if it cannot be created from.
            changes.creates.retain(|create| !is_stable(create));
            return current;
        };
        changes.creates.retain(is_stable);
        Creation {
            hash: stable,
            workload: Cow::Owned(at_stable),
        }
    }

    fn rollout(&self) -> Rollout {
        let (view, step) = (&self.context.view, &self.step);
        let count = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
        Rollout {
            current_hash: self.context.resolution.current_hash.clone(),
            current_revision: self.context.resolution.current_number,
            desired: u32::try_from(view.desired).unwrap_or(u32::MAX),
            max_unavailable: if step.limits.max_surge == 0 {
                count(step.limits.max_unavailable)
            } else {
                0
            },
            max_surge: count(step.limits.max_surge),
            unavailable: count(step.unavailable),
            surging: count(step.surging),
            nodes: rollout::count_nodes(view),
        }
    }
}

/// The revision of the pods to create.
struct Creation<'d, 'a> {
    /// Its hash.
    hash: &'d str,
    /// The workload, with the template of the revision.
    workload: Cow<'a, DaemonSet>,
}
