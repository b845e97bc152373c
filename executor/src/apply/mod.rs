//! Applies a plan: its phases in order, batch by batch, and says what became of every action.
//!
//! Nothing is decided here but what the contract leaves to the executor: run conditions, stopping after a failed batch, and
//! what a refusal means for the kind of write that was refused.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use bytes::Bytes;
use futures::StreamExt as _;
use nodewise_proto::v1::{self, action::Kind};
use tracing::Instrument as _;

use crate::{
    actuator::{Actuator, ObjectKey},
    event::Resource,
    trace,
};

mod action;
mod manifest;
mod patching;
mod status;

pub(crate) use action::is_adoption;
use action::{Context, Done};
#[cfg(test)]
pub(crate) use manifest::render_pod;

/// Most calls of one batch that are under way at the same time: as many as a burst has.
pub const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(250).unwrap();

/// How plans are applied.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most calls of one batch that are under way at the same time. At least 1.
    pub concurrency: usize,
    /// Most actions of a batch whose calls are traced one by one; a larger batch is only summed up.
    pub traced_calls: usize,
    /// Whether created pods carry the trace context of their batch, in the annotation [`trace::ANNOTATION`].
    pub trace_annotations: bool,
    /// A status goes to no workload with another uid, whatever the plan says. Off only where the deviation `STATUS_WITH_UID` was
    /// switched off, as upstream has it.
    pub status_with_uid: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY.get(),
            traced_calls: trace::DEFAULT_TRACED_CALLS,
            trace_annotations: false,
            status_with_uid: true,
        }
    }
}

/// A write of ours whose trace a later snapshot must show (D-109).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWrite {
    /// Pods or DaemonSets.
    pub resource: Resource,
    /// The resourceVersion that the write returned. Never empty.
    pub resource_version: String,
    /// It created a pod whose name was known before, by which an expectation waits for it, too.
    pub is_expected_by_name: bool,
}

/// Why actions are not carried out, by their ids: what they are about has changed since the snapshot.
pub type LeftOut = BTreeMap<u32, String>;

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// One per action of the plan, in the plan's order.
    pub outcomes: Vec<v1::Outcome>,
    /// Writes that the caches have to show before the next plan: pod creates, adoptions, status writes.
    pub writes: Vec<OwnWrite>,
    /// ControllerRevisions, as live JSON, whose names a CreateRevision found taken: plan again at once with them.
    pub colliding_revisions: Vec<Bytes>,
    /// Orphans that an adoption did not find: plan again at once without them.
    pub vanished: Vec<ObjectKey>,
    /// Revisions, and pods to adopt, that cannot be changed: plan again at once with nothing to change in them.
    pub sealed: Vec<ObjectKey>,
    /// The name of a pod to create belongs to another pod (of another owner, node or hash): plan again at once with what the report says.
    pub name_taken: bool,
    /// Some action outside the events phase failed.
    pub failed: bool,
    /// A failed phase, or something that is not as it was planned, ended the plan: nothing that comes later was done.
    pub aborted: bool,
    /// Batches of which at least one action was attempted.
    pub batches: u32,
}

impl Applied {
    /// How many actions ended so.
    #[must_use]
    pub fn count(&self, result: v1::Result) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.result() == result)
            .count()
    }

    /// Something is not as it was planned, though nothing failed for it.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        !self.vanished.is_empty() || !self.sealed.is_empty()
    }

    fn take(&mut self, phase: v1::PhaseKind, done: Done) -> bool {
        let failed = done.has_failed();
        self.failed |= failed && phase != v1::PhaseKind::Events;
        self.name_taken |= done.outcome.result() == v1::Result::NameTaken;
        self.outcomes.push(done.outcome);
        self.writes.extend(done.write);
        self.colliding_revisions.extend(done.colliding_revision);
        self.vanished.extend(done.vanished);
        self.sealed.extend(done.sealed);
        failed
    }
}

/// Applies `plan`, without what is `left_out`, for the workload whose cached JSON is `object`.
///
/// Returns when every call has been answered or has timed out. Plans with nothing to apply give an empty answer.
pub async fn apply<A: Actuator>(
    actuator: &A,
    plan: &v1::Plan,
    object: &Bytes,
    left_out: &LeftOut,
    options: &Options,
) -> Applied {
    let context = Context::new(actuator, plan, object, options);
    let mut applied = Applied::default();
    let mut any_failure = false;
    for phase in &plan.phases {
        let mut stopped = applied.aborted || (phase.requires_success && any_failure);
        let mut phase_failed = false;
        for batch in &phase.batches {
            if stopped {
                batch
                    .actions
                    .iter()
                    .for_each(|action| _ = applied.take(phase.kind(), Done::skipped(action)));
                continue;
            }
            applied.batches += 1;
            let span = trace::batch(phase.kind(), batch);
            let are_traced = batch.actions.len() <= options.traced_calls;
            let dones = trace::with_calls(
                are_traced,
                run_batch(&context, batch, left_out, options.concurrency),
            )
            .instrument(span.clone())
            .await;
            let failed = dones.iter().filter(|done| done.has_failed()).count();
            trace::count(&span, "nodewise.batch.failed", failed);
            trace::count(&span, "nodewise.batch.succeeded", dones.len() - failed);
            for done in dones {
                phase_failed |= applied.take(phase.kind(), done);
            }
            // What follows an adoption rests on the object being there.
            stopped = phase_failed || applied.is_outdated();
        }
        // Events are best effort: whatever becomes of them, the plan goes on.
        if phase.kind() != v1::PhaseKind::Events {
            any_failure |= phase_failed;
            applied.aborted |= phase_failed && phase.aborts_on_failure || applied.is_outdated();
        }
    }
    applied
}

/// Runs one batch; answers in the batch's order.
async fn run_batch<A: Actuator>(
    context: &Context<'_, A>,
    batch: &v1::Batch,
    left_out: &LeftOut,
    concurrency: usize,
) -> Vec<Done> {
    let unconfirmed = if batch.confirm_workload {
        context.confirm_workload().await.err()
    } else {
        None
    };
    let unconfirmed = unconfirmed.as_ref();
    let calls: Vec<_> = batch
        .actions
        .iter()
        .enumerate()
        .map(|(position, action)| async move {
            let done = match (left_out.get(&action.id), unconfirmed) {
                (Some(why), _) => Done::left_out(action, why),
                (None, Some(error)) if action::is_adoption(action) => Done::failed(action, error),
                (None, _) => context.run(action).await,
            };
            (position, done)
        })
        .collect();
    let mut dones = futures::stream::iter(calls)
        .buffer_unordered(concurrency.max(1))
        .collect::<Vec<_>>()
        .await;
    dones.sort_unstable_by_key(|&(position, _)| position);
    dones.into_iter().map(|(_, done)| done).collect()
}

/// The kind of the object that an action changes or deletes, and which one it is. `None` for what creates an object, and for what is
/// about the workload itself; an action of an unknown kind is about nothing that is known.
pub(crate) fn object(action: &v1::Action) -> Option<(Resource, Option<&v1::ObjectReference>)> {
    let (resource, reference) = match &action.kind {
        Some(Kind::UpdateRevision(a)) => (Resource::Revisions, &a.revision),
        Some(Kind::DeleteRevision(a)) => (Resource::Revisions, &a.revision),
        Some(Kind::AdoptRevision(a)) => (Resource::Revisions, &a.revision),
        Some(Kind::ReleaseRevision(a)) => (Resource::Revisions, &a.revision),
        Some(Kind::AdoptPod(a)) => (Resource::Pods, &a.pod),
        Some(Kind::ReleasePod(a)) => (Resource::Pods, &a.pod),
        Some(Kind::RelabelPod(a)) => (Resource::Pods, &a.pod),
        Some(Kind::DeletePod(a)) => (Resource::Pods, &a.pod),
        Some(Kind::CreateRevision(_) | Kind::CreatePod(_) | Kind::UpdateStatus(_) | Kind::EmitEvent(_))
        | None => return None,
    };
    Some((resource, reference.as_ref()))
}

/// The kind of an action in one word, for logs and metrics.
#[must_use]
pub fn kind_name(action: &v1::Action) -> &'static str {
    match action.kind {
        Some(Kind::CreateRevision(_)) => "CreateRevision",
        Some(Kind::UpdateRevision(_)) => "UpdateRevision",
        Some(Kind::DeleteRevision(_)) => "DeleteRevision",
        Some(Kind::AdoptRevision(_)) => "AdoptRevision",
        Some(Kind::ReleaseRevision(_)) => "ReleaseRevision",
        Some(Kind::AdoptPod(_)) => "AdoptPod",
        Some(Kind::ReleasePod(_)) => "ReleasePod",
        Some(Kind::RelabelPod(_)) => "RelabelPod",
        Some(Kind::CreatePod(_)) => "CreatePod",
        Some(Kind::DeletePod(_)) => "DeletePod",
        Some(Kind::UpdateStatus(_)) => "UpdateStatus",
        Some(Kind::EmitEvent(_)) => "EmitEvent",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests;
