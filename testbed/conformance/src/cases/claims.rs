//! Adopting and releasing pods.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::takeover::replace_one;
use crate::{
    budget::node_of,
    case::{Case, shared},
    fixture::Fixture,
    replicas::controller_of,
    workload_builder::daemon_set,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "adopt-orphan",
        "A matching orphan is adopted, and no second pod is created on its node.",
        adopt_orphan
    ),
    shared!(
        "release-pod",
        "A pod whose labels no longer match is released, keeps running, and is replaced.",
        release_pod
    ),
    shared!(
        "recreate-daemon-set",
        "A DaemonSet that is deleted and created again with the same name gets its own pods.",
        recreate_daemon_set
    ),
];

/// Creates a pod without an owner that matches the selector of `agent`.
pub(super) async fn make_orphan(fixture: &Fixture, name: &str, node: &str) -> Result<Pod> {
    let orphan: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": "agent" } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "registry.example/agent:1" }] },
    }))?;
    Ok(fixture.pod_api().create(&PostParams::default(), &orphan).await?)
}

// D-23, D-27
async fn adopt_orphan(fixture: &Fixture) -> Result<()> {
    let nodes = fixture.add_nodes(2).await?;
    let watch = fixture.watch("agent");
    fixture.roll_out("earlier", daemon_set("earlier").build()).await?;
    let orphan = make_orphan(fixture, "orphan", &nodes[0]).await?;
    // Watches of pods and of DaemonSets are not ordered. An executor that replaces this pod has seen the orphan.
    replace_one(fixture, "earlier").await?;
    let ds = fixture.create(daemon_set("agent").on_delete().build()).await?;
    fixture
        .eventually("the orphan to be adopted and the other node filled", async || {
            let pods = fixture.live_pods("agent").await?;
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
    fixture.expect_one_pod_per_node("agent").await?;
    watch.seen().await?.expect_created(2)
}

/// Changes the label of a pod so that the selector of `agent` no longer matches.
pub(super) async fn relabel(fixture: &Fixture, pod: &str) -> Result<()> {
    let label = json!({ "metadata": { "labels": { "app": "debugging" } } });
    fixture
        .pod_api()
        .patch(pod, &PatchParams::default(), &Patch::Merge(label))
        .await?;
    Ok(())
}

/// Waits until a relabelled pod is released and its node has another pod.
pub(super) async fn wait_until_released(fixture: &Fixture, pod: &Pod) -> Result<()> {
    fixture
        .eventually("the pod to be released and replaced", async || {
            let released = fixture.pod_api().get(&pod.name_any()).await?;
            ensure!(
                controller_of(&released.metadata).is_none(),
                "it is still controlled"
            );
            ensure!(
                released.metadata.deletion_timestamp.is_none(),
                "it is being deleted"
            );
            let replacements = fixture.live_pods("agent").await?;
            ensure!(
                replacements.iter().any(|other| node_of(other) == node_of(pod)),
                "no replacement yet"
            );
            Ok(())
        })
        .await
}

// D-23
async fn release_pod(fixture: &Fixture) -> Result<()> {
    fixture.start_agent(2).await?;
    let pod = fixture.live_pods("agent").await?.remove(0);
    relabel(fixture, &pod.name_any()).await?;
    wait_until_released(fixture, &pod).await?;
    fixture.expect_one_pod_per_node("agent").await
}

// D-29
async fn recreate_daemon_set(fixture: &Fixture) -> Result<()> {
    let first = fixture.start_agent(5).await?;
    fixture.delete("agent").await?;
    // Without a pause: the garbage collector may still be deleting the old pods.
    let second = fixture.create(daemon_set("agent").build()).await?;
    ensure!(first.metadata.uid != second.metadata.uid, "it is the same one");
    fixture.wait_for_rollout("agent").await?;
    fixture
        .eventually("only pods of the second one", async || {
            let pods = fixture.live_pods("agent").await?;
            ensure!(pods.len() == 5, "{} pods", pods.len());
            let strangers = pods
                .iter()
                .filter(|pod| controller_of(&pod.metadata) != second.metadata.uid.as_deref())
                .count();
            ensure!(strangers == 0, "{strangers} pods of the first one are left");
            Ok(())
        })
        .await?;
    fixture.expect_one_pod_per_node("agent").await
}
