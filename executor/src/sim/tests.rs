use futures::StreamExt as _;
use nodewise_runtime::{
    Delta,
    actuator::{Actuator as _, Patch, Refusal},
};
use serde_json::json;

use super::*;

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

/// A pod of the DaemonSet with that uid, for one node.
fn pod(name: &str, node: &str, owner: &Value) -> bytes::Bytes {
    json!({
        "metadata": {
            "name": name,
            "labels": {"app": "agent"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent",
                                 "uid": owner["metadata"]["uid"], "controller": true}],
        },
        "spec": {
            "containers": [{"name": "c", "image": "agent:1"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
            ]}}},
        },
    })
    .to_string()
    .into()
}

fn cluster(surge: u32, nodes: usize) -> (SimCluster, Key, Value) {
    let cluster = SimCluster::new(
        SimConfig {
            start_ticks: 2,
            stop_ticks: 1,
        },
        NOW,
    );
    for number in 0..nodes {
        cluster.add_node(&format!("node-{number}"), &[]);
    }
    let key = cluster.create_daemon_set(daemon_set(surge)).expect("created");
    let object = cluster.daemon_set(&key).expect("there");
    (cluster, key, object)
}

async fn create(cluster: &SimCluster, name: &str, node: &str, owner: &Value) -> Result<(), ActuatorError> {
    cluster
        .actuator()
        .create(Resource::PODS, "demo", pod(name, node, owner))
        .await
        .map(drop)
}

#[tokio::test]
async fn pods_are_bound_start_and_stop_by_ticks_alone() {
    let (cluster, key, owner) = cluster(0, 2);
    create(&cluster, "a", "node-0", &owner).await.expect("created");
    cluster.tick(NOW);
    cluster.tick(NOW);
    assert_eq!(cluster.pod_counts(&key).available, 0);
    cluster.tick(NOW);
    let counts = cluster.pod_counts(&key);
    assert_eq!((counts.available, counts.updated, counts.pods), (1, 1, 1));
    let pod_key = ObjectKey::new(Resource::PODS, "demo", "a");
    cluster.actuator().delete(&pod_key, None).await.expect("accepted");
    let counts = cluster.pod_counts(&key);
    assert_eq!((counts.available, counts.deleting, counts.deleted), (0, 1, 1));
    cluster.tick(NOW);
    assert_eq!(cluster.pod_counts(&key).pods, 0);
}

#[tokio::test]
async fn the_most_unavailable_nodes_are_remembered() {
    let (cluster, key, owner) = cluster(0, 3);
    for number in 0..3 {
        create(&cluster, &format!("p{number}"), &format!("node-{number}"), &owner)
            .await
            .expect("created");
    }
    (0..3).for_each(|_| cluster.tick(NOW));
    cluster.reset_counts();
    assert_eq!(cluster.pod_counts(&key).max_unavailable, 0);
    cluster.break_node("node-1").expect("there");
    cluster.break_node("node-2").expect("there");
    (0..5).for_each(|_| cluster.tick(NOW));
    assert_eq!(cluster.pod_counts(&key).available, 1);
    cluster.recover_node("node-1").expect("there");
    cluster.recover_node("node-2").expect("there");
    (0..2).for_each(|_| cluster.tick(NOW));
    let counts = cluster.pod_counts(&key);
    assert_eq!((counts.available, counts.max_unavailable), (3, 2));
}

#[tokio::test]
async fn the_most_surging_nodes_are_remembered() {
    let (cluster, key, owner) = cluster(1, 2);
    for (name, node) in [("a", "node-0"), ("b", "node-0"), ("c", "node-1"), ("d", "node-1")] {
        create(&cluster, name, node, &owner).await.expect("created");
    }
    cluster.tick(NOW);
    assert_eq!(cluster.pod_counts(&key).max_surging, 2);
    let b = ObjectKey::new(Resource::PODS, "demo", "b");
    cluster.actuator().delete(&b, None).await.expect("accepted");
    assert_eq!(cluster.pod_counts(&key).max_surging, 2);
    cluster.reset_counts();
    assert_eq!(
        cluster.pod_counts(&key).max_surging,
        1,
        "the one on its way out counts no more"
    );
}

#[tokio::test]
async fn duplicates_are_noticed() {
    for (surge, pods, duplicates) in [(0, 1, 0), (0, 2, 1), (1, 2, 0), (1, 3, 1)] {
        let (cluster, key, owner) = cluster(surge, 1);
        for number in 0..pods {
            create(&cluster, &format!("p{number}"), "node-0", &owner)
                .await
                .expect("created");
        }
        assert_eq!(
            cluster.pod_counts(&key).duplicates,
            duplicates,
            "surge {surge}, {pods} pods"
        );
    }
    // Without surge the former pod must be gone; with surge it may still be being deleted.
    for (surge, duplicates) in [(0, 1), (1, 0)] {
        let (cluster, key, owner) = cluster(surge, 1);
        create(&cluster, "a", "node-0", &owner).await.expect("created");
        cluster.tick(NOW);
        cluster
            .actuator()
            .delete(&ObjectKey::new(Resource::PODS, "demo", "a"), None)
            .await
            .expect("accepted");
        create(&cluster, "b", "node-0", &owner).await.expect("created");
        assert_eq!(cluster.pod_counts(&key).duplicates, duplicates, "surge {surge}");
    }
}

#[tokio::test]
async fn refuses_what_an_apiserver_refuses() {
    let (cluster, _, owner) = cluster(0, 1);
    let actuator = cluster.actuator();
    create(&cluster, "a", "node-0", &owner).await.expect("created");
    let key = ObjectKey::new(Resource::PODS, "demo", "a");
    let refusal = |result: Result<(), ActuatorError>| result.expect_err("refused").refusal;
    assert_eq!(
        refusal(create(&cluster, "a", "node-0", &owner).await),
        Refusal::AlreadyExists
    );
    assert_eq!(
        refusal(actuator.delete(&key, Some("other")).await),
        Refusal::Conflict
    );
    let wrong = Patch::Strategic(json!({"metadata": {"uid": "other"}}).to_string().into());
    assert_eq!(
        refusal(actuator.patch(&key, wrong).await.map(drop)),
        Refusal::Invalid
    );
    let none = ObjectKey::new(Resource::PODS, "demo", "none");
    assert_eq!(refusal(actuator.delete(&none, None).await), Refusal::NotFound);
    let stale = owner.to_string();
    let key = ObjectKey::new(DAEMON_SETS, "demo", "agent");
    actuator
        .replace_status(&key, stale.clone().into())
        .await
        .expect("fresh");
    assert_eq!(
        refusal(actuator.replace_status(&key, stale.into()).await.map(drop)),
        Refusal::Conflict
    );
}

// D-27: the bodies of the patches for adoption and release.
#[tokio::test]
async fn pods_change_hands() {
    let (cluster, key, owner) = cluster(0, 1);
    create(&cluster, "a", "node-0", &owner).await.expect("created");
    let (actuator, pod_key) = (cluster.actuator(), ObjectKey::new(Resource::PODS, "demo", "a"));
    let live: Value = serde_json::from_slice(&actuator.read(&pod_key).await.expect("there")).expect("JSON");
    let (uid, ds_uid) = (&live["metadata"]["uid"], &owner["metadata"]["uid"]);
    let release = json!({"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": ds_uid}]}})
        .to_string();
    actuator
        .patch(&pod_key, Patch::Strategic(release.into()))
        .await
        .expect("released");
    assert_eq!(cluster.pod_counts(&key).pods, 0);
    let reference = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": ds_uid,
                           "controller": true, "blockOwnerDeletion": true});
    let adopt = json!({"metadata": {"uid": uid, "ownerReferences": [reference]}}).to_string();
    actuator
        .patch(&pod_key, Patch::Strategic(adopt.into()))
        .await
        .expect("adopted");
    assert_eq!(cluster.pod_counts(&key).pods, 1);
}

// D-114, D-118: defaults and generations.
#[tokio::test]
async fn generations_grow_with_changes() {
    let (cluster, key, owner) = cluster(0, 1);
    assert_eq!(owner["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(owner["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let generations = || {
        let object = cluster.daemon_set(&key).expect("there");
        let template = object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone();
        (
            object["metadata"]["generation"].as_i64().expect("a number"),
            template.as_str().expect("text").to_owned(),
        )
    };
    assert_eq!(generations(), (1, "1".to_owned()));
    cluster
        .update_daemon_set(&key, |spec| spec["minReadySeconds"] = json!(0))
        .expect("there");
    assert_eq!(generations(), (2, "1".to_owned()));
    let image = |spec: &mut Value| spec["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    cluster.update_daemon_set(&key, image).expect("there");
    assert_eq!(generations(), (3, "2".to_owned()));
    cluster.update_daemon_set(&key, image).expect("there");
    assert_eq!(generations(), (3, "2".to_owned()), "nothing changed");
}

#[tokio::test]
async fn a_watch_begins_with_lists_and_goes_on_with_changes() {
    let (cluster, _, owner) = cluster(0, 2);
    let mut events = cluster.watch();
    let mut listed = Vec::new();
    for _ in 0..=Resource::INPUTS.len() {
        match events.next().await.expect("a list") {
            ClusterEvent::Workloads(DAEMON_SETS, Delta::Listed { objects, .. }) => {
                listed.push(("daemonsets", objects.len()));
            }
            ClusterEvent::Pods(Delta::Listed { objects, .. }) => listed.push(("pods", objects.len())),
            ClusterEvent::Nodes(Delta::Listed { objects, .. }) => listed.push(("nodes", objects.len())),
            ClusterEvent::Revisions(Delta::Listed { objects, .. }) => {
                listed.push(("revisions", objects.len()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        listed,
        [("daemonsets", 1), ("pods", 0), ("nodes", 2), ("revisions", 0)]
    );
    let version = *cluster.changes().borrow();
    create(&cluster, "a", "node-1", &owner).await.expect("created");
    let Some(ClusterEvent::Pods(Delta::Applied(pod))) = events.next().await else {
        panic!("no pod")
    };
    assert_eq!(
        (
            pod.projection.name.as_str(),
            pod.projection.target_node_name.as_str()
        ),
        ("a", "node-1")
    );
    assert!(*cluster.changes().borrow() > version);
    drop(events);
    cluster.tick(NOW);
    assert!(
        cluster.state().objects.watcher_count() == 0,
        "a watch that nobody reads is forgotten"
    );
}
