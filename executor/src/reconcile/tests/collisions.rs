//! Objects whose names are taken, and orphans that are gone.

use super::*;

// D-62: the object with the taken name is read and sent with a second plan request at once.
#[tokio::test]
async fn a_revision_name_collision_is_planned_again_at_once() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating_revision()));
    fixture.actuator.refuse(
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(fixture.service.snapshot(0).revisions, []);
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// Names that other pods have are no failure: the next plan follows at once and contains the taken names.
#[tokio::test]
async fn a_taken_pod_name_is_planned_again_at_once() {
    let at_once = || {
        Ok(v1::ReportResponse {
            requeue: v1::Requeue::After.into(),
            requeue_after: Some(nodewise_proto::Duration::default()),
            ..Default::default()
        })
    };
    let names = |count: usize| {
        (0..count)
            .map(|number| format!("foo-bbbbbbbb{}", 24 + number))
            .collect::<Vec<_>>()
    };
    let soon = Ending::Settled {
        after: Some(pace::MIN_DELAY),
    };
    // (taken names, plans, outcome)
    for (taken, plans, ending) in [(1, 2, SETTLED), (3, 4, SETTLED), (4, 4, soon)] {
        let mut service = ScriptedService::default();
        for name in names(taken) {
            service = service
                .then_plan(creating(&[(&name, "n1")]))
                .then_answer_report(at_once());
        }
        let fixture = with(service);
        for name in names(taken) {
            fixture
                .actuator
                .refuse(&format!("create pods {name}"), Refusal::AlreadyExists);
        }
        let live = json!({"metadata": {"namespace": "ns", "name": "foo-0", "uid": "p1"}});
        *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
        assert_eq!(fixture.reconcile().await, ending, "{taken}");
        assert_eq!(fixture.service.plans_asked(), plans, "{taken}");
    }
}

// D-23: an orphan that is gone is left out at once, without a wait or a failure.
#[tokio::test]
async fn an_orphan_that_is_gone_is_left_out_by_another_plan_at_once() {
    let orphans = |fixture: &Fixture| {
        for name in ["gone", "there"] {
            fixture.watch(orphan(name));
        }
    };
    let first = || with_actions(v1::PhaseKind::Claims, vec![adopt("gone")]);
    let fixture = with(ScriptedService::default().then_plan(first()));
    orphans(&fixture);
    fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
    assert_eq!(fixture.reconcile().await, SETTLED);
    assert_eq!(fixture.service.plans_asked(), 2);
    assert_eq!(
        fixture.state.lock().store.count(Resource::PODS),
        1,
        "the other one"
    );
    // If another adoption fails, there is no plan at once: the workload backs off.
    let both = with_actions(v1::PhaseKind::Claims, vec![adopt("gone"), adopt("there")]);
    let fixture = with(ScriptedService::default().then_plan(both));
    orphans(&fixture);
    fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
    fixture.actuator.refuse("patch pods ns/there", Refusal::Other);
    fixture.reconcile().await;
    assert_eq!(fixture.service.plans_asked(), 1);
}

// The next plan gets a revision that the plan created before it ended, whatever the watch shows.
#[tokio::test]
async fn a_revision_that_was_created_before_an_orphan_was_gone_is_not_created_again() {
    let mut plan = creating_revision();
    plan.phases
        .extend(with_actions(v1::PhaseKind::Claims, vec![adopt("gone")]).phases);
    let fixture = without_revisions(ScriptedService::default().then_plan(plan));
    fixture.actuator.refuse("patch pods", Refusal::NotFound);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    assert_eq!(fixture.reconcile().await, SETTLED);
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// D-110: the same if the next plan has to wait for pods first, whatever the watch shows under that name meanwhile. The
// watch may show another object, or one without the mark that the name was taken.
#[tokio::test]
async fn a_revision_that_was_created_before_the_gate_closed_is_not_created_again() {
    let mut plan = creating_revision();
    plan.phases
        .extend(with_actions(v1::PhaseKind::Claims, vec![adopt("gone"), adopt("there")]).phases);
    for shown in [false, true] {
        let fixture = without_revisions(ScriptedService::default().then_plan(plan.clone()));
        fixture.actuator.refuse("patch pods ns/gone", Refusal::NotFound);
        let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1", "resourceVersion": "90"}});
        *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
        for _ in 0..2 {
            assert!(matches!(fixture.reconcile().await, Ending::CacheBehind(_)));
        }
        if shown {
            let mut cached = own_revision("91");
            cached.name = "foo-hhhhhhhhhh".into();
            fixture.watch(ClusterEvent::Revisions(Delta::Applied(cached)));
        }
        fixture.watch(ClusterEvent::Bookmark(Resource::PODS, "1000".into()));
        assert_eq!(fixture.reconcile().await, SETTLED);
        let revisions = fixture.service.snapshot(1).revisions;
        let read_live: Vec<_> = revisions
            .iter()
            .map(|revision| revision.read_after_name_collision)
            .collect();
        assert_eq!(read_live, [true], "shown: {shown}");
        // The revision was kept for that plan only.
        assert_eq!(fixture.reconcile().await, SETTLED);
        assert_eq!(fixture.service.snapshot(2).revisions.len(), usize::from(shown));
    }
}

// Meanwhile another object may have got the name.
#[test]
fn only_orphans_are_forgotten() {
    let fixture = without_revisions(ScriptedService::default());
    fixture.watch(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("11"))));
    let mut state = fixture.state.lock();
    for (namespace, name) in [("ns", "a"), ("ns", "b"), ("elsewhere", "a")] {
        state.store.forget_orphan(Resource::PODS, namespace, name);
        state.store.forget_orphan(Resource::REVISIONS, namespace, name);
    }
    assert_eq!(state.store.count(Resource::PODS), 1);
    assert_eq!(state.store.count(Resource::REVISIONS), 1);
}

// The object with the taken name is parsed as the watch does. An unreadable one is skipped, logged and counted, and the
// workload backs off, because the name is taken.
#[tokio::test]
async fn an_unreadable_revision_with_the_taken_name_is_skipped() {
    let answer = v1::ReportResponse {
        requeue: v1::Requeue::Backoff.into(),
        ..Default::default()
    };
    let service = ScriptedService::default()
        .then_plan(creating_revision())
        .then_answer_report(Ok(answer));
    let fixture = with(service);
    let refused = (
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    fixture.actuator.refuse(refused.0, refused.1);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1", "labels": 7}});
    *fixture.actuator.live.lock().expect("no panic") = live.to_string().into();
    assert!(is_failed(&fixture.reconcile().await, ""));
    assert_eq!(fixture.service.plans_asked(), 1);
    let counted = "nodewise_unreadable_objects_total{group=\"apps\",resource=\"controllerrevisions\"} 1";
    let metrics = fixture.metrics.encode();
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn endless_collisions_end_in_back_off() {
    let service = (0..10).fold(ScriptedService::default(), |service, _| {
        service.then_plan(creating_revision())
    });
    let fixture = with(service);
    fixture
        .actuator
        .refuse("create controllerrevisions", Refusal::AlreadyExists);
    let live = json!({"metadata": {"namespace": "ns", "name": "foo-hhhhhhhhhh", "uid": "r1"}}).to_string();
    *fixture.actuator.live.lock().expect("no panic") = live.into();
    assert!(is_failed(&fixture.reconcile().await, "still taken"));
    assert_eq!(fixture.service.plans_asked(), MAX_PLANS);
}
