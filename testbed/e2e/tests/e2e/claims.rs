//! Whose pods they are.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use nodewise_e2e::{DEADLINE, Rig, RigOptions, daemon_set, node_of};
use nodewise_testbed::eventually;
use serde_json::json;

fn controller_of(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.as_str())
        .next()
}

/// S-35, D-23, D-27: an orphan that matches is adopted instead of a second pod being made.
#[tokio::test(flavor = "multi_thread")]
async fn adopts_a_matching_orphan() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2)).await?;
    let nodes = rig.node_names().await?;
    let orphan: Pod = serde_json::from_value(json!({
        "metadata": { "name": "orphan", "labels": { "app": "agent" } },
        "spec": { "nodeName": nodes[0], "containers": [{ "name": "main", "image": "registry.example/agent:1" }] },
    }))?;
    let orphan = rig.pod_api().create(&PostParams::default(), &orphan).await?;
    let watch = rig.watch("agent");
    let ds = rig.create(daemon_set("agent").on_delete().build()).await?;
    eventually(
        DEADLINE,
        "the orphan to be adopted and the other node filled",
        async || {
            let pods = rig.live_pods("agent").await?;
            let adopted = pods
                .iter()
                .find(|pod| pod.metadata.uid == orphan.metadata.uid)
                .context("the orphan is gone")?;
            ensure!(
                controller_of(adopted) == ds.metadata.uid.as_deref(),
                "it has controller {:?}",
                controller_of(adopted)
            );
            ensure!(pods.len() == 2, "{} pods", pods.len());
            Ok(())
        },
    )
    .await?;
    rig.expect_one_pod_per_node("agent").await?;
    assert_eq!(watch.seen().created.len(), 2, "the orphan and one more");
    Ok(())
}

/// S-32, D-23: a pod whose labels are changed is let go, lives on, and is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn releases_a_pod_that_no_longer_matches() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    let pod = rig.live_pods("agent").await?.remove(0);
    let name = pod.metadata.name.clone().context("a pod has a name")?;
    let label = json!({ "metadata": { "labels": { "app": "debugging" } } });
    rig.pod_api()
        .patch(&name, &PatchParams::default(), &Patch::Merge(label))
        .await?;
    eventually(DEADLINE, "the pod to be released and replaced", async || {
        let released = rig.pod_api().get(&name).await?;
        ensure!(controller_of(&released).is_none(), "it is still controlled");
        ensure!(
            released.metadata.deletion_timestamp.is_none(),
            "it is being deleted"
        );
        let replacements = rig.live_pods("agent").await?;
        ensure!(
            replacements.iter().any(|other| node_of(other) == node_of(&pod)),
            "no replacement yet"
        );
        Ok(())
    })
    .await?;
    rig.expect_one_pod_per_node("agent").await
}

/// S-126, D-29: a DaemonSet that is deleted and made again under its name gets pods of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_daemon_set_makes_its_own_pods() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(5)).await?;
    let first = rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    rig.daemon_set_api()
        .delete("agent", &DeleteParams::background())
        .await?;
    eventually(DEADLINE, "the DaemonSet to be gone", async || {
        ensure!(
            rig.daemon_set_api().get_opt("agent").await?.is_none(),
            "it is still there"
        );
        Ok(())
    })
    .await?;
    // At once: the garbage collector may still be at the old pods.
    let second: DaemonSet = rig.create(daemon_set("agent").build()).await?;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    rig.rolled_out("agent").await?;
    eventually(DEADLINE, "only pods of the second one", async || {
        let pods = rig.live_pods("agent").await?;
        ensure!(pods.len() == 5, "{} pods", pods.len());
        let strangers = pods
            .iter()
            .filter(|pod| controller_of(pod) != second.metadata.uid.as_deref())
            .count();
        ensure!(strangers == 0, "{strangers} pods of the first one are left");
        Ok(())
    })
    .await?;
    rig.expect_one_pod_per_node("agent").await
}
