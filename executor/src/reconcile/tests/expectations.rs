//! What is held of a plan before it is carried out, and what its end leaves.

use super::*;

// D-72: expectations are held before the first call, and the next snapshot contains them.
#[tokio::test]
async fn expectations_are_held_before_the_first_write() {
    let fixture = with(
        ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")])),
    );
    let at_write = Arc::new(Mutex::new(Vec::new()));
    fixture.actuator.before_write({
        let (state, at_write) = (fixture.state.clone(), Arc::clone(&at_write));
        move || {
            at_write
                .lock()
                .expect("no panic")
                .push(state.lock().reconcile_states.outstanding(&key()));
        }
    });
    fixture.reconcile().await;
    assert_eq!(*at_write.lock().expect("no panic"), [(2, 0), (2, 0)]);
}

// D-73: an event that settles an expectation during a plan is not undone by that plan's state.
#[tokio::test]
async fn what_is_observed_during_a_plan_stays_observed() {
    let first = creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]);
    let second = v1::Plan {
        verdict: v1::Verdict::StatusOnly.into(),
        state: first.state.clone(),
        ..noop()
    };
    let held = v1::ReportResponse {
        state: first.state.clone(),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(first)
            .then_answer_report(Ok(held))
            .then_plan(second),
    );
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    assert_eq!(fixture.outstanding(), (2, 0));
    fixture.service.meanwhile({
        let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
        move || {
            state.lock().handle_event(
                ClusterEvent::Pods(Delta::Applied(pod("foo-bbbbbbbbbb", "101"))),
                &metrics,
            );
        }
    });
    fixture.reconcile().await;
    assert_eq!(
        fixture
            .service
            .snapshot(1)
            .state
            .and_then(|state| state.expectations)
            .map(|e| e.creates.len()),
        Some(2)
    );
    assert_eq!(fixture.outstanding(), (1, 0));
}

// D-71.6, D-95: a plan that ends before its deletes of failed pods starts no back-off for them: the retry deletes them.
#[tokio::test]
async fn an_aborted_plan_leaves_the_back_off_as_it_was() {
    let backoff = |node: &str| v1::ReconcileState {
        failed_pod_backoffs: vec![v1::FailedPodBackoff {
            node_name: node.to_owned(),
            ..v1::FailedPodBackoff::default()
        }],
        ..v1::ReconcileState::default()
    };
    for (aborts, held) in [(true, backoff("n1")), (false, backoff("n2"))] {
        let first = v1::Plan {
            state: Some(backoff("n1")),
            ..noop()
        };
        let delete = v1::action::Kind::DeleteRevision(v1::DeleteRevision {
            revision: Some(v1::ObjectReference {
                name: "r".into(),
                uid: "r-uid".into(),
            }),
            revision_number: 1,
        });
        let mut second = v1::Plan {
            state: Some(backoff("n2")),
            ..with_actions(v1::PhaseKind::Revisions, vec![delete])
        };
        second.phases[0].aborts_on_failure = aborts;
        let fixture = with(ScriptedService::default().then_plan(first).then_plan(second));
        fixture.actuator.refuse("delete", Refusal::Other);
        fixture.reconcile().await;
        fixture.reconcile().await;
        assert_eq!(fixture.held(), held, "aborts: {aborts}");
    }
}

// D-113: a delete leaves no own-write record; its expectation delays the next plan.
#[tokio::test]
async fn deletes_are_guarded_by_expectations() {
    let delete = v1::DeletePod {
        pod: Some(v1::ObjectReference {
            name: "a".into(),
            uid: "uid-a".into(),
        }),
        node_name: "n1".into(),
        uid_precondition: true,
    };
    let expected = v1::ReconcileState {
        expectations: Some(v1::Expectations {
            set_at: Some(Timestamp { seconds: 1, nanos: 0 }),
            creates: Vec::new(),
            delete_uids: vec!["uid-a".into()],
        }),
        ..Default::default()
    };
    let plan = v1::Plan {
        state: Some(expected.clone()),
        ..with_actions(v1::PhaseKind::Deletes, vec![v1::action::Kind::DeletePod(delete)])
    };
    let answer = v1::ReportResponse {
        state: Some(expected.clone()),
        ..Default::default()
    };
    let fixture = with(
        ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(answer)),
    );
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), ["delete pods ns/a"]);
    assert_eq!(fixture.reconcile().await, SETTLED, "no own write to wait for");
    assert_eq!(fixture.service.snapshot(1).state, Some(expected));
    fixture.watch(ClusterEvent::Pods(Delta::Deleted(pod("a", "12"))));
    assert_eq!(fixture.outstanding(), (0, 0));
}
