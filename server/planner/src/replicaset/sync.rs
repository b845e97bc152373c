//! The order of decisions in a plan, and the gates that hold decisions up.

use std::collections::BTreeSet;

use crate::{
    core::{
        cancellation::Cancellation,
        expectations,
        plan::{Plan, Verdict},
        selector, slow_start,
        snapshot::{Deviation, Scope, Snapshot},
        staleness,
    },
    replicaset::{plan_builder::PlanBuilder, plan_cache::PlanCache, set_view::SetView, workload::ReplicaSet},
};

/// Plans for one workload. `None` if cancelled.
pub(crate) fn plan(
    snapshot: &Snapshot<ReplicaSet>,
    cache: &mut PlanCache,
    cancellation: Cancellation<'_>,
) -> Option<Plan> {
    //
    if let Some(stale) = staleness::plan(snapshot) {
        return Some(stale);
    }
    match inactive(snapshot) {
        Some(Inactive::NoSelector) => {
            return Some(Plan {
                deviations: BTreeSet::from([Deviation::EmptySelectorByMeaning]),
                ..Plan::nothing(snapshot, Verdict::Noop)
            });
        }
        Some(Inactive::OtherController) => return Some(Plan::nothing(snapshot, Verdict::Noop)),
        None => {}
    }
    let view = SetView::of(snapshot, cache, cancellation)?;
    cancellation.check()?;
    let builder = PlanBuilder::new(snapshot, &view, cache, cancellation);
    if builder.is_cut() {
        return Some(builder.claims_only());
    }
    //
    if snapshot.workload.deleting {
        return Some(builder.while_deleting());
    }
    let expected = snapshot.state.expectations.as_ref();
    match (expectations::pending(expected, snapshot.now), expected) {
        //
        (Some(left), Some(expected)) if slow_start::may_create_meanwhile(expected, &snapshot.options) => {
            builder.creates_besides(expected, left)
        }
        (Some(left), _) => Some(builder.status_only(left)),
        (None, _) => builder.in_full(),
    }
}

/// Why nothing is decided for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inactive {
    /// The selector is absent or empty. The apiserver accepts neither. Upstream would release all pods, or adopt every orphan.
    NoSelector,
    /// Another controller makes all decisions. Rollouts, which Nodewise would make, are no matter of a ReplicaSet.
    OtherController,
}

/// Why nothing is decided; `None` if decisions are made.
pub(crate) fn inactive(snapshot: &Snapshot<ReplicaSet>) -> Option<Inactive> {
    if snapshot.options.scope == Scope::Rollouts {
        return Some(Inactive::OtherController);
    }
    let selector = snapshot.workload.selector.as_ref();
    let selects_nothing_or_all = selector.is_none_or(|selector| selector::is_empty(selector, true));
    let by_meaning = snapshot.options.deviates(Deviation::EmptySelectorByMeaning);
    (selects_nothing_or_all && by_meaning).then_some(Inactive::NoSelector)
}
