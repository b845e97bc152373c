//! Reports of outcomes, and what their answers lead to.

use super::*;

// D-71.12: how the response to a report becomes a requeue.
#[tokio::test]
async fn the_report_response_says_when_to_requeue() {
    let after = |seconds| Some(nodewise_proto::Duration { seconds, nanos: 0 });
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (requeue, requeue_after, expected) in [
        (v1::Requeue::None, None, SETTLED),
        (
            v1::Requeue::After,
            after(7),
            Ending::Settled { after: seconds(7) },
        ),
        (
            v1::Requeue::Backoff,
            None,
            Ending::Failed {
                after: None,
                reason: "why".into(),
            },
        ),
        (
            v1::Requeue::Backoff,
            after(7),
            Ending::Failed {
                after: seconds(7),
                reason: "why".into(),
            },
        ),
    ] {
        let answer = v1::ReportResponse {
            requeue: requeue.into(),
            requeue_after,
            message: "why".into(),
            ..Default::default()
        };
        let service = ScriptedService::default()
            .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
            .then_answer_report(Ok(answer));
        assert_eq!(with(service).reconcile().await, expected);
    }
}

// Without actions, the plan itself says when to requeue.
#[tokio::test]
async fn a_plan_without_actions_needs_no_report() {
    let after = Some(nodewise_proto::Duration { seconds: 9, nanos: 0 });
    for (plan, expected) in [
        (
            v1::Plan {
                requeue_after: after,
                ..noop()
            },
            Ending::Settled {
                after: Some(Duration::from_secs(9)),
            },
        ),
        (
            v1::Plan {
                error: "cannot scale".into(),
                ..noop()
            },
            Ending::Failed {
                after: None,
                reason: "cannot scale".into(),
            },
        ),
    ] {
        let fixture = with(ScriptedService::default().then_plan(plan));
        assert_eq!(fixture.reconcile().await, expected);
        assert_eq!(fixture.service.reported.lock().expect("no panic").len(), 0);
    }
}

// D-73, D-79: the report contains every outcome, and failed actions are not waited for.
#[tokio::test]
async fn the_report_settles_what_failed() {
    let plan = creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]);
    let mut settled = plan.state.clone().expect("a state");
    settled
        .expectations
        .as_mut()
        .expect("expectations")
        .creates
        .remove(1);
    let answer = v1::ReportResponse {
        state: Some(settled),
        requeue: v1::Requeue::Backoff.into(),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(answer)),
    );
    fixture
        .actuator
        .refuse("create pods foo-cccccccccc", Refusal::Other);
    let ending = fixture.reconcile().await;
    assert!(
        is_failed(
            &ending,
            "1 of 2 actions were done, 1 failed, 0 were not tried; the first failure: refused: create pods foo-cccccccccc"
        ),
        "{ending:?}"
    );
    assert_eq!(fixture.outstanding(), (1, 0));
    let reported = fixture.service.reported.lock().expect("no panic");
    let results: Vec<_> = reported[0].outcomes.iter().map(v1::Outcome::result).collect();
    assert_eq!(results, [v1::Result::Succeeded, v1::Result::Failed]);
    let sent = reported[0]
        .state
        .as_ref()
        .and_then(|state| state.expectations.as_ref());
    assert_eq!(sent.map(|expectations| expectations.creates.len()), Some(1));
}

// Every pod of a large cluster may be adopted at once, and such outcomes have no consequence.
#[tokio::test]
async fn successful_adoptions_are_not_reported() {
    let plan = with_actions(
        v1::PhaseKind::Claims,
        ["a", "b", "c"].map(adopt).into_iter().collect(),
    );
    let fixture = with(ScriptedService::default().then_plan(plan));
    for name in ["a", "b", "c"] {
        fixture.watch(orphan(name));
    }
    fixture.actuator.refuse("patch pods ns/b", Refusal::Other);
    fixture.reconcile().await;
    let reported = fixture.service.reported.lock().expect("no panic");
    let told: Vec<_> = reported[0]
        .outcomes
        .iter()
        .map(|outcome| (outcome.action_id, outcome.result()))
        .collect();
    assert_eq!(told, [(2, v1::Result::Failed)]);
}

// A report that got lost is sent once, with the next plan request, which follows soon.
#[tokio::test]
async fn a_lost_report_is_sent_with_the_next_plan_request() {
    let lost = Err(ServiceError::Unreachable("gone".into()));
    let service = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(lost)
        .then_fail(ServiceError::Unreachable("still gone".into()));
    let fixture = with(service);
    assert!(is_failed(
        &fixture.reconcile().await,
        "will be sent with the next plan request"
    ));
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    for expected in [1, 1, 0] {
        fixture.reconcile().await;
        let requests = fixture.service.requests.lock().expect("no panic");
        let undelivered = &requests.last().expect("a request").undelivered_reports;
        assert_eq!(undelivered.len(), expected);
        assert!(
            undelivered
                .iter()
                .all(|report| report.plan_id == "p" && report.outcomes.len() == 1)
        );
    }
}

// The expectations of a refused report stay open, and another plan would only hide that.
#[tokio::test]
async fn a_refused_report_ends_the_reconcile() {
    let refused = Err(ServiceError::Refused("too much".into()));
    let service = ScriptedService::default()
        .then_plan(creating_revision())
        .then_answer_report(refused);
    let fixture = with(service);
    fixture.actuator.refuse(
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.into();
    assert!(is_failed(&fixture.reconcile().await, ""));
    assert_eq!(fixture.service.plans_asked(), 1);
}

// A refused report would make every later plan request fail: it is dropped, whichever call is refused.
#[tokio::test]
async fn a_refused_report_is_not_sent_again() {
    let refused = || ServiceError::Refused("outcomes[0].action_id: unknown".into());
    let at_once = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Err(refused()));
    let later = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Err(ServiceError::Unreachable("gone".into())))
        .then_fail(refused());
    for (service, riding) in [(at_once, vec![0, 0]), (later, vec![1, 0])] {
        let fixture = with(service);
        assert!(matches!(fixture.reconcile().await, Ending::Failed { .. }));
        fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
        for expected in riding {
            fixture.reconcile().await;
            let requests = fixture.service.requests.lock().expect("no panic");
            let last = requests.last().expect("a request");
            assert_eq!(last.undelivered_reports.len(), expected);
        }
    }
}

/// A plan of an Event.
fn event_plan(requeue_after: nodewise_proto::Duration, error: &str) -> v1::Plan {
    let event = v1::action::Kind::EmitEvent(v1::EmitEvent {
        r#type: "Normal".into(),
        reason: "Reason".into(),
        message: String::new(),
    });
    v1::Plan {
        requeue_after: Some(requeue_after),
        error: error.into(),
        ..with_actions(v1::PhaseKind::Events, vec![event])
    }
}

// W9: the executor knows the response to a report of actions that succeeded and that nothing is expected of.
#[tokio::test]
async fn outcomes_that_tell_nothing_are_not_reported() {
    let after = nodewise_proto::Duration { seconds: 5, nanos: 0 };
    let at_once = nodewise_proto::Duration::default();
    let service = ScriptedService::default()
        .then_plan(event_plan(after, ""))
        .then_plan(event_plan(after, "odd"))
        .then_plan(event_plan(at_once, ""));
    let fixture = with(service);
    let settled = |after| Ending::Settled { after: Some(after) };
    assert_eq!(fixture.reconcile().await, settled(Duration::from_secs(5)));
    let failed = Ending::Failed {
        after: Some(Duration::from_secs(5)),
        reason: "odd".into(),
    };
    assert_eq!(fixture.reconcile().await, failed);
    assert_eq!(fixture.reconcile().await, settled(Duration::ZERO));
    assert_eq!(*fixture.service.reported.lock().expect("no panic"), []);
}

// Whatever the service asks for: after a hundred requeues at once, a workload is requeued at most ten times a second.
#[tokio::test(start_paused = true)]
async fn requeues_at_once_are_limited() {
    let short = nodewise_proto::Duration { seconds: 0, nanos: 1 };
    let mut service = ScriptedService::default();
    for error in (0..102).flat_map(|_| ["", "odd"]) {
        service = service.then_plan(event_plan(short, error));
    }
    let fixture = with(service);
    let soon = Some(Duration::from_nanos(1));
    let after = |ending: Ending| match ending {
        Ending::Settled { after } | Ending::Failed { after, .. } => after,
        _ => None,
    };
    for _ in 0..100 {
        assert_eq!(after(fixture.reconcile().await), soon);
    }
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
    tokio::time::advance(pace::MIN_DELAY).await;
    assert_eq!(after(fixture.reconcile().await), soon);
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
    tokio::time::advance(Duration::from_mins(1)).await;
    for _ in 0..100 {
        assert_eq!(
            after(fixture.reconcile().await),
            soon,
            "no more tokens than a hundred"
        );
    }
    assert_eq!(after(fixture.reconcile().await), Some(pace::MIN_DELAY));
}
