//! Whose pods they are.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    budget::node_of,
    case::{Case, shared},
    daemon_set::daemon_set,
    scene::Scene,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "adopt-orphan",
        "An orphan that matches is adopted instead of a second pod being made.",
        adopt_orphan
    ),
    shared!(
        "release-pod",
        "A pod whose labels no longer match is let go, lives on, and is replaced.",
        release_pod
    ),
    shared!(
        "recreate-daemon-set",
        "A DaemonSet that is deleted and made again under its name, with another uid, gets pods of its own.",
        recreate_daemon_set
    ),
];

pub(super) fn controller_of(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.as_str())
}

/// Makes a pod without an owner that `agent`'s selector matches.
pub(super) async fn make_orphan(scene: &Scene, name: &str, node: &str) -> Result<Pod> {
    let orphan: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": "agent" } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "registry.example/agent:1" }] },
    }))?;
    Ok(scene.pod_api().create(&PostParams::default(), &orphan).await?)
}

// S-35, D-23, D-27
async fn adopt_orphan(scene: &Scene) -> Result<()> {
    let nodes = scene.add_nodes(2).await?;
    let watch = scene.watch("agent");
    let orphan = make_orphan(scene, "orphan", &nodes[0]).await?;
    let ds = scene.create(daemon_set("agent").on_delete().build()).await?;
    scene
        .eventually("the orphan to be adopted and the other node filled", async || {
            let pods = scene.live_pods("agent").await?;
            let adopted = pods
                .iter()
                .find(|pod| pod.metadata.uid == orphan.metadata.uid)
                .context("the orphan is gone")?;
            ensure!(
                controller_of(&adopted.metadata) == ds.metadata.uid.as_deref(),
                "it has controller {:?}",
                controller_of(&adopted.metadata)
            );
            ensure!(pods.len() == 2, "{} pods", pods.len());
            Ok(())
        })
        .await?;
    scene.expect_one_pod_per_node("agent").await?;
    watch.seen().await?.expect_created(2)
}

/// Takes the label away by which `agent` knows its pods.
pub(super) async fn relabel(scene: &Scene, pod: &str) -> Result<()> {
    let label = json!({ "metadata": { "labels": { "app": "debugging" } } });
    scene
        .pod_api()
        .patch(pod, &PatchParams::default(), &Patch::Merge(label))
        .await?;
    Ok(())
}

/// Waits until a pod that was relabelled is let go and another one is in its place.
pub(super) async fn released(scene: &Scene, pod: &Pod) -> Result<()> {
    scene
        .eventually("the pod to be released and replaced", async || {
            let released = scene.pod_api().get(&pod.name_any()).await?;
            ensure!(
                controller_of(&released.metadata).is_none(),
                "it is still controlled"
            );
            ensure!(
                released.metadata.deletion_timestamp.is_none(),
                "it is being deleted"
            );
            let replacements = scene.live_pods("agent").await?;
            ensure!(
                replacements.iter().any(|other| node_of(other) == node_of(pod)),
                "no replacement yet"
            );
            Ok(())
        })
        .await
}

// S-32, D-23
async fn release_pod(scene: &Scene) -> Result<()> {
    scene.start_agent(2).await?;
    let pod = scene.live_pods("agent").await?.remove(0);
    relabel(scene, &pod.name_any()).await?;
    released(scene, &pod).await?;
    scene.expect_one_pod_per_node("agent").await
}

// S-126, D-29
async fn recreate_daemon_set(scene: &Scene) -> Result<()> {
    let first = scene.start_agent(5).await?;
    scene.delete("agent").await?;
    // At once: the garbage collector may still be at the old pods.
    let second = scene.create(daemon_set("agent").build()).await?;
    ensure!(first.metadata.uid != second.metadata.uid, "it is the same one");
    scene.rolled_out("agent").await?;
    scene
        .eventually("only pods of the second one", async || {
            let pods = scene.live_pods("agent").await?;
            ensure!(pods.len() == 5, "{} pods", pods.len());
            let strangers = pods
                .iter()
                .filter(|pod| controller_of(&pod.metadata) != second.metadata.uid.as_deref())
                .count();
            ensure!(strangers == 0, "{strangers} pods of the first one are left");
            Ok(())
        })
        .await?;
    scene.expect_one_pod_per_node("agent").await
}
