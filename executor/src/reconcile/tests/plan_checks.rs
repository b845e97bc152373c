//! Plans of which nothing, or not everything, is carried out (W15).

use super::*;

/// Gives the apiserver a pod `unseen` of another workload, which the caches do not show.
fn unseen(fixture: &Fixture) {
    let owner = json!({"kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true});
    let live = json!({"metadata": {"namespace": "ns", "name": "unseen", "uid": "unseen", "ownerReferences": [owner]}});
    *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
}

// W15: nothing of a plan that goes beyond the workload is written or held, and the violation is counted.
#[tokio::test]
async fn a_plan_for_what_is_not_the_workloads_is_refused() {
    let mut elsewhere = creating(&[("foo-bbbbbbbbbb", "n1")]);
    elsewhere.workload.get_or_insert_default().namespace = "kube-system".into();
    let fixture = with(ScriptedService::default().then_plan(elsewhere));
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "kube-system/foo"), "{ending:?}");
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    assert_eq!(fixture.outstanding(), (0, 0));
    assert_eq!(violations(&fixture), "1");
}

// W15: a plan that is wrong about an object that has not changed since the snapshot was not made from the snapshot.
#[tokio::test]
async fn a_plan_for_an_object_that_is_not_the_workloads_is_refused_the_first_time() {
    for (name, part) in [
        ("orphan", "action 1 (DeletePod): pod orphan has no controller"),
        (
            "unseen",
            "action 1 (DeletePod): pod unseen is controlled by ReplicaSet web",
        ),
    ] {
        let fixture = with(ScriptedService::default().then_plan(delete(name)));
        fixture.watch(orphan("orphan"));
        unseen(&fixture);
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, part), "{ending:?}");
        assert_eq!(violations(&fixture), "1");
        assert_eq!(fixture.actuator.calls(), Vec::<String>::new(), "{part}");
        assert_eq!(fixture.outstanding(), (0, 0), "{part}");
    }
}

// W15: an action about an object that has changed is left out alone. There is no Event and no expectation for it, and
// another plan follows at once.
#[tokio::test]
async fn an_action_about_what_has_changed_is_left_out() {
    let mut lost = pod("lost", "12");
    lost.projection.controller = None;
    let unowned = ClusterEvent::Pods(Delta::Applied(lost));
    let no_node = ClusterEvent::Nodes(Delta::Deleted(node("n3")));
    let lost = v1::action::Kind::DeletePod(v1::DeletePod {
        pod: Some(v1::ObjectReference {
            name: "lost".into(),
            uid: "uid-lost".into(),
        }),
        uid_precondition: true,
        ..Default::default()
    });
    let deletes = with_actions(v1::PhaseKind::Deletes, vec![lost]).phases;
    for (event, creates, deletes, calls, expected) in [
        (unowned, vec![("foo-bbbbbbbbbb", "n2")], deletes, 1, (1, 0)),
        (
            no_node,
            vec![("foo-cccccccccc", "n3"), ("foo-bbbbbbbbbb", "n2")],
            vec![],
            1,
            (1, 0),
        ),
    ] {
        let mut plan = creating(&creates);
        plan.phases.extend(deletes);
        for (id, phase) in (1..).zip(&mut plan.phases) {
            let first = &mut phase.batches[0].actions[0];
            first.id = if id == 1 { 1 } else { 7 };
        }
        if let Some(expectations) = plan.state.as_mut().and_then(|state| state.expectations.as_mut()) {
            expectations.delete_uids = vec!["uid-lost".into()];
        }
        let fixture = with(ScriptedService::default().then_plan(plan));
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("lost", "11"))));
        meanwhile(&fixture, event);
        assert_eq!(fixture.reconcile().await, AT_ONCE);
        assert_eq!(
            fixture.actuator.calls(),
            vec!["create pods foo-bbbbbbbbbb"; calls]
        );
        assert_eq!(violations(&fixture), "0");
        assert_eq!(fixture.outstanding(), expected);
        let reported = fixture.service.reported.lock().expect("no panic");
        let results: Vec<_> = reported[0].outcomes.iter().map(v1::Outcome::result).collect();
        assert_eq!(results, [v1::Result::Succeeded], "what was left out is not told");
    }
}

// W15: the burst of the options is the limit, and 250 without it.
#[tokio::test]
async fn a_plan_for_more_pods_than_were_asked_for_is_refused() {
    for (burst, count, part) in [
        (None, 251, "creates 251 pods, and 250 are the most"),
        (None, 250, "a second pod for node"),
        (Some(2), 3, "creates 3 pods, and 2 are the most"),
        (Some(251), 251, "a second pod for node"),
    ] {
        let plan = creating(&vec![("foo-bbbbbbbbbb", "n1"); count]);
        let mut fixture = with(ScriptedService::default().then_plan(plan));
        fixture.reconciler.options.burst = burst;
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, part), "{burst:?}: {ending:?}");
        assert_eq!(violations(&fixture), "1", "{burst:?}");
        assert_eq!(fixture.actuator.calls(), Vec::<String>::new(), "{burst:?}");
    }
}

// W15: a node that never existed is no node of the snapshot.
#[tokio::test]
async fn a_pod_for_a_node_that_does_not_exist_is_refused_the_first_time() {
    let plans = (0..2).fold(ScriptedService::default(), |service, _| {
        service.then_plan(creating(&[("foo-bbbbbbbbbb", "n9")]))
    });
    let fixture = with(plans);
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "n9"), "{ending:?}");
    assert_eq!(violations(&fixture), "1");
    assert_eq!(fixture.actuator.calls(), Vec::<String>::new());
    fixture.watch(ClusterEvent::Nodes(Delta::Applied(node("n9"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.actuator.calls(), ["create pods foo-bbbbbbbbbb"]);
}

// W15: the state is limited to existing nodes, also the state in the response to a report.
#[tokio::test]
async fn state_of_nodes_that_do_not_exist_is_dropped() {
    let of = |nodes: &[&str]| v1::ReconcileState {
        pod_name_collisions: nodes
            .iter()
            .map(|node| v1::PodNameCollision {
                node_name: (*node).into(),
                count: 1,
                refused_count: 0,
            })
            .collect(),
        ..Default::default()
    };
    let settled = v1::ReportResponse {
        state: Some(of(&["n1", "n2", "n2", "n8", "n9"])),
        ..Default::default()
    };
    let plan = |nodes: &[&str]| v1::Plan {
        state: Some(of(nodes)),
        ..creating(&[("foo-bbbbbbbbbb", "n1")])
    };
    let service = ScriptedService::default()
        .then_plan(plan(&["n1", "n9"]))
        .then_plan(plan(&["n1", "n3"]))
        .then_answer_report(Ok(settled));
    let fixture = with(service);
    let ending = fixture.reconcile().await;
    assert!(
        is_failed(&ending, "its state names node \"n9\", and that does not exist"),
        "{ending:?}"
    );
    assert_eq!(fixture.held(), v1::ReconcileState::default());
    // The plan is valid although one of its nodes was removed.
    meanwhile(&fixture, ClusterEvent::Nodes(Delta::Deleted(node("n3"))));
    fixture.reconcile().await;
    assert_eq!(fixture.held(), of(&["n1", "n2"]));
    let reported = fixture.service.reported.lock().expect("no panic");
    assert_eq!(reported[0].state, Some(of(&["n1"])));
}
