//! SIGKILL right after the apiserver has answered a write, one case for each kind of write. The restarted executor must
//! continue from the state of the cluster: a rollout keeps within its bounds, and no pod is created twice.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{delete_and_orphan, rollout::agent, start_solo};
use crate::{
    case::{Case, solo},
    cases::kills::{Write, kill_after},
    fixture::SoloFixture,
    replicas::controller_of,
    workload_builder::{deployment, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "deployment-kill-after-create-replica-set",
        "SIGKILL after a ReplicaSet was created: it is used, and no second one is created.",
        after_create_replica_set
    ),
    solo!(
        "deployment-kill-after-scale-replica-set",
        "SIGKILL after the size of a ReplicaSet was changed: the rollout keeps within its bounds.",
        after_scale_replica_set
    ),
    solo!(
        "deployment-kill-after-delete-replica-set",
        "SIGKILL after an old ReplicaSet was deleted: no more are deleted than the limit requires.",
        after_delete_replica_set
    ),
    solo!(
        "deployment-kill-after-adopt-replica-set",
        "SIGKILL after a ReplicaSet was adopted: the other ones are adopted too, and no pod is touched.",
        after_adopt_replica_set
    ),
    solo!(
        "deployment-kill-after-release-replica-set",
        "SIGKILL after a ReplicaSet was released: it keeps its pods, and is replaced exactly once.",
        after_release_replica_set
    ),
    solo!(
        "deployment-kill-after-rollback",
        "SIGKILL after an earlier template was restored: the rollback continues, and happens once.",
        after_rollback
    ),
    solo!(
        "deployment-kill-after-update-status",
        "SIGKILL after the status was written: the status becomes correct.",
        after_update_status
    ),
    solo!(
        "deployment-kill-after-emit-event",
        "SIGKILL after an event was written: no write is repeated because of it.",
        after_emit_event
    ),
];

const PATCHES: &[&str] = &["patch", "update"];

/// Creates `agent` and kills the executor after such a write. Fails unless exactly one ReplicaSet and one pod for
/// each replica were created.
async fn create_and_kill(solo: &mut SoloFixture, write: Write) -> Result<()> {
    solo.start()?;
    solo.add_nodes(2).await?;
    let (begun, position) = (solo.begin_history("agent").await?, solo.audit_position().await?);
    let _: Deployment = solo.create_as(agent().build()).await?;
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_deployment("agent").await?;
    solo.wait_for_sizes("agent", &[(1, 10)]).await?;
    let sets = solo
        .replica_set_api()
        .list(&kube::api::ListParams::default())
        .await?;
    ensure!(sets.items.len() == 1, "{} ReplicaSets", sets.items.len());
    solo.history(&begun).await?.expect_pods(10, 0)?;
    solo.expect_running()
}

// P-27, P-64
async fn after_create_replica_set(solo: &mut SoloFixture) -> Result<()> {
    create_and_kill(solo, Write::new("a new ReplicaSet", &["create"], "replicasets")).await
}

// P-4, P-65
async fn after_scale_replica_set(solo: &mut SoloFixture) -> Result<()> {
    let (begun, position) = start_solo(solo, agent()).await?;
    solo.patch_deployment("agent", image_patch(2)).await?;
    let write = Write::new("a ReplicaSet of another size", PATCHES, "replicasets");
    kill_after(solo, position, write, 3).await?;
    solo.wait_for_deployment("agent").await?;
    let history = solo.history(&begun).await?;
    history.expect_within(13, 8)?;
    history.expect_pods(10, 10)
}

// P-51
async fn after_delete_replica_set(solo: &mut SoloFixture) -> Result<()> {
    let limited = deployment("agent", 2).set("/spec", "revisionHistoryLimit", json!(2));
    let (_, position) = start_solo(solo, limited).await?;
    for version in [2, 3, 4] {
        solo.patch_deployment("agent", image_patch(version)).await?;
        if version < 4 {
            solo.wait_for_deployment("agent").await?;
        }
    }
    let write = Write::new("a deleted ReplicaSet", &["delete"], "replicasets");
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_deployment("agent").await?;
    solo.wait_until_idle().await?;
    solo.wait_for_sizes("agent", &[(2, 0), (3, 0), (4, 2)]).await
}

// P-12
async fn after_adopt_replica_set(solo: &mut SoloFixture) -> Result<()> {
    start_solo(solo, agent()).await?;
    solo.patch_deployment("agent", image_patch(2)).await?;
    solo.wait_for_deployment("agent").await?;
    delete_and_orphan(solo).await?;
    solo.wait_until_idle().await?;
    let (begun, position) = (solo.begin_history("agent").await?, solo.audit_position().await?);
    let second = agent().set(
        "/spec/template/spec/containers/0",
        "image",
        json!("registry.example/agent:2"),
    );
    let created: Deployment = solo.create_as(second.build()).await?;
    let write = Write::new("an adopted ReplicaSet", PATCHES, "replicasets");
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_deployment("agent").await?;
    solo.eventually("both ReplicaSets to be adopted", async || {
        let sets = solo.replica_sets("agent").await?;
        let adopted = sets
            .values()
            .filter(|set| controller_of(&set.metadata) == created.metadata.uid.as_deref());
        let adopted = adopted.count();
        ensure!(adopted == 2 && sets.len() == 2, "{adopted} of {}", sets.len());
        Ok(())
    })
    .await?;
    solo.history(&begun).await?.expect_pods(0, 0)
}

// P-12, P-27
async fn after_release_replica_set(solo: &mut SoloFixture) -> Result<()> {
    let (begun, position) = start_solo(solo, agent()).await?;
    let first = solo.replica_set_of("agent", 1).await?.name_any();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "app": "debugging" } } }));
    let sets = solo.replica_set_api();
    sets.patch(&first, &PatchParams::default(), &label).await?;
    let write = Write::new("a released ReplicaSet", PATCHES, "replicasets");
    kill_after(solo, position, write, 1).await?;
    solo.eventually("the ReplicaSet to be replaced", async || {
        let second = solo.replica_set_of("agent", 1).await?;
        let ready = second.status.as_ref().and_then(|status| status.ready_replicas);
        ensure!(
            second.name_any() != first && ready == Some(10),
            "{ready:?} pods are ready"
        );
        Ok(())
    })
    .await?;
    solo.history(&begun).await?.expect_pods(10, 0)
}

// P-50
async fn after_rollback(solo: &mut SoloFixture) -> Result<()> {
    let (_, _) = start_solo(solo, agent()).await?;
    solo.patch_deployment("agent", image_patch(2)).await?;
    solo.wait_for_deployment("agent").await?;
    let (begun, position) = (solo.begin_history("agent").await?, solo.audit_position().await?);
    let request = json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": "0" } } });
    solo.patch_deployment("agent", request).await?;
    let write = Write::new("a restored template", PATCHES, "deployments");
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_sizes("agent", &[(1, 10), (2, 0)]).await?;
    solo.wait_for_deployment("agent").await?;
    let history = solo.history(&begun).await?;
    history.expect_within(13, 8)?;
    history.expect_pods(10, 10)
}

// P-57
async fn after_update_status(solo: &mut SoloFixture) -> Result<()> {
    let status = || Write::new("a status", PATCHES, "deployments").of("status");
    create_and_kill(solo, status()).await?;
    // Another replica, so that there is a status to write however late the first kill was.
    let position = solo.audit_position().await?;
    solo.scale::<Deployment>("agent", 11).await?;
    kill_after(solo, position, status(), 1).await?;
    solo.wait_for_deployment("agent").await?;
    solo.wait_for_sizes("agent", &[(1, 11)]).await?;
    solo.expect_running()
}

async fn after_emit_event(solo: &mut SoloFixture) -> Result<()> {
    create_and_kill(solo, Write::new("an event", &["create", "patch"], "events")).await
}
