//! What the outcomes of a plan change: expectations, names, the next plan.

use std::time::Duration;

use nodewise_planner::{
    report::{Outcome, OutcomeResult, Subject, come_back, fold, fold_until},
    snapshot::{ExpectedCreate, Options, State, UsedPodName},
};

use crate::support::{World, expected_create, used};

fn outcome(action_id: u32, result: OutcomeResult, subject: Option<Subject>) -> Outcome {
    Outcome {
        action_id,
        result,
        message: String::new(),
        http_status: 0,
        subject,
        ignored: false,
    }
}

fn created(name: &str, result: OutcomeResult) -> Outcome {
    outcome(1, result, Some(Subject::CreatedPod(expected_create(name))))
}

#[test]
fn a_phase_that_is_left_out_is_no_failure() {
    use OutcomeResult::{Failed, Skipped, Succeeded};
    let zero = Some(Duration::ZERO);
    let skipped = || Outcome {
        ignored: true,
        ..outcome(2, Skipped, None)
    };
    let left_out = outcome(2, Skipped, None);
    // (what, outcomes, back-off, next plan)
    let table = [
        (
            "R-3: no failure",
            vec![created("a", Succeeded), skipped()],
            false,
            zero,
        ),
        ("a failure", vec![created("a", Failed), skipped()], true, None),
        (
            "an action that is left out",
            vec![created("a", Succeeded), left_out],
            true,
            None,
        ),
        ("a create", vec![created("a", Skipped)], true, None),
        ("nothing", vec![], false, zero),
    ];
    for (what, outcomes, backoff, after) in table {
        let back = come_back(&outcomes, zero, None);
        assert_eq!((back.backoff, back.after), (backoff, after), "{what}: {back:?}");
    }
}

#[test]
fn only_names_without_a_node_become_used() {
    let on_node = ExpectedCreate {
        pod_name: "a".to_owned(),
        node_name: "n".to_owned(),
    };
    let outcomes = [
        created("b", OutcomeResult::NameTaken),
        created("a", OutcomeResult::NameTaken),
        created("", OutcomeResult::NameTaken),
        created("c", OutcomeResult::AlreadyExists),
        outcome(9, OutcomeResult::NameTaken, Some(Subject::CreatedPod(on_node))),
    ];
    let before = vec![used("b"), used("x")];
    let state = State {
        used_pod_names: before,
        ..State::default()
    };
    let state = fold(state, &outcomes, &Options::default());
    assert_eq!(state.used_pod_names, [used("a"), used("b"), used("x")]);
    let on_node = |known: &UsedPodName| !known.node_name.is_empty();
    assert!(!state.used_pod_names.iter().any(on_node));
    let refused: Vec<_> = state
        .pod_name_collisions
        .iter()
        .map(|known| known.refused)
        .collect();
    assert_eq!(refused, [3, 1]);
}

#[test]
fn a_report_can_be_stopped() {
    let world = World::new(1);
    let outcomes = [created("a", OutcomeResult::Succeeded)];
    assert_eq!(
        fold_until(world.state.clone(), &outcomes, &world.options, &|| true),
        None
    );
    assert_eq!(
        fold_until(world.state.clone(), &outcomes, &world.options, &|| false),
        Some(world.state)
    );
}
