//! What became of a plan, and what follows: the state to hold, and when to come back.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use crate::core::outcome::{Outcome, OutcomeResult, Subject};
use crate::{
    core::{
        cancellation::Cancellation,
        snapshot::{Deviation, Expectations, ExpectedCreate, Options, PodNameCollision, State},
    },
    daemonset::slow_start,
};

/// How to come back to a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComeBack {
    /// Something failed: come back with back-off, too.
    pub backoff: bool,
    /// Come back after this time.
    pub after: Option<Duration>,
    /// Why, for people; empty when there is no need to come back.
    pub message: String,
}

/// The state less everything that the outcomes settle.
///
/// A create that failed, was refused or was skipped will not be seen, and neither will the delete of a pod that is gone or
/// stays (D-73, D-78, D-79, D-81). A create whose pod exists already is settled as upstream settles every failed create:
/// the watch may have shown that pod before it was expected, and the derived name keeps a repeated create harmless. Without
/// the deviation of Q-20 a create refused by a terminating namespace stays expected (D-80).
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "it never does")]
pub fn fold(state: State, outcomes: &[Outcome], options: &Options) -> State {
    fold_until(state, outcomes, options, &|| false).expect("nothing stops it")
}

/// As [`fold`]; `None` once `stop`, which is asked now and then, says that nobody waits for it.
#[must_use]
pub fn fold_until(
    mut state: State,
    outcomes: &[Outcome],
    options: &Options,
    stop: &dyn Fn() -> bool,
) -> Option<State> {
    let cancellation = Cancellation::new(stop);
    let (mut creates, mut deletes) = (BTreeSet::new(), BTreeSet::new());
    let mut taken = BTreeMap::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        cancellation.tick(index)?;
        match &outcome.subject {
            Some(Subject::CreatedPod(create)) => {
                if settles_create(outcome.result, options) {
                    creates.insert(create);
                }
                if outcome.result == OutcomeResult::NameTaken {
                    *taken.entry(create.node_name.as_str()).or_insert(0_u32) += 1;
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
    state.slow_start = state
        .slow_start
        .and_then(|known| slow_start::grown(known, outcomes, options));
    state.expectations = state
        .expectations
        .and_then(|pair| without(pair, &creates, &deletes));
    Some(state)
}

/// When to come back: with back-off when anything failed or was left undone, besides the time that the plan itself asked
/// for (D-71.12, D-79). What succeeded plays no part: such outcomes without a subject need not be told. Where nothing went wrong
/// but that names were taken, the next plan follows at once and derives others.
#[must_use]
pub fn come_back(outcomes: &[Outcome], after: Option<Duration>, plan_error: Option<&str>) -> ComeBack {
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    let skipped = count(|outcome| outcome.result == OutcomeResult::Skipped);
    let (failed, taken) = (count(Outcome::has_failed), count(Outcome::is_pod_name_taken));
    let mut reasons = Vec::new();
    if failed > 0 || skipped > 0 {
        let mut reason = format!("{failed} actions failed and {skipped} were skipped");
        // The first by id, since outcomes come in any order.
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
    if !backoff && after.is_some() {
        reasons.push("the plan asked for it".to_owned());
    }
    let after = after.and_then(|after| {
        if after.is_zero() {
            at_once(outcomes)
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

/// How long the caches are given to show that an object is gone. Until then every plan asks for the same.
const UNTIL_SEEN: Duration = Duration::from_secs(1);

/// When the next plan follows that the present one wanted at once. It goes on only from what was done: pods that were not created would
/// be asked for again and again. What is gone need not be done.
fn at_once(outcomes: &[Outcome]) -> Option<Duration> {
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

/// Adds how many names the apiserver refused for each node.
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

/// What is left of expectations; `None` when nothing is.
fn without(
    mut pair: Expectations,
    creates: &BTreeSet<&ExpectedCreate>,
    deletes: &BTreeSet<&String>,
) -> Option<Expectations> {
    pair.creates.retain(|create| !creates.contains(create));
    pair.delete_uids.retain(|uid| !deletes.contains(uid));
    (!pair.creates.is_empty() || !pair.delete_uids.is_empty()).then_some(pair)
}
