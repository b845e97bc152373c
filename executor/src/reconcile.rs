//! One reconcile of one workload: wait for own writes, take the snapshot, request the plan, check it, hold its state,
//! apply it, report the outcomes, and requeue.
//!
//! A reconcile makes no decision about the workload. Any failure before the plan has arrived leaves the cluster
//! unchanged.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use nodewise_client::{Answer, PlanService, ServiceError};
use nodewise_projection::{Key, Pod, Revision, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1;
use nodewise_runtime::{
    Resource,
    actuator::{Actuator, ObjectKey, Refusal, WorkloadEvent},
    expectations,
    gate::CacheBehind,
    response::ObjectIdentity,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::metrics::Metrics;
use crate::plan_check::retain_valid_entries;
use crate::state::Shared;
use crate::trace::Origins;
use nodewise_runtime::apply::{self, Applied, LeftOut};
use nodewise_runtime::kind::{Kind, needed};
use nodewise_runtime::snapshot::{self, LiveObjects};
use nodewise_telemetry::in_short;

mod analysis;
mod log;
mod pace;
mod planned;

pub use pace::Pace;
use pace::{AT_ONCE, unless_zero};
use planned::Inputs;
pub(crate) use planned::Planned;

/// Maximum number of plans that one reconcile requests in a row because the cluster differed from the plan: a name was
/// taken, or an orphan was gone. If names of pods are taken, the fourth plan leaves the name to the apiserver.
const MAX_PLANS: usize = 4;

/// Maximum number of revisions that are read one by one, all concurrently. For more revisions the namespace is listed
/// once.
const MAX_SINGLE_READS: usize = 16;

/// Maximum age of a plan that was requested while the previous plan was being applied.
const MAX_AGE_OF_NEXT: Duration = Duration::from_secs(1);

/// How long an executor that has written waits after a stop for the response to its report.
const REPORT_GRACE: Duration = Duration::from_secs(2);

/// The clock for the time in snapshots.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done: the back-off is reset.
    Settled {
        /// Requeue after this time.
        after: Option<Duration>,
    },
    /// Something failed: requeue with the workload's own back-off.
    Failed {
        /// Requeue after this time, if that is sooner.
        after: Option<Duration>,
        /// The reason.
        reason: String,
    },
    /// Somebody else changed a RolloutPolicy since the snapshot, so its status was not written, and nothing that depends on it was
    /// done. Requeue with the workload's own back-off. The event of that change enqueues the workload as well.
    Conflict {
        /// Requeue after this time, if that is sooner.
        after: Option<Duration>,
        /// The reason.
        reason: String,
    },
    /// The service refused the request, or its plan was refused, and nothing was written: requeue with the workload's own
    /// back-off, as often as it takes, because the service may be mended.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The caches do not show the executor's own last write yet. The workload is enqueued when they do.
    CacheBehind(CacheBehind),
    /// etcd was restored from a backup, and this resource was not listed since. Every workload is enqueued when all
    /// resources were listed.
    Relisting(Resource),
    /// The service is unreachable, and nothing was written. This does not count as a failure of the workload.
    Unreachable {
        /// The error.
        reason: String,
    },
}

impl Ending {
    /// The label value in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Settled { .. } => "settled",
            Self::Failed { .. } | Self::Refused { .. } => "failed",
            Self::CacheBehind(_) | Self::Relisting(_) | Self::Conflict { .. } => "behind",
            Self::Unreachable { .. } => "unreachable",
        }
    }

    /// The reason of a failure; `None` for all other outcomes.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed { reason, .. } | Self::Refused { reason } => Some(reason),
            _ => None,
        }
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self::Failed {
            after: None,
            reason: reason.into(),
        }
    }
}

/// What is needed to reconcile workloads of a kind.
pub struct Reconciler<K, A, P> {
    /// The kind.
    pub kind: PhantomData<K>,
    /// The caches and everything else that is remembered.
    pub state: Shared,
    /// Makes the writes.
    pub actuator: Arc<A>,
    /// Makes the plans.
    pub service: Arc<P>,
    /// Options that are sent with each plan request.
    pub options: v1::PlanOptions,
    /// Options for applying plans.
    pub apply: apply::Options,
    /// The clock for the time in snapshots.
    pub clock: Clock,
    /// The metrics.
    pub metrics: Metrics,
    /// Plans that were requested in advance.
    pub next: NextPlans,
    /// Limits how often a workload is requeued at once.
    pub pace: Pace,
    /// Links between the traces of reconciles.
    pub origins: Arc<Origins>,
    /// When this is cancelled, no work is started and no call to the service is waited for.
    pub stop: CancellationToken,
}

/// Plans that were requested while the previous plans were being applied.
#[derive(Debug, Default)]
pub struct NextPlans(Mutex<HashMap<Key, (Planned, Instant)>>);

impl NextPlans {
    fn keep(&self, key: &Key, next: Planned, asked: Instant) {
        self.lock().insert(key.clone(), (next, asked));
    }

    /// The plan for a workload, if it is recent and was made from the current version of the workload.
    fn take(&self, workload: &Workload) -> Option<Planned> {
        let (next, asked) = self.lock().remove(&workload.key)?;
        let same =
            next.workload.uid == workload.uid && next.workload.resource_version == workload.resource_version;
        (same && asked.elapsed() <= MAX_AGE_OF_NEXT).then_some(next)
    }

    /// Forgets a workload that is gone.
    fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Planned, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, A, P> std::fmt::Debug for Reconciler<K, A, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The JSON of revisions, with their resource.
fn revisions_of(objects: &[Bytes]) -> impl Iterator<Item = (Resource, &Bytes)> {
    objects.iter().map(|object| (Resource::REVISIONS, object))
}

impl<K: Kind, A: Actuator, P: PlanService> Reconciler<K, A, P> {
    /// Reconciles a workload once.
    pub async fn reconcile(&self, key: &Key) -> Ending {
        match self.try_reconcile(key).await {
            Ok(ending) | Err(ending) => ending,
        }
    }

    /// Whether expectations of a workload are open: creates or deletes that no watch has shown yet.
    #[must_use]
    pub fn waits_for_watches(&self, key: &Key) -> bool {
        self.state.lock().reconcile_states.outstanding(key) != (0, 0)
    }

    async fn try_reconcile(&self, key: &Key) -> Result<Ending, Ending> {
        // Objects that were read live, because the caches may not show them yet.
        let mut live = LiveObjects::default();
        let mut names_only = false;
        for _ in 0..MAX_PLANS {
            let Some(workload) = self.admit(key, &mut live)? else {
                self.next.forget(key);
                self.pace.forget(key);
                self.origins.forget(key);
                self.apply.measurements.forget(key);
                return Ok(Ending::Settled { after: None });
            };
            self.origins.is_of(&workload);
            let early = self.next.take(&workload);
            let planned = match early.filter(|_| live.is_empty() && !self.stop.is_cancelled()) {
                Some(next) => next,
                None => self.plan(&workload, &live).await?,
            };
            let left_out = self.check_plan(&planned, &live.revisions).await?;
            if self.state.lock().is_left_alone(key) {
                // The workload lost its label. That event has enqueued it, and the next reconcile forgets it.
                return Ok(Ending::Settled { after: None });
            }
            self.metrics.planned(&planned.workload.key, &planned.plan);
            // A stale plan is not carried out, so its expectations would never be settled.
            if planned.plan.verdict() == v1::Verdict::Stale {
                return Err(Ending::failed(
                    "the plan is stale: the caches do not show our own writes yet",
                ));
            }
            self.hold(&planned);
            let (mut applied, next) = self.apply_and_plan_next(&planned, &left_out).await;
            let colliding = std::mem::take(&mut applied.colliding);
            let colliding = self.readable(colliding.iter().map(|found| (found.resource, &found.object)));
            let (failed, name_taken) = (applied.failed, applied.name_taken);
            let outdated = !failed && applied.is_outdated();
            self.update_caches(&applied);
            if outdated {
                let created = self.created_revisions(&planned.plan, &applied).await;
                live.extend(self.readable(revisions_of(&created)));
                tracing::info!("an object is gone or cannot be changed; planning again without it");
            } else if !colliding.is_empty() {
                tracing::info!(
                    "the name of a new object is taken; planning again with the object that has it"
                );
            }
            let ending = self.report(&planned, applied, &left_out).await;
            let limit = |ending| self.pace.limit(key, ending);
            let ending = ending.map(limit).map_err(limit)?;
            let again = !colliding.is_empty() || outdated || (name_taken && ending == AT_ONCE);
            if !again {
                if let Some((next, asked)) = next.filter(|_| !failed && ending == AT_ONCE) {
                    self.next.keep(key, next, asked);
                }
                return Ok(ending);
            }
            names_only = colliding.is_empty() && !outdated;
            live.extend(colliding);
        }
        // Taken names of pods are no failure: after a few attempts the apiserver chooses the name.
        if names_only {
            return Ok(Ending::Settled {
                after: Some(pace::MIN_DELAY),
            });
        }
        Err(Ending::failed(format!(
            "an object's name was still taken, or another object gone or not to be changed, after {MAX_PLANS} plans"
        )))
    }

    /// Applies what the API calls showed to the caches: forgets orphans that an adoption did not find (D-23), and marks
    /// objects that cannot be changed.
    fn update_caches(&self, applied: &Applied) {
        let mut state = self.state.lock();
        for key in &applied.vanished {
            state.store.forget_orphan(key.resource, &key.namespace, &key.name);
        }
        for key in &applied.sealed {
            state.store.seal(key.resource, &key.namespace, &key.name);
        }
    }

    /// Reads the revisions that a plan created: the caches may not show them yet, and their names are taken.
    async fn created_revisions(&self, plan: &v1::Plan, applied: &Applied) -> Vec<Bytes> {
        let namespace = plan.workload.as_ref().map_or("", |workload| &*workload.namespace);
        let mut created = Vec::new();
        for (action, outcome) in plan.actions().zip(&applied.outcomes) {
            if let Some(v1::action::Kind::CreateRevision(create)) = &action.kind
                && outcome.result() == v1::Result::Succeeded
            {
                let key = ObjectKey::new(Resource::REVISIONS, namespace, &create.name);
                // If the read fails, the next plan finds the name taken, and the plan after that gets the revision.
                created.extend(self.actuator.read(&key).await.ok());
            }
        }
        created
    }

    /// Parses objects of resources. Unreadable ones are skipped, as by the watch. The next plan then lacks the object that has
    /// the name, so the workload fails with the message that the name is taken.
    fn readable<'o>(&self, objects: impl IntoIterator<Item = (Resource, &'o Bytes)>) -> LiveObjects {
        let mut live = LiveObjects::default();
        for (resource, object) in objects {
            let text = String::from_utf8_lossy(object);
            match LiveObjects::read::<K>(resource, &text) {
                Ok(read) => live.extend(read),
                Err(error) => {
                    self.metrics.runtime().unreadable(resource);
                    let ObjectIdentity { namespace, name, .. } = ObjectIdentity::of(&text);
                    tracing::warn!(%resource, namespace, name, "skipped, because it cannot be read: {error}");
                }
            }
        }
        live
    }

    /// Returns the workload if it exists, is selected, and the caches show the executor's last writes to it (D-71,
    /// steps 1 and 2). While the caches are behind, objects that were read live are kept for the next reconcile.
    fn admit(&self, key: &Key, live: &mut LiveObjects) -> Result<Option<Arc<Workload>>, Ending> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.is_left_alone(key) {
            tracing::debug!("not selected, so it is left alone");
        }
        let Some(workload) = state.owned(key) else {
            state.forget(key, &self.metrics);
            return Ok(None);
        };
        let workload = Arc::clone(workload);
        let unknown = state
            .store
            .relisting()
            .or_else(|| state.store.lost(needed::<K>()));
        if let Some(resource) = unknown {
            return Err(Ending::Relisting(resource));
        }
        match state.gate.check(key, |resource| state.store.reached(resource)) {
            Ok(()) => {
                live.extend(state.take_live(key, &workload.uid));
                Ok(Some(workload))
            }
            Err(behind) => {
                state.keep_live(key, &workload.uid, std::mem::take(live));
                self.metrics.stale_sync(key.kind, behind.resource);
                Err(Ending::CacheBehind(behind))
            }
        }
    }

    /// Requests a plan. If the service refuses the request, the parts that may be the cause are dropped.
    async fn plan(&self, workload: &Arc<Workload>, live: &LiveObjects) -> Result<Planned, Ending> {
        let planned = self.request_plan(workload, live).await;
        planned.map_err(|unplanned| match unplanned {
            Unplanned::Ended(ending) => ending,
            Unplanned::Refused(error) => {
                match &error {
                    ServiceError::Refused(refusal) if refusal.lacks.is_some() => {
                        self.service_is_too_old(workload, &error);
                    }
                    _ => self.drop_possible_causes(&workload.key, &error),
                }
                let reason = error.to_string();
                Ending::Refused { reason }
            }
        })
    }

    /// Tells the owner of the workload why nothing happens. The request is not the cause, so nothing of it is dropped (L-44).
    fn service_is_too_old(&self, workload: &Workload, error: &ServiceError) {
        self.actuator.emit(WorkloadEvent {
            workload: workload.reference(),
            kind: "Warning".to_owned(),
            reason: "ServiceTooOld".to_owned(),
            message: error.to_string(),
            once: None,
        });
    }

    async fn request_plan(&self, workload: &Arc<Workload>, live: &LiveObjects) -> Result<Planned, Unplanned> {
        let (key, uid) = (&workload.key, &workload.uid);
        let mut current = Arc::clone(workload);
        // The inputs of each request. With hedging, the plan may answer an earlier request than the last one.
        let mut inputs = Vec::with_capacity(1);
        self.read_live(workload, &live.revisions).await?;
        let mut build = |receiver: &Receiver<'_>| {
            let mut state = self.state.lock();
            let state = &mut *state;
            // A retry uses the current caches, unless the workload was replaced or is not selected any more. Then it
            // continues with the old object; a plan for a workload that is not selected is not applied.
            if let Some(newer) = state.owned(key).filter(|newer| newer.uid == *uid) {
                current = Arc::clone(newer);
            }
            let sent = state.reconcile_states.get(key, uid);
            let now = nodewise_projection::timestamp((self.clock)());
            let (undecided, as_of) = (
                snapshot::undecided::<K>(&state.store, &current),
                state.store.last_change(),
            );
            let mut snapshot =
                snapshot::take::<K>(&mut state.store, &current, sent.clone(), live, now, receiver);
            let policies = snapshot::policies::<K>(&state.store, &current);
            let measured = analysis::add(&mut snapshot, &current, &policies, &self.apply.measurements);
            inputs.push(Inputs {
                workload: Arc::clone(&current),
                sent,
                as_of,
                policies,
                measured,
                undecided,
            });
            v1::PlanRequest {
                snapshot: Some(snapshot),
                options: Some(self.options.clone()),
                undelivered_reports: state.undelivered(key, uid),
            }
        };
        let answer = self
            .unless_stopped(Duration::ZERO, self.service.plan(uid, &mut build))
            .await;
        let Answer { mut plan, request } = answer.map_err(|error| match error {
            ServiceError::Unreachable(_) => Unplanned::Ended(Ending::Unreachable {
                reason: error.to_string(),
            }),
            ServiceError::Refused(_) => Unplanned::Refused(error),
        })?;
        let inputs = inputs.swap_remove(request);
        if let Some(object) = &inputs.undecided {
            let reason = format!("{object} has changed since it was read");
            return Err(Ending::failed(reason).into());
        }
        plan.error = in_short(&plan.error);
        plan.plan_id = in_short(&plan.plan_id);
        Ok(inputs.planned(plan))
    }

    /// Drops the parts that a request may have been refused for: old reports, and the state from earlier plans, unless
    /// another part of the request is the cause. A faulty service may have made that state, and correct replicas would
    /// refuse it forever.
    fn drop_possible_causes(&self, key: &Key, error: &ServiceError) {
        let mut state = self.state.lock();
        state.reports_delivered(key);
        let may_be_state =
            matches!(error, ServiceError::Refused(refusal) if refusal.may_be_of("snapshot.state"));
        if may_be_state && state.reconcile_states.drop_planned_state(key, (self.clock)()) {
            state.update_metrics(key, &self.metrics);
            tracing::warn!(
                %error,
                "the service refused the request; the state from earlier plans is dropped, because it may be the cause"
            );
        }
    }

    /// Reads objects live that the next snapshot needs and the caches do not keep: labels that no selector named when
    /// the object came, and data of revisions, for instance of orphans that are older than the workload.
    async fn read_live(&self, workload: &Workload, colliding: &[Revision]) -> Result<(), Ending> {
        if K::PODS.is_some() {
            self.read_labels(workload).await?;
        }
        // The second pass: only after the labels of a revision are read is it known whether the revision is sent.
        for _ in 0..2 {
            let unread = snapshot::unread::<K>(&mut self.state.lock().store, workload, colliding);
            self.read_revisions(workload, unread).await?;
        }
        Ok(())
    }

    /// Lists the pods of the namespace, if labels are not cached that the selector names.
    async fn read_labels(&self, workload: &Workload) -> Result<(), Ending> {
        let mut unread = self.state.lock().store.unread_pods(workload);
        if unread.is_empty() {
            return Ok(());
        }
        let namespace = &*workload.key.namespace;
        self.list(Resource::PODS, namespace, &mut |object| {
            if unread.remove(&ObjectIdentity::of(object).name).is_none() {
                return;
            }
            match Pod::from_text(object) {
                Ok(pod) => self.state.lock().store.take_labels(pod),
                Err(_) => self.metrics.runtime().unreadable(Resource::PODS),
            }
        })
        .await?;
        let mut state = self.state.lock();
        for (name, uid) in unread {
            let kept = state.store.pod(namespace, &name);
            if kept.is_some_and(|kept| kept.uid == uid) {
                state.store.forget_orphan(Resource::PODS, namespace, &name);
            }
        }
        Ok(())
    }

    async fn read_revisions(&self, workload: &Workload, unread: Vec<ObjectKey>) -> Result<(), Ending> {
        // By name: the uids of revisions that may be gone.
        let mut gone: HashMap<_, _> = {
            let state = self.state.lock();
            let revision = |key: &ObjectKey| state.store.revision(&key.namespace, &key.name);
            let kept = unread.iter().filter_map(revision);
            kept.map(|kept| (kept.name.clone(), kept.uid.clone())).collect()
        };
        let take = |object: &str| {
            let read = [Bytes::copy_from_slice(object.as_bytes())];
            for revision in self.readable(revisions_of(&read)).revisions {
                self.state.lock().take_read(workload, revision, &self.metrics);
            }
        };
        if unread.len() > MAX_SINGLE_READS {
            let namespace = &*workload.key.namespace;
            self.list(Resource::REVISIONS, namespace, &mut |object| {
                if gone.remove(&ObjectIdentity::of(object).name).is_some() {
                    take(object);
                }
            })
            .await?;
        } else {
            let reads = stream::iter(unread.clone()).map(async |key| (self.actuator.read(&key).await, key));
            let mut reads = std::pin::pin!(reads.buffer_unordered(MAX_SINGLE_READS));
            while let Some((read, key)) = reads.next().await {
                if self.stop.is_cancelled() {
                    return Err(stopped());
                }
                match read {
                    Err(error) if error.refusal == Refusal::NotFound => continue,
                    Err(error) => return Err(Ending::failed(format!("reading {key}: {error}"))),
                    Ok(object) => take(&String::from_utf8_lossy(&object)),
                }
                gone.remove(&key.name);
            }
        }
        let mut state = self.state.lock();
        for key in unread {
            if let Some(uid) = gone.get(&key.name) {
                state.take_gone(&key, uid, &self.metrics);
            }
        }
        Ok(())
    }

    /// Lists the objects of a resource in a namespace.
    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Ending> {
        let listed = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(stopped()),
            listed = self.actuator.list(resource, namespace, take) => listed,
        };
        listed.map_err(|error| Ending::failed(format!("listing the {resource} of {namespace}: {error}")))
    }

    /// Waits for a call to the service; after a stop, at most for this grace period.
    async fn unless_stopped<T>(
        &self,
        grace: Duration,
        call: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let stopped = async {
            self.stop.cancelled().await;
            if !grace.is_zero() {
                tokio::time::sleep(grace).await;
            }
        };
        tokio::select! {
            biased;
            () = stopped => Err(ServiceError::Unreachable("the controller stops".to_owned())),
            answer = call => answer,
        }
    }

    /// Applies a plan. If that plan allows it, the next one is requested when the last write has begun, so that it is there when the
    /// last writes end. Also returns the next plan, and when it was requested.
    async fn apply_and_plan_next(
        &self,
        planned: &Planned,
        left_out: &LeftOut,
    ) -> (Applied, Option<(Planned, Instant)>) {
        let last_begins = Arc::new(Notify::new());
        let apply = self.apply(planned, left_out, &last_begins);
        if !allows_early_request(&planned.plan) || !self.actuator.writes() {
            return (apply.await, None);
        }
        // After a failure the last write does not begin.
        let ended = CancellationToken::new();
        let apply = async {
            let applied = apply.await;
            ended.cancel();
            applied
        };
        let next = async {
            tokio::select! {
                biased;
                () = last_begins.notified() => {}
                () = ended.cancelled() => return None,
            }
            let asked = Instant::now();
            Some((self.plan_next(&planned.workload).await?, asked))
        };
        tokio::join!(apply, next)
    }

    /// Requests the next plan while the current one is being applied. The next plan is used only if it arrives soon and
    /// consists of creates: other actions depend on pods that may change meanwhile.
    async fn plan_next(&self, workload: &Arc<Workload>) -> Option<Planned> {
        // The state must not be dropped here although the service refuses the request: the plan that is being applied
        // needs it.
        let nothing = LiveObjects::default();
        let plan = tokio::time::timeout(MAX_AGE_OF_NEXT, self.request_plan(workload, &nothing));
        let next = plan.await.ok()?.ok()?;
        only_creates(&next.plan).then_some(next)
    }

    /// Holds the state of a plan, before the plan's first write.
    fn hold(&self, planned: &Planned) {
        let (key, uid) = (&planned.workload.key, &planned.workload.uid);
        let expired = expectations::expired(&planned.sent, (self.clock)());
        self.metrics.expectations_expired(key.kind, expired);
        let mut state = self.state.lock();
        let state = &mut *state;
        state.reports_delivered(key);
        state.planned(&planned.workload, &planned.plan);
        if let Some((deletes, store)) = state.foreign_deletes(key.kind) {
            deletes.expect(store, key, &planned.plan);
        }
        let Some(mut held) = planned.plan.state.clone() else {
            return;
        };
        expectations::remove_foreign_expectations(&mut held, &planned.plan, &planned.sent);
        retain_valid_entries(key.kind, &mut held, &planned.sent, |node| {
            state.store.has_node(node)
        });
        if !self.actuator.writes() {
            // An observer carries nothing out, so the expectations would never be settled.
            held.expectations = None;
        }
        if self.actuator.writes() {
            let ratios =
                K::deletion_age_ratios(&state.store, &planned.workload, &planned.plan, (self.clock)());
            self.metrics.deletion_age_ratios(&ratios);
        }
        let own_pods = state.store.own_pods(&key.namespace, uid);
        state
            .reconcile_states
            .replace(key, uid, held, &planned.sent, &own_pods);
        state.update_metrics(key, &self.metrics);
    }

    /// Whether pods are created before earlier creates are seen.
    fn slow_start_across_plans(&self) -> bool {
        self.options.enables(v1::Deviation::SlowStartAcrossPlans)
    }

    /// Applies a plan. `last_begins` is told when its last write begins.
    async fn apply(&self, planned: &Planned, left_out: &LeftOut, last_begins: &Arc<Notify>) -> Applied {
        let Planned {
            plan, workload, sent, ..
        } = planned;
        let (key, uid) = (&workload.key, &workload.uid);
        let measurements = &self.apply.measurements;
        if plan.phases.is_empty() {
            measurements.counted(key, &planned.measured);
            return Applied::default();
        }
        let span = tracing::debug_span!("apply", nodewise.plan.id = plan.plan_id);
        let restarts = self.state.lock().gate.restarts();
        let settings = apply::Options {
            status_with_uid: self.options.enables(v1::Deviation::StatusWithUid),
            controlled: Some(<K::Controls as Kind>::RESOURCE),
            // Upstream's batches end before the next ones begin.
            is_window: self.slow_start_across_plans(),
            stop: self.stop.clone(),
            last_begins: Arc::clone(last_begins),
            policies: planned.policies.clone(),
            ..self.apply.clone()
        };
        let applied = apply::apply(
            &*self.actuator,
            plan,
            (K::RESOURCE, &workload.object),
            left_out,
            &settings,
        )
        .instrument(span.clone())
        .await;
        if analysis::are_counted(plan, &applied.outcomes) {
            measurements.counted(key, &planned.measured);
        }
        if let Some((deletes, _)) = self.state.lock().foreign_deletes(key.kind) {
            deletes.take_back(key, plan, &applied.outcomes);
        }
        let at = (self.clock)();
        let mut state = self.state.lock();
        state
            .rollouts
            .applied(key, plan, &applied.outcomes, at, Instant::now());
        drop(state);
        nodewise_runtime::trace::count(&span, "nodewise.apply.actions", applied.outcomes.len());
        let failed = applied.count(v1::Result::Failed);
        nodewise_runtime::trace::count(&span, "nodewise.apply.failed", failed);
        nodewise_runtime::trace::count(&span, "nodewise.apply.batches", applied.batches as usize);
        drop(span);
        log::applied(plan, &applied);
        self.metrics.applied(key.kind, plan, &applied);
        let mut state = self.state.lock();
        // After a restore of etcd the versions of earlier writes mean nothing.
        let is_current = state.gate.restarts() == restarts;
        for write in applied.writes.iter().filter(|_| is_current) {
            let version = &write.resource_version;
            match &write.created_pod {
                // No plan need wait for a pod that has an expectation by name. Until it is seen, only other nodes get pods, and
                // the plan check counts it.
                Some(name) if self.slow_start_across_plans() => {
                    state.gate.record_create(key, uid, name, version);
                }
                _ => state.gate.record(key, uid, write.resource, version),
            }
        }
        if !left_out.is_empty() {
            // The next plan would be cut again for the same reason, if that is a pod that no watch has shown yet.
            state.gate.await_creates(key, uid);
        }
        state.reconcile_states.lower(key, uid, &applied.outcomes);
        state
            .reconcile_states
            .block(key, uid, &applied.blocked, sent, (self.clock)());
        state.update_metrics(key, &self.metrics);
        if applied.aborted {
            state.reconcile_states.restore_failed_pod_backoffs(key, uid, sent);
        }
        applied
    }

    /// Sends the outcomes of a plan to the service, which says when to requeue. Without telling outcomes there is no report: the
    /// service would return the same state and the plan's own time.
    ///
    /// A refused report ends the reconcile: its expectations stay until they expire.
    async fn report(
        &self,
        planned: &Planned,
        applied: Applied,
        left_out: &LeftOut,
    ) -> Result<Ending, Ending> {
        let Planned { plan, workload, .. } = planned;
        let (key, uid) = (&workload.key, &workload.uid);
        let reason = failure(plan, &applied);
        let is_conflict = is_conflict(plan, &applied);
        let after = plan.requeue_after.and_then(|after| after.try_into().ok());
        // An eviction that was not allowed is asked for again, whatever the service says.
        let blocked = self.next_eviction(key, uid, &applied);
        let sooner = |after: Option<Duration>| after.into_iter().chain(blocked).min();
        if !self.actuator.writes() {
            let again = self.metrics.observed(key, plan);
            let after = unless_zero(after).into_iter().chain(again).min();
            return Ok(ending(after, reason));
        }
        if applied.outcomes.is_empty() {
            return Ok(ending(unless_zero(after), reason));
        }
        // Left-out actions are not reported: they are no reason to back off.
        let is_tried = |outcome: &v1::Outcome| !left_out.contains_key(&outcome.action_id);
        let tried = applied.outcomes.into_iter().filter(is_tried);
        let telling: Vec<_> = tried.filter(is_telling).collect();
        if telling.is_empty() && left_out.is_empty() {
            return Ok(ending(after, reason));
        }
        let report = v1::ReportRequest {
            workload: plan.workload.clone(),
            plan_id: plan.plan_id.clone(),
            state: Some(self.state.lock().reconcile_states.get(key, uid)),
            outcomes: telling,
            options: Some(self.options.clone()),
            requeue_after: plan.requeue_after,
            plan_error: plan.error.clone(),
        };
        let call = self.service.report(report.clone());
        match self.unless_stopped(REPORT_GRACE, call).await {
            Ok(response) => {
                let after = response.requeue_after.and_then(|after| after.try_into().ok());
                let requeue = response.requeue();
                let mut state = self.state.lock();
                if let Some(mut settled) = response.state {
                    let sent = report.state.as_ref().unwrap_or(&planned.sent);
                    retain_valid_entries(key.kind, &mut settled, sent, |node| state.store.has_node(node));
                    state.reconcile_states.settle(key, uid, settled);
                    state.update_metrics(key, &self.metrics);
                }
                let after = sooner(after);
                Ok(match requeue {
                    v1::Requeue::Backoff if is_conflict => Ending::Conflict {
                        after,
                        reason: reason.unwrap_or_default(),
                    },
                    v1::Requeue::Backoff => Ending::Failed {
                        after,
                        reason: reason.unwrap_or_else(|| in_short(&response.message)),
                    },
                    // The left-out actions may still be needed, in another plan.
                    _ if !left_out.is_empty() => AT_ONCE,
                    _ => Ending::Settled { after },
                })
            }
            Err(error @ ServiceError::Refused(_)) => {
                // The report is not kept: it would be refused again, together with the next plan request.
                Err(ending(
                    sooner(unless_zero(after)),
                    Some(reason.unwrap_or(error.to_string())),
                ))
            }
            Err(error) => {
                // Retry soon: expectations that the report would settle must not delay the workload.
                self.state.lock().keep_report(key, report);
                let undelivered = format!("the report will be sent with the next plan request: {error}");
                Ok(ending(
                    sooner(unless_zero(after)),
                    Some(reason.unwrap_or(undelivered)),
                ))
            }
        }
    }

    /// The time until the first of these evictions may be asked for again that were not allowed.
    fn next_eviction(&self, key: &Key, uid: &str, applied: &Applied) -> Option<Duration> {
        if applied.blocked.is_empty() {
            return None;
        }
        let held = self.state.lock().reconcile_states.get(key, uid);
        let is_new = |entry: &&v1::BlockedEviction| {
            let mut blocked = applied.blocked.iter();
            blocked.any(|blocked| blocked.pod_uid == entry.pod_uid)
        };
        let entries = held.blocked_evictions.iter().filter(is_new);
        let times = entries.filter_map(|entry| nodewise_projection::moment(entry.retry_time?));
        let wait = times.min()?.duration_since((self.clock)());
        Some(wait.try_into().unwrap_or_default())
    }
}

fn stopped() -> Ending {
    Ending::Unreachable {
        reason: "the controller stops".to_owned(),
    }
}

/// Why there is no plan.
enum Unplanned {
    /// The reconcile ends with this outcome.
    Ended(Ending),
    /// The service refused the request.
    Refused(ServiceError),
}

impl From<Ending> for Unplanned {
    fn from(ending: Ending) -> Self {
        Self::Ended(ending)
    }
}

/// Whether the next plan can be requested before this plan has been applied: it only creates pods that all have names,
/// and it asks to be followed at once.
fn allows_early_request(plan: &v1::Plan) -> bool {
    let at_once = plan.requeue_after == Some(nodewise_proto::Duration::default());
    // With several batches the slow start is not finished, and the outcomes decide about the next plan.
    let is_named = |action: &v1::Action| match &action.kind {
        Some(v1::action::Kind::CreatePod(create)) => !create.pod_name.is_empty(),
        _ => false,
    };
    at_once && only_creates(plan) && plan.phases[0].batches.len() == 1 && plan.actions().all(is_named)
}

fn only_creates(plan: &v1::Plan) -> bool {
    matches!(&plan.phases[..], [phase] if phase.kind() == v1::PhaseKind::Creates)
}

/// Whether an outcome has to be reported. A success without a subject has no consequence. A plan may adopt every pod of
/// a large cluster, and a report of that many outcomes would be refused as too large.
#[must_use]
pub fn is_telling(outcome: &v1::Outcome) -> bool {
    outcome.result() != v1::Result::Succeeded || outcome.subject.is_some()
}

/// Whether the plan ended because a RolloutPolicy has changed since the snapshot.
fn is_conflict(plan: &v1::Plan, applied: &Applied) -> bool {
    let Some(first) = applied.first_failure() else {
        return false;
    };
    let of_policies = |phase: &&v1::Phase| phase.kind() == v1::PhaseKind::RolloutPolicies;
    let phases = plan.phases.iter().filter(of_policies);
    let mut writes = phases
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions);
    first.http_status == 409 && writes.any(|write| write.id == first.action_id)
}

fn ending(after: Option<Duration>, failure: Option<String>) -> Ending {
    match failure {
        Some(reason) => Ending::Failed { after, reason },
        None => Ending::Settled { after },
    }
}

/// Why a plan has to be retried, if it has to.
fn failure(plan: &v1::Plan, applied: &Applied) -> Option<String> {
    if applied.failed {
        let outcomes = &applied.outcomes;
        let message = applied
            .first_failure()
            .map_or("", |outcome| outcome.message.as_str());
        let are_done = [
            v1::Result::Succeeded,
            v1::Result::AlreadyExists,
            v1::Result::NotFound,
        ];
        let done: usize = are_done.into_iter().map(|result| applied.count(result)).sum();
        let skipped = applied.count(v1::Result::Skipped);
        let failed = outcomes.len() - done - skipped - applied.count(v1::Result::Blocked);
        return Some(format!(
            "{done} of {} actions were done, {failed} failed, {skipped} were not tried; the first failure: {message}",
            outcomes.len()
        ));
    }
    (!plan.error.is_empty()).then(|| plan.error.clone())
}

#[cfg(test)]
mod tests;
