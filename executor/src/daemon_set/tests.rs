//! Section Wake-ups of docs/behaviour.md: one test, or one table row, for each of its rows. Objects are the JSON that a
//! watch would show.

use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::{Key, Node, Revision};
use nodewise_runtime::{Delta, queue::Urgency};
use serde_json::{Value, json};

use super::*;
use crate::effects::testing::{self, MENDED, all_of, deleting, nothing, object, observed, on, pod, ready};
use nodewise_runtime::effects::{Author, Observation, Wake};
use nodewise_runtime::event::ClusterEvent;

mod policies;

const STRICT: Rules = Rules {
    clear_replaced_own_writes: false,
    wake_on_node_delete: false,
    count_repeated_deletions: true,
    revisions: Author::Us,
};

fn key(name: &str) -> Key {
    testing::key_of::<DaemonSets>(name)
}

/// These DaemonSets are enqueued.
fn enqueue(names: &[&str]) -> Effects {
    testing::enqueue::<DaemonSets>(names)
}

fn created(owner: &str, pod: &str, node: &str) -> Observation {
    Observation::PodCreated {
        key: key(owner),
        pod_name: pod.into(),
        node_name: node.into(),
    }
}

fn deleted(owner: &str, pod: &str) -> Observation {
    Observation::PodDeleted {
        key: key(owner),
        pod_name: pod.into(),
        pod_uid: format!("uid-{pod}"),
    }
}

/// Effects of a pod that is gone: its name is used.
fn gone(owner: &str, pod: &str, node: &str) -> Effects {
    let uid = owner.replace("ds", "u");
    let used = Observation::NameUsed {
        key: key(owner),
        uid: uid.into(),
        pod_name: pod.into(),
        node_name: node.into(),
    };
    all_of([observed(vec![deleted(owner, pod), used]), enqueue(&[owner])])
}

fn daemon_set(name: &str, uid: &str, app: &str, min_ready_seconds: u32) -> Delta<Workload> {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "minReadySeconds": min_ready_seconds,
            "template": {"spec": {"nodeSelector": {"zone": "1"}}},
        },
    });
    Delta::Applied(Workload::daemon_set_from_json(&object).expect("a DaemonSet"))
}

/// ds1 and ds2 select app=x, ds3 selects app=y; ds2 wants pods ready for 10 s.
fn cluster() -> Store {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    for delta in [
        daemon_set("ds1", "u1", "x", 0),
        daemon_set("ds2", "u2", "x", 10),
        daemon_set("ds3", "u3", "y", 0),
    ] {
        store.apply(ClusterEvent::Workloads(DAEMON_SETS, delta));
    }
    store
}

/// The object with changes that no plan depends on.
fn unheeded(mut object: Value) -> Value {
    object["metadata"]["annotations"] = json!({"a": "b"});
    object["metadata"]["managedFields"] = json!([{"manager": "kubelet"}]);
    object["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "False"}]);
    object["status"]["podIP"] = json!("10.0.0.1");
    object
}

fn take(store: &mut Store, event: ClusterEvent, rules: Rules) -> Effects {
    testing::take::<DaemonSets>(store, event, rules)
}

fn apply_pod(store: &mut Store, object: &Value) -> Effects {
    testing::apply_pod::<DaemonSets>(store, object)
}

const DS1: &str = "DaemonSet/ds1/u1";
const DS2: &str = "DaemonSet/ds2/u2";

// D-73, D-103, D-104: added pods.
#[test]
fn pod_add() {
    for (case, object, expected) in [
        (
            "owned",
            on(object("p", 2, "x", DS1), "n1"),
            all_of([observed(vec![created("ds1", "p", "n1")]), enqueue(&["ds1"])]),
        ),
        (
            "orphan that 2 of 3 select",
            object("p", 2, "x", ""),
            enqueue(&["ds1", "ds2"]),
        ),
        ("orphan that nobody selects", object("p", 2, "z", ""), nothing()),
        (
            "owned and deleting",
            deleting(object("p", 2, "x", DS1)),
            all_of([observed(vec![deleted("ds1", "p")]), enqueue(&["ds1"])]),
        ),
        ("deleting orphan", deleting(object("p", 2, "x", "")), nothing()),
        // D-103: the name resolves, but the uid or the kind does not match.
        (
            "owner of another uid",
            object("p", 2, "x", "DaemonSet/ds1/other"),
            nothing(),
        ),
        (
            "owner of another kind",
            object("p", 2, "x", "ReplicaSet/ds1/u1"),
            nothing(),
        ),
    ] {
        assert_eq!(apply_pod(&mut cluster(), &object), expected, "{case}");
    }
}

// Updated pods.
#[test]
fn pod_update() {
    for (case, old, new, expected) in [
        (
            "same version",
            object("p", 2, "x", DS1),
            object("p", 2, "y", DS1),
            nothing(),
        ),
        (
            "owned",
            object("p", 2, "x", DS1),
            on(object("p", 3, "x", DS1), "n"),
            enqueue(&["ds1"]),
        ),
        (
            "owned, with nothing changed that is kept",
            object("p", 2, "x", DS1),
            unheeded(object("p", 3, "x", DS1)),
            nothing(),
        ),
        (
            "orphan, same labels",
            object("p", 2, "x", ""),
            on(object("p", 3, "x", ""), "n"),
            nothing(),
        ),
        (
            "orphan, new labels",
            object("p", 2, "z", ""),
            object("p", 3, "x", ""),
            enqueue(&["ds1", "ds2"]),
        ),
        (
            "other owner",
            object("p", 2, "x", DS2),
            object("p", 3, "x", DS1),
            enqueue(&["ds2", "ds1"]),
        ),
        (
            "owner removed",
            object("p", 2, "x", DS2),
            object("p", 3, "x", ""),
            enqueue(&["ds2", "ds1", "ds2"]),
        ),
        (
            "taken over by another kind",
            object("p", 2, "x", DS1),
            object("p", 3, "x", "ReplicaSet/rs/r1"),
            enqueue(&["ds1"]),
        ),
        (
            "begins to be deleted",
            object("p", 2, "x", DS1),
            deleting(object("p", 3, "x", DS1)),
            all_of([observed(vec![deleted("ds1", "p")]), enqueue(&["ds1"])]),
        ),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &old);
        assert_eq!(apply_pod(&mut store, &new), expected, "{case}");
    }
}

// D-92: a pod became ready just now, with minReadySeconds 10.
#[test]
fn pod_becomes_ready() {
    let later = |name: &str, seconds| Effects {
        wakes: vec![Wake::after(key(name), Duration::from_secs(seconds))],
        ..Effects::default()
    };
    for (case, owner, before, after, expected) in [
        (
            "ready now",
            DS2,
            "False",
            "True",
            all_of([enqueue(&["ds2"]), later("ds2", 11)]),
        ),
        ("ready before", DS2, "True", "True", nothing()),
        ("not ready any more", DS2, "True", "False", enqueue(&["ds2"])),
        ("no minReadySeconds", DS1, "False", "True", enqueue(&["ds1"])),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &ready(object("p", 2, "x", owner), before));
        assert_eq!(
            apply_pod(&mut store, &ready(object("p", 3, "x", owner), after)),
            expected,
            "{case}"
        );
    }
}

// Pods deleted by an event, and by their absence from a list.
#[test]
fn pod_delete() {
    for (case, object, expected) in [
        (
            "owned",
            on(object("p", 2, "x", DS1), "n1"),
            gone("ds1", "p", "n1"),
        ),
        ("orphan", object("p", 2, "x", ""), nothing()),
        (
            "of another kind",
            object("p", 2, "x", "ReplicaSet/rs/r1"),
            nothing(),
        ),
    ] {
        let mut store = cluster();
        apply_pod(&mut store, &object);
        let gone = ClusterEvent::Pods(Delta::Deleted(pod(&object)));
        assert_eq!(take(&mut store, gone, MENDED), expected, "{case}, by an event");
        apply_pod(&mut store, &object);
        let list = ClusterEvent::Pods(Delta::Listed {
            objects: vec![],
            resource_version: "9".into(),
        });
        assert_eq!(take(&mut store, list, MENDED), expected, "{case}, by a list");
    }
}

// Q-5: upstream lowers its count at each event of a pod that is being deleted. By uid, only the first event counts.
#[test]
fn pod_being_deleted_is_updated() {
    let again = all_of([observed(vec![deleted("ds1", "p")]), enqueue(&["ds1"])]);
    for (rules, expected) in [(MENDED, nothing()), (STRICT, again)] {
        let mut store = cluster();
        apply_pod(&mut store, &deleting(object("p", 2, "x", DS1)));
        let update = unheeded(deleting(object("p", 3, "x", DS1)));
        let mut take = || {
            take(
                &mut store,
                ClusterEvent::Pods(Delta::Applied(pod(&update))),
                rules,
            )
        };
        assert_eq!(take(), expected, "{rules:?}");
        assert_eq!(take(), nothing(), "the same version again");
    }
}

fn revision(object: &Value) -> Revision {
    Revision::from_json(object).expect("a revision")
}

#[test]
fn revision_add() {
    for (case, object, expected) in [
        ("controlled", object("r", 2, "x", DS1), nothing()),
        ("orphan", object("r", 2, "x", ""), enqueue(&["ds1", "ds2"])),
        (
            "controlled and deleting",
            deleting(object("r", 2, "x", DS1)),
            enqueue(&["ds1"]),
        ),
        (
            "orphan and deleting",
            deleting(object("r", 2, "x", "")),
            nothing(),
        ),
        (
            "of another kind",
            object("r", 2, "x", "StatefulSet/s/s1"),
            nothing(),
        ),
    ] {
        let event = ClusterEvent::Revisions(Delta::Applied(revision(&object)));
        assert_eq!(take(&mut cluster(), event, MENDED), expected, "{case}");
    }
}

#[test]
fn revision_update_and_delete() {
    for (case, old, new, expected) in [
        (
            "same version",
            object("r", 2, "x", DS1),
            Some(object("r", 2, "y", DS1)),
            nothing(),
        ),
        (
            "controlled",
            object("r", 2, "x", DS1),
            Some(object("r", 3, "x", DS1)),
            enqueue(&["ds1"]),
        ),
        (
            "orphan, same labels",
            object("r", 2, "x", ""),
            Some(object("r", 3, "x", "")),
            nothing(),
        ),
        (
            "orphan, new labels",
            object("r", 2, "z", ""),
            Some(object("r", 3, "y", "")),
            enqueue(&["ds3"]),
        ),
        (
            "other owner",
            object("r", 2, "x", DS1),
            Some(object("r", 3, "x", DS2)),
            enqueue(&["ds1", "ds2"]),
        ),
        (
            "owner removed",
            object("r", 2, "x", DS1),
            Some(object("r", 3, "y", "")),
            enqueue(&["ds1", "ds3"]),
        ),
        // There is no rule for deleting DaemonSets: this is an update like any other.
        (
            "deleting",
            object("r", 2, "x", DS1),
            Some(deleting(object("r", 3, "x", DS1))),
            enqueue(&["ds1"]),
        ),
        ("deleted", object("r", 2, "x", DS1), None, enqueue(&["ds1"])),
        ("orphan deleted", object("r", 2, "x", ""), None, nothing()),
    ] {
        let mut store = cluster();
        take(
            &mut store,
            ClusterEvent::Revisions(Delta::Applied(revision(&old))),
            MENDED,
        );
        let delta = match new {
            Some(new) => Delta::Applied(revision(&new)),
            None => Delta::Deleted(revision(&old)),
        };
        assert_eq!(
            take(&mut store, ClusterEvent::Revisions(delta), MENDED),
            expected,
            "{case}"
        );
    }
}

// Added, updated and deleted DaemonSets, deleted by an event and by absence from a list.
#[test]
fn daemon_set_events() {
    let gone_of = |name: &str, uid: &str| {
        observed(vec![Observation::Gone {
            key: key(name),
            own_writes_of: Arc::from(uid),
        }])
    };
    let urgent = Effects {
        wakes: vec![Wake::urgent(key("ds4"))],
        ..Effects::default()
    };
    let mut store = cluster();
    let new = ClusterEvent::Workloads(DAEMON_SETS, daemon_set("ds4", "u4", "x", 0));
    assert_eq!(take(&mut store, new, MENDED), urgent);
    let Delta::Applied(ds4) = daemon_set("ds4", "u4", "x", 0) else {
        unreachable!()
    };
    take(
        &mut store,
        ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(ds4)),
        MENDED,
    );
    let again = ClusterEvent::Workloads(DAEMON_SETS, daemon_set("ds1", "u1", "x", 0));
    assert_eq!(
        take(&mut store, again, MENDED),
        enqueue(&["ds1"]),
        "any update, also of the same version"
    );
    let Delta::Applied(ds3) = daemon_set("ds3", "u3", "y", 0) else {
        unreachable!()
    };
    let gone = take(
        &mut store,
        ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(ds3)),
        MENDED,
    );
    assert_eq!(gone, all_of([gone_of("ds3", "u3"), enqueue(&["ds3"])]));
    let Delta::Applied(ds1) = daemon_set("ds1", "u1", "x", 0) else {
        unreachable!()
    };
    let list = Delta::Listed {
        objects: vec![ds1],
        resource_version: "9".into(),
    };
    let listed = take(&mut store, ClusterEvent::Workloads(DAEMON_SETS, list), MENDED);
    assert_eq!(listed, all_of([gone_of("ds2", "u2"), enqueue(&["ds2", "ds1"])]));
}

// Q-2: replaced under its name. The own-write record of the old uid is cleared; upstream clears that of the new one.
#[test]
fn daemon_set_replaced() {
    for (rules, cleared) in [(MENDED, "u1"), (STRICT, "u9")] {
        let mut store = cluster();
        let event = ClusterEvent::Workloads(DAEMON_SETS, daemon_set("ds1", "u9", "x", 0));
        let gone = Observation::Gone {
            key: key("ds1"),
            own_writes_of: Arc::from(cleared),
        };
        let expected = Effects {
            wakes: vec![Wake::urgent(key("ds1"))],
            wake_all: None,
            observations: vec![gone],
        };
        assert_eq!(take(&mut store, event, rules), expected);
    }
}

fn node(labels: &Value, taints: &Value, capacity: &str) -> Node {
    let object = json!({
        "metadata": {"name": "n1", "uid": "n", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": capacity}},
    });
    Node::from_json(&object).expect("a node")
}

/// Every DaemonSet is enqueued.
fn every(urgency: Urgency) -> Effects {
    Effects {
        wake_all: Some(urgency),
        ..Effects::default()
    }
}

// D-105, Q-22: nodes enqueue every DaemonSet, but only if taints change, or labels that a DaemonSet names.
#[test]
fn node_events() {
    let all = || every(Urgency::Urgent);
    let a = json!({"key": "a", "effect": "NoSchedule"});
    let b = json!({"key": "b", "effect": "NoSchedule"});
    let mut store = cluster();
    let first = ClusterEvent::Nodes(Delta::Applied(node(&json!({}), &json!([a]), "1")));
    assert_eq!(take(&mut store, first, MENDED), all(), "added");
    for (case, new, expected) in [
        (
            "allocatable only",
            node(&json!({}), &json!([a]), "2"),
            enqueue(&[]),
        ),
        ("nil is empty", node(&json!(null), &json!([a]), "2"), enqueue(&[])),
        (
            "a label that nothing names",
            node(&json!({"rack": "7"}), &json!([a]), "2"),
            enqueue(&[]),
        ),
        (
            "labels",
            node(&json!({"rack": "8", "zone": "1"}), &json!([a]), "2"),
            all(),
        ),
        ("taints", node(&json!({"zone": "1"}), &json!([a, b]), "2"), all()),
        (
            "order of taints",
            node(&json!({"zone": "1"}), &json!([b, a]), "2"),
            all(),
        ),
    ] {
        assert_eq!(
            take(&mut store, ClusterEvent::Nodes(Delta::Applied(new)), MENDED),
            expected,
            "{case}"
        );
    }
}

// Q-19: a deleted node enqueues the DaemonSets. In upstream it does not.
#[test]
fn node_delete() {
    for (rules, expected) in [(MENDED, every(Urgency::Normal)), (STRICT, nothing())] {
        let mut store = cluster();
        let gone = node(&json!({}), &json!([]), "1");
        take(
            &mut store,
            ClusterEvent::Nodes(Delta::Applied(gone.clone())),
            rules,
        );
        assert_eq!(
            take(&mut store, ClusterEvent::Nodes(Delta::Deleted(gone)), rules),
            expected
        );
    }
}

// A pod that was replaced under its name during a gap in the watch counts as one deleted and one created pod.
#[test]
fn pod_replaced_in_a_gap() {
    let mut store = cluster();
    apply_pod(&mut store, &on(object("p", 2, "x", DS1), "n1"));
    let mut other = on(object("p", 9, "x", DS1), "n1");
    other["metadata"]["uid"] = json!("uid-other");
    let list = Delta::Listed {
        objects: vec![pod(&other)],
        resource_version: "10".into(),
    };
    let expected = all_of([
        gone("ds1", "p", "n1"),
        observed(vec![created("ds1", "p", "n1")]),
        enqueue(&["ds1"]),
    ]);
    assert_eq!(take(&mut store, ClusterEvent::Pods(list), MENDED), expected);
}

// If another controller creates the pods, no plan releases a retired name.
#[test]
fn names_of_another_controllers_pods_are_not_kept() {
    let companion = Rules {
        revisions: Author::Another,
        ..MENDED
    };
    let pod_of = on(object("p", 2, "x", DS1), "n1");
    let mut store = cluster();
    apply_pod(&mut store, &pod_of);
    let expected = all_of([observed(vec![deleted("ds1", "p")]), enqueue(&["ds1"])]);
    let gone = ClusterEvent::Pods(Delta::Deleted(pod(&pod_of)));
    assert_eq!(take(&mut store, gone, companion), expected);
}

#[test]
fn overlapping_selectors_are_logged() {
    for (app, expected) in [
        ("x", Some(vec![key("ds1"), key("ds2")])),
        ("y", None),
        ("z", None),
    ] {
        let mut store = cluster();
        let pod = pod(&object("p", 2, app, ""));
        let transitions = store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        let effects = DaemonSets::effects(&store, &transitions[0], MENDED);
        let expected: Vec<_> = expected.map(Observation::Overlap).into_iter().collect();
        assert_eq!(effects.observations, expected, "{app}");
    }
}
