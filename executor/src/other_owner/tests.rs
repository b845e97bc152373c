use std::sync::Arc;

use nodewise_projection::{Key, Pod};
use nodewise_runtime::Resource;
use serde_json::{Value, json};

use super::*;
use crate::daemon_set::DAEMON_SETS;
use nodewise_proto::workload::DAEMON_SET;

const OTHER: &str = "kube-controller-manager";

fn entry(manager: &str, subresource: &str, time: &str) -> Value {
    json!({ "manager": manager, "operation": "Update", "subresource": subresource, "time": time })
}

fn workload(uid: &str, managed_fields: &Value) -> Workload {
    let object = json!({
        "metadata": { "namespace": "ns", "name": "agent", "uid": uid, "managedFields": managed_fields },
        "spec": { "selector": { "matchLabels": { "app": "agent" } } },
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

fn pod(name: &str, owner: &str, manager: &str) -> Pod {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": owner, "controller": true });
    let object = json!({ "metadata": {
        "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "ownerReferences": [owner],
        "managedFields": [entry(manager, "", "2026-11-23T04:00:00Z")],
    } });
    Pod::from_json(&object).expect("a pod")
}

/// A store that contains the workload.
fn store() -> Store {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    let of_us = json!([entry(WRITER, "status", "2026-11-23T04:00:00Z")]);
    store.apply(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Listed {
            objects: vec![workload("u1", &of_us)],
            resource_version: "1".to_owned(),
        },
    ));
    store
}

#[test]
fn a_new_pod_of_another_controller_is_seen() {
    let mut store = store();
    let applied = |pod| ClusterEvent::Pods(Delta::Applied(pod));
    let others = applied(pod("agent-a", "u1", OTHER));
    let shown = foreign_write(&store, DAEMON_SET, &others)
        .map(|(workload, write, writer)| (workload.key.to_string(), write, writer.to_owned()));
    let expected = (
        "ns/agent".to_owned(),
        Write::Pod("agent-a".to_owned()),
        OTHER.to_owned(),
    );
    assert_eq!(shown, Some(expected));
    for (what, event) in [
        ("ours", applied(pod("agent-b", "u1", WRITER))),
        ("of another workload", applied(pod("agent-c", "u2", OTHER))),
        (
            "was there before",
            ClusterEvent::Pods(Delta::Listed {
                objects: vec![pod("agent-d", "u1", OTHER)],
                resource_version: "2".to_owned(),
            }),
        ),
    ] {
        assert!(foreign_write(&store, DAEMON_SET, &event).is_none(), "{what}");
    }
    store.apply(others.clone());
    assert!(
        foreign_write(&store, DAEMON_SET, &others).is_none(),
        "it is known"
    );
}

#[test]
fn a_status_that_another_controller_writes_is_seen() {
    let store = store();
    let event = |uid: &str, entries: Value| {
        ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload(uid, &entries)))
    };
    let time = "2026-11-23T04:00:01Z";
    let other = event("u1", json!([entry(OTHER, "status", time)]));
    let shown =
        foreign_write(&store, DAEMON_SET, &other).map(|(_, write, writer)| (write, writer.to_owned()));
    assert_eq!(shown, Some((Write::Status, OTHER.to_owned())));
    for (what, event) in [
        ("ours", event("u1", json!([entry(WRITER, "status", time)]))),
        (
            "a change of the spec",
            event("u1", json!([entry("kubectl", "", time)])),
        ),
        (
            "another DaemonSet of that name",
            event("u2", json!([entry(OTHER, "status", time)])),
        ),
    ] {
        assert!(foreign_write(&store, DAEMON_SET, &event).is_none(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_write_is_counted_and_few_are_reported() {
    let metrics = Metrics::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&events);
    let others = OtherOwners::new(
        DAEMON_SET,
        move |event| sent.lock().expect("no panic").push(event),
        metrics.clone(),
        OwnershipSelector::default(),
    );
    let store = store();
    for name in ["agent-a", "agent-b"] {
        others.handle_event(
            &store,
            &ClusterEvent::Pods(Delta::Applied(pod(name, "u1", OTHER))),
        );
    }
    others.handle_event(&store, &ClusterEvent::Bookmark(Resource::PODS, "9".to_owned()));
    let reported = || events.lock().expect("no panic").clone();
    let [first] = &reported()[..] else {
        panic!("{:?}", reported());
    };
    assert_eq!(
        (&*first.kind, &*first.reason, &*first.workload.uid),
        ("Warning", REASON, "u1")
    );
    assert!(
        first
            .message
            .starts_with("\"kube-controller-manager\" created pod agent-a: another"),
        "{first:?}"
    );
    let series = "nodewise_other_owner_writes_total{kind=\"DaemonSet\",namespace=\"ns\",name=\"agent\",write=\"pod\"} 2";
    assert!(metrics.encode().contains(series), "{}", metrics.encode());
    tokio::time::advance(nodewise_runtime::log_limiter::MIN_INTERVAL).await;
    others.handle_event(
        &store,
        &ClusterEvent::Pods(Delta::Applied(pod("agent-c", "u1", OTHER))),
    );
    assert_eq!(reported().len(), 2);
    metrics.forget_workload(&Key::new(DAEMON_SET, "ns", "agent"));
    assert!(!metrics.encode().contains("other_owner_writes_total{"));
}

#[test]
fn daemon_sets_that_are_not_owned_are_not_reported() {
    let metrics = Metrics::new();
    let selection = "owned=yes".parse().expect("a selector");
    let others = OtherOwners::new(
        DAEMON_SET,
        |event| panic!("{event:?}"),
        metrics.clone(),
        selection,
    );
    let event = ClusterEvent::Pods(Delta::Applied(pod("agent-a", "u1", OTHER)));
    others.handle_event(&store(), &event);
    assert!(!metrics.encode().contains("other_owner_writes_total{"));
}
