//! Requests for plans that the service does not answer with a plan.

use super::*;

// Without a plan nothing is written or held. While the service is unreachable, nothing is forgotten.
#[tokio::test]
async fn without_a_plan_nothing_is_written() {
    let stale = v1::Plan {
        verdict: v1::Verdict::Stale.into(),
        phases: Vec::new(),
        ..creating(&[("foo-zzzzzzzzzz", "n3")])
    };
    let service = ScriptedService::default()
        .then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]))
        .then_answer_report(Ok(v1::ReportResponse {
            state: creating(&[("foo-bbbbbbbbbb", "n1")]).state,
            ..Default::default()
        }))
        .then_fail(ServiceError::Unreachable("down".into()))
        .then_plan(stale)
        .then_fail(ServiceError::Refused("snapshot.now: is missing".into()));
    let fixture = with(service);
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "100".into()));
    let before = (fixture.actuator.calls(), fixture.held());
    let unreachable = fixture.reconcile().await;
    assert!(
        matches!(&unreachable, Ending::Unreachable { reason } if reason.contains("down")),
        "{unreachable:?}"
    );
    assert!(is_failed(&fixture.reconcile().await, "stale"));
    assert_eq!((fixture.actuator.calls(), fixture.held()), before);
    assert!(is_failed(&fixture.reconcile().await, "snapshot.now: is missing"));
    assert_eq!(fixture.actuator.calls(), before.0);
}

// As in upstream, back-off outlives a DaemonSet that cannot be planned for.
#[tokio::test]
async fn a_refusal_of_another_field_keeps_the_state() {
    let remembered = vec![v1::FailedPodBackoff {
        node_name: "n1".into(),
        ..Default::default()
    }];
    let plan = v1::Plan {
        state: Some(v1::ReconcileState {
            failed_pod_backoffs: remembered.clone(),
            ..Default::default()
        }),
        ..noop()
    };
    let field = "snapshot.workload.daemon_set.object";
    let refusal = nodewise_client::Refusal {
        reason: "a wrong selector".to_owned(),
        violations: vec![nodewise_client::FieldViolation::new(field, "a wrong selector")],
        lacks: None,
    };
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_fail(ServiceError::Refused(refusal));
    let fixture = with(service);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert!(is_failed(&fixture.reconcile().await, "a wrong selector"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let sent = |request| {
        fixture
            .service
            .snapshot(request)
            .state
            .expect("a state")
            .failed_pod_backoffs
    };
    assert_eq!([sent(1), sent(2)], [remembered.clone(), remembered]);
}

// W12: a faulty service may have made a state that correct replicas refuse. Expectations that watches have changed are
// kept.
#[tokio::test]
async fn a_state_that_may_be_refused_is_dropped() {
    let remembered = v1::ReconcileState {
        failed_pod_backoffs: vec![v1::FailedPodBackoff {
            node_name: "n1".into(),
            delay: Some(nodewise_proto::Duration {
                seconds: -1,
                nanos: 0,
            }),
            ..Default::default()
        }],
        ..Default::default()
    };
    let wrong = v1::Plan {
        state: Some(remembered.clone()),
        ..noop()
    };
    let service = ScriptedService::default()
        .then_plan(wrong)
        .then_fail(ServiceError::Unreachable("down".into()))
        .then_fail(ServiceError::Refused("state.failed_pod_backoffs[0].delay".into()));
    let fixture = with(service);
    assert_eq!(fixture.reconcile().await, SETTLED);
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("p", "11"))));
    fixture.watch(ClusterEvent::Pods(Delta::Deleted(pod("p", "12"))));
    assert!(matches!(fixture.reconcile().await, Ending::Unreachable { .. }));
    assert!(is_failed(&fixture.reconcile().await, "delay"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let sent = |request| fixture.service.snapshot(request).state.expect("a state");
    let used_pod_names = vec![v1::UsedPodName {
        node_name: "n1".into(),
        pod_name: "p".into(),
    }];
    for request in [1, 2] {
        assert_eq!(sent(request).failed_pod_backoffs, remembered.failed_pod_backoffs);
    }
    let without_plans = v1::ReconcileState {
        used_pod_names,
        ..Default::default()
    };
    assert_eq!(sent(3), without_plans);
}
