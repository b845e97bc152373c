//! The executor reads pods and nodes of a real apiserver as Protobuf, and as JSON from a server that answers JSON only. Both readings are the
//! same, in lists and in watches.

mod raw;
mod reader;

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use nodewise_testbed::{ControlPlane, eventually};
use serde_json::{Value, json};

use raw::{Condition, append_to_status};
use reader::{Reader, Served};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEADLINE: Duration = Duration::from_mins(1);
/// More than a page of a list has.
const MANY: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_is_read_like_json() -> Result<()> {
    let cluster = ControlPlane::builder().start().await?;
    create_nodes(&cluster).await?;
    create_pods(&cluster).await?;

    let mut protobuf = Reader::start(&cluster, Served::AsAsked).await?;
    let mut json = Reader::start(&cluster, Served::JsonOnly).await?;
    let listed = protobuf.until_listed().await?;
    ensure!(listed.len() >= MANY, "{} objects", listed.len());
    same(&listed, &json.until_listed().await?)?;
    has(
        &listed,
        &[
            "\u{fffd}\u{fffd}",
            "deletion_cost: \"-7\"",
            "target_node_name: \"node-1\"",
            "example.com/wait",
        ],
    )?;
    has(
        &listed,
        &[
            "sidecar_restarts: 4",
            "ImagePullBackOff",
            "maintenance_in_progress: true",
        ],
    )?;

    let changes = change(&cluster).await?;
    let seen = protobuf.until(&changes).await?;
    same(&seen, &json.until(&changes).await?)?;
    has(
        &seen,
        &[
            "Deleted(",
            "\u{fffd}\u{fffd}",
            "seconds: 253402128000",
            "seconds: -62135596800",
        ],
    )?;

    for (reader, encoding) in [(&protobuf, PROTOBUF), (&json, "application/json")] {
        let answers = reader.answers()?;
        ensure!(
            answers.iter().all(|answer| answer.starts_with(encoding)),
            "{answers:?}"
        );
        ensure!(
            answers.contains(&format!("{encoding};stream=watch")) || encoding != PROTOBUF,
            "{answers:?}"
        );
    }
    Ok(())
}

/// Fails at the first difference.
fn same(left: &[String], right: &[String]) -> Result<()> {
    for (left, right) in left.iter().zip(right) {
        ensure!(left == right, "from Protobuf: {left}\nfrom JSON: {right}");
    }
    ensure!(
        left.len() == right.len(),
        "{} and {} events",
        left.len(),
        right.len()
    );
    Ok(())
}

fn has(events: &[String], parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(
            events.iter().any(|event| event.contains(part)),
            "nothing has {part}"
        );
    }
    Ok(())
}

async fn create_nodes(cluster: &ControlPlane) -> Result<()> {
    let nodes = Api::<Node>::all(cluster.client());
    for (name, spec) in [
        ("node-1", json!({})),
        (
            "node-2",
            json!({"unschedulable": true, "taints": [
                {"key": "a", "effect": "NoSchedule"},
                {"key": "b", "value": "c", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
            ]}),
        ),
    ] {
        let labels = json!({"kubernetes.io/hostname": name, "empty": ""});
        let node = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        nodes
            .create(&PostParams::default(), &serde_json::from_value(node)?)
            .await?;
    }
    let conditions = json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "KubeletReady"},
        {"type": "MaintenanceInProgress", "status": "True"},
    ]);
    let status = json!({"status": {"conditions": conditions}});
    nodes
        .patch_status("node-1", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    append_to_status(
        cluster,
        "/api/v1/nodes/node-2",
        "Node",
        &odd_condition("Ready", 4),
    )
    .await
}

/// A condition that JSON cannot express.
fn odd_condition(kind: &'static str, tag: u32) -> Condition {
    Condition {
        tag,
        kind,
        status: "False",
        seconds: Some(1_700_000_000),
        reason: b"Odd\xe2\x82",
        message: b"not \xff UTF-8: \xf0\x9f\x98",
    }
}

fn pod(name: &str, metadata: &Value, spec: &Value) -> Result<Pod> {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": "agent", "empty": ""}}, "spec": {
        "containers": [{"name": "main", "image": "agent:1", "env": [{"name": "A", "value": "b"}]}],
        "automountServiceAccountToken": false,
    }});
    for (part, added) in [("metadata", metadata), ("spec", spec)] {
        let members = pod[part].as_object_mut().expect("an object");
        members.extend(added.as_object().expect("an object").clone());
    }
    Ok(serde_json::from_value(pod)?)
}

fn owned_by(kind: &str) -> Value {
    let owner = |kind: &str, controller: Value| json!({"apiVersion": "apps/v1", "kind": kind, "name": "agent", "uid": "5f0c", "controller": controller});
    json!([
        owner("Other", json!(null)),
        owner("Another", json!(false)),
        owner(kind, json!(true))
    ])
}

async fn create_pods(cluster: &ControlPlane) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}});
    let accounts = Api::default_namespaced(cluster.client());
    let account: k8s_openapi::api::core::v1::ServiceAccount = serde_json::from_value(account)?;
    // The controller that creates it does not run.
    accounts.create(&PostParams::default(), &account).await?;
    let pods = Api::<Pod>::default_namespaced(cluster.client());
    let field = |values: &[&str]| json!({"key": "metadata.name", "operator": "In", "values": values});
    let required = json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
        {"matchFields": [field(&["node-1"])]},
        {"matchFields": [field(&["node-2"])]},
    ]});
    let affinity =
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
    let annotations = json!({"controller.kubernetes.io/pod-deletion-cost": "-7", "nodewise.dev/traceparent": "00-a-b-01", "other": "x"});
    let bound = json!({"nodeName": "node-1"});
    let sidecar = json!({"nodeName": "node-1", "initContainers": [
        {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}, {"name": "init", "image": "init:1"},
    ]});
    for (name, metadata, spec) in [
        (
            "agent-target",
            json!({"ownerReferences": owned_by("DaemonSet")}),
            &affinity,
        ),
        (
            "agent-owned",
            json!({"ownerReferences": owned_by("DaemonSet"), "finalizers": ["example.com/wait"]}),
            &bound,
        ),
        ("agent-orphan", json!({"annotations": annotations}), &sidecar),
        (
            "agent-foreign",
            json!({"ownerReferences": owned_by("ReplicaSet")}),
            &bound,
        ),
        ("agent-odd", json!({}), &bound),
    ] {
        pods.create(&PostParams::default(), &pod(name, &metadata, spec)?)
            .await?;
    }
    let statuses = json!({"status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "ContainersNotReady"},
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastTransitionTime": null},
        ],
        "initContainerStatuses": [
            {"name": "proxy", "ready": true, "restartCount": 4, "image": "", "imageID": "", "state": {"running": {}}},
            {"name": "init", "ready": true, "restartCount": 9, "image": "", "imageID": "", "state": {"terminated": {"exitCode": 0}}},
        ],
        "containerStatuses": [
            {"name": "main", "ready": false, "restartCount": 2, "image": "", "imageID": "", "started": false,
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling \"agent:1\"\nagain"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
        ],
    }});
    pods.patch_status("agent-orphan", &PatchParams::default(), &Patch::Merge(statuses))
        .await?;
    append_to_status(
        cluster,
        "/api/v1/namespaces/default/pods/agent-odd",
        "Pod",
        &odd_condition("Ready", 2),
    )
    .await?;
    pods.delete("agent-owned", &DeleteParams::default()).await?;
    let many = (0..MANY).map(|index| {
        let (pods, bound) = (pods.clone(), bound.clone());
        async move {
            let pod = pod(&format!("many-{index:03}"), &json!({}), &bound)?;
            anyhow::Ok(pods.create(&PostParams::default(), &pod).await.map(drop)?)
        }
    });
    futures::future::try_join_all(many).await.map(drop)
}

/// Changes pods and nodes. Returns the last object of each resource that changes.
async fn change(cluster: &ControlPlane) -> Result<[&'static str; 2]> {
    let pods = Api::<Pod>::default_namespaced(cluster.client());
    let now = DeleteParams::default().grace_period(0);
    pods.delete("many-000", &now).await?;
    let path = "/api/v1/namespaces/default/pods/many-001";
    for (kind, seconds) in [
        ("Ready", Some(1_000_000_000_000)),
        ("Other", None),
        ("DisruptionTarget", Some(-1)),
    ] {
        let condition = Condition {
            seconds,
            ..odd_condition(kind, 2)
        };
        append_to_status(cluster, path, "Pod", &condition).await?;
    }
    let ancient = Condition {
        seconds: Some(-62_200_000_000),
        ..odd_condition("Ready", 2)
    };
    append_to_status(
        cluster,
        "/api/v1/namespaces/default/pods/many-002",
        "Pod",
        &ancient,
    )
    .await?;
    let label = json!({"metadata": {"labels": {"zone": "é"}}});
    let failed = pods
        .patch("many-003", &PatchParams::default(), &Patch::Merge(label))
        .await;
    ensure!(failed.is_err(), "labels are validated");
    pods.create(
        &PostParams::default(),
        &pod("last-pod", &json!({}), &json!({"nodeName": "node-2"}))?,
    )
    .await?;

    let nodes = Api::<Node>::all(cluster.client());
    let cordoned = json!({"spec": {"unschedulable": true}});
    nodes
        .patch("node-1", &PatchParams::default(), &Patch::Merge(cordoned))
        .await?;
    nodes.delete("node-2", &DeleteParams::default()).await?;
    let last = json!({"metadata": {"name": "last-node"}});
    nodes
        .create(&PostParams::default(), &serde_json::from_value(last)?)
        .await?;
    eventually(DEADLINE, "the last pod", async || {
        pods.get("last-pod").await.map(drop).map_err(Into::into)
    })
    .await?;
    Ok(["last-pod", "last-node"])
}
