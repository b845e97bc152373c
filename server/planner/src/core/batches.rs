//! Splits actions into batches (D-75 to D-77). The actions of one batch run concurrently.

use crate::core::plan::{Action, Batch};

/// Slow start: the first batch has `first` actions, and each further batch twice as many as the one before. If all creates fail
/// for the same reason, only a few are tried.
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

/// Keeps the first `most` actions, subtracts them from `most`, and drops the rest, which later plans repeat. Returns whether
/// anything was dropped.
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

/// One batch per action. If an action fails, the executor skips those after it.
pub(crate) fn one_by_one(actions: Vec<Action>) -> impl Iterator<Item = Batch> {
    actions.into_iter().map(|action| Batch {
        actions: vec![action],
        confirm_workload: false,
    })
}

/// One batch with all actions; none if there are no actions.
pub(crate) fn at_once(actions: Vec<Action>) -> Vec<Batch> {
    if actions.is_empty() {
        return Vec::new();
    }
    vec![Batch {
        actions,
        confirm_workload: false,
    }]
}
