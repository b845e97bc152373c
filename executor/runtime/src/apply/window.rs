//! How many writes of a plan are under way at a time.
//!
//! Batches run one after the other: a batch begins when all of the one before was answered. So a slow start tries few creates first.
//! Once a batch has as many writes as may be under way, the slow start has reached its ceiling, and to wait for the last answer of a
//! batch only costs time. From then on the creates and deletes of a plan are a window: the next write begins as soon as one ends. After
//! a create failed no further create begins, as no further batch does.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use nodewise_proto::v1;
use tokio::sync::Notify;

use crate::actuator::Actuator;

use super::{LeftOut, Options, context::Context, done::Done};

/// Whether the writes of a phase may be a window. The actions of other phases depend on each other, or one that fails must not stop the
/// others of its batch.
fn is_window(phase: &v1::Phase, options: &Options) -> bool {
    options.is_window && matches!(phase.kind(), v1::PhaseKind::Creates | v1::PhaseKind::Deletes)
}

/// The batches of a phase that run together: each alone, but in a window one that is full with the next one.
pub(super) fn parts<'p>(phase: &'p v1::Phase, options: &Options) -> impl Iterator<Item = &'p [v1::Batch]> {
    let (is_window, most) = (is_window(phase, options), options.concurrency.max(1));
    phase
        .batches
        .chunk_by(move |batch, next| is_window && batch.actions.len() >= most && !next.confirm_workload)
}

/// Batches that run together, and how.
pub(super) struct Part<'p> {
    pub(super) phase: &'p v1::Phase,
    /// Never empty. Only the first one may have `confirm_workload`.
    pub(super) batches: &'p [v1::Batch],
    pub(super) left_out: &'p LeftOut,
    /// The first error of earlier batches.
    pub(super) failure: Option<&'p str>,
    /// Told when the last write begins.
    pub(super) last_begins: Option<&'p Notify>,
}

impl<'p> Part<'p> {
    pub(super) fn actions(&self) -> impl Iterator<Item = &'p v1::Action> {
        self.batches.iter().flat_map(|batch| &batch.actions)
    }

    /// Runs the actions, and returns the results in their order. `None` for an action that did not begin.
    pub(super) async fn run<A: Actuator>(
        &self,
        context: &Context<'_, A>,
        options: &Options,
    ) -> Vec<Option<Done>> {
        let unconfirmed = match self.batches {
            [first, ..] if first.confirm_workload => context.confirm_workload().await.err(),
            _ => None,
        };
        let unconfirmed = unconfirmed.as_ref();
        let (most, is_window) = (options.concurrency.max(1), is_window(self.phase, options));
        let count = self.actions().count();
        let has_failed = &AtomicBool::new(false);
        // A delete that failed does not stop the others. A create that failed stops the later ones, except for the first `most`: these
        // begin together.
        let may_fail = self.phase.kind() == v1::PhaseKind::Deletes;
        let goes_on = move |position: usize| {
            let is_failed = is_window && position >= most && !may_fail && has_failed.load(Ordering::Relaxed);
            !(is_failed || options.stop.is_cancelled())
        };
        let calls: Vec<_> = self
            .actions()
            .enumerate()
            .map(|(position, action)| async move {
                if !goes_on(position) {
                    return (position, None);
                }
                if let Some(last_begins) = self.last_begins.filter(|_| position + 1 == count) {
                    last_begins.notify_one();
                }
                let done = match (self.left_out.get(&action.id), unconfirmed) {
                    (Some(why), _) => Done::left_out(action, why),
                    (None, Some(error)) if action.is_adoption() => Done::failed(action, error),
                    (None, Some(error)) if action.is_create() => Done::failed(action, error).ending_plan(),
                    (None, _) => context.run(action, self.failure).await,
                };
                if done.has_failed() || done.ends_plan {
                    has_failed.store(true, Ordering::Relaxed);
                }
                (position, Some(done))
            })
            .collect();
        let mut dones = futures::stream::iter(calls)
            .buffer_unordered(most)
            .collect::<Vec<_>>()
            .await;
        dones.sort_unstable_by_key(|&(position, _)| position);
        dones.into_iter().map(|(_, done)| done).collect()
    }

    /// How many of the batches have begun.
    pub(super) fn begun(&self, dones: &[Option<Done>]) -> u32 {
        let mut dones = dones.iter();
        let begun = self.batches.iter().filter(|batch| {
            // Each batch has actions, and a later one does not begin before an earlier one.
            let mut its = dones.by_ref().take(batch.actions.len());
            let is_first_begun = its.next().is_some_and(Option::is_some);
            its.for_each(drop);
            is_first_begun
        });
        u32::try_from(begun.count()).unwrap_or(u32::MAX)
    }
}
