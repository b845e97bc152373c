//! Slow start (chapter 11, D-75 to D-77): how many writes go out at once.

use crate::core::plan::{Action, Batch};

/// Creates in batches of 1, 2, 4, … from a first size on: what is wrong with one pod is wrong with all, and is better learned
/// from few.
pub(crate) fn slow_start(actions: Vec<Action>, first: u32) -> Vec<Batch> {
    let mut rest = actions.into_iter();
    let mut size = usize::try_from(first).unwrap_or(usize::MAX);
    std::iter::from_fn(|| {
        let actions: Vec<_> = rest.by_ref().take(size).collect();
        size = size.saturating_mul(2);
        (!actions.is_empty()).then_some(Batch {
            actions,
            confirm_workload: false,
        })
    })
    .collect()
}

/// The first of the actions, in order; what is more comes back in later plans. Whether there is more.
pub(crate) fn cut(batches: &mut Vec<Batch>, most: &mut usize) -> bool {
    let mut is_cut = false;
    batches.retain_mut(|batch| {
        is_cut |= batch.actions.len() > *most;
        batch.actions.truncate(*most);
        *most -= batch.actions.len();
        !batch.actions.is_empty()
    });
    is_cut
}

/// One after the other, so that a failure leaves the rest undone: writes of which each rests on those before it.
pub(crate) fn one_by_one(actions: Vec<Action>) -> impl Iterator<Item = Batch> {
    actions.into_iter().map(|action| Batch {
        actions: vec![action],
        confirm_workload: false,
    })
}

/// All at once.
pub(crate) fn at_once(actions: Vec<Action>) -> Vec<Batch> {
    if actions.is_empty() {
        return Vec::new();
    }
    vec![Batch {
        actions,
        confirm_workload: false,
    }]
}
