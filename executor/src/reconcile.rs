//! One reconcile of one workload: gate → snapshot → plan → hold → apply → report, and when to come back.
//!
//! Nothing is decided here about the workload. Whatever goes wrong before a plan is in hand leaves the cluster untouched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use nodewise_client::{Answer, Digest, PlanService, ServiceError};
use nodewise_proto::v1;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::actuator::{Actuator, ObjectKey, Refusal};
use crate::answer::Identity;
use crate::apply::{self, Applied, LeftOut};
use crate::event::{DaemonSet, Key, Pod, Resource, Revision};
use crate::expectations;
use crate::gate::Behind;
use crate::metrics::Metrics;
use crate::plan_check::retain_rememberable;
use crate::project;
use crate::snapshot;
use crate::state::{Shared, is_enabled};
use crate::trace::{self, Origins};
use nodewise_telemetry::in_short;

mod pace;

pub use pace::Pace;
use pace::{AT_ONCE, unless_at_once};

/// Plans that one reconcile may ask for in a row because what one rested on was not so: a name was taken, an orphan was gone.
/// With pods' names the fourth plan leaves the name to the apiserver.
const MAX_PLANS: usize = 4;

/// The burst where options name none, as the service takes it.
pub const DEFAULT_BURST: u32 = 250;

/// The most revisions that are read one by one, all at a time. For more of them the namespace is listed once.
const READS: usize = 16;

/// How old a plan may be that was asked for while the one before it was applied.
const MAX_AGE_OF_NEXT: Duration = Duration::from_secs(1);

/// How long whoever has written waits after a stop for the answer to a report.
const REPORT_GRACE: Duration = Duration::from_secs(2);

/// The clock that snapshots are taken by.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done: the retry counter is reset.
    Settled {
        /// Come back after this time.
        after: Option<Duration>,
    },
    /// Something failed: come back with the workload's own back-off.
    Failed {
        /// Come back after this time besides.
        after: Option<Duration>,
        /// What failed.
        reason: String,
    },
    /// The caches do not show our own last write yet. The workload is woken when they do.
    Behind(Behind),
    /// etcd was restored from a backup, and this resource was not listed since: the caches are of two histories. Every workload is
    /// woken when all of them were.
    Relisting(Resource),
    /// The service is not there: nothing was written. That is no failure of the workload.
    Unreachable {
        /// Who did not answer, and how.
        reason: String,
    },
}

impl Ending {
    /// What it is called in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Settled { .. } => "settled",
            Self::Failed { .. } => "failed",
            Self::Behind(_) | Self::Relisting(_) => "behind",
            Self::Unreachable { .. } => "unreachable",
        }
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self::Failed {
            after: None,
            reason: reason.into(),
        }
    }
}

/// What is needed to reconcile any workload.
pub struct Reconciler<A, P> {
    /// What is known.
    pub state: Shared,
    /// Who writes.
    pub actuator: Arc<A>,
    /// Who plans.
    pub service: Arc<P>,
    /// How to plan.
    pub options: v1::PlanOptions,
    /// How plans are applied.
    pub apply: apply::Options,
    /// The time.
    pub clock: Clock,
    /// What is counted.
    pub metrics: Metrics,
    /// Plans that are there before their turn.
    pub next: NextPlans,
    /// How often workloads come back at once.
    pub pace: Pace,
    /// How traces lead to one another.
    pub origins: Arc<Origins>,
    /// Cancelled when nothing new is begun, and the service is waited for no more.
    pub stop: CancellationToken,
}

/// Plans that were asked for while the ones before them were applied: what comes next is known when these are done.
#[derive(Debug, Default)]
pub struct NextPlans(Mutex<HashMap<Key, (Planned, Instant)>>);

impl NextPlans {
    fn keep(&self, key: &Key, next: Planned, asked: Instant) {
        self.lock().insert(key.clone(), (next, asked));
    }

    /// The plan that is there for a workload, if it was made from the workload as it is now, and not long ago.
    fn take(&self, workload: &DaemonSet) -> Option<Planned> {
        let (next, asked) = self.lock().remove(&workload.key)?;
        let same =
            next.workload.uid == workload.uid && next.workload.resource_version == workload.resource_version;
        (same && asked.elapsed() <= MAX_AGE_OF_NEXT).then_some(next)
    }

    /// The workload is there no more.
    fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Planned, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A, P> std::fmt::Debug for Reconciler<A, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A plan, and what it was made from.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: v1::Plan,
    pub(crate) workload: Arc<DaemonSet>,
    pub(crate) sent: v1::ReconcileState,
    /// The number of the last change that the snapshot shows.
    pub(crate) as_of: u64,
}

impl<A: Actuator, P: PlanService> Reconciler<A, P> {
    /// Reconciles a workload once.
    pub async fn reconcile(&self, key: &Key) -> Ending {
        match self.try_reconcile(key).await {
            Ok(ending) | Err(ending) => ending,
        }
    }

    /// Whether creates or deletes of a workload are still to be seen.
    #[must_use]
    pub fn waits_for_watches(&self, key: &Key) -> bool {
        self.state.lock().holdings.outstanding(key) != (0, 0)
    }

    async fn try_reconcile(&self, key: &Key) -> Result<Ending, Ending> {
        // Revisions that the caches need not show, as they were read.
        let mut live = Vec::new();
        let mut names_only = false;
        for _ in 0..MAX_PLANS {
            let Some(workload) = self.admit(key, &mut live)? else {
                self.next.forget(key);
                self.pace.forget(key);
                self.origins.forget(key);
                return Ok(Ending::Settled { after: None });
            };
            self.origins.is_of(&workload);
            let there = self.next.take(&workload);
            let planned = match there.filter(|_| live.is_empty() && !self.stop.is_cancelled()) {
                Some(next) => next,
                None => self.plan(&workload, &live).await?,
            };
            let left_out = self.check_plan(&planned, &live).await?;
            if self.state.lock().is_left_alone(key) {
                // The event that showed that has woken it, and the next reconcile forgets it.
                return Ok(Ending::Settled { after: None });
            }
            // Nothing of it is carried out, so what it expects would never be seen.
            if planned.plan.verdict() == v1::Verdict::Stale {
                return Err(Ending::failed(
                    "the plan is stale: the caches are older than our own writes",
                ));
            }
            self.hold(&planned);
            let asked = Instant::now();
            let (mut applied, next) = if goes_on_by_itself(&planned.plan) && self.actuator.writes() {
                tokio::join!(self.apply(&planned, &left_out), self.plan_next(&workload))
            } else {
                (self.apply(&planned, &left_out).await, None)
            };
            let colliding = self.readable(&std::mem::take(&mut applied.colliding_revisions));
            let (failed, name_taken) = (applied.failed, applied.name_taken);
            let outdated = !failed && applied.is_outdated();
            self.heed(&applied);
            if outdated {
                let created = self.created_revisions(&planned.plan, &applied).await;
                live.append(&mut self.readable(&created));
                tracing::info!("an object is gone or cannot be changed; planning again without it");
            } else if !colliding.is_empty() {
                tracing::info!(
                    "the name of a new revision is taken; planning again with the object of that name"
                );
            }
            let ending = self.report(&planned, applied, &left_out).await;
            let slow = |ending| self.pace.slow(key, ending);
            let ending = ending.map(slow).map_err(slow)?;
            let again = !colliding.is_empty() || outdated || (name_taken && ending == AT_ONCE);
            if !again {
                if let Some(next) = next.filter(|_| !failed && ending == AT_ONCE) {
                    self.next.keep(key, next, asked);
                }
                return Ok(ending);
            }
            names_only = colliding.is_empty() && !outdated;
            live.extend(colliding);
        }
        // Names of pods that are taken are no failure, and after a few of them the apiserver chooses.
        if names_only {
            return Ok(Ending::Settled {
                after: Some(pace::SOONEST),
            });
        }
        Err(Ending::failed(format!(
            "a revision's name was still taken, or another object gone or not to be changed, after {MAX_PLANS} plans"
        )))
    }

    /// Leaves out from now on what an adoption did not find (D-23), and leaves alone what cannot be changed.
    fn heed(&self, applied: &Applied) {
        let mut state = self.state.lock();
        for key in &applied.vanished {
            state.store.forget_orphan(key.resource, &key.namespace, &key.name);
        }
        for key in &applied.sealed {
            state.store.seal(key.resource, &key.namespace, &key.name);
        }
    }

    /// The revisions that a plan created, as they are: the caches need not show them yet, and their names are taken.
    async fn created_revisions(&self, plan: &v1::Plan, applied: &Applied) -> Vec<Bytes> {
        let namespace = plan.workload.as_ref().map_or("", |workload| &*workload.namespace);
        let mut created = Vec::new();
        for (action, outcome) in plan.actions().zip(&applied.outcomes) {
            if let Some(v1::action::Kind::CreateRevision(create)) = &action.kind
                && outcome.result() == v1::Result::Succeeded
            {
                let key = ObjectKey::new(Resource::Revisions, namespace, &create.name);
                // Without it the next plan finds the name taken, and the one after that has it.
                created.extend(self.actuator.read(&key).await.ok());
            }
        }
        created
    }

    /// Those of them that can be read; the others are passed over, as by the watch. What the name of a new revision collides
    /// with is then not known to the next plan, so the workload fails and says that the name is taken.
    fn readable(&self, objects: &[Bytes]) -> Vec<Revision> {
        let read = objects.iter().filter_map(|object| {
            let text = String::from_utf8_lossy(object);
            let error = match Revision::from_text(&text) {
                Ok(revision) => return Some(revision),
                Err(error) => error,
            };
            self.metrics.unreadable(Resource::Revisions);
            let Identity { namespace, name, .. } = Identity::of(&text);
            tracing::warn!(resource = %Resource::Revisions, namespace, name, "passed over, since it cannot be read: {error}");
            None
        });
        read.collect()
    }

    /// The workload, if it exists, is selected, and the caches show our last writes to it (D-71, steps 1 and 2). While they do not, what was
    /// read live is kept, and is there again when the workload is admitted.
    fn admit(&self, key: &Key, live: &mut Vec<Revision>) -> Result<Option<Arc<DaemonSet>>, Ending> {
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
        if let Some(resource) = state.store.relisting() {
            return Err(Ending::Relisting(resource));
        }
        match state.gate.check(key, |resource| state.store.reached(resource)) {
            Ok(()) => {
                live.append(&mut state.take_live(key, &workload.uid));
                Ok(Some(workload))
            }
            Err(behind) => {
                state.keep_live(key, &workload.uid, std::mem::take(live));
                self.metrics.stale_sync(behind.resource);
                Err(Ending::Behind(behind))
            }
        }
    }

    /// The next plan. When the service refuses the request, what it may have been refused for is dropped.
    async fn plan(&self, workload: &Arc<DaemonSet>, colliding: &[Revision]) -> Result<Planned, Ending> {
        let planned = self.ask(workload, colliding).await;
        planned.map_err(|unplanned| match unplanned {
            Unplanned::Ended(ending) => ending,
            Unplanned::Refused(error) => {
                self.drop_dispensable(&workload.key, &error);
                Ending::failed(error.to_string())
            }
        })
    }

    async fn ask(&self, workload: &Arc<DaemonSet>, colliding: &[Revision]) -> Result<Planned, Unplanned> {
        let (key, uid) = (&workload.key, &workload.uid);
        let mut current = Arc::clone(workload);
        // What each request was made from: the plan need not answer the last one.
        let mut origins = Vec::with_capacity(1);
        self.read_live(workload, colliding).await?;
        let mut build = |known: &dyn Fn(&Digest) -> bool| {
            let mut state = self.state.lock();
            let state = &mut *state;
            // A retry takes what is known by now, unless the workload was replaced or is not selected any more: then it finishes
            // with what it had, and of the latter nothing is applied.
            if let Some(newer) = state.owned(key).filter(|newer| newer.uid == *uid) {
                current = Arc::clone(newer);
            }
            let sent = state.holdings.get(key, uid);
            origins.push((
                Arc::clone(&current),
                sent.clone(),
                state.store.undecided(&current),
                state.store.last_change(),
            ));
            let now = project::timestamp((self.clock)());
            v1::PlanRequest {
                snapshot: Some(snapshot::take(
                    &mut state.store,
                    &current,
                    sent,
                    colliding,
                    now,
                    known,
                )),
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
        let (workload, sent, undecided, as_of) = origins.swap_remove(request);
        if let Some(object) = undecided {
            let reason = format!("{object} has changed since it was read");
            return Err(Ending::failed(reason).into());
        }
        plan.error = in_short(&plan.error);
        plan.plan_id = in_short(&plan.plan_id);
        Ok(Planned {
            plan,
            workload,
            sent,
            as_of,
        })
    }

    /// Drops what a request may have been refused for: old reports, and what earlier plans left to remember, unless it is another part of
    /// the request that is wrong. A wrong service may have made that, and right replicas would refuse it for ever.
    fn drop_dispensable(&self, key: &Key, error: &ServiceError) {
        let mut state = self.state.lock();
        state.reports_delivered(key);
        let may_be_state =
            matches!(error, ServiceError::Refused(refusal) if refusal.may_be_of("snapshot.state"));
        if may_be_state && state.holdings.drop_planned(key, (self.clock)()) {
            state.tell(key, &self.metrics);
            tracing::warn!(
                %error,
                "the service refused the request; what earlier plans left to remember is dropped, since it may be the cause"
            );
        }
    }

    /// Reads live what the next snapshot needs and the caches do not keep: labels that a selector names and that were not named when they
    /// came, and revisions, in particular orphans that were there before the workload came.
    async fn read_live(&self, workload: &DaemonSet, colliding: &[Revision]) -> Result<(), Ending> {
        self.read_labels(workload).await?;
        // Of those whose labels were not known it is known only then whether they are sent.
        for _ in 0..2 {
            let unread = snapshot::unread(&mut self.state.lock().store, workload, colliding);
            self.read_revisions(workload, unread).await?;
        }
        Ok(())
    }

    /// Lists the pods of the namespace, if not all labels are known that the selector names.
    async fn read_labels(&self, workload: &DaemonSet) -> Result<(), Ending> {
        let mut unread = self.state.lock().store.unread_pods(workload);
        if unread.is_empty() {
            return Ok(());
        }
        let namespace = &*workload.key.namespace;
        self.list(Resource::Pods, namespace, &mut |object| {
            if unread.remove(&Identity::of(object).name).is_none() {
                return;
            }
            match Pod::from_text(object) {
                Ok(pod) => self.state.lock().store.take_labels(pod),
                Err(_) => self.metrics.unreadable(Resource::Pods),
            }
        })
        .await?;
        let mut state = self.state.lock();
        for (name, uid) in unread {
            let kept = state.store.pod(namespace, &name);
            if kept.is_some_and(|kept| kept.uid == uid) {
                state.store.forget_orphan(Resource::Pods, namespace, &name);
            }
        }
        Ok(())
    }

    async fn read_revisions(&self, workload: &DaemonSet, unread: Vec<ObjectKey>) -> Result<(), Ending> {
        // By name: the uids of what may turn out to be gone.
        let mut gone: HashMap<_, _> = {
            let state = self.state.lock();
            let revision = |key: &ObjectKey| state.store.revision(&key.namespace, &key.name);
            let kept = unread.iter().filter_map(revision);
            kept.map(|kept| (kept.name.clone(), kept.uid.clone())).collect()
        };
        let take = |object: &str| {
            let read = self.readable(&[Bytes::copy_from_slice(object.as_bytes())]);
            for revision in read {
                self.state.lock().take_read(workload, revision, &self.metrics);
            }
        };
        if unread.len() > READS {
            let namespace = &*workload.key.namespace;
            self.list(Resource::Revisions, namespace, &mut |object| {
                if gone.remove(&Identity::of(object).name).is_some() {
                    take(object);
                }
            })
            .await?;
        } else {
            let reads = stream::iter(unread.clone()).map(async |key| (self.actuator.read(&key).await, key));
            let mut reads = std::pin::pin!(reads.buffer_unordered(READS));
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

    /// Lists the objects of a kind in a namespace.
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

    /// Waits for the service, and after a stop for so long at most.
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

    /// The plan that follows one that is being applied, if it comes soon and creates and does nothing else: what else there may be
    /// to do rests on pods, and these may have changed by then.
    async fn plan_next(&self, workload: &Arc<DaemonSet>) -> Option<Planned> {
        // What it may be refused for is still needed: nothing is dropped.
        let plan = tokio::time::timeout(MAX_AGE_OF_NEXT, self.ask(workload, &[]));
        let next = plan.await.ok()?.ok()?;
        only_creates(&next.plan).then_some(next)
    }

    /// Holds what the plan says, before its first write.
    fn hold(&self, planned: &Planned) {
        let (key, uid) = (&planned.workload.key, &planned.workload.uid);
        let expired = expectations::expired(&planned.sent, (self.clock)());
        self.metrics.expectations_expired(expired);
        let mut state = self.state.lock();
        let state = &mut *state;
        state.reports_delivered(key);
        if let Some(deletes) = &mut state.foreign_deletes {
            deletes.expect(&state.store, key, &planned.plan);
        }
        let Some(mut held) = planned.plan.state.clone() else {
            return;
        };
        expectations::leave_out_foreign(&mut held, &planned.plan, &planned.sent);
        retain_rememberable(&mut held, &planned.sent, |node| state.store.has_node(node));
        if !self.actuator.writes() {
            // What is not done is never observed.
            held.expectations = None;
        }
        let sighted = state.store.sighted(&key.namespace, uid);
        state.holdings.replace(key, uid, held, &planned.sent, &sighted);
        state.tell(key, &self.metrics);
    }

    /// Whether pods are created while earlier creates are not seen yet.
    fn goes_ahead(&self) -> bool {
        is_enabled(&self.options, v1::Deviation::SlowStartAcrossPlans)
    }

    async fn apply(&self, planned: &Planned, left_out: &LeftOut) -> Applied {
        let Planned {
            plan, workload, sent, ..
        } = planned;
        let (key, uid) = (&workload.key, &workload.uid);
        if plan.phases.is_empty() {
            return Applied::default();
        }
        let span = tracing::debug_span!("apply", nodewise.plan.id = plan.plan_id);
        let settings = apply::Options {
            status_with_uid: is_enabled(&self.options, v1::Deviation::StatusWithUid),
            ..self.apply.clone()
        };
        let applied = apply::apply(&*self.actuator, plan, &workload.object, left_out, &settings)
            .instrument(span.clone())
            .await;
        if let Some(deletes) = &mut self.state.lock().foreign_deletes {
            deletes.take_back(key, plan, &applied.outcomes);
        }
        trace::count(&span, "nodewise.apply.actions", applied.outcomes.len());
        let failed = applied.count(v1::Result::Failed);
        trace::count(&span, "nodewise.apply.failed", failed);
        trace::count(&span, "nodewise.apply.batches", applied.batches as usize);
        drop(span);
        self.metrics.applied(plan, &applied);
        let mut state = self.state.lock();
        // Creates that expectations tell by name need not be seen before more is created: until they are, only nodes that are
        // not among theirs get pods.
        let goes_ahead = self.goes_ahead();
        let gated = applied
            .writes
            .iter()
            .filter(|write| !(goes_ahead && write.is_expected_by_name));
        for write in gated {
            state
                .gate
                .record(key, uid, write.resource, &write.resource_version);
        }
        state.holdings.lower(key, uid, &applied.outcomes);
        state.tell(key, &self.metrics);
        if applied.aborted {
            state.holdings.restore_backoffs(key, uid, sent);
        }
        applied
    }

    /// Tells the service what became of the plan, and learns when to come back. Without actions there is nothing to tell.
    ///
    /// A report that is refused ends the reconcile: what it would settle stays as it is until it expires.
    async fn report(
        &self,
        planned: &Planned,
        applied: Applied,
        left_out: &LeftOut,
    ) -> Result<Ending, Ending> {
        let Planned { plan, workload, .. } = planned;
        let (key, uid) = (&workload.key, &workload.uid);
        let reason = failure(plan, &applied);
        let after = plan.requeue_after.and_then(|after| after.try_into().ok());
        if !self.actuator.writes() {
            let again = self.metrics.observed(key, plan);
            let after = unless_at_once(after).into_iter().chain(again).min();
            return Ok(ending(after, reason));
        }
        if applied.outcomes.is_empty() {
            return Ok(ending(unless_at_once(after), reason));
        }
        // For the service these are as if it had not planned them: they are no reason to come back later.
        let is_tried = |outcome: &v1::Outcome| !left_out.contains_key(&outcome.action_id);
        let tried = applied.outcomes.into_iter().filter(is_tried);
        let report = v1::ReportRequest {
            workload: plan.workload.clone(),
            plan_id: plan.plan_id.clone(),
            state: Some(self.state.lock().holdings.get(key, uid)),
            outcomes: tried.filter(is_telling).collect(),
            options: Some(self.options.clone()),
            requeue_after: plan.requeue_after,
            plan_error: plan.error.clone(),
        };
        let told = self.service.report(report.clone());
        match self.unless_stopped(REPORT_GRACE, told).await {
            Ok(response) => {
                let after = response.requeue_after.and_then(|after| after.try_into().ok());
                let requeue = response.requeue();
                let mut state = self.state.lock();
                if let Some(mut settled) = response.state {
                    let sent = report.state.as_ref().unwrap_or(&planned.sent);
                    retain_rememberable(&mut settled, sent, |node| state.store.has_node(node));
                    state.holdings.settle(key, uid, settled);
                    state.tell(key, &self.metrics);
                }
                Ok(match requeue {
                    v1::Requeue::Backoff => Ending::Failed {
                        after,
                        reason: reason.unwrap_or_else(|| in_short(&response.message)),
                    },
                    // What was left out may still be due, in another plan.
                    _ if !left_out.is_empty() => AT_ONCE,
                    _ => Ending::Settled { after },
                })
            }
            Err(error @ ServiceError::Refused(_)) => {
                // It would be refused again with the next plan, and the plan with it.
                Err(ending(
                    unless_at_once(after),
                    Some(reason.unwrap_or(error.to_string())),
                ))
            }
            Err(error) => {
                // Ask again soon: what the report would settle must not be waited for.
                self.state.lock().keep_report(key, report);
                let undelivered = format!("the report rides on the next plan: {error}");
                Ok(ending(unless_at_once(after), Some(reason.unwrap_or(undelivered))))
            }
        }
    }
}

fn stopped() -> Ending {
    Ending::Unreachable {
        reason: "the controller stops".to_owned(),
    }
}

/// Why there is no plan.
enum Unplanned {
    /// The reconcile ends so.
    Ended(Ending),
    /// The service refused the request.
    Refused(ServiceError),
}

impl From<Ending> for Unplanned {
    fn from(ending: Ending) -> Self {
        Self::Ended(ending)
    }
}

/// Whether the plan that follows at once can be asked for before this one is done: pods are created, all of which the state holds by
/// name, and nothing else is done.
fn goes_on_by_itself(plan: &v1::Plan) -> bool {
    let at_once = plan.requeue_after == Some(nodewise_proto::Duration::default());
    // With several batches the slow start has not come to its end, and what these lead to decides about the next.
    let is_named = |action: &v1::Action| match &action.kind {
        Some(v1::action::Kind::CreatePod(create)) => !create.pod_name.is_empty(),
        _ => false,
    };
    at_once && only_creates(plan) && plan.phases[0].batches.len() == 1 && plan.actions().all(is_named)
}

fn only_creates(plan: &v1::Plan) -> bool {
    matches!(&plan.phases[..], [phase] if phase.kind() == v1::PhaseKind::Creates)
}

/// Nothing depends on what succeeded without a subject. A plan may adopt every pod of a large cluster, and a report of as
/// many outcomes with next to nothing in them would be refused.
#[must_use]
pub fn is_telling(outcome: &v1::Outcome) -> bool {
    outcome.result() != v1::Result::Succeeded || outcome.subject.is_some()
}

fn ending(after: Option<Duration>, failure: Option<String>) -> Ending {
    match failure {
        Some(reason) => Ending::Failed { after, reason },
        None => Ending::Settled { after },
    }
}

/// Why a plan has to be retried, if so.
fn failure(plan: &v1::Plan, applied: &Applied) -> Option<String> {
    if applied.failed {
        let outcomes = &applied.outcomes;
        let first = outcomes
            .iter()
            .find(|outcome| outcome.result() == v1::Result::Failed);
        let message = first.map_or("", |outcome| outcome.message.as_str());
        let are_done = [
            v1::Result::Succeeded,
            v1::Result::AlreadyExists,
            v1::Result::NotFound,
        ];
        let done: usize = are_done.into_iter().map(|result| applied.count(result)).sum();
        let skipped = applied.count(v1::Result::Skipped);
        let failed = outcomes.len() - done - skipped;
        return Some(format!(
            "{done} of {} actions were done, {failed} failed, {skipped} were not tried; the first failure: {message}",
            outcomes.len()
        ));
    }
    (!plan.error.is_empty()).then(|| plan.error.clone())
}

#[cfg(test)]
mod tests;
