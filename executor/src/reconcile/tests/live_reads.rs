//! Objects that the caches do not keep whole, and that are read for a plan.

use super::*;

/// An orphaned revision, as the apiserver sends it, that is older than the workload that selects it.
fn earlier_orphan(fixture: &Fixture) -> Value {
    let orphan = json!({
        "metadata": {"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "9", "labels": {"app": "foo"}},
        "data": {"a": "b"},
    });
    let workload = daemon_set("u1", "10");
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(workload.clone()),
    ));
    let revision = Revision::from_json(&orphan).expect("a revision");
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
    orphan
}

// The data of an orphan that no DaemonSet selects is not cached. It is read when a workload comes that selects the
// orphan.
#[tokio::test]
async fn an_orphaned_revision_is_read_for_the_workload_that_selects_it() {
    let fixture = without_revisions(ScriptedService::default());
    let orphan = earlier_orphan(&fixture);
    assert_eq!(fixture.state.lock().store.revision_bytes(), 0);
    *fixture.actuator.live.lock().expect("no panic") = orphan.to_string().into();
    for plan in 0..2 {
        assert_eq!(fixture.reconcile().await, SETTLED);
        let sent = fixture.service.snapshot(plan).revisions;
        assert_eq!(sent.len(), 1);
        let sent: Value = serde_json::from_slice(&sent[0].object).expect("JSON");
        assert_eq!(sent, orphan);
        // The second reconcile does not read it again.
        *fixture.actuator.live.lock().expect("no panic") = Bytes::new();
    }
}

// Without the revision, a plan could create it again.
#[tokio::test]
async fn no_plan_without_a_revision_that_cannot_be_read() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating(&[("foo-1", "n1")])));
    earlier_orphan(&fixture);
    fixture.actuator.refuse("read ", Refusal::Other);
    let ending = fixture.reconcile().await;
    assert!(is_failed(&ending, "refused: read"), "{ending:?}");
    assert_eq!(fixture.actuator.calls(), [""; 0]);
    assert_eq!(fixture.held(), v1::ReconcileState::default());
}

// Revisions that are created, changed and deleted all the time must not delay the workload.
#[tokio::test]
async fn a_changed_revision_is_planned_with() {
    let of = |app: &str| {
        json!({"metadata": {"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "12", "labels": {"app": app}},
            "data": {}})
    };
    let mut another = of("foo");
    another["metadata"]["uid"] = json!("another");
    for (live, sent, wakes_other) in [
        (None, 0, false),
        (Some(of("foo")), 1, false),
        (Some(of("bar")), 0, true),
        (Some(another), 0, false),
        (Some(json!({"metadata": {"labels": 7}})), 0, false),
    ] {
        let fixture = without_revisions(ScriptedService::default());
        let mut other = selecting(&json!({"matchLabels": {"app": "bar"}}));
        (other.key, other.uid) = (Key::new(DAEMON_SET, "ns", "other"), "u2".into());
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(other)));
        earlier_orphan(&fixture);
        let text = live
            .as_ref()
            .map_or_else(Bytes::new, |live| live.to_string().into());
        *fixture.actuator.live.lock().expect("no panic") = text;
        assert_eq!(fixture.reconcile().await, SETTLED, "{live:?}");
        assert_eq!(fixture.service.snapshot(0).revisions.len(), sent, "{live:?}");
        // A live read does not change the version that the watch has reached. Other workloads are enqueued at the next
        // event of the watch.
        assert_ne!(fixture.state.lock().store.reached(Resource::REVISIONS), "12");
        let event = ClusterEvent::Bookmark(Resource::REVISIONS, "13".into());
        let woken = fixture.state.lock().handle_event(event, &fixture.metrics);
        let other = Wake::now(Key::new(DAEMON_SET, "ns", "other"));
        assert_eq!(woken.contains(&other), wakes_other, "{live:?}");
    }
}

// Thousands of small revisions would otherwise need as many calls.
#[tokio::test]
async fn many_revisions_are_read_with_one_list() {
    let fixture = without_revisions(ScriptedService::default());
    let workload = daemon_set("u1", "10");
    fixture.watch(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Deleted(workload.clone()),
    ));
    let all = orphans(MAX_SINGLE_READS + 1);
    for orphan in &all {
        let revision = Revision::from_json(orphan).expect("a revision");
        fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
    }
    fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
    // One revision is gone by now.
    *fixture.actuator.listed.lock().expect("no panic") = all[1..].to_vec();
    for plan in 0..2 {
        assert_eq!(fixture.reconcile().await, SETTLED);
        assert_eq!(fixture.service.snapshot(plan).revisions.len(), MAX_SINGLE_READS);
        assert_eq!(fixture.actuator.calls(), ["list controllerrevisions"], "once");
    }
    assert_eq!(
        fixture.state.lock().store.count(Resource::REVISIONS),
        MAX_SINGLE_READS
    );
}

/// These labels, and more than are cached of one object.
fn many_labels(besides: &Value) -> Value {
    let mut labels = besides.clone();
    for index in 0..70 {
        labels[format!("x{index}")] = json!("x");
    }
    labels
}

/// A workload with this selector.
fn selecting(selector: &Value) -> Workload {
    let metadata = json!({"namespace": "ns", "name": "foo", "uid": "u1", "resourceVersion": "10"});
    let object = json!({"metadata": metadata, "spec": {"selector": selector}});
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

// Anyone who may create pods and revisions may give them any number of labels. Only labels that selectors name are
// cached. A new DaemonSet may name others.
#[tokio::test]
async fn labels_that_are_not_kept_are_read_when_a_selector_names_them() {
    let without_tier = json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]});
    for (selector, labels, is_selected) in [
        (
            json!({"matchLabels": {"app": "foo"}}),
            json!({"app": "foo"}),
            true,
        ),
        (
            json!({"matchLabels": {"app": "foo"}}),
            json!({"app": "bar"}),
            false,
        ),
        (without_tier.clone(), json!({"app": "foo"}), true),
        (without_tier, json!({"tier": "a"}), false),
    ] {
        let case = format!("{selector} {labels}");
        let metadata = json!({"namespace": "ns", "name": "r", "uid": "r", "resourceVersion": "9",
            "labels": many_labels(&labels)});
        let object = json!({"metadata": metadata, "data": {}});
        let fixture = without_revisions(ScriptedService::default());
        let workload = daemon_set("u1", "10");
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(workload)));
        let revision = Revision::from_json(&object).expect("a revision");
        fixture.watch(ClusterEvent::Revisions(Delta::Applied(revision)));
        let pod = nodewise_projection::Pod::from_json(&object).expect("a pod");
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod)));
        {
            let state = fixture.state.lock();
            assert_eq!(state.store.revision("ns", "r").expect("it").labels, [], "{case}");
            assert_eq!(state.store.pod("ns", "r").expect("it").labels, [], "{case}");
        }
        let workload = selecting(&selector);
        fixture.watch(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));

        // No plan is requested as long as the labels cannot be read.
        fixture.actuator.refuse("list pods", Refusal::Other);
        let ending = fixture.reconcile().await;
        assert!(is_failed(&ending, "refused: list pods"), "{case} {ending:?}");
        assert_eq!(fixture.service.plans_asked(), 0, "{case}");
        fixture.actuator.refusals.lock().expect("no panic").clear();
        *fixture.actuator.live.lock().expect("no panic") = object.to_string().into();
        *fixture.actuator.listed.lock().expect("no panic") = vec![object];
        for plan in 0..2 {
            assert_eq!(fixture.reconcile().await, SETTLED, "{case}");
            let sent = fixture.service.snapshot(plan);
            assert_eq!(sent.revisions.len(), usize::from(is_selected), "{case}");
            let bucket = sent.pod_buckets[0].data.clone().expect("inline");
            let pods = <v1::PodBucket as prost::Message>::decode(bucket)
                .expect("a bucket")
                .pods;
            assert_eq!(pods.iter().any(|pod| pod.name == "r"), is_selected, "{case}");
        }
        let lists = ["list pods", "list pods"];
        assert_eq!(fixture.actuator.calls(), lists, "{case}: once each time");
    }
}

// A listed pod may be newer than the cached one, may be another pod, or may be missing.
#[tokio::test]
async fn labels_are_taken_from_the_same_pod() {
    let of = |uid: &str, version: &str| {
        let metadata = json!({"namespace": "ns", "name": "r", "uid": uid, "resourceVersion": version,
            "labels": many_labels(&json!({"app": "foo"}))});
        json!({ "metadata": metadata })
    };
    for (listed, expected) in [
        (Some(of("r", "9")), Ok(1)),
        (Some(of("r", "12")), Ok(1)),
        (Some(of("r", "8")), Err(())),
        (Some(of("another", "12")), Err(())),
        (None, Ok(0)),
    ] {
        let fixture = without_revisions(ScriptedService::default());
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Deleted(daemon_set("u1", "10")),
        ));
        let pod = nodewise_projection::Pod::from_json(&of("r", "9")).expect("a pod");
        fixture.watch(ClusterEvent::Pods(Delta::Applied(pod)));
        fixture.watch(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(daemon_set("u1", "10")),
        ));
        *fixture.actuator.listed.lock().expect("no panic") = listed.iter().cloned().collect();
        let ending = fixture.reconcile().await;
        let Ok(sent) = expected else {
            assert!(
                is_failed(&ending, "pods ns/r has changed"),
                "{listed:?} {ending:?}"
            );
            continue;
        };
        assert_eq!(ending, SETTLED, "{listed:?}");
        let bucket = fixture.service.snapshot(0).pod_buckets[0].data.clone();
        let bucket = bucket.expect("inline");
        let pods = <v1::PodBucket as prost::Message>::decode(bucket)
            .expect("a bucket")
            .pods;
        let found = pods.iter().filter(|pod| pod.name == "r").count();
        assert_eq!(found, sent, "{listed:?}");
        // When the watch shows the newer pod, the workloads that select it are enqueued.
        if let Some(listed) = listed {
            let pod = nodewise_projection::Pod::from_json(&listed).expect("a pod");
            let event = ClusterEvent::Pods(Delta::Applied(pod));
            let woken = fixture.state.lock().handle_event(event, &fixture.metrics);
            let is_newer = listed["metadata"]["resourceVersion"] == "12";
            assert_eq!(woken.contains(&Wake::now(key())), is_newer, "{listed}");
        }
    }
}

// The revision's data is sent as it is.
#[tokio::test]
async fn odd_data_of_a_revision_is_sent_unchanged() {
    let fixture = without_revisions(ScriptedService::default().then_plan(creating_revision()));
    let refused = (
        "create controllerrevisions foo-hhhhhhhhhh",
        Refusal::AlreadyExists,
    );
    fixture.actuator.refuse(refused.0, refused.1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let data = format!(r#"{{"half":"\ud800","large":1e999,"deep":{deep}}}"#);
    let live =
        format!(r#"{{"metadata":{{"namespace":"ns","name":"foo-hhhhhhhhhh","uid":"r1"}},"data":{data}}}"#);
    *fixture.actuator.live.lock().expect("no panic") = live.clone().into();
    fixture.reconcile().await;
    let marked = v1::ControllerRevision {
        object: live.into(),
        read_after_name_collision: true,
    };
    assert_eq!(fixture.service.snapshot(1).revisions, [marked]);
}

// A revision that the apiserver lets nobody change is sent with that mark until it changes.
#[tokio::test]
async fn a_sealed_revision_is_not_to_be_changed() {
    let update = v1::action::Kind::UpdateRevision(v1::UpdateRevision {
        revision: Some(v1::ObjectReference {
            name: "a".into(),
            uid: "a".into(),
        }),
        patch: json!({"metadata": {"uid": "a"}}).to_string().into(),
        ..Default::default()
    });
    let plan = with_actions(v1::PhaseKind::Revisions, vec![update]);
    let fixture = with(ScriptedService::default().then_plan(plan));
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("11"))));
    fixture.actuator.refuse(
        "patch controllerrevisions ns/a is invalid: data: ",
        Refusal::Invalid,
    );
    assert_eq!(fixture.reconcile().await, SETTLED);
    fixture.watch(ClusterEvent::Revisions(Delta::Applied(own_revision("12"))));
    assert_eq!(fixture.reconcile().await, SETTLED);
    let marks = (0..3).map(|plan| fixture.service.snapshot(plan).revisions[0].read_after_name_collision);
    assert_eq!(marks.collect::<Vec<_>>(), [false, true, false]);
}
