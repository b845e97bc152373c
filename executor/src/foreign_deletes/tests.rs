use nodewise_projection::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::daemon_set::{DAEMON_SETS, DaemonSets};
use crate::metrics::Metrics;
use crate::state::ReconciledKind;
use crate::state::State;
use crate::testing::{key, listed, with_actions};
use nodewise_proto::workload::DAEMON_SET;

fn workload(uid: &str, metadata: &Value) -> Workload {
    let mut object = json!({
        "metadata": { "namespace": "ns", "name": "foo", "uid": uid, "resourceVersion": "10" },
        "spec": { "selector": { "matchLabels": { "app": "foo" } } },
    });
    for (field, value) in metadata.as_object().into_iter().flatten() {
        object["metadata"][field] = value.clone();
    }
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// A pod of the workload on node n1, with these changes.
fn pod(name: &str, changes: &[(&str, Value)]) -> Pod {
    let owner = json!({ "kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true });
    let mut object = json!({
        "metadata": { "namespace": "ns", "name": name, "uid": name, "resourceVersion": "11", "ownerReferences": [owner] },
        "spec": { "nodeName": "n1" },
        "status": { "phase": "Running" },
    });
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        object.pointer_mut(parent).expect("its parent")[field] = value.clone();
    }
    Pod::from_json(&object).expect("a pod")
}

const VERSION: &str = "/metadata/resourceVersion";

fn going() -> [(&'static str, Value); 2] {
    [
        ("/metadata/deletionTimestamp", json!("2026-11-23T10:00:00Z")),
        (VERSION, json!("12")),
    ]
}

fn with_condition(kind: &str, status: &str, reason: &str) -> Vec<(&'static str, Value)> {
    let condition = json!([{ "type": kind, "status": status, "reason": reason }]);
    let [deletion, version] = going();
    vec![deletion, version, ("/status/conditions", condition)]
}

fn shows(pod: Pod) -> ClusterEvent {
    ClusterEvent::Pods(Delta::Applied(pod))
}

fn is_gone(pod: Pod) -> ClusterEvent {
    ClusterEvent::Pods(Delta::Deleted(pod))
}

/// A state that tracks deletes, with node n1 and these live pods of the workload.
fn state(pods: &[&str]) -> State {
    let options = v1::PlanOptions::default();
    let mut state = State::new(1, &options);
    let kind = ReconciledKind::new::<DaemonSets>(&options, OwnershipSelector::default());
    state.add_kind(kind.with_foreign_deletes());
    let node = json!({ "metadata": { "name": "n1", "resourceVersion": "9" } });
    let node = Node::from_json(&node).expect("a node");
    for event in [
        ClusterEvent::Workloads(DAEMON_SETS, listed(vec![workload("u1", &json!({}))])),
        ClusterEvent::Nodes(listed(vec![node])),
        ClusterEvent::Revisions(listed(Vec::new())),
        ClusterEvent::Policies(listed(Vec::new())),
        ClusterEvent::Pods(listed(pods.iter().map(|name| pod(name, &[])).collect())),
    ] {
        take(&mut state, event);
    }
    state
}

fn take(state: &mut State, event: ClusterEvent) {
    state.handle_event(event, &Metrics::new());
}

fn expect(state: &mut State, pods: &[&str]) {
    let deletes = pods.iter().map(|name| {
        let pod = v1::ObjectReference {
            name: (*name).to_owned(),
            uid: (*name).to_owned(),
        };
        v1::action::Kind::DeletePod(v1::DeletePod {
            pod: Some(pod),
            ..v1::DeletePod::default()
        })
    });
    let plan = with_actions(v1::PhaseKind::Deletes, deletes.collect());
    let (deletes, store) = state.foreign_deletes(DAEMON_SET).expect("it looks for deletes");
    deletes.expect(store, &key(), &plan);
}

/// The number of deletes that count after a while, and the message.
async fn found(state: &mut State) -> (u64, Option<String>) {
    tokio::time::advance(SETTLED).await;
    let found = state.take_due_foreign_deletes();
    let message = found.iter().find_map(|found| found.event.clone()).map(|event| {
        assert_eq!((&*event.kind, &*event.reason), ("Normal", REASON));
        event.message
    });
    (found.iter().map(|found| found.count).sum(), message)
}

// Each pod counts once, however its deletion is seen. Our own deletes do not count.
#[tokio::test(start_paused = true)]
async fn deletes_by_others_count_once() {
    let gap = |pods: Vec<Pod>| ClusterEvent::Pods(listed(pods));
    for (what, events, expected) in [
        ("it begins to go", vec![shows(pod("a", &going()))], 1),
        (
            "and goes",
            vec![shows(pod("a", &going())), is_gone(pod("a", &going()))],
            1,
        ),
        ("it goes at once", vec![is_gone(pod("a", &[]))], 1),
        (
            "its last state has a time of deletion",
            vec![is_gone(pod("a", &going()))],
            1,
        ),
        ("it vanished in a gap of the watch", vec![gap(vec![])], 1),
        (
            "it was replaced there",
            vec![gap(vec![pod(
                "a",
                &[("/metadata/uid", json!("other")), (VERSION, json!("12"))],
            )])],
            1,
        ),
        (
            "it is going after the gap",
            vec![gap(vec![pod("a", &going())]), is_gone(pod("a", &going()))],
            1,
        ),
        ("it changes", vec![shows(pod("a", &[(VERSION, json!("12"))]))], 0),
        (
            "a gap in which nothing happened",
            vec![gap(vec![pod("a", &[])])],
            0,
        ),
        (
            "it was finished",
            vec![
                shows(pod(
                    "a",
                    &[(VERSION, json!("12")), ("/status/phase", json!("Failed"))],
                )),
                is_gone(pod("a", &going())),
            ],
            0,
        ),
        ("one that was never seen", vec![is_gone(pod("b", &going()))], 0),
    ] {
        let mut watching = state(&["a"]);
        for event in events.clone() {
            take(&mut watching, event);
        }
        assert_eq!(found(&mut watching).await.0, expected, "{what}");
        let mut watching = state(&["a"]);
        expect(&mut watching, &["a", "of-before"]);
        for event in events {
            take(&mut watching, event);
        }
        assert_eq!(found(&mut watching).await.0, 0, "{what}, by a plan of ours");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_deleted_with_their_daemon_set_or_node_do_not_count() {
    let foreign = || shows(pod("a", &going()));
    let deleting = json!({ "deletionTimestamp": "2026-11-23T10:00:00Z" });
    let node = Node::from_json(&json!({ "metadata": { "name": "n1" } })).expect("a node");
    let applied = |workload| ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload));
    for (what, events) in [
        ("is going", vec![applied(workload("u1", &deleting)), foreign()]),
        (
            "is seen to be going later",
            vec![foreign(), applied(workload("u1", &deleting))],
        ),
        (
            "is gone",
            vec![
                foreign(),
                ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(workload("u1", &json!({})))),
            ],
        ),
        (
            "is another one by now",
            vec![foreign(), applied(workload("u2", &json!({})))],
        ),
        (
            "node is gone",
            vec![ClusterEvent::Nodes(Delta::Deleted(node)), foreign()],
        ),
    ] {
        let mut state = state(&["a"]);
        for event in events {
            take(&mut state, event);
        }
        assert_eq!(found(&mut state).await, (0, None), "{what}");
    }
    // Deletes by a former leader are under way when its successor lists.
    let mut state = state(&[]);
    state.store = Store::new(&[DAEMON_SETS], 1);
    for event in crate::testing::first_lists() {
        take(&mut state, event);
    }
    take(&mut state, ClusterEvent::Pods(listed(vec![pod("a", &going())])));
    take(&mut state, is_gone(pod("a", &going())));
    assert_eq!(found(&mut state).await, (0, None));
}

// D-112: pods that vanish through a restore were not deleted by anybody.
#[tokio::test(start_paused = true)]
async fn a_restore_of_etcd_is_no_delete() {
    let mut state = state(&["a"]);
    let list = Delta::Listed {
        objects: Vec::new(),
        resource_version: "1".to_owned(),
    };
    take(&mut state, ClusterEvent::Pods(list));
    assert_eq!(found(&mut state).await, (0, None));
}

#[tokio::test(start_paused = true)]
async fn many_deletes_are_reported_together_and_rate_limited() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut state = state(&names);
    let evicted = || with_condition("DisruptionTarget", "True", "EvictionByEvictionAPI");
    for event in [
        pod("a", &evicted()),
        pod("b", &with_condition("DisruptionTarget", "False", "Odd")),
        pod("c", &with_condition("DisruptionTarget", "True", "no word")),
        pod("d", &evicted()),
    ] {
        take(&mut state, shows(event));
    }
    let message = "4 pods were deleted by somebody else: a, b, c and 1 more (EvictionByEvictionAPI, the apiserver does not tell who)";
    assert_eq!(found(&mut state).await, (4, Some(message.to_owned())));
    take(&mut state, shows(pod("e", &evicted())));
    assert_eq!(found(&mut state).await, (1, None), "it counts, and is told later");
    let due = state.foreign_deletes_due().expect("a time");
    assert!(due > Instant::now(), "nobody is woken for nothing");
    tokio::time::advance(REPORT_INTERVAL.saturating_sub(SETTLED * 2)).await;
    take(&mut state, shows(pod("f", &evicted())));
    let message = "2 pods were deleted by somebody else: e, f (EvictionByEvictionAPI)";
    assert_eq!(found(&mut state).await, (1, Some(message.to_owned())));
    assert_eq!(state.foreign_deletes_due(), None);
}

// Evictions are deletes of our own; what a budget forbids may be deleted by somebody else.
#[tokio::test(start_paused = true)]
async fn own_evictions_do_not_count() {
    for (result, expected) in [(v1::Result::Succeeded, 0), (v1::Result::Blocked, 1)] {
        let mut state = state(&["a"]);
        let evict = v1::action::Kind::EvictPod(v1::EvictPod {
            pod: Some(v1::ObjectReference {
                name: "a".into(),
                uid: "a".into(),
            }),
            ..v1::EvictPod::default()
        });
        let plan = with_actions(v1::PhaseKind::Deletes, vec![evict]);
        let outcome = v1::Outcome {
            action_id: 1,
            result: result.into(),
            ..v1::Outcome::default()
        };
        let (deletes, store) = state.foreign_deletes(DAEMON_SET).expect("it looks for deletes");
        deletes.expect(store, &key(), &plan);
        deletes.take_back(&key(), &plan, &[outcome]);
        take(&mut state, is_gone(pod("a", &going())));
        assert_eq!(found(&mut state).await.0, expected, "{result:?}");
    }
}
