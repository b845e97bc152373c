//! A kind of workload whose pods are in the buckets of their own names, next to one whose pods are in those of their nodes.

use nodewise_proto::bucket::Receiver;
use nodewise_proto::workload::REPLICA_SET;

use super::*;

const SETS: Resource = Resource {
    plural: "replicasets",
    kind: REPLICA_SET,
    ..DAEMON_SETS
};

/// Caches both kinds, in at most this many buckets.
fn both(bucket_count: u32) -> Store {
    let mut store = Store::new(&[DAEMON_SETS], bucket_count);
    store.add_kind(CachedKind {
        resource: SETS,
        reads: &[Resource::PODS],
        pods: Some(Placement::Name),
    });
    store
}

fn set(name: &str, uid: &str, controller: Option<&str>) -> Workload {
    let owners: Vec<_> = controller
        .iter()
        .map(|uid| json!({"kind": "Owner", "name": uid, "uid": uid, "controller": true}))
        .collect();
    let object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1", "ownerReferences": owners},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "foo"}},
            "template": {"metadata": {"labels": {"app": "foo", "tier": "a"}}}},
    });
    Workload::replica_set_from_json(&object).expect("a set")
}

fn show_set(store: &mut Store, set: &Workload) {
    store.apply(ClusterEvent::Workloads(SETS, Delta::Applied(set.clone())));
}

/// A pod of a set.
fn of_set(name: &str, version: u32, uid: &str) -> Value {
    let mut pod = object(name, version, Some(uid));
    pod["metadata"]["ownerReferences"][0]["kind"] = json!(REPLICA_SET);
    pod
}

/// The names of the pods that are sent, and the number of buckets. Each is in the bucket of its name.
fn by_name(store: &mut Store, workload: &Workload) -> (Vec<String>, u32) {
    let buckets = store.pod_buckets(workload, &Receiver::EMPTY).buckets;
    let count = u32::try_from(buckets.len()).expect("few");
    let mut names = Vec::new();
    for (index, bucket) in buckets.into_iter().enumerate() {
        let data = bucket.data.expect("inline");
        for pod in v1::PodBucket::decode(data).expect("a bucket").pods {
            assert_eq!(nodewise_proto::bucket::of(&pod.name, count) as usize, index);
            names.push(pod.name);
        }
    }
    names.sort_unstable();
    (names, count)
}

// a pod moves to another bucket with neither its node nor its phase, only with its owner.
#[test]
fn pods_are_in_the_buckets_of_their_names() {
    let mut store = both(8);
    let (mine, other) = (set("foo", "u1", None), set("other", "u2", None));
    assert_eq!(by_name(&mut store, &mine), (vec![], 1), "nothing is cached");
    for index in 0..300 {
        put(&mut store, &of_set(&format!("p{index}"), 1, "u1"));
    }
    let (names, count) = by_name(&mut store, &mine);
    assert_eq!((names.len(), count), (300, 4));
    for index in 0..100 {
        let mut moved = of_set(&format!("p{index}"), 2, "u1");
        moved["spec"]["nodeName"] = json!(format!("n{index}"));
        put(&mut store, &moved);
    }
    let (names, count) = by_name(&mut store, &mine);
    assert_eq!((names.len(), count), (300, 4));
    for index in 0..200 {
        put(&mut store, &of_set(&format!("p{index}"), 3, "u2"));
    }
    assert_eq!(by_name(&mut store, &mine).0.len(), 100);
    assert_eq!(by_name(&mut store, &other).0.len(), 200);
    for index in 0..300 {
        remove(&mut store, &of_set(&format!("p{index}"), 4, "u1"));
    }
    assert_eq!(by_name(&mut store, &mine), (vec![], 1));
    assert_eq!(by_name(&mut store, &other), (vec![], 1));
    assert!(store.namespaces.is_empty());
    assert_eq!(store.parts.len(), 0);
}

// Orphans are sent in the buckets of both kinds, however many buckets a workload has.
#[test]
fn orphans_are_in_the_buckets_of_each_kind() {
    let mut store = both(8);
    let (mine, daemons) = (set("foo", "u1", None), workload("foo", "d1"));
    for name in ["a", "b", "c"] {
        put(&mut store, &object(name, 1, None));
    }
    let expected = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(by_name(&mut store, &mine), (expected.clone(), 1));
    assert_eq!(sent(&mut store, "d1").len(), 3);
    let node_buckets = store.pod_buckets(&daemons, &Receiver::EMPTY).buckets;
    let filled = node_buckets
        .iter()
        .filter(|bucket| bucket.data.as_ref().is_some_and(|data| !data.is_empty()));
    assert_eq!(
        (node_buckets.len(), filled.count()),
        (8, 1),
        "all are on one node"
    );
    // With more pods of its own there are more buckets, also for the orphans.
    for index in 0..200 {
        put(&mut store, &of_set(&format!("p{index}"), 1, "u1"));
    }
    let (names, count) = by_name(&mut store, &mine);
    assert_eq!((names.len(), count), (203, 2));
    put(&mut store, &object("d", 1, None));
    remove(&mut store, &object("a", 2, None));
    put(&mut store, &of_set("b", 2, "u1"));
    assert_eq!(by_name(&mut store, &mine).0.len(), 203);
    assert_eq!(sent(&mut store, "d1").len(), 2, "c and d");
    store.seal(Resource::PODS, "ns", "c");
    assert_eq!(by_name(&mut store, &mine).0.len(), 202);
    assert_eq!(sent(&mut store, "d1").len(), 1);
}

// Anyone may create a pod that names the uid of a workload and another kind.
// pods are kept by their owner.
#[test]
fn a_pod_that_names_another_kind_is_not_among_the_pods_of_the_workload() {
    let mut store = both(8);
    put(&mut store, &of_set("a", 1, "d1"));
    put(&mut store, &object("b", 1, Some("d1")));
    put(&mut store, &object("c", 1, Some("u1")));
    put(&mut store, &of_set("d", 1, "u1"));
    let sent: Vec<_> = sent(&mut store, "d1").into_iter().map(|pod| pod.name).collect();
    assert_eq!(sent, ["b"]);
    assert_eq!(
        by_name(&mut store, &set("foo", "u1", None)),
        (vec!["d".to_owned()], 1)
    );
    put(&mut store, &object("a", 2, Some("d1")));
    assert_eq!(super::sent(&mut store, "d1").len(), 2);
}

// plans count the pods that have all labels of the template.
#[test]
fn labels_of_the_template_are_sent() {
    let mut store = both(1);
    let mine = set("foo", "u1", None);
    show_set(&mut store, &mine);
    let mut pod = of_set("p", 1, "u1");
    pod["metadata"]["labels"] = json!({"app": "foo", "tier": "a", "other": "x"});
    put(&mut store, &pod);
    let bucket = store.pod_buckets(&mine, &Receiver::EMPTY).buckets.remove(0);
    let bucket = v1::PodBucket::decode(bucket.data.expect("inline")).expect("a bucket");
    let keys: Vec<_> = bucket.shared_metadata[0]
        .labels
        .iter()
        .map(|label| &*label.key)
        .collect();
    assert_eq!(keys, ["app", "tier"]);
}

#[test]
fn live_pods_of_a_workload_are_counted() {
    let mut store = both(8);
    let mine = set("foo", "u1", None);
    put(&mut store, &of_set("a", 1, "u1"));
    let mut deleting = of_set("b", 1, "u1");
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    put(&mut store, &deleting);
    let mut unselected = of_set("c", 1, "u1");
    unselected["metadata"]["labels"] = json!({"app": "bar"});
    put(&mut store, &unselected);
    put(&mut store, &of_set("d", 1, "u1"));
    let expected = LivePods {
        count: 2,
        changed: store.last_change(),
    };
    assert_eq!(store.live_pods_beyond(&mine, 3), Some(expected));
    assert_eq!(store.live_pods_beyond(&mine, 4), None);
    assert_eq!(store.controlled_pods(&mine).count(), 4);
    let other = store.live_pods_beyond(&set("bar", "u1", None), 0);
    assert_eq!(other.map(|live| live.count), Some(0), "the name differs");
}

fn names<'a>(workloads: impl Iterator<Item = &'a Arc<Workload>>) -> Vec<&'a str> {
    workloads.map(|workload| &*workload.key.name).collect()
}

// Workloads by the uid of their controller.
#[test]
fn workloads_are_found_by_their_controller() {
    let mut store = both(1);
    let owner = Workload {
        key: Key::new("Owner", "ns", "c1"),
        uid: "c1".into(),
        ..set("c1", "c1", None)
    };
    let labelled = |mut set: Workload| {
        set.labels = vec![v1::Label {
            key: "app".into(),
            value: "foo".into(),
        }];
        set
    };
    for set in [
        set("a", "u1", Some("c1")),
        set("b", "u2", Some("c2")),
        labelled(set("c", "u3", None)),
        set("d", "u4", Some("c1")),
        set("e", "u5", None),
    ] {
        show_set(&mut store, &set);
    }
    assert_eq!(names(store.controlled(REPLICA_SET, &owner)), ["a", "d"]);
    assert_eq!(names(store.orphans(REPLICA_SET, &owner)), ["c"]);
    assert_eq!(names(store.siblings(&set("d", "u4", Some("c1")))), ["a", "d"]);
    assert_eq!(names(store.siblings(&set("e", "u5", None))), [""; 0]);
    show_set(&mut store, &set("d", "u4", Some("c2")));
    show_set(&mut store, &set("c", "u3", Some("c1")));
    store.apply(ClusterEvent::Workloads(
        SETS,
        Delta::Deleted(set("a", "u1", None)),
    ));
    assert_eq!(names(store.controlled(REPLICA_SET, &owner)), ["c"]);
    assert_eq!(names(store.workloads_of(REPLICA_SET)), ["b", "c", "d", "e"]);
    assert_eq!(store.count(SETS), 4);
}

// Workloads of one kind are not mixed up with those of another, and a list of one removes none of the other.
#[test]
fn workloads_of_both_kinds_may_have_equal_names() {
    let mut store = both(1);
    put_workload(&mut store, &workload("foo", "d1"));
    show_set(&mut store, &set("foo", "u1", None));
    assert_eq!(store.count(SETS) + store.count(DAEMON_SETS), 2);
    store.apply(ClusterEvent::Workloads(SETS, crate::testing::listed(Vec::new())));
    assert_eq!((store.count(SETS), store.count(DAEMON_SETS)), (0, 1));
}

// A plan may be wrong about a workload that has changed since the snapshot.
#[test]
fn changes_of_workloads_are_numbered() {
    let mut store = both(1);
    let changed = |store: &Store, name| store.changed(SETS, "ns", name);
    show_set(&mut store, &set("a", "u1", None));
    let first = store.last_change();
    show_set(&mut store, &set("b", "u2", None));
    show_set(&mut store, &set("a", "u1", None));
    assert_eq!(changed(&store, "a"), first, "shown again as it was");
    let newer = Workload {
        resource_version: "2".into(),
        ..set("a", "u1", None)
    };
    show_set(&mut store, &newer);
    assert_eq!(changed(&store, "a"), store.last_change());
    assert_eq!(changed(&store, "gone"), 0);
    store.apply(ClusterEvent::Workloads(
        SETS,
        Delta::Deleted(set("b", "u2", None)),
    ));
    assert_eq!(changed(&store, "b"), store.last_change());
}

// Only the kinds whose plans are made from revisions need their data.
#[test]
fn revisions_are_not_kept_for_a_kind_that_does_not_read_them() {
    let revision = |name: &str| {
        let object = json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1",
            "labels": {"app": "foo"}}, "data": {"a": "b"}});
        ClusterEvent::Revisions(Delta::Applied(Revision::from_json(&object).expect("a revision")))
    };
    let mut store = both(1);
    show_set(&mut store, &set("foo", "u1", None));
    store.apply(revision("a"));
    assert_eq!(store.revision_bytes(), 0);
    put_workload(&mut store, &workload("foo", "d1"));
    store.apply(revision("b"));
    assert!(store.revision_bytes() > 0);
}

// The apiserver did not find an orphan that was to be adopted. Its watch shows that later.
#[test]
fn an_orphan_that_is_gone_is_forgotten() {
    let mut store = both(1);
    for set in [set("a", "u1", Some("c1")), set("b", "u2", None)] {
        show_set(&mut store, &set);
    }
    for name in ["a", "b", "c"] {
        store.forget_orphan(SETS, "ns", name);
        store.seal(SETS, "ns", name);
    }
    assert_eq!(names(store.workloads_of(REPLICA_SET)), ["a"]);
}
