//! The cluster: what ticks do, what is counted, and what the apiserver refuses.

use jiff::Timestamp;
use nodewise_simulator::{Cluster, Config, ObjectKey, Patch, Reason, Refusal, Resource, WatchCache};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn daemon_set(surge: u32) -> Value {
    json!({
        "metadata": {"name": "agent", "namespace": "demo"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "agent:1"}]},
            },
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": u32::from(surge == 0), "maxSurge": surge}},
        },
    })
}

/// A cluster with a DaemonSet.
struct Setup {
    cluster: Cluster,
    key: ObjectKey,
    /// The DaemonSet as it was created.
    owner: Value,
}

fn setup(surge: u32, nodes: usize) -> Setup {
    let config = Config {
        start_ticks: 2,
        stop_ticks: 1,
    };
    let mut cluster = Cluster::new(config, NOW);
    for number in 0..nodes {
        cluster.add_node(&format!("node-{number}"), &[]);
    }
    let key = cluster.create_daemon_set(daemon_set(surge)).expect("created");
    let owner = cluster.read(&key).expect("there").clone();
    Setup { cluster, key, owner }
}

impl Setup {
    /// Creates a pod of the DaemonSet for one node.
    fn create(&mut self, name: &str, node: &str) -> Result<ObjectKey, Refusal> {
        let required = json!({"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        ]});
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"app": "agent"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
                                     "uid": self.owner["metadata"]["uid"], "controller": true}],
            },
            "spec": {
                "containers": [{"name": "c", "image": "agent:1"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            },
        });
        self.cluster.create(Resource::Pods, "demo", pod)
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.cluster.tick(NOW));
    }
}

#[test]
fn pods_are_bound_start_and_stop_by_ticks_alone() {
    let mut setup = setup(0, 2);
    let pod = setup.create("a", "node-0").expect("created");
    setup.ticks(2);
    assert_eq!(setup.cluster.counts(&setup.key).available, 0);
    setup.ticks(1);
    let counts = setup.cluster.counts(&setup.key);
    assert_eq!((counts.available, counts.updated, counts.pods), (1, 1, 1));
    setup.cluster.delete(&pod, None).expect("accepted");
    let counts = setup.cluster.counts(&setup.key);
    assert_eq!((counts.available, counts.deleting, counts.deleted), (0, 1, 1));
    setup.ticks(1);
    assert_eq!(setup.cluster.counts(&setup.key).pods, 0);
}

#[test]
fn a_pod_that_no_kubelet_runs_is_deleted_at_once() {
    let mut setup = setup(0, 1);
    let pod = setup.create("a", "node-0").expect("created");
    setup.cluster.delete(&pod, None).expect("accepted");
    assert_eq!(setup.cluster.list(Resource::Pods).count(), 0);
}

#[test]
fn each_part_of_a_tick_can_be_run_by_itself() {
    let mut setup = setup(0, 2);
    let pods = ["node-0", "node-1"].map(|node| setup.create(node, node).expect("created"));
    setup.cluster.bind_pods();
    for pod in &pods {
        setup.cluster.set_ready(pod, true).expect("there");
    }
    assert_eq!(setup.cluster.counts(&setup.key).available, 2);
    setup.cluster.set_ready(&pods[0], false).expect("there");
    setup.cluster.fail_pod(&pods[1]).expect("there");
    assert_eq!(setup.cluster.counts(&setup.key).available, 0);
    // A finished pod stays finished.
    setup.cluster.set_ready(&pods[1], true).expect("there");
    setup.ticks(9);
    let phase = |setup: &Setup| setup.cluster.read(&pods[1]).expect("there")["status"]["phase"].clone();
    assert_eq!(phase(&setup), "Failed");
    assert_eq!(setup.cluster.counts(&setup.key).available, 1);

    setup.cluster.delete(&pods[1], None).expect("accepted");
    setup.cluster.finish_deletions();
    setup.cluster.remove_node("node-0");
    assert_eq!(setup.cluster.list(Resource::Pods).count(), 1);
    setup.cluster.remove_pods_of_missing_nodes();
    assert_eq!(setup.cluster.list(Resource::Pods).count(), 0);
    let gone = setup.cluster.set_ready(&pods[0], true).expect_err("gone");
    assert_eq!(gone.reason, Reason::NotFound);
}

#[test]
fn the_most_unavailable_nodes_are_remembered() {
    let mut setup = setup(0, 3);
    for number in 0..3 {
        setup
            .create(&format!("p{number}"), &format!("node-{number}"))
            .expect("created");
    }
    setup.ticks(3);
    setup.cluster.reset_counts();
    assert_eq!(setup.cluster.counts(&setup.key).max_unavailable, 0);
    setup.cluster.break_node("node-1").expect("there");
    setup.cluster.break_node("node-2").expect("there");
    setup.ticks(5);
    assert_eq!(setup.cluster.counts(&setup.key).available, 1);
    setup.cluster.recover_node("node-1").expect("there");
    setup.cluster.recover_node("node-2").expect("there");
    setup.ticks(2);
    let counts = setup.cluster.counts(&setup.key);
    assert_eq!((counts.available, counts.max_unavailable), (3, 2));
}

#[test]
fn the_most_surging_nodes_are_remembered() {
    let mut setup = setup(1, 2);
    for (name, node) in [("a", "node-0"), ("b", "node-0"), ("c", "node-1"), ("d", "node-1")] {
        setup.create(name, node).expect("created");
    }
    setup.ticks(1);
    assert_eq!(setup.cluster.counts(&setup.key).max_surging, 2);
    let b = ObjectKey::new(Resource::Pods, "demo", "b");
    setup.cluster.delete(&b, None).expect("accepted");
    assert_eq!(setup.cluster.counts(&setup.key).max_surging, 2);
    setup.cluster.reset_counts();
    let counts = setup.cluster.counts(&setup.key);
    assert_eq!(
        counts.max_surging, 1,
        "a pod that is being deleted does not count"
    );
}

#[test]
fn duplicates_are_noticed() {
    for (surge, pods, duplicates) in [(0, 1, 0), (0, 2, 1), (1, 2, 0), (1, 3, 1)] {
        let mut setup = setup(surge, 1);
        for number in 0..pods {
            setup.create(&format!("p{number}"), "node-0").expect("created");
        }
        let counts = setup.cluster.counts(&setup.key);
        assert_eq!(counts.duplicates, duplicates, "surge {surge}, {pods} pods");
    }
    // Without surge the former pod must be gone; with surge it may still be being deleted.
    for (surge, duplicates) in [(0, 1), (1, 0)] {
        let mut setup = setup(surge, 1);
        let a = setup.create("a", "node-0").expect("created");
        setup.ticks(1);
        setup.cluster.delete(&a, None).expect("accepted");
        setup.create("b", "node-0").expect("created");
        let counts = setup.cluster.counts(&setup.key);
        assert_eq!(counts.duplicates, duplicates, "surge {surge}");
    }
}

#[test]
fn refuses_what_an_apiserver_refuses() {
    let mut setup = setup(0, 1);
    let key = setup.create("a", "node-0").expect("created");
    let reason = |result: Result<(), Refusal>| result.expect_err("refused").reason;
    let again = setup.create("a", "node-0").map(drop);
    assert_eq!(reason(again), Reason::AlreadyExists);
    let (owner, daemon_set) = (setup.owner.clone(), setup.key.clone());
    let cluster = &mut setup.cluster;
    assert_eq!(reason(cluster.delete(&key, Some("other"))), Reason::Conflict);
    let wrong = Patch::Strategic(json!({"metadata": {"uid": "other"}}));
    assert_eq!(reason(cluster.patch(&key, &wrong)), Reason::Invalid);
    let none = ObjectKey::new(Resource::Pods, "demo", "none");
    assert_eq!(reason(cluster.delete(&none, None)), Reason::NotFound);
    cluster.replace_status(&daemon_set, &owner).expect("fresh");
    assert_eq!(
        reason(cluster.replace_status(&daemon_set, &owner)),
        Reason::Conflict
    );
    for nameless in [json!({}), json!({"metadata": {}})] {
        let refused = cluster.create(Resource::Pods, "demo", nameless).map(drop);
        assert_eq!(reason(refused), Reason::Invalid);
    }
}

#[test]
fn objects_that_are_not_valid_are_refused_and_change_nothing() {
    let validate = |resource, object: &Value| match &object["metadata"]["labels"]["app"] {
        app if resource == Resource::Pods && app != "agent" => Err(format!("app is {app}")),
        _ => Ok(()),
    };
    let mut setup = setup(0, 1);
    setup.cluster = setup.cluster.validated_by(validate);
    let key = setup.create("a", "node-0").expect("created");
    let version = setup.cluster.version();
    let other = json!({"metadata": {"labels": {"app": "other"}}});
    let refused = setup
        .cluster
        .patch(&key, &Patch::Merge(other))
        .expect_err("refused");
    assert_eq!(
        (refused.reason, refused.to_string()),
        (Reason::Invalid, "app is \"other\"".to_owned())
    );
    let bare = json!({"metadata": {"name": "b"}});
    let refused = setup.cluster.create(Resource::Pods, "demo", bare);
    assert_eq!(refused.expect_err("refused").reason, Reason::Invalid);
    assert_eq!(setup.cluster.version(), version);
}

// D-27: the bodies of the patches for adoption and release.
#[test]
fn pods_change_hands() {
    let mut setup = setup(0, 1);
    let pod = setup.create("a", "node-0").expect("created");
    let uid = setup.cluster.read(&pod).expect("there")["metadata"]["uid"].clone();
    let ds_uid = &setup.owner["metadata"]["uid"];
    let release = json!({"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": ds_uid}]}});
    setup
        .cluster
        .patch(&pod, &Patch::Strategic(release))
        .expect("released");
    assert_eq!(setup.cluster.counts(&setup.key).pods, 0);
    let reference = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": ds_uid,
                           "controller": true, "blockOwnerDeletion": true});
    let adopt = json!({"metadata": {"uid": uid, "ownerReferences": [reference]}});
    setup
        .cluster
        .patch(&pod, &Patch::Strategic(adopt))
        .expect("adopted");
    assert_eq!(setup.cluster.counts(&setup.key).pods, 1);
}

// D-114, D-118: defaults and generations.
#[test]
fn generations_grow_with_changes() {
    let mut setup = setup(0, 1);
    assert_eq!(setup.owner["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(setup.owner["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let generations = |setup: &Setup| {
        let metadata = &setup.cluster.read(&setup.key).expect("there")["metadata"];
        let template = metadata["annotations"]["deprecated.daemonset.template.generation"].clone();
        (
            metadata["generation"].as_i64().expect("a number"),
            template.as_str().expect("text").to_owned(),
        )
    };
    assert_eq!(generations(&setup), (1, "1".to_owned()));
    let key = setup.key.clone();
    setup
        .cluster
        .update_daemon_set(&key, |spec| spec["minReadySeconds"] = json!(0))
        .expect("there");
    assert_eq!(generations(&setup), (2, "1".to_owned()));
    let image = |spec: &mut Value| spec["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    setup.cluster.update_daemon_set(&key, image).expect("there");
    assert_eq!(generations(&setup), (3, "2".to_owned()));
    setup.cluster.update_daemon_set(&key, image).expect("there");
    assert_eq!(generations(&setup), (3, "2".to_owned()), "nothing changed");
}

#[test]
fn a_cache_shows_what_was_until_it_catches_up() {
    let mut setup = setup(0, 1);
    let names = |cache: &WatchCache| {
        let names = cache.objects().map(|pod| pod["metadata"]["name"].clone());
        names.collect::<Vec<_>>()
    };
    let a = setup.create("a", "node-0").expect("created");
    let mut cache = WatchCache::list(&setup.cluster, Resource::Pods);
    assert_eq!(cache.version(), setup.cluster.version());
    setup.create("b", "node-0").expect("created");
    let with_both = setup.cluster.version();
    setup.cluster.delete(&a, None).expect("gone at once");
    assert_eq!(names(&cache), ["a"]);
    cache.catch_up(&setup.cluster, with_both);
    assert_eq!(names(&cache), ["a", "b"]);
    cache.catch_up(&setup.cluster, setup.cluster.version());
    assert_eq!(names(&cache), ["b"]);
    // Nothing goes back in time.
    cache.catch_up(&setup.cluster, with_both);
    assert_eq!(names(&cache), ["b"]);

    // What is forgotten is only the history.
    setup.cluster.compact(with_both);
    assert_eq!(setup.cluster.changes_after(0).count(), 1);
    let deletion = setup.cluster.changes_after(0).next().expect("one");
    assert!(deletion.is_deleted && deletion.key == a);
    assert_eq!(names(&WatchCache::list(&setup.cluster, Resource::Pods)), ["b"]);
}

#[test]
fn equal_calls_give_equal_clusters() {
    let run = || {
        let mut setup = setup(0, 3);
        for node in ["node-2", "node-0", "node-1"] {
            setup.create(node, node).expect("created");
        }
        setup.ticks(4);
        setup.cluster.break_node("node-1").expect("there");
        let objects = Resource::ALL.map(|resource| {
            let objects = setup.cluster.list(resource).map(Value::to_string);
            objects.collect::<Vec<_>>()
        });
        (objects, setup.cluster.version())
    };
    assert_eq!(run(), run());
}

/// A Deployment with a ReplicaSet, whose pods the scheduler spreads over the nodes.
#[test]
fn pods_of_a_deployment_are_counted() {
    let mut cluster = Cluster::new(Config::default(), Timestamp::UNIX_EPOCH);
    for node in ["a", "b"] {
        cluster.add_node(node, &[]);
    }
    let containers = json!([{"name": "web", "image": "web:1"}]);
    let deployment = cluster
        .create_deployment(json!({
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "template": {"spec": {"containers": containers}}},
        }))
        .expect("created");
    let owner = |kind: &str, object: &Value| {
        let metadata = &object["metadata"];
        json!([{"kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": true}])
    };
    let owners = owner("Deployment", cluster.read(&deployment).expect("there"));
    let set = json!({"metadata": {"name": "web-1", "ownerReferences": owners}, "spec": {"replicas": 3}});
    let set = cluster
        .create(Resource::ReplicaSets, "default", set)
        .expect("created");
    let owners = owner("ReplicaSet", cluster.read(&set).expect("there"));
    let mut pods = Vec::new();
    for name in ["web-1-a", "web-1-b", "web-1-c"] {
        let pod = json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": {"containers": containers}});
        pods.push(cluster.create(Resource::Pods, "default", pod).expect("created"));
    }
    for _ in 0..4 {
        cluster.tick(Timestamp::UNIX_EPOCH);
    }
    let nodes: Vec<_> = pods
        .iter()
        .map(|pod| cluster.read(pod).expect("there")["spec"]["nodeName"].clone())
        .collect();
    assert_eq!(nodes, ["a", "b", "a"]);
    let counts = cluster.counts(&deployment);
    assert_eq!(
        (counts.nodes, counts.pods, counts.available, counts.updated),
        (2, 3, 3, 3)
    );
    assert_eq!(
        (counts.created, counts.max_unavailable, counts.max_surging),
        (3, 2, 1)
    );

    cluster.reset_counts();
    cluster.delete(&pods[0], None).expect("deleted");
    let counts = cluster.counts(&deployment);
    assert_eq!((counts.deleting, counts.deleted, counts.available), (1, 1, 2));
    assert_eq!(
        (counts.max_unavailable, counts.max_surging),
        (0, 1),
        "since the reset"
    );

    // A status patch leaves the spec alone; a patch of the spec raises the generation.
    let status = json!({"spec": {"replicas": 7}, "status": {"replicas": 2}});
    cluster
        .patch_status(&set, &Patch::Merge(status))
        .expect("patched");
    let scale = json!({"metadata": {"resourceVersion": "0"}, "spec": {"replicas": 4}});
    let refused = cluster
        .patch(&set, &Patch::Merge(scale))
        .expect_err("an old version");
    assert_eq!(refused.reason, Reason::Conflict);
    cluster
        .patch(&set, &Patch::Merge(json!({"spec": {"replicas": 4}})))
        .expect("patched");
    let object = cluster.read(&set).expect("there");
    assert_eq!(
        (&object["spec"]["replicas"], &object["status"]["replicas"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(
        cluster.counts(&deployment).max_surging,
        2,
        "the size counts, not the pods"
    );
    assert_eq!(object["metadata"]["generation"], 2);
}
