//! Processes the outcomes of a plan: updates the state, and decides when to plan again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use crate::core::outcome::{Outcome, OutcomeResult, Subject};
use crate::core::{
    cancellation::Cancellation,
    slow_start,
    snapshot::{Deviation, Expectations, ExpectedCreate, Options, PodNameCollision, State, UsedPodName},
};

/// When to plan again for a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComeBack {
    /// Whether something failed. The executor requeues the workload with back-off, too.
    pub backoff: bool,
    /// Plan again after this time.
    pub after: Option<Duration>,
    /// Why, for people; empty if there is no need to plan again.
    pub message: String,
}

/// Updates the state of a plan by its outcomes: removes expectations that no watch event will meet.
///
/// These are creates that failed or were skipped, and deletes that failed, were skipped or found no pod (D-73, D-78, D-79, D-81).
/// A create whose pod already exists is removed too, as upstream does with every failed create: the watch may have shown that pod
/// before it was expected, and with derived names a repeated create is harmless. A create that a terminating namespace rejected
/// stays expected, unless the deviation of Q-20 is on (D-80).
///
/// The function also counts rejected names, and updates the slow start. A rejected name without a node is added to the used names.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "it never panics")]
pub fn fold(state: State, outcomes: &[Outcome], options: &Options) -> State {
    fold_until(state, outcomes, options, &|| false).expect("nothing stops it")
}

/// Like [`fold`], but returns `None` soon after `stop` returns true.
#[must_use]
pub fn fold_until(
    mut state: State,
    outcomes: &[Outcome],
    options: &Options,
    stop: &dyn Fn() -> bool,
) -> Option<State> {
    let cancellation = Cancellation::new(stop);
    let (mut creates, mut deletes) = (BTreeSet::new(), BTreeSet::new());
    let (mut taken, mut refused) = (BTreeMap::new(), BTreeSet::new());
    for (index, outcome) in outcomes.iter().enumerate() {
        cancellation.tick(index)?;
        match &outcome.subject {
            Some(Subject::CreatedPod(create)) => {
                if settles_create(outcome.result, options) {
                    creates.insert(create);
                }
                if outcome.result == OutcomeResult::NameTaken {
                    *taken.entry(create.node_name.as_str()).or_insert(0_u32) += 1;
                    refused.extend(used_name(create));
                }
            }
            Some(Subject::DeletedPodUid(uid)) if outcome.result != OutcomeResult::Succeeded => {
                deletes.insert(uid);
            }
            _ => {}
        }
    }
    cancellation.check()?;
    count_refused(&mut state.pod_name_collisions, taken);
    if !refused.is_empty() {
        refused.extend(std::mem::take(&mut state.used_pod_names));
        state.used_pod_names = refused.into_iter().collect();
    }
    state.slow_start = state
        .slow_start
        .and_then(|known| slow_start::state_after_outcomes(known, outcomes, options));
    state.expectations = state
        .expectations
        .and_then(|pair| without(pair, &creates, &deletes));
    Some(state)
}

/// When to plan again. `after` is the delay that the plan asked for, `plan_error` the plan's error.
///
/// If an action failed or was skipped, or if the plan has an error, the executor requeues with back-off (D-71, D-79). If only pod
/// names were taken, the next plan follows at once with other names. Outcomes that succeeded do not matter, so executors may
/// leave out those without a subject.
#[must_use]
pub fn come_back(outcomes: &[Outcome], after: Option<Duration>, plan_error: Option<&str>) -> ComeBack {
    let outcomes: Vec<_> = outcomes.iter().filter(|outcome| !outcome.ignored).collect();
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    // Nothing can be created in a terminating namespace, so a plan that ended for that reason is not tried again (P-63).
    let terminating = count(Outcome::is_object_in_terminating_namespace) > 0;
    let skipped = if terminating {
        0
    } else {
        count(|outcome| outcome.result == OutcomeResult::Skipped)
    };
    let (failed, taken) = (count(Outcome::has_failed), count(Outcome::is_pod_name_taken));
    let mut reasons = Vec::new();
    if failed > 0 || skipped > 0 {
        let mut reason = format!("{failed} actions failed and {skipped} were skipped");
        // The first by id, because outcomes may be in any order.
        let first = outcomes
            .iter()
            .filter(|outcome| outcome.has_failed())
            .min_by_key(|outcome| outcome.action_id);
        if let Some(first) = first.filter(|first| !first.message.is_empty()) {
            reason = format!("{reason}; action {}: {}", first.action_id, first.message);
        }
        reasons.push(reason);
    }
    reasons.extend(
        plan_error
            .filter(|error| !error.is_empty())
            .map(|error| format!("the plan is not complete: {error}")),
    );
    let backoff = !reasons.is_empty();
    if !backoff && taken > 0 {
        return ComeBack {
            backoff,
            after: Some(Duration::ZERO),
            message: format!("{taken} names are taken by other pods; the next plan gives other names"),
        };
    }
    let blocked = count(|outcome| outcome.result == OutcomeResult::Blocked);
    if !backoff && blocked > 0 {
        return ComeBack {
            backoff,
            after: Some(Duration::ZERO),
            message: format!("{blocked} pods are protected by PodDisruptionBudgets; others come first"),
        };
    }
    if !backoff && after.is_some() {
        reasons.push("the plan asked for it".to_owned());
    }
    let after = after.and_then(|after| {
        if after.is_zero() {
            at_once(&outcomes)
        } else {
            Some(after)
        }
    });
    ComeBack {
        backoff,
        after,
        message: reasons.join("; "),
    }
}

/// The delay after an action that found its object gone. Until the caches show that, every plan asks for the same action.
const UNTIL_SEEN: Duration = Duration::from_secs(1);

/// The delay of the next plan if this plan asked for one at once. `None` if an action was not done: the next plan would only repeat
/// it. Objects that are gone count as done.
fn at_once(outcomes: &[&Outcome]) -> Option<Duration> {
    let mut after = Duration::ZERO;
    for outcome in outcomes {
        match outcome.result {
            OutcomeResult::Succeeded => {}
            OutcomeResult::NotFound => after = UNTIL_SEEN,
            _ => return None,
        }
    }
    Some(after)
}

fn settles_create(result: OutcomeResult, options: &Options) -> bool {
    match result {
        OutcomeResult::Succeeded => false,
        OutcomeResult::NamespaceTerminating => options.deviates(Deviation::LowerOnNamespaceTerminating),
        _ => true,
    }
}

/// The entry that keeps later plans from a name that the apiserver rejected. With a node, the count of taken names does that.
fn used_name(create: &ExpectedCreate) -> Option<UsedPodName> {
    let is_named = create.node_name.is_empty() && !create.pod_name.is_empty();
    is_named.then(|| UsedPodName {
        node_name: String::new(),
        pod_name: create.pod_name.clone(),
    })
}

/// Adds the names that the apiserver rejected, by node.
fn count_refused(collisions: &mut Vec<PodNameCollision>, mut refused: BTreeMap<&str, u32>) {
    for known in collisions.iter_mut() {
        let more = refused.remove(known.node_name.as_str()).unwrap_or(0);
        known.count = known.count.saturating_add(more);
        known.refused = known.refused.saturating_add(more);
    }
    if !refused.is_empty() {
        collisions.extend(refused.into_iter().map(|(node, count)| PodNameCollision {
            node_name: node.to_owned(),
            count,
            refused: count,
        }));
        collisions.sort();
    }
}

/// The expectations without these creates and deletes; `None` if none are left.
fn without(
    mut pair: Expectations,
    creates: &BTreeSet<&ExpectedCreate>,
    deletes: &BTreeSet<&String>,
) -> Option<Expectations> {
    pair.creates.retain(|create| !creates.contains(create));
    pair.delete_uids.retain(|uid| !deletes.contains(uid));
    (!pair.creates.is_empty() || !pair.delete_uids.is_empty()).then_some(pair)
}
