//! Section Wake-ups of docs/behaviour.md: one test, or one table row, for each of its rows. Objects are the JSON that a
//! watch would show.

use nodewise_projection::{Node, Pod};
use nodewise_runtime::Delta;
use serde_json::{Value, json};

use super::*;
use crate::event::ClusterEvent;

const MENDED: Rules = Rules {
    clear_replaced_own_writes: true,
    wake_on_node_delete: true,
    count_repeated_deletions: false,
    revisions: Author::Us,
};
const STRICT: Rules = Rules {
    clear_replaced_own_writes: false,
    wake_on_node_delete: false,
    count_repeated_deletions: true,
    revisions: Author::Us,
};

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

fn enqueue(names: &[&str]) -> Vec<Reaction> {
    names.iter().map(|name| Reaction::Enqueue(key(name))).collect()
}

fn created(owner: &str, pod: &str, node: &str) -> Reaction {
    Reaction::ObserveCreate {
        key: key(owner),
        pod_name: pod.into(),
        node_name: node.into(),
    }
}

fn deleted(owner: &str, pod: &str) -> Reaction {
    Reaction::ObserveDeletion {
        key: key(owner),
        pod_name: pod.into(),
        pod_uid: format!("uid-{pod}"),
    }
}

/// Reactions to a pod that is gone: its name is retired.
fn gone(owner: &str, pod: &str, node: &str) -> Vec<Reaction> {
    let uid = owner.replace("ds", "u");
    let retired = Reaction::RetireName {
        key: key(owner),
        uid: uid.into(),
        pod_name: pod.into(),
        node_name: node.into(),
    };
    vec![deleted(owner, pod), Reaction::Enqueue(key(owner)), retired]
}

fn daemon_set(name: &str, uid: &str, app: &str, min_ready_seconds: u32) -> Delta<DaemonSet> {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "minReadySeconds": min_ready_seconds,
            "template": {"spec": {"nodeSelector": {"zone": "1"}}},
        },
    });
    Delta::Applied(DaemonSet::from_json(&object).expect("a DaemonSet"))
}

/// ds1 and ds2 select app=x, ds3 selects app=y; ds2 wants pods ready for 10 s.
fn cluster() -> Store {
    let mut store = Store::new(4);
    for delta in [
        daemon_set("ds1", "u1", "x", 0),
        daemon_set("ds2", "u2", "x", 10),
        daemon_set("ds3", "u3", "y", 0),
    ] {
        store.apply(ClusterEvent::DaemonSets(delta));
    }
    store
}

/// A pod or revision; `owner` is `kind/name/uid` or empty.
fn object(name: &str, version: u32, app: &str, owner: &str) -> Value {
    let mut object = json!({"metadata": {
        "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": {"app": app},
    }});
    if let [kind, owner, uid] = owner.split('/').collect::<Vec<_>>()[..] {
        object["metadata"]["ownerReferences"] =
            json!([{"kind": kind, "name": owner, "uid": uid, "controller": true}]);
    }
    object
}

fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

fn on(mut object: Value, node: &str) -> Value {
    object["spec"] = json!({"nodeName": node});
    object
}

fn ready(mut object: Value, status: &str) -> Value {
    object["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
    object
}

/// The object with changes that no plan depends on.
fn unheeded(mut object: Value) -> Value {
    object["metadata"]["annotations"] = json!({"a": "b"});
    object["metadata"]["managedFields"] = json!([{"manager": "kubelet"}]);
    object["status"]["conditions"] = json!([{"type": "ContainersReady", "status": "False"}]);
    object["status"]["podIP"] = json!("10.0.0.1");
    object
}

fn pod(object: &Value) -> Pod {
    Pod::from_json(object).expect("a pod")
}

fn take(store: &mut Store, event: ClusterEvent, rules: Rules) -> Vec<Reaction> {
    let transitions = store.apply(event);
    transitions
        .iter()
        .flat_map(|transition| react(store, transition, rules))
        // Overlaps have their own test below.
        .filter(|reaction| !matches!(reaction, Reaction::Overlap(_)))
        .collect()
}

fn apply_pod(store: &mut Store, object: &Value) -> Vec<Reaction> {
    take(store, ClusterEvent::Pods(Delta::Applied(pod(object))), MENDED)
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
            [vec![created("ds1", "p", "n1")], enqueue(&["ds1"])].concat(),
        ),
        (
            "orphan that 2 of 3 select",
            object("p", 2, "x", ""),
            enqueue(&["ds1", "ds2"]),
        ),
        ("orphan that nobody selects", object("p", 2, "z", ""), vec![]),
        (
            "owned and deleting",
            deleting(object("p", 2, "x", DS1)),
            [vec![deleted("ds1", "p")], enqueue(&["ds1"])].concat(),
        ),
        ("deleting orphan", deleting(object("p", 2, "x", "")), vec![]),
        // D-103: the name resolves, but the uid or the kind does not match.
        (
            "owner of another uid",
            object("p", 2, "x", "DaemonSet/ds1/other"),
            vec![],
        ),
        (
            "owner of another kind",
            object("p", 2, "x", "ReplicaSet/ds1/u1"),
            vec![],
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
            vec![],
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
            vec![],
        ),
        (
            "orphan, same labels",
            object("p", 2, "x", ""),
            on(object("p", 3, "x", ""), "n"),
            vec![],
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
            [vec![deleted("ds1", "p")], enqueue(&["ds1"])].concat(),
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
    let later = |name: &str, seconds| Reaction::EnqueueAfter(key(name), Duration::from_secs(seconds));
    for (case, owner, before, after, expected) in [
        (
            "ready now",
            DS2,
            "False",
            "True",
            [enqueue(&["ds2"]), vec![later("ds2", 11)]].concat(),
        ),
        ("ready before", DS2, "True", "True", vec![]),
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
        ("orphan", object("p", 2, "x", ""), vec![]),
        ("of another kind", object("p", 2, "x", "ReplicaSet/rs/r1"), vec![]),
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
    let again = [vec![deleted("ds1", "p")], enqueue(&["ds1"])].concat();
    for (rules, expected) in [(MENDED, vec![]), (STRICT, again)] {
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
        assert_eq!(take(), [], "the same version again");
    }
}

fn revision(object: &Value) -> Revision {
    Revision::from_json(object).expect("a revision")
}

#[test]
fn revision_add() {
    for (case, object, expected) in [
        ("controlled", object("r", 2, "x", DS1), vec![]),
        ("orphan", object("r", 2, "x", ""), enqueue(&["ds1", "ds2"])),
        (
            "controlled and deleting",
            deleting(object("r", 2, "x", DS1)),
            enqueue(&["ds1"]),
        ),
        ("orphan and deleting", deleting(object("r", 2, "x", "")), vec![]),
        ("of another kind", object("r", 2, "x", "StatefulSet/s/s1"), vec![]),
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
            vec![],
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
            vec![],
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
        ("orphan deleted", object("r", 2, "x", ""), None, vec![]),
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
    let forget = |name: &str, uid: &str| Reaction::Forget {
        key: key(name),
        own_writes_of: Arc::from(uid),
    };
    let mut store = cluster();
    let new = ClusterEvent::DaemonSets(daemon_set("ds4", "u4", "x", 0));
    assert_eq!(
        take(&mut store, new, MENDED),
        [Reaction::EnqueueFirst(key("ds4"))]
    );
    let Delta::Applied(ds4) = daemon_set("ds4", "u4", "x", 0) else {
        unreachable!()
    };
    take(&mut store, ClusterEvent::DaemonSets(Delta::Deleted(ds4)), MENDED);
    let again = ClusterEvent::DaemonSets(daemon_set("ds1", "u1", "x", 0));
    assert_eq!(
        take(&mut store, again, MENDED),
        enqueue(&["ds1"]),
        "any update, also of the same version"
    );
    let Delta::Applied(ds3) = daemon_set("ds3", "u3", "y", 0) else {
        unreachable!()
    };
    let gone = take(&mut store, ClusterEvent::DaemonSets(Delta::Deleted(ds3)), MENDED);
    assert_eq!(gone, [vec![forget("ds3", "u3")], enqueue(&["ds3"])].concat());
    let Delta::Applied(ds1) = daemon_set("ds1", "u1", "x", 0) else {
        unreachable!()
    };
    let list = Delta::Listed {
        objects: vec![ds1],
        resource_version: "9".into(),
    };
    let listed = take(&mut store, ClusterEvent::DaemonSets(list), MENDED);
    assert_eq!(
        listed,
        [vec![forget("ds2", "u2")], enqueue(&["ds2", "ds1"])].concat()
    );
}

// Q-2: replaced under its name. The own-write record of the old uid is cleared; upstream clears that of the new one.
#[test]
fn daemon_set_replaced() {
    for (rules, cleared) in [(MENDED, "u1"), (STRICT, "u9")] {
        let mut store = cluster();
        let event = ClusterEvent::DaemonSets(daemon_set("ds1", "u9", "x", 0));
        let forget = Reaction::Forget {
            key: key("ds1"),
            own_writes_of: Arc::from(cleared),
        };
        assert_eq!(
            take(&mut store, event, rules),
            [forget, Reaction::EnqueueFirst(key("ds1"))]
        );
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

// D-105, Q-22: nodes enqueue every DaemonSet, but only if taints change, or labels that a DaemonSet names.
#[test]
fn node_events() {
    let all = || vec![Reaction::EnqueueAll(Urgency::Urgent)];
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
    for (rules, expected) in [
        (MENDED, vec![Reaction::EnqueueAll(Urgency::Normal)]),
        (STRICT, vec![]),
    ] {
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
    let expected = [
        gone("ds1", "p", "n1"),
        vec![created("ds1", "p", "n1")],
        enqueue(&["ds1"]),
    ];
    assert_eq!(
        take(&mut store, ClusterEvent::Pods(list), MENDED),
        expected.concat()
    );
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
    let expected = [deleted("ds1", "p"), Reaction::Enqueue(key("ds1"))];
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
        let pod = Pod::from_json(&object("p", 2, app, "")).expect("a pod");
        let transitions = store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        let reactions = react(&store, &transitions[0], MENDED);
        let events = reactions.into_iter().find_map(|reaction| match reaction {
            Reaction::Overlap(keys) => Some(keys),
            _ => None,
        });
        assert_eq!(events, expected, "{app}");
    }
}
