//! Outcomes of plans: the state afterwards, and when to plan again.

use std::{collections::BTreeSet, time::Duration};

use nodewise_planner::{
    plan::{Action, ActionKind},
    report::{ComeBack, Outcome, OutcomeResult, Subject, come_back, fold},
    snapshot::{Deviation, Expectations, ExpectedCreate, Options, State},
};

use crate::support::{Cluster, collision, pod_names, status};

/// How many creates and deletes are still expected.
fn expected(state: &State) -> (usize, usize) {
    state
        .expectations
        .as_ref()
        .map_or((0, 0), |pair| (pair.creates.len(), pair.delete_uids.len()))
}

fn is_create(action: &Action) -> bool {
    matches!(action.kind, ActionKind::CreatePod { .. })
}

fn count(outcomes: &[Outcome], result: OutcomeResult) -> usize {
    outcomes.iter().filter(|outcome| outcome.result == result).count()
}

/// All creates have this result, and all other actions succeed.
fn creates_end(result: OutcomeResult) -> impl FnMut(&Action) -> OutcomeResult {
    move |action| {
        if is_create(action) {
            result
        } else {
            OutcomeResult::Succeeded
        }
    }
}

#[test]
fn a_quota_stops_slow_start() {
    let mut cluster = Cluster::new(100);
    let plan = cluster.plan();
    let mut left = 10;
    let outcomes = cluster.apply_with(&plan, &mut |action| {
        if is_create(action) && left == 0 {
            return OutcomeResult::Failed;
        }
        left -= usize::from(is_create(action));
        OutcomeResult::Succeeded
    });
    // D-77, D-78: batches of 1 + 2 + 4 + 8 creates. The status is written nevertheless.
    assert_eq!(count(&outcomes, OutcomeResult::Failed), 5, "D-78");
    assert_eq!(count(&outcomes, OutcomeResult::Skipped), 85, "D-78");
    let state = fold(cluster.state.clone(), &outcomes, &cluster.options);
    // D-73: ten creates are outstanding.
    assert_eq!(expected(&state), (10, 0), "D-73");
    assert_eq!(cluster.ds.status.desired_number_scheduled, 100);
    let back = come_back(&outcomes, None, None);
    assert!(back.backoff, "D-79");
    assert_eq!(
        back.message,
        "5 actions failed and 85 were skipped; action 11: refused"
    );
    cluster.state = state;
    cluster.observe();
    assert_eq!(
        cluster.plan().state.expectations.map(|pair| pair.creates.len()),
        Some(90),
        "after the quota was raised"
    );
}

#[test]
fn d_79_deletes_are_made_though_creates_fail() {
    let mut cluster = Cluster::new(4).with(&["a@node-0 t=1", "b@node-0 t=2"]);
    let plan = cluster.plan();
    let outcomes = cluster.apply_with(&plan, &mut creates_end(OutcomeResult::Failed));
    // D-79
    assert_eq!(
        (
            count(&outcomes, OutcomeResult::Failed),
            count(&outcomes, OutcomeResult::Skipped)
        ),
        (1, 2)
    );
    assert!(
        cluster.pods.iter().any(|pod| pod.name == "b" && pod.deleting),
        "D-79"
    );
    assert_eq!(cluster.ds.status, status(&plan), "D-71");
    assert_eq!(
        expected(&fold(cluster.state.clone(), &outcomes, &cluster.options)),
        (0, 1),
        "D-73"
    );
}

#[test]
fn q_20_a_namespace_that_is_terminating() {
    let mut cluster = Cluster::new(4);
    let plan = cluster.plan();
    let outcomes = cluster.apply_with(&plan, &mut creates_end(OutcomeResult::NamespaceTerminating));
    // D-80: all creates are tried, and none counts as failed.
    assert_eq!(count(&outcomes, OutcomeResult::NamespaceTerminating), 4, "D-80");
    assert!(!come_back(&outcomes, None, None).backoff, "D-80");
    assert_eq!(
        expected(&fold(
            cluster.state.clone(),
            &outcomes,
            &Options::upstream_strict()
        )),
        (4, 0),
        "D-80"
    );
    assert!(cluster.options.deviates(Deviation::LowerOnNamespaceTerminating));
    assert_eq!(
        expected(&fold(cluster.state.clone(), &outcomes, &cluster.options)),
        (0, 0),
        "Q-20"
    );
}

#[test]
fn deletes_that_find_nothing_or_fail() {
    // (case, result, failed, deletes still expected)
    let table = [
        ("D-81", OutcomeResult::NotFound, false, 0),
        ("D-73, D-81", OutcomeResult::Failed, true, 0),
        ("D-81: lowered by the watch", OutcomeResult::Succeeded, false, 1),
        ("D-73", OutcomeResult::Skipped, true, 0),
    ];
    for (what, result, failed, left) in table {
        let mut cluster = Cluster::new(0).with(&["a@lost unbound"]);
        let plan = cluster.plan();
        let outcomes = cluster.apply_with(&plan, &mut |action| match action.kind {
            ActionKind::DeletePod { .. } => result,
            _ => OutcomeResult::Succeeded,
        });
        assert_eq!(
            expected(&fold(cluster.state.clone(), &outcomes, &cluster.options)),
            (0, left),
            "{what}"
        );
        assert_eq!(come_back(&outcomes, None, None).backoff, failed, "{what}");
    }
}

#[test]
fn d_82_creates_by_result() {
    // (case, result, creates still expected, failed)
    let table = [
        ("D-82: unclear", OutcomeResult::Failed, 0, true),
        ("D-73: seen in the watch", OutcomeResult::Succeeded, 1, false),
        ("the pod exists", OutcomeResult::AlreadyExists, 0, false),
        (
            "the next plan derives another name",
            OutcomeResult::NameTaken,
            0,
            false,
        ),
    ];
    for (what, result, left, failed) in table {
        let mut cluster = Cluster::new(1);
        let plan = cluster.plan();
        let outcomes = cluster.apply_with(&plan, &mut creates_end(result));
        let state = fold(cluster.state.clone(), &outcomes, &cluster.options);
        assert_eq!(expected(&state), (left, 0), "{what}");
        assert_eq!(come_back(&outcomes, None, None).backoff, failed, "{what}");
        let collisions = u32::from(result == OutcomeResult::NameTaken);
        assert_eq!(
            state
                .pod_name_collisions
                .iter()
                .map(|known| known.count)
                .sum::<u32>(),
            collisions,
            "{what}"
        );
    }
}

// Anybody can compute derived names and take them. That must not delay a plan; after three taken names the apiserver chooses the
// name.
#[test]
fn taken_names_are_replaced_at_once() {
    let mut cluster = Cluster::new(2);
    let mut tried = BTreeSet::new();
    for round in 1..=3_u32 {
        let plan = cluster.plan();
        let first = pod_names(&plan)[0].to_owned();
        assert!(!first.is_empty() && tried.insert(first.clone()), "{first} again");
        let outcomes = cluster.apply_with(&plan, &mut |action| match &action.kind {
            ActionKind::CreatePod { pod_name, .. } if *pod_name == first => OutcomeResult::NameTaken,
            _ => OutcomeResult::Succeeded,
        });
        let back = come_back(&outcomes, plan.requeue.map(|requeue| requeue.delay), None);
        assert!(!back.backoff, "a taken name is no failure: {back:?}");
        assert_eq!(back.after, Some(Duration::ZERO), "{back:?}");
        assert_eq!(
            back.message,
            "1 names are taken by other pods; the next plan gives other names"
        );
        assert_eq!(count(&outcomes, OutcomeResult::Skipped), 0, "no batch stops");
        cluster.state = fold(cluster.state.clone(), &outcomes, &cluster.options);
        assert_eq!(
            cluster.state.pod_name_collisions,
            [collision("node-0", round, round)]
        );
        cluster.state.expectations = None;
    }
    assert_eq!(
        cluster.pods.len(),
        1,
        "the other node got its pod in the first round"
    );
    let plan = cluster.plan();
    assert_eq!(pod_names(&plan), [""], "the apiserver chooses the fourth");
    let manifest = plan.pod_manifest.expect("a pod is created").json;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    assert_eq!(manifest["metadata"]["generateName"], "foo-");
    cluster.sync();
    assert_eq!(
        cluster.plan().state.pod_name_collisions,
        [],
        "the node has its pod"
    );
}

#[test]
fn a_failure_beside_a_taken_name_waits() {
    let mut cluster = Cluster::new(2);
    cluster.state.slow_start = None;
    let plan = cluster.plan();
    let mut results = [OutcomeResult::NameTaken, OutcomeResult::Failed].into_iter();
    let outcomes = cluster.apply_with(&plan, &mut |action| {
        if is_create(action) {
            results.next().expect("two creates")
        } else {
            OutcomeResult::Succeeded
        }
    });
    let back = come_back(&outcomes, None, None);
    assert!(back.backoff && back.after.is_none(), "{back:?}");
}

#[test]
fn when_to_come_back() {
    let minute = Some(Duration::from_mins(1));
    let back = |backoff, after, message: &str| ComeBack {
        backoff,
        after,
        message: message.to_owned(),
    };
    assert_eq!(come_back(&[], None, None), back(false, None, ""));
    assert_eq!(come_back(&[], None, Some("")), back(false, None, ""));
    assert_eq!(
        come_back(&[], minute, None),
        back(false, minute, "the plan asked for it"),
        "D-92"
    );
    let at_once = Some(Duration::ZERO);
    assert_eq!(come_back(&[], at_once, None).after, at_once);
    // D-71: an error of the plan has the effect of a failed write.
    assert_eq!(
        come_back(&[], minute, Some("no")),
        back(true, minute, "the plan is not complete: no"),
        "D-71"
    );
}

// P-63: the rest of a plan that ended in a terminating namespace is not tried again, and a failure beside it is.
#[test]
fn an_object_in_a_terminating_namespace_is_not_tried_again() {
    let outcome = |action_id, result| Outcome {
        action_id,
        result,
        ignored: false,
        subject: None,
        message: String::new(),
        http_status: 0,
    };
    let mut outcomes = vec![
        outcome(1, OutcomeResult::NamespaceTerminating),
        outcome(2, OutcomeResult::Skipped),
    ];
    assert!(!come_back(&outcomes, None, None).backoff);
    outcomes.push(outcome(3, OutcomeResult::Failed));
    assert!(come_back(&outcomes, None, None).backoff);
    outcomes.remove(0);
    assert!(
        come_back(&outcomes[..1], None, None).backoff,
        "skipped for another reason"
    );
}

#[test]
fn a_quota_that_is_never_raised() {
    let mut cluster = Cluster::new(5);
    for _ in 0..4 {
        let plan = cluster.plan();
        let room = 2 - cluster.pods.len();
        let mut left = room;
        let outcomes = cluster.apply_with(&plan, &mut |action| {
            if is_create(action) && left == 0 {
                return OutcomeResult::Failed;
            }
            left -= usize::from(is_create(action));
            OutcomeResult::Succeeded
        });
        assert!(come_back(&outcomes, None, None).backoff);
        cluster.state = fold(cluster.state.clone(), &outcomes, &cluster.options);
        cluster.observe();
        cluster.all_ready();
    }
    assert_eq!(
        (
            cluster.ds.status.current_number_scheduled,
            cluster.ds.status.number_ready
        ),
        (2, 2)
    );
}

#[test]
fn a_failed_claim_ends_the_plan() {
    // D-27: neither creates nor status.
    let mut cluster = Cluster::new(5).with(&["a@node-0 orphan"]);
    let before = cluster.ds.status;
    let plan = cluster.plan();
    let outcomes = cluster.apply_with(&plan, &mut |action| match action.kind {
        ActionKind::AdoptPod { .. } => OutcomeResult::Failed,
        _ => OutcomeResult::Succeeded,
    });
    assert_eq!((cluster.pods.len(), cluster.ds.status), (1, before));
    assert_eq!(
        expected(&fold(cluster.state.clone(), &outcomes, &cluster.options)),
        (0, 0),
        "D-73"
    );
}

#[test]
fn outcomes_that_succeeded_without_a_subject_do_not_matter() {
    let create = ExpectedCreate {
        pod_name: "a".into(),
        node_name: "node-0".into(),
    };
    let state = State {
        expectations: Some(Expectations {
            set_at: Cluster::new(0).now,
            creates: vec![create.clone()],
            delete_uids: vec!["b".into()],
        }),
        ..State::default()
    };
    let adopted = |action_id| Outcome {
        action_id,
        result: OutcomeResult::Succeeded,
        message: String::new(),
        http_status: 200,
        ignored: false,
        subject: None,
    };
    let subjects = [
        None,
        Some(Subject::CreatedPod(create)),
        Some(Subject::DeletedPodUid("b".into())),
    ];
    let results = [
        OutcomeResult::Succeeded,
        OutcomeResult::AlreadyExists,
        OutcomeResult::NameTaken,
        OutcomeResult::NotFound,
        OutcomeResult::NamespaceTerminating,
        OutcomeResult::Failed,
        OutcomeResult::Skipped,
    ];
    let others = subjects.iter().flat_map(|subject| {
        results.map(|result| Outcome {
            result,
            message: format!("{result:?}"),
            subject: subject.clone(),
            ..adopted(2)
        })
    });
    for other in others.map(Some).chain([None]) {
        let without: Vec<_> = other.into_iter().collect();
        let with: Vec<_> = [adopted(1)]
            .into_iter()
            .chain(without.clone())
            .chain([adopted(3)])
            .collect();
        let options = Options::default();
        assert_eq!(
            fold(state.clone(), &with, &options),
            fold(state.clone(), &without, &options),
            "{without:?}"
        );
        for (after, error) in [(None, None), (Some(Duration::from_secs(1)), Some("error"))] {
            assert_eq!(
                come_back(&with, after, error),
                come_back(&without, after, error),
                "{without:?}"
            );
        }
    }
}

// If there are more claims than one plan may have, the next plan follows at once. If an object was gone, it follows after a
// second, so that the caches can show that.
#[test]
fn claims_of_objects_that_are_gone_delay_the_next_plan_by_a_second() {
    use OutcomeResult::{AlreadyExists, Failed, NotFound, Skipped, Succeeded};
    let (zero, second) = (Some(Duration::ZERO), Some(Duration::from_secs(1)));
    let table = [
        (vec![], zero),
        (vec![Succeeded, Succeeded], zero),
        (vec![NotFound], second),
        (vec![Succeeded, NotFound, Succeeded], second),
        (vec![NotFound, Failed], None),
        (vec![NotFound, Skipped], None),
        (vec![NotFound, AlreadyExists], None),
    ];
    for (results, expected) in table {
        let outcomes: Vec<_> = (1..)
            .zip(&results)
            .map(|(action_id, result)| Outcome {
                action_id,
                result: *result,
                // An action that is skipped for a reason.
                message: if *result == Skipped {
                    "locked".to_owned()
                } else {
                    String::new()
                },
                http_status: 0,
                ignored: false,
                subject: None,
            })
            .collect();
        let back = come_back(&outcomes, zero, None);
        assert_eq!(back.after, expected, "{results:?}");
        let later = Some(Duration::from_secs(7));
        assert_eq!(come_back(&outcomes, later, None).after, later, "{results:?}");
    }
}
