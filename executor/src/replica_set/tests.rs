//! one test, or one table row, for each of them; and the snapshot of a ReplicaSet.

use std::time::Duration;

use nodewise_projection::Key;
use nodewise_proto::Timestamp;
use nodewise_proto::bucket::Receiver;
use nodewise_runtime::effects::{Observation, Wake};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::snapshot::{self, LiveObjects};
use nodewise_runtime::testing::listed;
use nodewise_runtime::{Delta, queue::Urgency};
use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::effects::testing::{self, MENDED, all_of, deleting, nothing, object, observed, on, pod, ready};

fn key(name: &str) -> Key {
    testing::key_of::<ReplicaSets>(name)
}

/// These ReplicaSets are enqueued.
fn enqueue(names: &[&str]) -> Effects {
    testing::enqueue::<ReplicaSets>(names)
}

fn take(store: &mut Store, event: ClusterEvent) -> Effects {
    testing::take::<ReplicaSets>(store, event, MENDED)
}

fn apply_pod(store: &mut Store, object: &Value) -> Effects {
    testing::apply_pod::<ReplicaSets>(store, object)
}

fn created(owner: &str, pod: &str) -> Effects {
    let seen = Observation::PodCreated {
        key: key(owner),
        pod_name: pod.into(),
        node_name: String::new(),
    };
    all_of([observed(vec![seen]), enqueue(&[owner])])
}

fn deleted(owner: &str, pod: &str) -> Effects {
    let seen = Observation::PodDeleted {
        key: key(owner),
        pod_name: pod.into(),
        pod_uid: format!("uid-{pod}"),
    };
    all_of([observed(vec![seen]), enqueue(&[owner])])
}

/// Effects of a pod that is gone: its name is used.
fn gone(owner: &str, pod: &str) -> Effects {
    let used = Observation::NameUsed {
        key: key(owner),
        uid: owner.replace("rs", "u").into(),
        pod_name: pod.into(),
        node_name: String::new(),
    };
    all_of([deleted(owner, pod), observed(vec![used])])
}

fn set_json(name: &str, uid: &str, version: u32, app: &str, replicas: u32) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string()},
        "spec": {
            "replicas": replicas, "minReadySeconds": if name == "rs2" { 10 } else { 0 },
            "selector": {"matchLabels": {"app": app}}, "template": {"metadata": {"labels": {"app": app}}},
        },
    })
}

fn read(object: &Value) -> Workload {
    Workload::replica_set_from_json(object).expect("a ReplicaSet")
}

fn shown(object: &Value) -> ClusterEvent {
    ClusterEvent::Workloads(REPLICA_SETS, Delta::Applied(read(object)))
}

/// rs1 and rs2 select app=x, rs3 selects app=y; rs2 wants pods ready for 10 s.
fn cluster() -> Store {
    let mut store = testing::store_of::<ReplicaSets>();
    for (name, uid, app) in [("rs1", "u1", "x"), ("rs2", "u2", "x"), ("rs3", "u3", "y")] {
        store.apply(shown(&set_json(name, uid, 1, app, 1)));
    }
    store
}

const RS1: &str = "ReplicaSet/rs1/u1";
const RS2: &str = "ReplicaSet/rs2/u2";

#[test]
fn events_of_a_replica_set() {
    let urgent = |name: &str| Effects {
        wakes: vec![Wake::with(key(name), Urgency::Urgent)],
        ..Effects::default()
    };
    let forgotten = |uid: &str| {
        let own_writes_of = uid.into();
        let key = key("rs9");
        observed(vec![Observation::Gone { key, own_writes_of }])
    };
    let mut store = cluster();
    let set = |uid, version| set_json("rs9", uid, version, "z", 1);
    for (case, event, expected) in [
        ("R-5: added", shown(&set("u9", 1)), urgent("rs9")),
        ("R-5: updated", shown(&set("u9", 2)), enqueue(&["rs9"])),
        ("R-5: resynced", shown(&set("u9", 2)), enqueue(&["rs9"])),
        (
            "R-5: replaced",
            shown(&set("u10", 3)),
            all_of([forgotten("u9"), urgent("rs9")]),
        ),
        (
            "R-6: deleted",
            ClusterEvent::Workloads(REPLICA_SETS, Delta::Deleted(read(&set("u10", 4)))),
            all_of([forgotten("u10"), enqueue(&["rs9"])]),
        ),
    ] {
        assert_eq!(take(&mut store, event), expected, "{case}");
    }
}

#[test]
fn pod_add() {
    for (case, object, expected) in [
        (
            "R-8: owned",
            on(object("p", 2, "x", RS1), "n1"),
            created("rs1", "p"),
        ),
        ("R-8: orphan", object("p", 2, "x", ""), enqueue(&["rs1", "rs2"])),
        ("R-8: no match", object("p", 2, "z", ""), nothing()),
        (
            "R-7: deleting",
            deleting(object("p", 2, "x", RS1)),
            deleted("rs1", "p"),
        ),
        (
            "R-11: deleting orphan",
            deleting(object("p", 2, "x", "")),
            nothing(),
        ),
        (
            "R-12: other uid",
            object("p", 2, "x", "ReplicaSet/rs1/other"),
            nothing(),
        ),
        (
            "R-12: other kind",
            object("p", 2, "x", "DaemonSet/rs1/u1"),
            nothing(),
        ),
        (
            "R-12: other name",
            object("p", 2, "x", "ReplicaSet/rs2/u1"),
            nothing(),
        ),
    ] {
        assert_eq!(apply_pod(&mut cluster(), &object), expected, "{case}");
    }
    let mut unlabelled = object("p", 2, "x", "");
    unlabelled["metadata"]["labels"] = json!(null);
    assert_eq!(
        apply_pod(&mut cluster(), &unlabelled),
        nothing(),
        "R-8: no labels"
    );
}

#[test]
fn pod_update() {
    for (case, old, new, expected) in [
        (
            "R-9: same version",
            object("p", 2, "x", RS1),
            object("p", 2, "y", RS1),
            nothing(),
        ),
        (
            "R-9: deletion begins",
            object("p", 2, "x", RS1),
            deleting(object("p", 3, "x", RS1)),
            deleted("rs1", "p"),
        ),
        (
            "R-9: it begins with other labels and another owner",
            object("p", 2, "x", RS2),
            deleting(object("p", 3, "y", RS1)),
            all_of([deleted("rs1", "p"), deleted("rs2", "p")]),
        ),
        (
            "R-10: owned",
            object("p", 2, "x", RS1),
            on(object("p", 3, "x", RS1), "n"),
            enqueue(&["rs1"]),
        ),
        (
            "R-10: other owner",
            object("p", 2, "x", RS2),
            object("p", 3, "x", RS1),
            enqueue(&["rs2", "rs1"]),
        ),
        (
            "R-10: released",
            object("p", 2, "x", RS1),
            object("p", 3, "z", ""),
            enqueue(&["rs1"]),
        ),
        (
            "R-10: orphan with new labels",
            object("p", 2, "z", ""),
            object("p", 3, "y", ""),
            enqueue(&["rs3"]),
        ),
        (
            "R-10: orphan with the same labels",
            object("p", 2, "x", ""),
            on(object("p", 3, "x", ""), "n"),
            nothing(),
        ),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &old);
        assert_eq!(apply_pod(&mut store, &new), expected, "{case}");
    }
}

// with minReadySeconds 10, exactly that much later.
#[test]
fn pod_becomes_ready() {
    let later = Effects {
        wakes: vec![Wake::after(key("rs2"), Duration::from_secs(10))],
        ..Effects::default()
    };
    for (case, owner, before, after, expected) in [
        (
            "ready now",
            RS2,
            "False",
            "True",
            all_of([enqueue(&["rs2"]), later]),
        ),
        ("not ready any more", RS2, "True", "False", enqueue(&["rs2"])),
        ("no minReadySeconds", RS1, "False", "True", enqueue(&["rs1"])),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &ready(object("p", 2, "x", owner), before));
        let effects = apply_pod(&mut store, &ready(object("p", 3, "x", owner), after));
        assert_eq!(effects, expected, "{case}");
    }
}

#[test]
fn pod_delete() {
    for (case, object, expected) in [
        (
            "R-11: owned",
            on(object("p", 2, "x", RS1), "n1"),
            gone("rs1", "p"),
        ),
        ("R-11: never bound", object("p", 2, "x", RS1), gone("rs1", "p")),
        ("R-11: orphan", object("p", 2, "x", ""), nothing()),
        (
            "R-12: unresolved",
            object("p", 2, "x", "ReplicaSet/rs1/other"),
            nothing(),
        ),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &object);
        let event = ClusterEvent::Pods(Delta::Deleted(pod(&object)));
        assert_eq!(take(&mut store, event), expected, "{case}, by an event");
        apply_pod(&mut store, &object);
        let list = ClusterEvent::Pods(listed(Vec::new()));
        assert_eq!(take(&mut store, list), expected, "{case}, by a list");
    }
}

// Nodes wake no ReplicaSet, and nor do revisions.
#[test]
fn other_objects_have_no_effects() {
    let node = nodewise_projection::Node::from_json(&json!({"metadata": {"name": "n1"}}));
    let mut store = cluster();
    let event = ClusterEvent::Nodes(Delta::Applied(node.expect("a node")));
    assert_eq!(take(&mut store, event), nothing());
}

fn with_owner(mut object: Value, uid: &str) -> Value {
    object["metadata"]["ownerReferences"] =
        json!([{"kind": "Deployment", "name": uid, "uid": uid, "controller": true}]);
    object
}

fn snapshot_of(store: &mut Store, name: &str) -> v1::Snapshot {
    let workload = store.workload(&key(name)).expect("a ReplicaSet").clone();
    let now = Timestamp { seconds: 7, nanos: 0 };
    let live = LiveObjects::default();
    snapshot::take::<ReplicaSets>(
        store,
        &workload,
        v1::ReconcileState::default(),
        &live,
        now,
        &Receiver::EMPTY,
    )
}

fn pods_in(snapshot: &v1::Snapshot) -> Vec<v1::Pod> {
    let buckets = snapshot.pod_buckets.iter().enumerate();
    let pods = buckets.flat_map(|(index, bucket)| {
        let data = bucket.data.clone().expect("inline");
        let pods = nodewise_proto::pods::whole(v1::PodBucket::decode(data).expect("a bucket"));
        let pods = pods.expect("everything that they share");
        for pod in &pods {
            let expected = nodewise_proto::bucket::of(&pod.name, snapshot.bucket_count);
            assert_eq!(expected as usize, index, "{}", pod.name);
        }
        pods
    });
    pods.collect()
}

fn related(snapshot: &v1::Snapshot) -> Vec<(&str, u32)> {
    let workload = snapshot
        .workload
        .as_ref()
        .and_then(|workload| workload.kind.as_ref());
    let Some(v1::workload::Kind::ReplicaSet(set)) = workload else {
        panic!("{workload:?}");
    };
    let related = set.related_pods.iter();
    related.map(|count| (&*count.node_name, count.pods)).collect()
}

// the set's own pods and matching orphans, in the buckets of their names, with the labels that plans read.
#[test]
fn a_snapshot_has_its_pods_and_orphans() {
    let mut store = cluster();
    for object in [
        on(object("mine", 2, "x", RS1), "n1"),
        object("orphan", 2, "x", ""),
        object("orphan-of-another", 2, "y", ""),
        object("anothers", 2, "x", RS2),
        object("foreign", 2, "x", "StatefulSet/rs1/u1"),
        object("of-another-name", 2, "x", "ReplicaSet/other/u1"),
    ] {
        apply_pod(&mut store, &object);
    }
    let snapshot = snapshot_of(&mut store, "rs1");
    assert_eq!((snapshot.bucket_count, snapshot.pod_buckets.len()), (1, 1));
    assert_eq!(snapshot.node_buckets, []);
    assert_eq!(snapshot.revisions, []);
    assert!(!snapshot.caches_synced);
    let pods = pods_in(&snapshot);
    let names: Vec<_> = pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(
        names,
        ["mine", "of-another-name", "orphan"],
        "the service checks the owner's name"
    );
    assert_eq!(pods[0].labels.len(), 1);
    assert_eq!(related(&snapshot), []);
}

// The selectors of hundreds of sets would be compared with every pod.
#[test]
fn related_pods_of_many_sets_are_those_that_they_control() {
    let mut store = testing::store_of::<ReplicaSets>();
    let add = |store: &mut Store, number: usize| {
        let (name, uid, app) = (format!("rs{number}"), format!("u{number}"), format!("x{number}"));
        store.apply(shown(&with_owner(set_json(&name, &uid, 1, &app, 0), "d1")));
    };
    for number in 1..=100 {
        add(&mut store, number);
    }
    for object in [
        on(object("mine", 2, "x1", RS1), "n1"),
        on(object("siblings", 2, "x2", RS2), "n1"),
        on(object("selected", 2, "x3", ""), "n2"),
    ] {
        apply_pod(&mut store, &object);
    }
    assert_eq!(related(&snapshot_of(&mut store, "rs1")), [("n1", 2), ("n2", 1)]);
    add(&mut store, 101);
    assert_eq!(related(&snapshot_of(&mut store, "rs1")), [("n1", 2)]);
}

// pods that any set of the same controller selects, by node, if this set has too many.
#[test]
fn related_pods_are_counted_if_there_are_too_many_pods() {
    let mut store = testing::store_of::<ReplicaSets>();
    let set = |name: &str, uid: &str, app: &str, replicas| set_json(name, uid, 1, app, replicas);
    for set in [
        with_owner(set("rs1", "u1", "x", 1), "d1"),
        with_owner(set("rs3", "u3", "y", 0), "d1"),
        with_owner(set("rs4", "u4", "z", 0), "d2"),
        set("rs5", "u5", "v", 0),
    ] {
        store.apply(shown(&set));
    }
    let finished = |mut object: Value| {
        object["status"] = json!({"phase": "Succeeded"});
        object
    };
    for object in [
        on(object("a", 2, "x", RS1), "n1"),
        deleting(on(object("b", 2, "x", RS1), "n1")),
        finished(on(object("c", 2, "x", RS1), "n1")),
        on(object("d", 2, "y", "ReplicaSet/rs3/u3"), "n1"),
        on(object("e", 2, "y", ""), "n2"),
        on(object("f", 2, "z", "ReplicaSet/rs4/u4"), "n2"),
        on(object("g", 2, "v", "ReplicaSet/rs5/u5"), "n2"),
    ] {
        apply_pod(&mut store, &object);
    }
    assert_eq!(
        related(&snapshot_of(&mut store, "rs1")),
        [],
        "one live pod is not too many"
    );
    apply_pod(&mut store, &object("h", 2, "x", ""));
    let expected = [("", 1), ("n1", 2), ("n2", 1)];
    assert_eq!(
        related(&snapshot_of(&mut store, "rs1")),
        expected,
        "with an orphan there are"
    );
    assert_eq!(
        related(&snapshot_of(&mut store, "rs5")),
        [],
        "R-37: a set without a controller"
    );
}

// only ready pods that were chosen among others count.
#[test]
fn ages_of_deleted_pods_are_relative_to_the_youngest_ready_pod() {
    let mut store = cluster();
    for (name, minute, status) in [("old", 0, "True"), ("new", 30, "True"), ("newest", 50, "False")] {
        let mut object = ready(object(name, 2, "x", RS1), status);
        object["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:{minute:02}:00Z"));
        apply_pod(&mut store, &object);
    }
    let now: jiff::Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
    let set = read(&set_json("rs1", "u1", 1, "x", 1));
    let ratios = |names: &[&str]| {
        let action = |name: &&str| v1::Action {
            kind: Some(v1::action::Kind::DeletePod(v1::DeletePod {
                pod: Some(v1::ObjectReference {
                    name: (*name).into(),
                    uid: format!("uid-{name}"),
                }),
                ..v1::DeletePod::default()
            })),
            ..v1::Action::default()
        };
        let batch = v1::Batch {
            actions: names.iter().map(action).collect(),
            ..v1::Batch::default()
        };
        let phase = v1::Phase {
            batches: vec![batch],
            ..v1::Phase::default()
        };
        let plan = v1::Plan {
            phases: vec![phase],
            ..v1::Plan::default()
        };
        ReplicaSets::deletion_age_ratios(&store, &set, &plan, now)
    };
    assert_eq!(ratios(&["newest", "old"]), [2.0], "60 minutes to 30");
    assert_eq!(ratios(&["newest"]), [] as [f64; 0]);
    assert_eq!(
        ratios(&["newest", "new", "old"]),
        [] as [f64; 0],
        "nothing was chosen"
    );
    assert_eq!(ratios(&[]), [] as [f64; 0]);
}
