//! Slow start (chapter 11, D-75 to D-77): how many writes go out at once.

use crate::plan::{Action, Batch};

/// Creates in batches of 1, 2, 4, …: what is wrong with one pod is wrong with all, and is better learned from one.
pub(crate) fn slow_start(actions: Vec<Action>) -> Vec<Batch> {
    let mut rest = actions.into_iter();
    let mut size = 1_usize;
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
