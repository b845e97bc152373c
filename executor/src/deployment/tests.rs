//! P-5 to P-9: one test, or one table row, for each of them; and the snapshot of a Deployment.

use nodewise_projection::Key;
use nodewise_proto::Timestamp;
use nodewise_proto::bucket::Receiver;
use nodewise_runtime::Delta;
use nodewise_runtime::effects::{Observation, Wake};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::queue::Urgency;
use nodewise_runtime::snapshot::{self, LiveObjects};
use nodewise_runtime::testing::listed;
use serde_json::{Value, json};

use super::*;
use crate::effects::testing::{self, MENDED, all_of, deleting, nothing, object, observed, on, pod};

fn key(name: &str) -> Key {
    testing::key_of::<Deployments>(name)
}

/// These Deployments are enqueued.
fn enqueue(names: &[&str]) -> Effects {
    testing::enqueue::<Deployments>(names)
}

fn take(store: &mut Store, event: ClusterEvent) -> Effects {
    testing::take::<Deployments>(store, event, MENDED)
}

fn deployment(name: &str, uid: &str, version: u32, app: &str) -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string()},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "strategy": {"type": if name == "d3" { "Recreate" } else { "RollingUpdate" }},
        },
    });
    Workload::deployment_from_json(&object).expect("a Deployment")
}

/// A ReplicaSet; `owner` is `kind/name/uid` or empty.
fn set(name: &str, version: u32, app: &str, owner: &str) -> Value {
    object(name, version, app, owner)
}

fn read(object: &Value) -> Workload {
    Workload::replica_set_from_json(object).expect("a ReplicaSet")
}

fn shown(set: &Value) -> ClusterEvent {
    ClusterEvent::Workloads(REPLICA_SETS, Delta::Applied(read(set)))
}

fn gone(set: &Value) -> ClusterEvent {
    ClusterEvent::Workloads(REPLICA_SETS, Delta::Deleted(read(set)))
}

/// d1 and d2 select app=x, d3 selects app=y and recreates.
fn cluster() -> Store {
    let mut store = testing::store_of::<Deployments>();
    for (name, uid, app) in [("d1", "u1", "x"), ("d2", "u2", "x"), ("d3", "u3", "y")] {
        let deployment = deployment(name, uid, 1, app);
        store.apply(ClusterEvent::Workloads(DEPLOYMENTS, Delta::Applied(deployment)));
    }
    store
}

const D1: &str = "Deployment/d1/u1";
const D2: &str = "Deployment/d2/u2";
const D3: &str = "Deployment/d3/u3";

#[test]
fn events_of_a_deployment() {
    let urgent = Effects {
        wakes: vec![Wake::with(key("d9"), Urgency::Urgent)],
        ..Effects::default()
    };
    let forgotten = Observation::Gone {
        key: key("d9"),
        own_writes_of: "u9".into(),
    };
    let mut store = cluster();
    let shown = |delta| ClusterEvent::Workloads(DEPLOYMENTS, delta);
    for (case, event, expected) in [
        (
            "P-5: added",
            shown(Delta::Applied(deployment("d9", "u9", 1, "z"))),
            urgent,
        ),
        (
            "P-5: updated",
            shown(Delta::Applied(deployment("d9", "u9", 2, "z"))),
            enqueue(&["d9"]),
        ),
        (
            "P-5: resynced",
            shown(Delta::Applied(deployment("d9", "u9", 2, "z"))),
            enqueue(&["d9"]),
        ),
        (
            "P-5: deleted",
            shown(Delta::Deleted(deployment("d9", "u9", 3, "z"))),
            all_of([observed(vec![forgotten]), enqueue(&["d9"])]),
        ),
    ] {
        assert_eq!(take(&mut store, event), expected, "{case}");
    }
}

#[test]
fn replica_set_add() {
    let mut unlabelled = set("s", 2, "x", "");
    unlabelled["metadata"]["labels"] = json!(null);
    for (case, object, expected) in [
        ("P-6: owned", set("s", 2, "x", D1), enqueue(&["d1"])),
        ("P-6: orphan", set("s", 2, "x", ""), enqueue(&["d1", "d2"])),
        ("P-6: no match", set("s", 2, "z", ""), nothing()),
        ("P-6: no labels", unlabelled, nothing()),
        (
            "P-6: being deleted",
            deleting(set("s", 2, "x", D1)),
            enqueue(&["d1"]),
        ),
        (
            "P-6: orphan being deleted",
            deleting(set("s", 2, "x", "")),
            nothing(),
        ),
        (
            "P-9: other kind",
            set("s", 2, "x", "StatefulSet/d1/u1"),
            nothing(),
        ),
        (
            "P-9: other uid",
            set("s", 2, "x", "Deployment/d1/other"),
            nothing(),
        ),
        ("P-9: other name", set("s", 2, "x", "Deployment/d2/u1"), nothing()),
    ] {
        assert_eq!(take(&mut cluster(), shown(&object)), expected, "{case}");
    }
}

#[test]
fn replica_set_update() {
    for (case, old, new, expected) in [
        (
            "P-7: same version",
            set("s", 2, "x", D1),
            set("s", 2, "y", D2),
            nothing(),
        ),
        (
            "P-7: owned",
            set("s", 2, "x", D1),
            set("s", 3, "x", D1),
            enqueue(&["d1"]),
        ),
        (
            "P-7: other owner",
            set("s", 2, "x", D2),
            set("s", 3, "x", D1),
            enqueue(&["d2", "d1"]),
        ),
        (
            "P-7: released",
            set("s", 2, "x", D1),
            set("s", 3, "x", ""),
            enqueue(&["d1", "d1", "d2"]),
        ),
        (
            "P-7: orphan with new labels",
            set("s", 2, "x", ""),
            set("s", 3, "y", ""),
            enqueue(&["d3"]),
        ),
        (
            "P-7: orphan with the same labels",
            set("s", 2, "x", ""),
            set("s", 3, "x", ""),
            nothing(),
        ),
    ] {
        let mut store = cluster();
        take(&mut store, shown(&old));
        assert_eq!(take(&mut store, shown(&new)), expected, "{case}");
    }
}

#[test]
fn replica_set_delete() {
    for (case, object, expected) in [
        ("P-7: owned", set("s", 2, "x", D1), enqueue(&["d1"])),
        ("P-7: orphan", set("s", 2, "x", ""), nothing()),
    ] {
        let mut store = cluster();
        take(&mut store, shown(&object));
        assert_eq!(take(&mut store, gone(&object)), expected, "{case}, by an event");
        take(&mut store, shown(&object));
        let list = ClusterEvent::Workloads(REPLICA_SETS, listed(Vec::new()));
        assert_eq!(take(&mut store, list), expected, "{case}, by a list");
    }
}

fn pod_event(store: &mut Store, object: &Value) -> Effects {
    testing::apply_pod::<Deployments>(store, object)
}

fn pod_gone(store: &mut Store, object: &Value) -> Effects {
    take(store, ClusterEvent::Pods(Delta::Deleted(pod(object))))
}

fn finished(mut object: Value) -> Value {
    object["status"] = json!({"phase": "Succeeded"});
    object
}

// P-8: only deletes of pods count, and only the last one of a Deployment that recreates.
#[test]
fn the_last_pod_of_a_deployment_that_recreates() {
    let mut store = cluster();
    for (name, app, owner) in [("s1", "x", D1), ("s3", "y", D3), ("s4", "y", D3), ("s5", "z", D3)] {
        take(&mut store, shown(&set(name, 2, app, owner)));
    }
    let of = |name: &str, set: &str| object(name, 2, "y", &format!("ReplicaSet/{set}/uid-{set}"));
    let pods = [of("a", "s3"), finished(of("b", "s3")), of("c", "s4")];
    for pod in &pods {
        assert_eq!(pod_event(&mut store, pod), nothing(), "an added pod");
    }
    // A set that the selector does not match is released. Its pods do not count.
    pod_event(&mut store, &of("e", "s5"));
    let mut going = deleting(on(of("a", "s3"), "n1"));
    going["metadata"]["resourceVersion"] = json!("3");
    assert_eq!(pod_event(&mut store, &going), nothing(), "an updated pod");
    assert_eq!(pod_gone(&mut store, &pods[0]), nothing(), "b and c are left");
    assert_eq!(
        pod_gone(&mut store, &pods[2]),
        nothing(),
        "b is left, although it has finished"
    );
    assert_eq!(pod_gone(&mut store, &pods[1]), enqueue(&["d3"]));
    let of_d1 = of("d", "s1");
    pod_event(&mut store, &of_d1);
    assert_eq!(pod_gone(&mut store, &of_d1), nothing(), "d1 does not recreate");
    let mut replaced = of("f", "s4");
    pod_event(&mut store, &replaced);
    replaced["metadata"]["uid"] = json!("other");
    replaced["metadata"]["resourceVersion"] = json!("9");
    replaced["metadata"]["ownerReferences"] = json!(null);
    assert_eq!(
        pod_event(&mut store, &replaced),
        enqueue(&["d3"]),
        "another pod of the name"
    );
}

fn snapshot_of(store: &mut Store, name: &str, live: Vec<Workload>) -> v1::Snapshot {
    let workload = store.workload(&key(name)).expect("a Deployment").clone();
    let live = LiveObjects {
        workloads: live,
        ..LiveObjects::default()
    };
    let now = Timestamp { seconds: 7, nanos: 0 };
    snapshot::take::<Deployments>(
        store,
        &workload,
        v1::ReconcileState::default(),
        &live,
        now,
        &Receiver::EMPTY,
    )
}

/// The sets of a snapshot: name, number of unfinished pods, and whether the name was taken.
fn sets(snapshot: &v1::Snapshot) -> Vec<(String, u32, bool)> {
    let workload = snapshot
        .workload
        .as_ref()
        .and_then(|workload| workload.kind.as_ref());
    let Some(v1::workload::Kind::Deployment(deployment)) = workload else {
        panic!("{workload:?}");
    };
    let sets = deployment.replica_sets.iter().map(|set| {
        let object: Value = serde_json::from_slice(&set.object).expect("JSON");
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        (name, set.unfinished_pods, set.read_after_name_collision)
    });
    sets.collect()
}

// P-1: the sets that it controls, by uid, and the orphans that its selector matches.
#[test]
fn a_snapshot_has_its_sets_and_orphans() {
    let mut store = cluster();
    for (name, app, owner) in [
        ("mine", "x", D1),
        ("mine-but-not-selected", "z", D1),
        ("orphan", "x", ""),
        ("orphan-of-another", "y", ""),
        ("anothers", "x", D2),
    ] {
        take(&mut store, shown(&set(name, 2, app, owner)));
    }
    pod_event(&mut store, &object("p", 2, "x", "ReplicaSet/mine/uid-mine"));
    let snapshot = snapshot_of(&mut store, "d1", Vec::new());
    let expected = ["mine", "mine-but-not-selected", "orphan"].map(|name| (name.to_owned(), 0, false));
    assert_eq!(sets(&snapshot), expected);
    assert_eq!(snapshot.bucket_count, 0);
    assert_eq!(
        (snapshot.node_buckets, snapshot.pod_buckets, snapshot.revisions),
        (vec![], vec![], vec![])
    );
}

// P-39: with strategy Recreate, pods that have not finished count, also those that are being deleted.
#[test]
fn unfinished_pods_count_for_a_deployment_that_recreates() {
    let mut store = cluster();
    for name in ["s1", "s2"] {
        take(&mut store, shown(&set(name, 2, "y", D3)));
    }
    let of = |name: &str, owner: &str| object(name, 2, "y", owner);
    let s1 = "ReplicaSet/s1/uid-s1";
    for pod in [
        of("a", s1),
        deleting(of("b", s1)),
        finished(of("c", s1)),
        of("d", ""),
        of("e", "ReplicaSet/other/uid-s1"),
        of("f", "StatefulSet/s1/uid-s1"),
    ] {
        pod_event(&mut store, &pod);
    }
    let snapshot = snapshot_of(&mut store, "d3", Vec::new());
    assert_eq!(
        sets(&snapshot),
        [("s1".to_owned(), 2, false), ("s2".to_owned(), 0, false)]
    );
}

// P-27: a set that was read live replaces the cached one of its name, whatever its owner.
#[test]
fn a_set_that_has_the_name_is_sent_with_a_mark() {
    let mut store = cluster();
    for (name, owner) in [("s1", D1), ("s2", D1)] {
        take(&mut store, shown(&set(name, 2, "x", owner)));
    }
    let live = [("s2", D1), ("s9", D2)].map(|(name, owner)| read(&set(name, 3, "x", owner)));
    let snapshot = snapshot_of(&mut store, "d1", live.to_vec());
    let expected = [("s1", false), ("s2", true), ("s9", true)];
    assert_eq!(
        sets(&snapshot),
        expected.map(|(name, is_taken)| (name.to_owned(), 0, is_taken))
    );
}

// The objects in a request are limited: anyone may create orphans that the selector matches.
#[test]
fn sets_that_do_not_fit_are_left_out() {
    let mut store = cluster();
    let sized = |name: &str, owner: &str, replicas: u32, day: u32| {
        let mut object = set(name, 2, "x", owner);
        object["metadata"]["creationTimestamp"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
        object["metadata"]["annotations"] = json!({"large": "x".repeat(7 << 20)});
        object["spec"] = json!({"replicas": replicas});
        object
    };
    for set in [
        sized("a", "", 1, 9),
        sized("b", D1, 0, 2),
        sized("c", D1, 1, 1),
        sized("d", D1, 0, 3),
    ] {
        take(&mut store, shown(&set));
    }
    let snapshot = snapshot_of(&mut store, "d1", Vec::new());
    let names: Vec<_> = sets(&snapshot).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["c", "d"]);
}
