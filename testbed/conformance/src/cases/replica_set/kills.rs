//! SIGKILL right after the apiserver has answered a write, one case for each kind of write. Whatever was done, a ReplicaSet
//! never has more pods than replicas.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt as _;

use super::{make_orphans, pods::wait_until_released, start_solo};
use crate::{
    audit::AuditPosition,
    case::{Case, solo},
    cases::{
        claims::relabel,
        kills::{Write, kill_after},
    },
    fixture::SoloFixture,
    history::Beginning,
    replicas::controller_of,
    workload_builder::replica_set,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "rs-kill-after-create-pod",
        "SIGKILL after a pod was created: it is counted, and there are never more pods than replicas.",
        after_create_pod
    ),
    solo!(
        "rs-kill-after-delete-pod",
        "SIGKILL after a pod was deleted: no more pods are deleted than were too many.",
        after_delete_pod
    ),
    solo!(
        "rs-kill-after-adopt-pod",
        "SIGKILL after a pod was adopted: the other orphans are adopted too, and no extra pod is created.",
        after_adopt_pod
    ),
    solo!(
        "rs-kill-after-release-pod",
        "SIGKILL after a pod was released: it is replaced exactly once.",
        after_release_pod
    ),
    solo!(
        "rs-kill-after-update-status",
        "SIGKILL after the status was written: the status becomes correct.",
        after_update_status
    ),
    solo!(
        "rs-kill-after-emit-event",
        "SIGKILL after an event was written: no write is repeated because of it.",
        after_emit_event
    ),
];

const PATCHES: &[&str] = &["patch", "update"];

/// Starts the executor. Returns the begin of the history, and the audit position before `agent` is created.
async fn begin(solo: &mut SoloFixture) -> Result<(Beginning, AuditPosition)> {
    solo.start()?;
    solo.add_nodes(2).await?;
    Ok((solo.begin_history("agent").await?, solo.audit_position().await?))
}

/// Creates `agent`, kills the executor after each of such writes, and waits until `agent` is complete. Fails unless
/// exactly one pod was created for each replica.
async fn create_and_kill(solo: &mut SoloFixture, replicas: i32, write: Write, times: usize) -> Result<()> {
    let (begun, position) = begin(solo).await?;
    let _: ReplicaSet = solo.create_as(replica_set("agent", replicas).build()).await?;
    kill_after(solo, position, write, times).await?;
    solo.wait_for_replica_set("agent").await?;
    solo.history(&begun)
        .await?
        .expect_pods(usize::try_from(replicas)?, 0)?;
    solo.expect_running()
}

//
async fn after_create_pod(solo: &mut SoloFixture) -> Result<()> {
    // Enough pods that some are still missing at the second kill, even if the first kill comes late.
    create_and_kill(solo, 70, Write::new("a new pod", &["create"], "pods"), 2).await
}

//
async fn after_delete_pod(solo: &mut SoloFixture) -> Result<()> {
    let (begun, position) = start_solo(solo, 40).await?;
    solo.scale::<ReplicaSet>("agent", 3).await?;
    let write = Write::new("a deleted pod", &["delete"], "pods");
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_replica_set("agent").await?;
    solo.history(&begun).await?.expect_pods(0, 37)
}

//
async fn after_adopt_pod(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(2).await?;
    make_orphans(solo, 4).await?;
    let (begun, position) = begin(solo).await?;
    let set: ReplicaSet = solo.create_as(replica_set("agent", 8).build()).await?;
    let write = Write::new("an adopted pod", PATCHES, "pods");
    kill_after(solo, position, write, 1).await?;
    solo.wait_for_replica_set("agent").await?;
    for pod in solo.live_pods("agent").await? {
        ensure!(
            controller_of(&pod.metadata) == set.metadata.uid.as_deref(),
            "{} is not adopted",
            pod.name_any()
        );
    }
    solo.history(&begun).await?.expect_pods(4, 0)
}

//
async fn after_release_pod(solo: &mut SoloFixture) -> Result<()> {
    let (begun, position) = start_solo(solo, 8).await?;
    let pods = solo.live_pods("agent").await?;
    for pod in &pods[..2] {
        relabel(solo, &pod.name_any()).await?;
    }
    let write = Write::new("a released pod", PATCHES, "pods");
    kill_after(solo, position, write, 1).await?;
    for pod in &pods[..2] {
        wait_until_released(solo, &pod.name_any()).await?;
    }
    // A pod that loses the label counts as deleted in the history.
    solo.history(&begun).await?.expect_pods(2, 2)
}

//
async fn after_update_status(solo: &mut SoloFixture) -> Result<()> {
    let status = || Write::new("a status", PATCHES, "replicasets").of("status");
    let (begun, position) = begin(solo).await?;
    let _: ReplicaSet = solo.create_as(replica_set("agent", 8).build()).await?;
    kill_after(solo, position, status(), 1).await?;
    // Another replica, so that there is a status to write however late the kill was.
    let position = solo.audit_position().await?;
    solo.scale::<ReplicaSet>("agent", 9).await?;
    kill_after(solo, position, status(), 1).await?;
    solo.wait_for_replica_set("agent").await?;
    solo.history(&begun).await?.expect_pods(9, 0)?;
    solo.expect_running()
}

//
async fn after_emit_event(solo: &mut SoloFixture) -> Result<()> {
    create_and_kill(solo, 8, Write::new("an event", &["create", "patch"], "events"), 1).await
}
