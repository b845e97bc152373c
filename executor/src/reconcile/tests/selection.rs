//! Which workloads are reconciled, and what is forgotten of those that are not any more.

use super::*;

// D-71.2: a workload that is not in the caches is forgotten, without a plan request.
#[tokio::test]
async fn a_workload_that_is_gone_is_forgotten() {
    let fixture = with(ScriptedService::default());
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(daemon_set("u1", "11")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 0);
}

/// A fixture that owns only selected DaemonSets, with this first version of the workload.
fn selective(service: ScriptedService, first: Workload) -> Fixture {
    let fixture = with(service);
    {
        let mut state = fixture.state.lock();
        *state = crate::testing::selective_state();
        for event in first_lists() {
            state.handle_event(event, &fixture.metrics);
        }
    }
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(first)));
    fixture
}

// W17
#[tokio::test]
async fn a_daemon_set_is_planned_while_it_is_selected() {
    let expecting = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let fixture = selective(expecting, daemon_set("u1", "11"));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 0);
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(labelled("12")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.outstanding(), (1, 0));
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u1", "13")),
    ));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 1);
    assert_eq!(
        fixture.held(),
        v1::ReconcileState::default(),
        "nothing is kept of it"
    );
    assert!(!fixture.metrics.encode().contains("name=\"foo\""));
}

// W17: a plan that arrives after the workload has lost its label is not applied.
#[tokio::test]
async fn a_plan_for_what_is_not_selected_any_more_is_dropped() {
    let service = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let fixture = selective(service, labelled("11"));
    let (state, metrics) = (fixture.state.clone(), fixture.metrics.clone());
    fixture.service.meanwhile(move || {
        let without = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", "12")));
        let woken = state.lock().handle_event(without, &metrics);
        assert_eq!(woken, [Wake::now(key())]);
    });
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), [""; 0]);
    assert_eq!(fixture.held(), v1::ReconcileState::default());
}

// Replaced under its name while it was planned: the new workload inherits nothing.
#[tokio::test]
async fn a_replaced_workload_does_not_inherit() {
    let fixture = with(ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")])));
    fixture.reconcile().await;
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u2", "200")),
    ));
    fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "200".into()));
    fixture.reconcile().await;
    assert_eq!(
        fixture.service.snapshot(1).state,
        Some(v1::ReconcileState::default())
    );
}
