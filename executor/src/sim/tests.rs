use futures::StreamExt as _;
use nodewise_runtime::{
    Delta, Resource,
    actuator::{Actuator as _, ObjectKey, Patch, Preconditions, Refusal},
};
use serde_json::json;

use super::*;
use crate::daemon_set::DAEMON_SETS;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn daemon_set_manifest() -> Value {
    json!({
        "metadata": {"name": "agent", "namespace": "demo"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "agent:1"}]},
            },
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

fn cluster(nodes: usize) -> (SimCluster, Key, Value) {
    let cluster = SimCluster::new(SimConfig::default(), NOW);
    for number in 0..nodes {
        cluster.add_node(&format!("node-{number}"), &[]);
    }
    let key = cluster.create_daemon_set(daemon_set_manifest()).expect("created");
    let object = cluster.workload(&key).expect("there");
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
async fn an_actuator_writes_and_reads() {
    let (cluster, key, owner) = cluster(1);
    let actuator = cluster.actuator();
    create(&cluster, "a", "node-0", &owner).await.expect("created");
    let pod = ObjectKey::new(Resource::PODS, "demo", "a");
    let merge = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}).to_string().into());
    let written = actuator.patch(&pod, merge).await.expect("patched");
    let live: Value = serde_json::from_slice(&actuator.read(&pod).await.expect("there")).expect("JSON");
    assert_eq!(live["metadata"]["labels"], json!({"app": "agent", "x": "y"}));
    assert_eq!(
        (
            written.name.as_str(),
            json!(written.resource_version) == live["metadata"]["resourceVersion"]
        ),
        ("a", true)
    );
    let mut listed = Vec::new();
    let mut take = |object: &str| listed.push(object.to_owned());
    actuator
        .list(Resource::PODS, "demo", &mut take)
        .await
        .expect("listed");
    actuator
        .list(Resource::PODS, "other", &mut take)
        .await
        .expect("listed");
    assert_eq!(listed, [live.to_string()]);
    (0..3).for_each(|_| cluster.tick(NOW));
    assert_eq!(cluster.counts(&key).available, 1);
    actuator
        .delete(&pod, Preconditions::NONE)
        .await
        .expect("accepted");
    cluster.tick(NOW);
    assert_eq!(cluster.counts(&key).pods, 0);
}

#[tokio::test]
async fn an_actuator_refuses_what_an_apiserver_refuses() {
    let (cluster, _, owner) = cluster(1);
    let actuator = cluster.actuator();
    create(&cluster, "a", "node-0", &owner).await.expect("created");
    let key = ObjectKey::new(Resource::PODS, "demo", "a");
    let refusal = |result: Result<(), ActuatorError>| {
        let error = result.expect_err("refused");
        (error.refusal, error.http_status)
    };
    assert_eq!(
        refusal(create(&cluster, "a", "node-0", &owner).await),
        (Refusal::AlreadyExists, 409)
    );
    assert_eq!(
        refusal(actuator.delete(&key, Preconditions::uid("other")).await),
        (Refusal::Conflict, 409)
    );
    let wrong = Patch::Strategic(json!({"metadata": {"uid": "other"}}).to_string().into());
    assert_eq!(
        refusal(actuator.patch(&key, wrong).await.map(drop)),
        (Refusal::Invalid, 422)
    );
    let none = ObjectKey::new(Resource::PODS, "demo", "none");
    assert_eq!(
        refusal(actuator.delete(&none, Preconditions::NONE).await),
        (Refusal::NotFound, 404)
    );
    let stale = owner.to_string();
    let key = ObjectKey::new(DAEMON_SETS, "demo", "agent");
    actuator
        .replace_status(&key, stale.clone().into())
        .await
        .expect("fresh");
    assert_eq!(
        refusal(actuator.replace_status(&key, stale.into()).await.map(drop)),
        (Refusal::Conflict, 409)
    );
    // What the executor cannot read is not stored, so that every watch can show every object.
    let unreadable = json!({"metadata": {"name": "b", "labels": []}}).to_string();
    let created = actuator
        .create(Resource::PODS, "demo", unreadable.into())
        .await
        .map(drop);
    assert_eq!(refusal(created), (Refusal::Invalid, 422));
    let created = actuator
        .create(Resource::PODS, "demo", "{".into())
        .await
        .map(drop);
    assert_eq!(refusal(created), (Refusal::Other, 400));
    let unknown = Resource {
        plural: "unknown",
        ..Resource::PODS
    };
    let read = actuator.read(&ObjectKey::new(unknown, "demo", "a")).await;
    assert_eq!(refusal(read.map(drop)), (Refusal::NotFound, 404));
}

#[tokio::test]
async fn a_watch_begins_with_lists_and_goes_on_with_changes() {
    let (cluster, _, owner) = cluster(2);
    let mut events = cluster.watch();
    let mut listed = Vec::new();
    // The resources that the controllers control, and what they read.
    for _ in 0..3 + Resource::INPUTS.len() {
        match events.next().await.expect("a list") {
            ClusterEvent::Workloads(resource, Delta::Listed { objects, .. }) => {
                listed.push((resource.plural, objects.len()));
            }
            ClusterEvent::Pods(Delta::Listed { objects, .. }) => listed.push(("pods", objects.len())),
            ClusterEvent::Nodes(Delta::Listed { objects, .. }) => listed.push(("nodes", objects.len())),
            ClusterEvent::Revisions(Delta::Listed { objects, .. }) => {
                listed.push(("revisions", objects.len()));
            }
            ClusterEvent::Policies(Delta::Listed { objects, .. }) => listed.push(("policies", objects.len())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        listed,
        [
            ("daemonsets", 1),
            ("pods", 0),
            ("nodes", 2),
            ("revisions", 0),
            ("deployments", 0),
            ("replicasets", 0),
            ("policies", 0),
        ]
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
    // The simulator and the projection read the node of a pod alike (D-24).
    cluster.tick(NOW);
    let Some(ClusterEvent::Pods(Delta::Applied(pod))) = events.next().await else {
        panic!("no pod")
    };
    assert_eq!(pod.projection.node_name, "node-1");
    drop(events);
    (0..2).for_each(|_| cluster.tick(NOW));
    assert!(
        cluster.state().watchers.is_empty(),
        "a watch that nobody reads is forgotten"
    );
}
