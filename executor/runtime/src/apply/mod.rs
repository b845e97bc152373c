//! Applies a plan: runs its phases in order, batch by batch, and returns the outcome of every action.
//!
//! The executor decides only what the contract leaves to it: run conditions, whether to stop after a failed batch, and
//! what a refusal means for each kind of write.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Resource,
    actuator::{Actuator, ObjectKey},
    measurements::Measurements,
};
use bytes::Bytes;
use nodewise_projection::RolloutPolicy;
use nodewise_proto::v1::{self, action::Kind};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::trace;

mod action;
mod context;
mod done;
mod manifest;
mod objects;
mod patching;
mod status;
mod window;

use context::Context;
use done::Done;
#[cfg(any(test, feature = "testing"))]
pub use manifest::render_pod;
use window::Part;

/// Default for the writes of a plan that are under way at a time: the least default burst of all kinds.
pub const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(250).unwrap();

/// Options for applying plans.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of writes that are under way at a time. At least 1.
    pub concurrency: usize,
    /// Whether creates and deletes begin as soon as others end, once a batch has so many of them. Otherwise each batch waits for the end
    /// of the one before, as in upstream.
    pub is_window: bool,
    /// When this is cancelled, no further write begins. What is under way is finished.
    pub stop: CancellationToken,
    /// Told when the last write of the plan begins. Not told if it does not begin.
    pub last_begins: Arc<Notify>,
    /// Batches with at most this many actions get one span per call. A larger batch gets one span with counts.
    pub traced_calls: usize,
    /// Whether created pods carry the trace context of their batch, in the annotation [`trace::ANNOTATION`].
    pub trace_annotations: bool,
    /// A status is written only to the workload with the uid that was planned for. Off only if the deviation
    /// `STATUS_WITH_UID` is disabled, as in upstream.
    pub status_with_uid: bool,
    /// The resource of the objects that the workload controls. Actions on objects may name it, or the workload's own.
    pub controlled: Option<Resource>,
    /// Makes the measurements that plans ask for.
    pub measurements: Measurements,
    /// The RolloutPolicies of the plan's snapshot.
    pub policies: Vec<Arc<RolloutPolicy>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY.get(),
            is_window: false,
            stop: CancellationToken::new(),
            last_begins: Arc::default(),
            traced_calls: trace::DEFAULT_TRACED_CALLS,
            trace_annotations: false,
            status_with_uid: true,
            controlled: None,
            measurements: Measurements::default(),
            policies: Vec::new(),
        }
    }
}

/// A write of the executor that the caches must show before the next plan (D-109).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWrite {
    /// Pods, the resource of the workload, or that of an object that an action names.
    pub resource: Resource,
    /// The resourceVersion that the write returned. Never empty.
    pub resource_version: String,
    /// The name of the created pod, if it was in the plan. An expectation also waits for that name.
    pub created_pod: Option<String>,
}

/// A live object whose name a create found taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colliding {
    /// The resource of the object.
    pub resource: Resource,
    /// The object as JSON.
    pub object: Bytes,
}

/// An eviction that a PodDisruptionBudget did not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// metadata.uid of the pod.
    pub pod_uid: String,
    /// The message of the apiserver.
    pub message: String,
    /// When to ask again, if the apiserver says so.
    pub retry_after: Option<Duration>,
}

/// Actions that are not carried out because their objects have changed since the snapshot: reasons by action id.
pub type LeftOut = BTreeMap<u32, String>;

/// The result of applying a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// One per action of the plan, in the plan's order.
    pub outcomes: Vec<v1::Outcome>,
    /// Writes that the caches have to show before the next plan: pod creates, adoptions, status writes.
    pub writes: Vec<OwnWrite>,
    /// Live objects whose names a CreateRevision or CreateObject found taken. The next plan follows at once and gets
    /// them.
    pub colliding: Vec<Colliding>,
    /// Orphans that an adoption did not find. The next plan follows at once, without them.
    pub vanished: Vec<ObjectKey>,
    /// Revisions, and pods to adopt, that the apiserver does not let anyone change. The next plan follows at once and
    /// leaves them unchanged.
    pub sealed: Vec<ObjectKey>,
    /// Evictions that a PodDisruptionBudget did not allow.
    pub blocked: Vec<Blocked>,
    /// The name of a pod to create belongs to another pod (of another owner, node or hash). The next plan follows at
    /// once; the report says which names are taken.
    pub name_taken: bool,
    /// At least one action failed, of a phase whose failures count.
    pub failed: bool,
    /// A failed phase, an object that was not as planned, or a create that found its name taken or its namespace
    /// terminating ended the plan. Later phases were not run.
    pub aborted: bool,
    /// Number of batches of which at least one action was attempted.
    pub batches: u32,
}

impl Applied {
    /// Number of actions with this result.
    #[must_use]
    pub fn count(&self, result: v1::Result) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.result() == result)
            .count()
    }

    /// Whether an object was not as planned although no action failed for it.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        !self.vanished.is_empty() || !self.sealed.is_empty()
    }

    /// The failed action with the lowest id. Failures that do not count are left out.
    #[must_use]
    pub fn first_failure(&self) -> Option<&v1::Outcome> {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.result() == v1::Result::Failed && !outcome.ignored)
            .min_by_key(|outcome| outcome.action_id)
    }

    fn take(&mut self, phase: &v1::Phase, mut done: Done) -> bool {
        let failed = done.has_failed();
        done.outcome.ignored |= failed && phase.ignores_failure;
        self.failed |= failed && counts_failures(phase);
        self.name_taken |= done.colliding.is_none() && done.outcome.result() == v1::Result::NameTaken;
        self.outcomes.push(done.outcome);
        self.writes.extend(done.write);
        self.colliding.extend(done.colliding);
        self.vanished.extend(done.vanished);
        self.sealed.extend(done.sealed);
        self.blocked.extend(done.blocked);
        failed
    }
}

/// Applies `plan`, except the actions in `left_out`, for the workload of this resource and this cached JSON.
///
/// Returns when every call has been answered or has timed out. For a plan without phases the result is empty.
pub async fn apply<A: Actuator>(
    actuator: &A,
    plan: &v1::Plan,
    workload: (Resource, &Bytes),
    left_out: &LeftOut,
    options: &Options,
) -> Applied {
    let context = Context::new(actuator, plan, workload, options);
    let mut applied = Applied::default();
    let (mut any_failure, mut is_ended) = (false, false);
    for phase in &plan.phases {
        let is_needless = phase.requires_failure && !any_failure && !applied.aborted;
        let mut stopped = applied.aborted || (phase.requires_success && any_failure) || is_needless;
        let mut phase_failed = false;
        for batches in window::parts(phase, options) {
            let failure = applied.first_failure().map(|outcome| outcome.message.clone());
            let part = Part {
                phase,
                batches,
                left_out,
                failure: failure.as_deref(),
                last_begins: is_end(plan, batches).then_some(&*options.last_begins),
            };
            if stopped {
                part.actions().for_each(|action| {
                    _ = applied.take(phase, Done::skipped(action).ignored_if(is_needless));
                });
                continue;
            }
            let span = trace::batch(phase.kind(), part.actions());
            let are_traced = part.actions().count() <= options.traced_calls;
            let dones = trace::with_calls(are_traced, part.run(&context, options))
                .instrument(span.clone())
                .await;
            let failed = dones.iter().flatten().filter(|done| done.has_failed()).count();
            trace::count(&span, "nodewise.batch.failed", failed);
            let succeeded = dones.iter().flatten().count() - failed;
            trace::count(&span, "nodewise.batch.succeeded", succeeded);
            applied.batches += part.begun(&dones);
            // After a stop the rest is not begun: what comes next assumes that it was.
            is_ended |= options.stop.is_cancelled() && dones.iter().any(Option::is_none);
            for (action, done) in part.actions().zip(dones) {
                let done = done.unwrap_or_else(|| Done::skipped(action));
                is_ended |= done.ends_plan;
                phase_failed |= applied.take(phase, done);
            }
            // The phases after an adoption assume that the adopted object exists.
            is_ended |= applied.is_outdated();
            stopped = phase_failed || is_ended;
        }
        let counted_failure = phase_failed && counts_failures(phase);
        any_failure |= counted_failure;
        applied.aborted |= counted_failure && phase.aborts_on_failure || is_ended;
    }
    applied
}

/// Whether these batches are the last ones of a plan.
fn is_end(plan: &v1::Plan, batches: &[v1::Batch]) -> bool {
    let last = plan.phases.last().and_then(|phase| phase.batches.last());
    matches!((last, batches.last()), (Some(last), Some(batch)) if std::ptr::eq(last, batch))
}

/// Whether a failure in this phase counts. Events are best effort: a failed one does not stop the plan.
fn counts_failures(phase: &v1::Phase) -> bool {
    phase.kind() != v1::PhaseKind::Events && !phase.ignores_failure
}

/// The pod that an action deletes or evicts, and its node. `None` for all other actions.
#[must_use]
pub fn removed_pod(action: &v1::Action) -> Option<(&v1::ObjectReference, &str)> {
    match &action.kind {
        Some(Kind::DeletePod(delete)) => Some((delete.pod.as_ref()?, &delete.node_name)),
        Some(Kind::EvictPod(evict)) => Some((evict.pod.as_ref()?, &evict.node_name)),
        _ => None,
    }
}

/// The resource and the reference of the pod or revision that an action changes or deletes. `None` for all other actions.
pub fn object(action: &v1::Action) -> Option<(Resource, Option<&v1::ObjectReference>)> {
    let (resource, reference) = match &action.kind {
        Some(Kind::UpdateRevision(a)) => (Resource::REVISIONS, &a.revision),
        Some(Kind::DeleteRevision(a)) => (Resource::REVISIONS, &a.revision),
        Some(Kind::AdoptRevision(a)) => (Resource::REVISIONS, &a.revision),
        Some(Kind::ReleaseRevision(a)) => (Resource::REVISIONS, &a.revision),
        Some(Kind::AdoptPod(a)) => (Resource::PODS, &a.pod),
        Some(Kind::ReleasePod(a)) => (Resource::PODS, &a.pod),
        Some(Kind::RelabelPod(a)) => (Resource::PODS, &a.pod),
        Some(Kind::DeletePod(a)) => (Resource::PODS, &a.pod),
        Some(Kind::EvictPod(a)) => (Resource::PODS, &a.pod),
        Some(
            Kind::CreateRevision(_)
            | Kind::CreatePod(_)
            | Kind::UpdateStatus(_)
            | Kind::EmitEvent(_)
            | Kind::CreateObject(_)
            | Kind::PatchObject(_)
            | Kind::DeleteObject(_)
            | Kind::Measure(_),
        )
        | None => return None,
    };
    Some((resource, reference.as_ref()))
}

#[cfg(test)]
mod tests;
