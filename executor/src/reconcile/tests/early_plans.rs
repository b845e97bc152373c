//! Plans that are requested while the one before is carried out.

use std::sync::Mutex;

use super::*;

/// A plan that asks to be followed at once, and the response to its report.
fn full_burst(creates: &[(&str, &str)]) -> (v1::Plan, v1::ReportResponse) {
    let requeue_after = Some(nodewise_proto::Duration::default());
    let plan = v1::Plan {
        requeue_after,
        ..creating(creates)
    };
    let response = v1::ReportResponse {
        state: plan.state.clone(),
        requeue: v1::Requeue::After.into(),
        requeue_after,
        ..Default::default()
    };
    (plan, response)
}

/// Two plans, of which the second follows the first at once.
fn two_in_a_row(change: impl FnOnce(&mut v1::Plan)) -> Fixture {
    let (mut plan, response) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    change(&mut plan);
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_plan(creating(&[("foo-cccccccccc", "n2")]))
        .then_answer_report(Ok(response));
    with(service)
}

impl Fixture {
    /// The total number of plan requests after each of two reconciles.
    async fn asked_in_two(&self, between: impl FnOnce(&Self)) -> (usize, usize) {
        self.reconcile().await;
        let first = self.service.plans_asked();
        between(self);
        self.reconcile().await;
        (first, self.service.plans_asked())
    }
}

// The next plan is requested while the current one is being applied, and it contains the pods that are being created.
#[tokio::test]
async fn the_plan_after_a_full_burst_is_requested_early() {
    let fixture = two_in_a_row(|_| ());
    assert_eq!(fixture.reconcile().await, AT_ONCE);
    assert_eq!(fixture.service.plans_asked(), 2);
    let expected = fixture.service.snapshot(1).state.expect("a state").expectations;
    assert_eq!(
        expected.expect("expectations").creates[0].pod_name,
        "foo-bbbbbbbbbb"
    );
    assert_eq!(fixture.actuator.calls(), ["create pods foo-bbbbbbbbbb"]);
    assert_eq!(fixture.outstanding(), (1, 0), "what is not applied is not held");
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(
        fixture.actuator.calls(),
        ["create pods foo-bbbbbbbbbb", "create pods foo-cccccccccc"]
    );
}

// Not before the last write of a window has begun: by then the first ones may be old. If one failed, there may be nothing to go on with.
#[tokio::test(start_paused = true)]
async fn the_next_plan_is_requested_when_the_last_create_has_begun() {
    for (refused, expected) in [(false, vec![0, 2]), (true, vec![0])] {
        let (plan, response) = full_burst(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]);
        let service = ScriptedService::default()
            .then_plan(plan)
            .then_answer_report(Ok(response));
        let actuator = ScriptedActuator {
            latency: Duration::from_millis(10),
            ..ScriptedActuator::default()
        };
        if refused {
            actuator.refuse("create pods foo-bbbbbbbbbb", Refusal::Other);
        }
        let mut fixture = fixture(service, actuator);
        fixture.reconciler.apply.concurrency = 1;
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (actuator, seen) = (Arc::clone(&fixture.actuator), Arc::clone(&calls));
        fixture
            .service
            .meanwhile(move || seen.lock().expect("no panic").push(actuator.calls().len()));
        fixture.reconcile().await;
        assert_eq!(*calls.lock().expect("no panic"), expected, "refused: {refused}");
        let made = if refused { 1 } else { 2 };
        assert_eq!(
            fixture.actuator.calls().len(),
            made,
            "the second one is skipped after a failure"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_plan_is_dropped_after_a_change() {
    let changed = |fixture: &Fixture| {
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u1", "2")),
        ));
    };
    assert_eq!(
        two_in_a_row(|_| ()).asked_in_two(changed).await,
        (2, 3),
        "another spec"
    );
    let replaced = |fixture: &Fixture| {
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u2", "1")),
        ));
    };
    assert_eq!(
        two_in_a_row(|_| ()).asked_in_two(replaced).await,
        (2, 3),
        "another workload"
    );
    let fixture = two_in_a_row(|_| ());
    fixture
        .actuator
        .refuse("create pods foo-bbbbbbbbbb", Refusal::Other);
    assert_eq!(fixture.asked_in_two(|_| ()).await, (2, 3), "a create failed");
    let fixture = two_in_a_row(|_| ());
    fixture.reconcile().await;
    tokio::time::advance(MAX_AGE_OF_NEXT + Duration::from_millis(1)).await;
    fixture.reconcile().await;
    assert_eq!(fixture.service.plans_asked(), 3, "long ago");
}

#[tokio::test]
async fn a_plan_with_other_actions_is_applied_before_the_next_request() {
    let with_status = |plan: &mut v1::Plan| {
        let mut status = plan.phases[0].clone();
        status.set_kind(v1::PhaseKind::Status);
        plan.phases.push(status);
    };
    assert_eq!(two_in_a_row(with_status).asked_in_two(|_| ()).await, (1, 2));
    let in_batches = |plan: &mut v1::Plan| {
        let batch = plan.phases[0].batches[0].clone();
        plan.phases[0].batches.push(batch);
    };
    assert_eq!(two_in_a_row(in_batches).asked_in_two(|_| ()).await, (1, 2));
    let later = |plan: &mut v1::Plan| plan.requeue_after = None;
    assert_eq!(two_in_a_row(later).asked_in_two(|_| ()).await, (1, 2));
}

// Other actions depend on pods that may have changed by then.
#[tokio::test]
async fn an_early_plan_with_other_actions_is_dropped() {
    let (plan, response) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    let deleting = with_actions(v1::PhaseKind::Deletes, Vec::new());
    let service = ScriptedService::default()
        .then_plan(plan)
        .then_plan(deleting)
        .then_answer_report(Ok(response));
    assert_eq!(with(service).asked_in_two(|_| ()).await, (2, 3));
}

// An observer carries nothing out, so it would request plans forever.
#[tokio::test]
async fn an_observer_is_not_requeued_at_once() {
    let (plan, _) = full_burst(&[("foo-bbbbbbbbbb", "n1")]);
    let actuator = ScriptedActuator {
        observes_only: true,
        ..ScriptedActuator::default()
    };
    let fixture = fixture(ScriptedService::default().then_plan(plan), actuator);
    assert_eq!(fixture.reconcile().await, OBSERVED);
    assert_eq!(fixture.service.plans_asked(), 1);
}
