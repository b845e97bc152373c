//! What is kept of pods, and what of that is news.

use nodewise_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::event::Node;

fn object(name: &str, version: u32, owner: Option<&str>) -> Value {
    let owners: Vec<_> = owner
        .iter()
        .map(|uid| json!({"kind": KIND, "name": "foo", "uid": uid, "controller": true}))
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
fn workload(name: &str, uid: &str) -> DaemonSet {
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
    });
    DaemonSet::from_json(&object).expect("a DaemonSet")
}

/// The pods as they would be sent for this uid.
fn sent(store: &mut Store, uid: &str) -> Vec<v1::Pod> {
    let buckets = store.pod_buckets(&workload("foo", uid), &|_| false).buckets;
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
    let mut store = Store::new(4);
    let objects = [object("a", 1, Some("u1")), object("b", 1, None)];
    for object in &objects {
        put(&mut store, object);
    }
    let expected = objects.map(|object| Pod::from_json(&object).expect("a pod").projection);
    assert_eq!(sent(&mut store, "u1"), expected);
    assert_eq!(sent(&mut store, "u2"), expected[1..]);
}

// Most events of a pod change nothing that a plan depends on.
#[test]
fn an_event_without_news_moves_the_versions_on_and_nothing_else() {
    let mut store = Store::new(1);
    put(&mut store, &object("a", 1, Some("u1")));
    let mut update = object("a", 2, Some("u1"));
    update["metadata"]["annotations"] = json!({"a": "b"});
    update["status"] = json!({"hostIP": "10.0.0.1"});
    assert!(put(&mut store, &update).is_empty());
    assert_eq!(kept_version(&store, "a"), "2");
    assert_eq!(store.reached(Resource::Pods), "2");
    update["metadata"]["resourceVersion"] = json!("3");
    update["status"] = json!({"phase": "Running"});
    let [Transition::Pod(_, change)] = &put(&mut store, &update)[..] else {
        panic!("the phase is news");
    };
    let phases = [&change.old, &change.new].map(|pod| pod.as_ref().expect("known").phase());
    assert_eq!(phases, [v1::PodPhase::Unspecified, v1::PodPhase::Running]);
}

// A heartbeat moves the version of a node on.
#[test]
fn a_node_without_news() {
    let mut store = Store::new(1);
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
    assert_eq!(store.reached(Resource::Nodes), "2");
    assert_eq!(apply(&mut store, "3", true), 1);
}

// What pods share is kept once, and not longer than the last pod that has it, however that one goes.
#[test]
fn shared_parts_go_with_their_last_pod() {
    let one_owner = || {
        let mut store = Store::new(4);
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
    assert_eq!((store.parts.len(), store.count(Resource::Pods)), (1, 1));
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
    store.forget_orphan(Resource::Pods, "ns", "a");
    store.forget_orphan(Resource::Pods, "ns", "orphan");
    assert_eq!((store.parts.len(), store.count(Resource::Pods)), (1, 2));
}

// A pod that is bound moves to the bucket of its node, one that is adopted to those of its owner.
#[test]
fn a_pod_is_in_one_place() {
    let mut store = Store::new(64);
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
        assert_eq!(store.count(Resource::Pods), 1);
    }
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

// M-25: half a list is none, and the whole of it is one however many pages it came in.
#[test]
fn pages_count_when_the_list_is_complete() {
    let mut store = Store::new(4);
    page(&mut store, &["a", "b"], true);
    page(&mut store, &["c"], false);
    assert_eq!(store.count(Resource::Pods), 0);
    assert!(store.unsynced().any(|resource| resource == Resource::Pods));
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
    let mut store = Store::new(4);
    page(&mut store, &["gone"], true);
    page(&mut store, &["a"], true);
    list(&mut store, &[]);
    assert_eq!(names(&mut store), ["a"]);
    page(&mut store, &["b"], true);
    page(&mut store, &[], true);
    list(&mut store, &[]);
    assert_eq!(store.count(Resource::Pods), 0);
    assert_eq!(store.parts.len(), 0, "nor is anything kept of them");
    list(&mut store, &[object("c", 1, Some("u1"))]);
    assert_eq!(names(&mut store), ["c"], "nor do they count twice");
}
