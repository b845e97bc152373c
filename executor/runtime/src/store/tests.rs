//! Which fields of pods are cached, and which changes count as transitions.

use std::collections::BTreeMap;

use nodewise_projection::{Node, Pod, reduce_node};
use nodewise_proto::bucket::{Digest, Receiver};
use nodewise_proto::{nodes, v1};
use prost::Message as _;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::testing::DAEMON_SETS;
use nodewise_proto::workload::DAEMON_SET;

mod by_name;

fn object(name: &str, version: u32, owner: Option<&str>) -> Value {
    let owners: Vec<_> = owner
        .iter()
        .map(|uid| json!({"kind": DAEMON_SET, "name": "foo", "uid": uid, "controller": true}))
        .collect();
    json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "labels": {"app": "foo"}, "ownerReferences": owners,
        },
        "spec": {"nodeName": "n1"},
    })
}

fn put(store: &mut Store, object: &Value) -> Vec<Transition> {
    let pod = Pod::from_json(object).expect("a pod");
    store.apply(ClusterEvent::Pods(Delta::Applied(pod)))
}

fn remove(store: &mut Store, object: &Value) -> Vec<Transition> {
    let pod = Pod::from_json(object).expect("a pod");
    store.apply(ClusterEvent::Pods(Delta::Deleted(pod)))
}

fn list(store: &mut Store, objects: &[Value]) -> Vec<Transition> {
    let pods = objects
        .iter()
        .map(|object| Pod::from_json(object).expect("a pod"));
    store.apply(ClusterEvent::Pods(Delta::Listed {
        objects: pods.collect(),
        resource_version: "100".into(),
    }))
}

/// A DaemonSet that selects the pods of these tests.
fn workload(name: &str, uid: &str) -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// The pods as they would be sent for this uid.
fn sent(store: &mut Store, uid: &str) -> Vec<v1::Pod> {
    let buckets = store.pod_buckets(&workload("foo", uid), &Receiver::EMPTY).buckets;
    let decode = |bucket: v1::Bucket| {
        let data = bucket.data.expect("inline");
        let bucket = v1::PodBucket::decode(data).expect("a bucket");
        nodewise_proto::pods::whole(bucket).expect("everything that they share")
    };
    buckets.into_iter().flat_map(decode).collect()
}

fn kept_version<'a>(store: &'a Store, name: &str) -> &'a str {
    store.namespaces["ns"].pods.get(name).expect("is kept").version()
}

#[test]
fn a_pod_is_sent_as_it_was_shown() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    let objects = [object("a", 1, Some("u1")), object("b", 1, None)];
    for object in &objects {
        put(&mut store, object);
    }
    let expected = objects.map(|object| Pod::from_json(&object).expect("a pod").projection);
    assert_eq!(sent(&mut store, "u1"), expected);
    assert_eq!(sent(&mut store, "u2"), expected[1..]);
}

// Most pod events change nothing that a plan depends on.
#[test]
fn an_event_without_changes_only_moves_versions_on() {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    store.apply(ClusterEvent::Pods(crate::testing::listed(Vec::new())));
    put(&mut store, &object("a", 1, Some("u1")));
    let mut update = object("a", 2, Some("u1"));
    update["metadata"]["annotations"] = json!({"a": "b"});
    update["status"] = json!({"hostIP": "10.0.0.1"});
    assert!(put(&mut store, &update).is_empty());
    assert_eq!(kept_version(&store, "a"), "2");
    assert_eq!(store.reached(Resource::PODS), "2");
    update["metadata"]["resourceVersion"] = json!("3");
    update["status"] = json!({"phase": "Running"});
    let [Transition::Pod(_, change)] = &put(&mut store, &update)[..] else {
        panic!("the phase is news");
    };
    let phases = [&change.old, &change.new].map(|pod| pod.as_ref().expect("known").phase());
    assert_eq!(phases, [v1::PodPhase::Unspecified, v1::PodPhase::Running]);
}

// A heartbeat only changes a node's resourceVersion.
#[test]
fn a_node_event_without_changes() {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    store.apply(ClusterEvent::Nodes(crate::testing::listed(Vec::new())));
    let apply = |store: &mut Store, version: &str, unschedulable| {
        let object = json!({
            "metadata": {"name": "n1", "resourceVersion": version},
            "spec": {"unschedulable": unschedulable},
        });
        let node = Node::from_json(&object).expect("a node");
        store.apply(ClusterEvent::Nodes(Delta::Applied(node))).len()
    };
    assert_eq!(apply(&mut store, "1", false), 1);
    assert_eq!(apply(&mut store, "2", false), 0);
    assert_eq!(store.reached(Resource::NODES), "2");
    assert_eq!(apply(&mut store, "3", true), 1);
}

// A shared part is stored once, and dropped with its last pod, in whatever way that pod goes.
#[test]
fn shared_parts_go_with_their_last_pod() {
    let one_owner = || {
        let mut store = Store::new(&[DAEMON_SETS], 4);
        for name in ["a", "b"] {
            put(&mut store, &object(name, 1, Some("u1")));
        }
        assert_eq!(store.parts.len(), 1);
        store
    };
    let mut store = one_owner();
    remove(&mut store, &object("a", 2, Some("u1")));
    assert_eq!(store.parts.len(), 1);
    remove(&mut store, &object("b", 2, Some("u1")));
    assert_eq!(store.parts.len(), 0, "by events");
    assert!(store.namespaces.is_empty());

    let mut store = one_owner();
    list(&mut store, &[object("b", 1, Some("u1"))]);
    assert_eq!((store.parts.len(), store.count(Resource::PODS)), (1, 1));
    list(&mut store, &[]);
    assert_eq!(store.parts.len(), 0, "by lists");

    let mut store = one_owner();
    for name in ["a", "b"] {
        put(&mut store, &object(name, 2, Some("u2")));
    }
    assert_eq!(store.parts.len(), 1, "by a change");
    assert_eq!(sent(&mut store, "u1"), []);
    assert_eq!(sent(&mut store, "u2").len(), 2);
    for name in ["a", "b"] {
        let mut foreign = object(name, 3, Some("u2"));
        foreign["metadata"]["ownerReferences"][0]["kind"] = json!("ReplicaSet");
        put(&mut store, &foreign);
    }
    assert_eq!(store.parts.len(), 0, "taken over by a kind that is not kept");

    let mut store = one_owner();
    put(&mut store, &object("orphan", 1, None));
    store.forget_orphan(Resource::PODS, "ns", "a");
    store.forget_orphan(Resource::PODS, "ns", "orphan");
    assert_eq!((store.parts.len(), store.count(Resource::PODS)), (1, 2));
}

// A pod that is bound moves to the bucket of its node, and an adopted pod to the buckets of its owner.
#[test]
fn a_pod_is_in_one_bucket() {
    let mut store = Store::new(&[DAEMON_SETS], 64);
    let mut pod = object("a", 1, None);
    for (version, owner, node) in [
        (2, None, "n2"),
        (3, Some("u1"), "n2"),
        (4, Some("u1"), "n3"),
        (5, None, "n1"),
    ] {
        put(&mut store, &pod);
        pod = object("a", version, owner);
        pod["spec"]["nodeName"] = json!(node);
        put(&mut store, &pod);
        assert_eq!(sent(&mut store, "u1").len(), 1, "at {version}");
        assert_eq!(
            sent(&mut store, "u2").len(),
            usize::from(owner.is_none()),
            "at {version}"
        );
        assert_eq!(store.count(Resource::PODS), 1);
    }
}

// An orphan that cannot be adopted is not sent until it changes, whether it was selected before or is selected later.
// The change need not be in a field that is sent.
#[test]
fn an_orphan_that_is_sealed_is_left_out() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    // For an event that counts as a transition: whether the object was known before.
    let apply = |store: &mut Store, version| match &put(store, &object("a", version, None))[..] {
        [] => None,
        [Transition::Pod(_, change)] => Some(change.old.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(apply(&mut store, 1), Some(false));
    put(&mut store, &object("owned", 1, Some("u1")));
    let seal = |store: &mut Store, name: &str| store.seal(Resource::PODS, "ns", name);
    assert_eq!(sent(&mut store, "u1").len(), 2);
    seal(&mut store, "a");
    seal(&mut store, "owned");
    assert_eq!(
        (sent(&mut store, "u1").len(), sent(&mut store, "u2").len()),
        (1, 0)
    );
    assert_eq!(apply(&mut store, 1), None, "a list may show it again as it is");
    assert_eq!(sent(&mut store, "u1").len(), 1);
    assert_eq!(apply(&mut store, 2), Some(false), "it is as if it came just now");
    assert_eq!(
        (sent(&mut store, "u1").len(), sent(&mut store, "u2").len()),
        (2, 1)
    );
    assert_eq!(apply(&mut store, 3), None, "it changed in nothing that is sent");
    seal(&mut store, "a");
    remove(&mut store, &object("a", 3, None));
    put(&mut store, &object("a", 4, None));
    assert_eq!(sent(&mut store, "u1").len(), 2);
    // After a restart of the resourceVersions, a version says nothing about earlier objects.
    seal(&mut store, "a");
    store.handle_version_restart();
    list(&mut store, &[object("a", 4, None)]);
    assert_eq!(sent(&mut store, "u1").len(), 1);
}

// An orphaned revision that could not be changed enqueues the workloads that select it when it has changed.
#[test]
fn a_sealed_orphan_counts_as_new_after_a_change() {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    let apply = |store: &mut Store, version: &str| {
        let object = json!({"metadata": {"namespace": "ns", "name": "r", "resourceVersion": version}});
        let revision = Revision::from_json(&object).expect("a revision");
        let told = store.apply(ClusterEvent::Revisions(Delta::Applied(revision)));
        match &told[..] {
            [Transition::Revision(change)] => change.old.is_some(),
            other => panic!("{other:?}"),
        }
    };
    assert!(!apply(&mut store, "1"));
    assert!(apply(&mut store, "2"));
    store.seal(Resource::REVISIONS, "ns", "r");
    assert!(!apply(&mut store, "3"));
    assert!(apply(&mut store, "4"));
}

fn page(store: &mut Store, names: &[&str], is_first: bool) {
    let pods = names.iter().map(|name| {
        let object = object(name, 50, Some("u1"));
        Pod::from_json(&object).expect("a pod")
    });
    let pods = pods.collect();
    let transitions = store.apply(ClusterEvent::PodPage { pods, is_first });
    assert!(transitions.is_empty(), "a page is not a list");
}

fn names(store: &mut Store) -> Vec<String> {
    let mut names: Vec<_> = sent(store, "u1").into_iter().map(|pod| pod.name).collect();
    names.sort_unstable();
    names
}

/// The names of the pods that came and of those that went.
fn came_and_went(transitions: &[Transition]) -> (Vec<&str>, Vec<&str>) {
    let (mut came, mut went) = (Vec::new(), Vec::new());
    for transition in transitions {
        let Transition::Pod(_, change) = transition else {
            panic!("{transition:?}");
        };
        match (&change.old, &change.new) {
            (None, Some(new)) => came.push(&*new.name),
            (Some(old), None) => went.push(&*old.name),
            _ => panic!("{change:?}"),
        }
    }
    (came, went)
}

// An incomplete list has no effect. The complete list has the same effect however many pages it had.
#[test]
fn pages_count_when_the_list_is_complete() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    page(&mut store, &["a", "b"], true);
    page(&mut store, &["c"], false);
    assert_eq!(store.count(Resource::PODS), 0);
    assert!(store.unsynced().any(|resource| resource == Resource::PODS));
    let transitions = list(&mut store, &[object("d", 1, Some("u1"))]);
    assert_eq!(came_and_went(&transitions), (vec!["a", "b", "c", "d"], vec![]));
    assert_eq!(names(&mut store), ["a", "b", "c", "d"]);
    let expected = Pod::from_json(&object("a", 50, Some("u1")))
        .expect("a pod")
        .projection;
    assert!(sent(&mut store, "u1").contains(&expected));

    page(&mut store, &["a", "e"], true);
    assert_eq!(
        names(&mut store),
        ["a", "b", "c", "d"],
        "until the list is complete"
    );
    let transitions = list(&mut store, &[object("d", 1, Some("u1"))]);
    let (came, mut went) = came_and_went(&transitions);
    went.sort_unstable();
    assert_eq!(
        (came, went),
        (vec!["e"], vec!["b", "c"]),
        "and a and d are the same"
    );
    assert_eq!(names(&mut store), ["a", "d", "e"]);
}

#[test]
fn pages_of_a_list_that_was_given_up_do_not_count() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    page(&mut store, &["gone"], true);
    page(&mut store, &["a"], true);
    list(&mut store, &[]);
    assert_eq!(names(&mut store), ["a"]);
    page(&mut store, &["b"], true);
    page(&mut store, &[], true);
    list(&mut store, &[]);
    assert_eq!(store.count(Resource::PODS), 0);
    assert_eq!(store.parts.len(), 0, "nor is anything kept of them");
    list(&mut store, &[object("c", 1, Some("u1"))]);
    assert_eq!(names(&mut store), ["c"], "nor do they count twice");
}

/// A DaemonSet of this name whose node selector names these labels.
fn on_nodes(name: &str, labels: &[&str]) -> Workload {
    let terms: Vec<Value> = labels
        .iter()
        .map(|key| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}))
        .collect();
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"spec": {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}},
        },
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

fn put_workload(store: &mut Store, workload: &Workload) {
    store.apply(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(workload.clone()),
    ));
}

fn put_node(store: &mut Store, name: &str, labels: &Value) -> Vec<Transition> {
    let object = json!({"metadata": {"name": name, "uid": "n", "labels": labels}});
    let node = Node::from_json(&object).expect("a node");
    store.apply(ClusterEvent::Nodes(Delta::Applied(node)))
}

/// The label keys of each node, as they would be sent for this workload.
fn sent_keys(store: &mut Store, workload: &Workload) -> Vec<Vec<String>> {
    let buckets = store.node_buckets(workload, &Receiver::EMPTY).buckets;
    let nodes = buckets.into_iter().flat_map(|bucket| {
        let data = bucket.data.expect("inline");
        v1::NodeBucket::decode(data).expect("a bucket").nodes
    });
    let keys = |node: v1::Node| node.labels.into_iter().map(|label| label.key).collect();
    nodes.map(keys).collect()
}

// A label is sent as soon as a DaemonSet names it, whether the DaemonSet or the node came first.
#[test]
fn labels_are_sent_that_a_daemon_set_names() {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    let (a, b, none) = (
        on_nodes("a", &["a"]),
        on_nodes("b", &["b"]),
        on_nodes("none", &[]),
    );
    let labels = json!({"a": "1", "b": "1", "c": "1"});
    put_workload(&mut store, &a);
    put_node(&mut store, "n", &labels);
    assert_eq!(sent_keys(&mut store, &a), [["a"]]);
    put_workload(&mut store, &b);
    assert_eq!(
        sent_keys(&mut store, &a),
        [["a", "b"]],
        "all are sent the same buckets"
    );
    // The removal of a DaemonSet changes no bucket. The next DaemonSet that names a new label does.
    store.apply(ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(b)));
    assert_eq!(sent_keys(&mut store, &a), [["a", "b"]]);
    put_workload(&mut store, &on_nodes("a", &["c"]));
    assert_eq!(sent_keys(&mut store, &none), [["c"]]);
    assert_eq!(
        sent_keys(&mut store, &on_nodes("not-cached", &["a"])),
        [["a", "c"]],
        "nor does one lack anything that the caches do not show yet"
    );
}

// A change that matters to no plan causes no transition and no new bucket.
#[test]
fn a_label_that_nothing_names_causes_no_transition() {
    let mut store = Store::new(&[DAEMON_SETS], 1);
    let a = on_nodes("a", &["a"]);
    put_workload(&mut store, &a);
    assert_eq!(put_node(&mut store, "n", &json!({"a": "1", "x": "1"})).len(), 1);
    let digest = store.node_buckets(&a, &Receiver::EMPTY).buckets[0].digest.clone();
    assert!(put_node(&mut store, "n", &json!({"a": "1", "x": "2", "y": ""})).is_empty());
    let again = store.node_buckets(&a, &Receiver::new(&|known| known[..] == digest[..]));
    assert_eq!((again.written, again.hashed), (0, 0));
    assert!(again.buckets[0].data.is_none());
    let [Transition::Node(change)] = &put_node(&mut store, "n", &json!({"a": "2", "x": "2"}))[..] else {
        panic!("a label that a DaemonSet names is news");
    };
    assert_eq!(
        change.new.as_ref().map(|node| node.labels.len()),
        Some(1),
        "and nothing else is"
    );
    let mut pod = object("p", 1, Some("a"));
    put(&mut store, &pod);
    pod["metadata"]["labels"]["x"] = json!("1");
    pod["metadata"]["resourceVersion"] = json!("2");
    assert!(put(&mut store, &pod).is_empty(), "nor of a pod");
}

// Nodes have most labels in common, so each label is stored once.
#[test]
fn labels_of_nodes_go_with_the_last_node_that_has_them() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    put_node(&mut store, "n", &json!({"a": "1", "b": "1"}));
    put_node(&mut store, "m", &json!({"a": "1", "b": "2"}));
    assert_eq!(store.labels.len(), 3);
    put_node(&mut store, "m", &json!({"a": "1"}));
    assert_eq!(store.labels.len(), 2);
    store.apply(ClusterEvent::Nodes(Delta::Listed {
        objects: Vec::new(),
        resource_version: "100".into(),
    }));
    assert_eq!(store.labels.len(), 0);
}

// No plan is made from half a list of nodes: it would delete the pods of the other nodes.
#[test]
fn nodes_of_a_list_count_when_the_list_is_complete() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    let node = |name: &str| {
        let labels = json!({"kubernetes.io/hostname": name, "of": format!("of {name}")});
        Node::from_json(&json!({"metadata": {"name": name, "resourceVersion": "1", "labels": labels}}))
            .expect("a node")
    };
    let page = |store: &mut Store, names: &[&str], is_first| {
        let nodes = names.iter().map(|name| node(name)).collect();
        assert!(store.apply(ClusterEvent::NodePage { nodes, is_first }).is_empty());
    };
    let complete = |store: &mut Store, last: &[&str]| {
        let nodes = last.iter().map(|name| node(name)).collect();
        let transitions = store.apply(ClusterEvent::Nodes(crate::testing::listed(nodes)));
        let changes = transitions.into_iter().map(|transition| {
            let Transition::Node(change) = transition else {
                panic!("{transition:?}")
            };
            let name = |node: Option<v1::Node>| node.map(|node| node.name);
            (name(change.old), name(change.new))
        });
        changes.collect::<Vec<_>>()
    };
    let some = |name: &str| Some(name.to_owned());
    page(&mut store, &["a", "b"], true);
    assert_eq!(store.count(Resource::NODES), 0);
    assert!(store.unsynced().any(|resource| resource == Resource::NODES));
    let came = complete(&mut store, &["c"]);
    assert_eq!(came, [(None, some("a")), (None, some("b")), (None, some("c"))]);

    page(&mut store, &["given up"], true);
    page(&mut store, &["b"], true);
    page(&mut store, &["d"], false);
    let names = ["a", "b", "c", "d", "given up"];
    let has = |store: &Store| names.map(|name| store.has_node(name));
    assert_eq!(has(&store), [true, true, true, false, false]);
    let mut changes = complete(&mut store, &[]);
    changes.sort_unstable();
    assert_eq!(changes, [(None, some("d")), (some("a"), None), (some("c"), None)]);
    assert_eq!(has(&store), [false, true, false, true, false]);
    assert_eq!(
        store.labels.len(),
        3,
        "those of b and d, which have one in common"
    );
}

// Orphans that a workload does not select are not sent, in whatever order objects came and changed.
#[test]
fn orphans_are_sent_that_the_workload_selects() {
    let mut store = Store::new(&[DAEMON_SETS], 4);
    let selects = |app: &str| {
        let object = json!({
            "metadata": {"namespace": "ns", "name": "foo", "uid": "u1"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        });
        Workload::daemon_set_from_json(&object).expect("a DaemonSet")
    };
    let orphan = |name: &str, version, app: &str, node: &str| {
        let mut orphan = object(name, version, None);
        orphan["metadata"]["labels"] = json!({"app": app, "x": name});
        orphan["spec"]["nodeName"] = json!(node);
        orphan
    };
    let names = |store: &mut Store, app| {
        let buckets = store.pod_buckets(&selects(app), &Receiver::EMPTY).buckets;
        let pods = buckets.into_iter().flat_map(|bucket| {
            let data = bucket.data.expect("inline");
            v1::PodBucket::decode(data).expect("a bucket").pods
        });
        let mut names: Vec<String> = pods.map(|pod| pod.name).collect();
        names.sort_unstable();
        names
    };
    put_workload(&mut store, &selects("a"));
    for (name, app) in [("p", "a"), ("q", "b"), ("r", "a")] {
        put(&mut store, &orphan(name, 1, app, "n1"));
    }
    assert_eq!(names(&mut store, "a"), ["p", "r"]);
    put(&mut store, &orphan("p", 2, "b", "n1"));
    put(&mut store, &orphan("q", 2, "a", "n2"));
    put(&mut store, &orphan("r", 2, "a", "n3"));
    put(&mut store, &orphan("s", 2, "a", "n4"));
    assert_eq!(names(&mut store, "a"), ["q", "r", "s"]);
    remove(&mut store, &orphan("r", 3, "a", "n3"));
    let mut adopted = orphan("q", 3, "a", "n2");
    adopted["metadata"]["ownerReferences"] =
        object("q", 3, Some("u2"))["metadata"]["ownerReferences"].clone();
    put(&mut store, &adopted);
    assert_eq!(names(&mut store, "a"), ["s"]);
    assert_eq!(names(&mut store, "b"), ["p"], "for another selector");
    assert_eq!(names(&mut store, "c"), [""; 0]);
}

// One oversized object must not stop all planning: labels beyond the limit are left out, and that is logged and
// counted.
#[test]
fn what_does_not_fit_is_left_out_and_counted() {
    let keys: Vec<String> = (0..1_030).map(|index| format!("k{index:04}")).collect();
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let labels: Value = keys.iter().map(|key| (key.clone(), json!(""))).collect();
    let (mut store, many) = (Store::new(&[DAEMON_SETS], 1), on_nodes("many", &names));
    put_node(&mut store, "n", &labels);
    let nothing = [(Resource::NODES, 0), (Resource::PODS, 0)];
    assert_eq!(store.take_cuts(), nothing, "as long as nothing names them");
    put_workload(&mut store, &many);
    assert_eq!(store.take_cuts(), [(Resource::NODES, 1), (Resource::PODS, 0)]);
    assert_eq!(sent_keys(&mut store, &many)[0], keys[..1_024]);
    assert_eq!(store.take_cuts(), nothing, "once for each change");
}

// In whatever order labels and DaemonSets came, a bucket has the bytes of the reduced projections.
#[test]
fn buckets_are_those_of_the_reduced_projections() {
    let mut random = SmallRng::seed_from_u64(11);
    let mut store = Store::new(&[DAEMON_SETS], 2);
    let key = |random: &mut SmallRng| ["a", "b", "c", "d"][random.random_range(0..4)];
    let mut nodes: BTreeMap<String, v1::Node> = BTreeMap::new();
    for _ in 0..500 {
        if random.random_bool(0.3) {
            let name = ["x", "y", "z"][random.random_range(0..3)];
            let workload = on_nodes(name, &[key(&mut random)]);
            let is_there = random.random_bool(0.6);
            let delta = if is_there { Delta::Applied } else { Delta::Deleted };
            store.apply(ClusterEvent::Workloads(DAEMON_SETS, delta(workload)));
        }
        let name = format!("n{}", random.random_range(0..6));
        let labels: BTreeMap<_, _> = (0..3)
            .map(|_| (key(&mut random), random.random_range(0..2)))
            .collect();
        let labels: Value = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value.to_string())))
            .collect();
        let object = json!({"metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}], "unschedulable": true}});
        let node = Node::from_json(&object).expect("a node");
        nodes.insert(name, node.projection.clone());
        store.apply(ClusterEvent::Nodes(Delta::Applied(node)));
        let asked = on_nodes("x", &[key(&mut random)]);
        let everything_is_known = random.random_bool(0.5);
        let (is_known, shared_labels) = (|_: &Digest| everything_is_known, random.random_bool(0.5));
        let receiver = Receiver::new(&is_known).reading_shared_labels(shared_labels);
        let rendered = store.node_buckets(&asked, &receiver);
        let keys = store.keys.of_nodes();
        for (index, bucket) in rendered.buckets.iter().enumerate() {
            let members = nodes
                .values()
                .filter(|node| nodewise_proto::bucket::of(&node.name, 2) as usize == index);
            let reduced = members.cloned().map(|mut node| {
                reduce_node(&mut node, keys);
                node
            });
            let expected = if shared_labels {
                nodes::sharing(reduced.collect())
            } else {
                v1::NodeBucket {
                    nodes: reduced.collect(),
                    ..Default::default()
                }
            };
            let digest = Sha256::digest(expected.encode_to_vec());
            assert_eq!(bucket.digest[..], digest[..]);
        }
        let named = |key: &String| {
            keys.sent(&[v1::SharedLabel::of(label(key), "").into()])
                .next()
                .is_some()
        };
        assert!(asked.reads.node_labels.iter().all(named));
    }
}

fn label(key: &str) -> v1::Label {
    v1::Label {
        key: key.into(),
        value: String::new(),
    }
}
