//! Builds a plan from the decisions of the other modules: phases, state and timers.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use crate::{
    core::{
        batches,
        cancellation::Cancellation,
        expectations,
        identities::Identities,
        plan::{Action, ActionKind, Batch, Phase, PhaseKind, Plan, PodManifest, Reason, Verdict, When},
        pod_claims, pod_template,
        requeue::Timers,
        slow_start,
        snapshot::{Deviation, Expectations, Snapshot, State},
        status::Status,
    },
    replicaset::{
        bucket_summary::Role,
        manifest,
        plan_cache::PlanCache,
        pod_names::{self, PodNames},
        scale::{self, Scale},
        set_view::{self, SetView},
        status::{self, Failure},
        used_names, victims,
        workload::ReplicaSet,
    },
};

/// Builds one plan.
pub(crate) struct PlanBuilder<'d, 'a> {
    snapshot: &'a Snapshot<ReplicaSet>,
    view: &'d SetView<'a>,
    cache: &'d mut PlanCache,
    cancellation: Cancellation<'d>,
    phases: Vec<Phase>,
    pod_manifest: Option<PodManifest>,
    state: State,
    timers: Timers,
    /// Whether the plan has only some of the claims. Then nothing that depends on claims may be planned.
    is_cut: bool,
    /// What the status says if creates or deletes of this plan fail.
    failure: Option<Failure>,
    error: Option<String>,
    deviations: BTreeSet<Deviation>,
}

impl<'d, 'a> PlanBuilder<'d, 'a> {
    /// Starts a plan with claims.
    pub(crate) fn new(
        snapshot: &'a Snapshot<ReplicaSet>,
        view: &'d SetView<'a>,
        cache: &'d mut PlanCache,
        cancellation: Cancellation<'d>,
    ) -> Self {
        let mut builder = Self {
            snapshot,
            view,
            cache,
            cancellation,
            phases: Vec::new(),
            pod_manifest: None,
            state: snapshot.state.clone().not_after(snapshot.now),
            timers: Timers::default(),
            is_cut: false,
            failure: None,
            error: None,
            deviations: BTreeSet::new(),
        };
        let mut left = snapshot.options.claims_per_plan();
        // One more than the limit, to find out whether there are more.
        let mut claims = view.claims.batches(snapshot.workload.owner(), left + 1);
        builder.is_cut = batches::cut(&mut claims, &mut left);
        builder.phase(PhaseKind::Claims, claims);
        builder
    }

    /// Whether there are more claims than one plan may have.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// A plan with the first of many claims and the status. Everything else depends on all claims, so it waits for the next plan,
    /// which follows at once.
    pub(crate) fn claims_only(mut self) -> Plan {
        self.timers
            .at_once("there are more pods to claim than one plan may");
        self.slow_start(Vec::new());
        self.keep_names(false);
        self.finish(Verdict::Apply)
    }

    /// A plan with the status of a ReplicaSet that is being deleted.
    pub(crate) fn while_deleting(mut self) -> Plan {
        self.slow_start(Vec::new());
        // It will have no new pods.
        self.keep_names(true);
        self.finish(Verdict::Apply)
    }

    /// A plan with claims and the status. Outstanding expectations hold up everything else, for at most `left`.
    pub(crate) fn status_only(mut self, left: Duration) -> Plan {
        self.timers.expectations(left);
        self.slow_start(Vec::new());
        self.keep_names(false);
        self.finish(Verdict::StatusOnly)
    }

    /// A plan while `expected` creates are outstanding, for at most `left`. It only creates further pods, so that there are as many
    /// as wanted when all outstanding creates succeed. Upstream would only write the status.
    pub(crate) fn creates_besides(mut self, expected: &Expectations, left: Duration) -> Option<Plan> {
        let index = match self.cache.identities.get() {
            Some(identities) => Cow::Borrowed(identities),
            None => Cow::Owned(Identities::of(&self.snapshot.buckets)),
        };
        // The watch may have shown a pod since the executor read its expectations.
        let is_unseen = |name: &str| !index.is_taken(name, &self.snapshot.buckets);
        let creates = expected.creates.iter();
        let unseen = creates.filter(|create| is_unseen(&create.pod_name)).count();
        let pods = self.view.counts.active.saturating_add(unseen);
        let Scale::Missing(missing) = Scale::of(self.snapshot.workload.replicas, pods) else {
            return Some(self.status_only(left));
        };
        self.timers.expectations(left);
        self.deviations.insert(Deviation::SlowStartAcrossPlans);
        let before = self.state.expectations.take();
        self.create(missing, before)?;
        self.keep_names(false);
        Some(self.finish(Verdict::Apply))
    }

    /// A whole plan: creates or deletes, and the status.
    pub(crate) fn in_full(mut self) -> Option<Plan> {
        let scale = Scale::of(self.snapshot.workload.replicas, self.view.counts.active);
        // Those that are there have expired.
        self.state.expectations = None;
        match scale {
            Scale::Missing(missing) => self.create(missing, None)?,
            Scale::Excess(excess) => self.delete(excess)?,
            //
            Scale::Enough => self.slow_start(Vec::new()),
        }
        self.keep_names(!matches!(scale, Scale::Missing(_)));
        Some(self.finish(Verdict::Apply))
    }

    fn phase(&mut self, kind: PhaseKind, batches: Vec<Batch>) {
        if !batches.is_empty() {
            self.phases.push(Phase::new(kind, batches));
        }
    }

    /// Adds creates. `before` are the creates that are outstanding. `None` if cancelled.
    fn create(&mut self, missing: usize, before: Option<Expectations>) -> Option<()> {
        let (snapshot, rs) = (self.snapshot, &self.snapshot.workload);
        if !pod_template::has_labels(&rs.template) {
            // no create is tried.
            let message = "unable to create pods, no labels".to_owned();
            self.failure = Some(Failure::of_plan(message.clone()));
            self.error = Some(message);
            self.state.expectations = before;
            self.slow_start(Vec::new());
            return Some(());
        }
        let count = missing.min(scale::most_creates(&snapshot.options));
        let names = self.new_names(count, before.as_ref())?;
        let generated = names.iter().any(String::is_empty);
        let creates: Vec<_> = names.into_iter().map(|name| self.create_action(name)).collect();
        if !creates.is_empty() {
            self.pod_manifest = Some(manifest::pod_manifest(rs, generated));
            self.failure = Some(Failure::of_creates());
            if snapshot.options.deviates(Deviation::IdempotentCreates) {
                self.deviations.insert(Deviation::IdempotentCreates);
            }
        }
        let expected = expectations::set(snapshot.now, expectations::of_creates(&creates), Vec::new());
        self.state.expectations = match (expected, before) {
            (Some(mut expected), Some(before)) => {
                // Keep the older time: further creates must not extend the expectations of earlier ones.
                expected.set_at = expected.set_at.min(before.set_at);
                expected.creates.extend(before.creates);
                Some(expected)
            }
            (expected, before) => expected.or(before),
        };
        let may_go_on = !generated && slow_start::may_plan_again_at_once(&snapshot.options);
        if count < missing && may_go_on {
            self.deviations.insert(Deviation::SlowStartAcrossPlans);
            self.timers
                .at_once("there are more pods to create than one plan may");
        }
        self.slow_start(creates);
        Some(())
    }

    /// The names of so many new pods: the lowest free ones. An empty name is chosen by the apiserver. `None` if cancelled.
    fn new_names(&mut self, count: usize, before: Option<&Expectations>) -> Option<Vec<String>> {
        if !used_names::are_derived(self.snapshot) {
            return Some(vec![String::new(); count]);
        }
        let names = PodNames::of(&self.snapshot.workload);
        let mut taken = self.cache.numbers(self.snapshot, &names, self.cancellation)?;
        taken.extend(used_names::used_numbers(&self.snapshot.state, &names));
        let outstanding = before.iter().flat_map(|before| &before.creates);
        taken.extend(outstanding.filter_map(|create| names.number(&create.pod_name)));
        let free = pod_names::free_numbers(&taken, count).into_iter();
        Some(
            free.map(|number| names.name(number).unwrap_or_default())
                .collect(),
        )
    }

    fn create_action(&self, pod_name: String) -> Action {
        let (has, wants) = (self.view.counts.active, self.snapshot.workload.replicas);
        Action {
            reason: Reason::TooFewPods,
            message: format!("there are {has} of {wants} pods"),
            kind: ActionKind::CreatePod {
                pod_name,
                node_name: String::new(),
            },
        }
    }

    /// Adds the creates in batches, and updates the state of the slow start.
    fn slow_start(&mut self, creates: Vec<Action>) {
        let (snapshot, key) = (self.snapshot, &self.snapshot.workload.uid);
        let first = (!creates.is_empty()).then(|| slow_start::first_batch(snapshot, key));
        self.state.slow_start = slow_start::state_after_plan(snapshot, key, first);
        if creates.len() > 1 && first.is_some_and(|first| first > 1) {
            self.deviations.insert(Deviation::SlowStartAcrossPlans);
        }
        let mut batches = batches::slow_start(creates, first.unwrap_or(1));
        if let Some(first) = batches.first_mut()
            && self.replaces_lost_pods()
        {
            first.confirm_workload = true;
            self.deviations.insert(Deviation::ConfirmBeforeCreates);
        }
        self.phase(PhaseKind::Creates, batches);
    }

    /// Whether there are fewer pods than the last status says. Somebody else may have deleted them because the ReplicaSet is gone,
    /// which the executor's watch may not show yet. Then creates need a live read of the ReplicaSet.
    fn replaces_lost_pods(&self) -> bool {
        let before = usize::try_from(self.snapshot.workload.status.replicas).unwrap_or(0);
        self.snapshot.options.deviates(Deviation::ConfirmBeforeCreates) && before > self.view.counts.active
    }

    /// Adds deletes. `None` if cancelled.
    fn delete(&mut self, excess: usize) -> Option<()> {
        self.slow_start(Vec::new());
        let snapshot = self.snapshot;
        let own = set_view::own_pods(snapshot, self.cancellation)?.into_iter();
        let active = own.filter_map(|(pod, role)| matches!(role, Role::Active(_)).then_some(pod));
        let count = excess.min(snapshot.options.burst);
        let victims = victims::choose(snapshot, active.collect(), count, self.cancellation)?;
        let uid_precondition = snapshot.options.deviates(Deviation::DeleteWithUid);
        let (has, wants) = (self.view.counts.active, snapshot.workload.replicas);
        let action = |victim: &victims::Victim<'_>| Action {
            reason: Reason::TooManyPods,
            message: victim.message(has, wants),
            kind: ActionKind::DeletePod {
                pod: pod_claims::reference(victim.pod),
                node_name: victim.pod.target_node().unwrap_or_default().to_owned(),
                uid_precondition,
            },
        };
        let deletes: Vec<_> = victims.iter().map(action).collect();
        if deletes.is_empty() {
            return Some(());
        }
        if uid_precondition {
            self.deviations.insert(Deviation::DeleteWithUid);
        }
        let uids = victims.iter().map(|victim| victim.pod.uid().to_owned()).collect();
        self.state.expectations = expectations::set(snapshot.now, Vec::new(), uids);
        self.failure = Some(Failure::of_deletes());
        self.phase(PhaseKind::Deletes, batches::at_once(deletes));
        Some(())
    }

    fn keep_names(&mut self, is_complete: bool) {
        used_names::keep_needed(&mut self.state, self.snapshot, is_complete);
    }

    /// The phases that write the status. If the plan creates or deletes, there are two: which of them runs depends on whether a
    /// create or delete fails.
    fn status_writes(&self) -> Vec<Phase> {
        let (rs, options) = (&self.snapshot.workload, &self.snapshot.options);
        let present = self.failure.as_ref().filter(|failure| failure.is_of_plan());
        let possible = self.failure.as_ref().filter(|failure| !failure.is_of_plan());
        let write = |kind, when, failure| {
            let status = status::count(self.view, rs, options, failure, self.snapshot.now);
            let action = status::write(rs, &status, failure)?;
            Some(Phase {
                when,
                ..Phase::new(kind, batches::at_once(vec![action]))
            })
        };
        let on_failure =
            possible.and_then(|failure| write(PhaseKind::Failure, When::AfterFailure, Some(failure)));
        let otherwise = write(PhaseKind::Status, When::AfterSuccess, present);
        on_failure.into_iter().chain(otherwise).collect()
    }

    /// Adds the status, and sets the timer for the next pod that becomes available. A plan to apply with nothing in it is none.
    fn finish(mut self, verdict: Verdict) -> Plan {
        let (rs, options) = (&self.snapshot.workload, &self.snapshot.options);
        let writes = self.status_writes();
        self.phases.extend(writes);
        let present = self.failure.as_ref().filter(|failure| failure.is_of_plan());
        let status = status::count(self.view, rs, options, present, self.snapshot.now);
        status::availability_timer(&mut self.timers, self.view, rs, self.snapshot.now);
        let (requeue, differs) = self.timers.choose(options.deviates(Deviation::EarliestRequeue));
        if differs {
            self.deviations.insert(Deviation::EarliestRequeue);
        }
        let is_empty = self.phases.is_empty() && self.error.is_none();
        let verdict = match verdict {
            Verdict::Apply if is_empty => Verdict::Noop,
            verdict => verdict,
        };
        Plan {
            verdict,
            phases: self.phases,
            pod_manifest: self.pod_manifest,
            state: self.state,
            requeue,
            error: self.error,
            status: Some(Status::ReplicaSet(status)),
            rollout: None,
            deviations: self.deviations,
            policy_uids: Vec::new(),
        }
    }
}
