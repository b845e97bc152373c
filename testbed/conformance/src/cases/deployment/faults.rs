//! Rollouts while watches are late, responses are lost, the service fails, or the executor is killed again and again.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DeleteParams;

use super::{rollout::agent, sets::delete_agent, start, start_solo};
use crate::{
    api_proxy::ApiProxy,
    case::{Case, solo},
    cases::apiserver::expect_nothing_again,
    fixture::SoloFixture,
    history::Beginning,
    workload_builder::{deployment, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "deployment-late-watches",
        "While watch events of pods and ReplicaSets are late, a rollout repeats no write of a pod, and keeps within its bounds.",
        late_watches
    ),
    solo!(
        "deployment-delete-late-watches",
        "While watch events of Deployments and ReplicaSets are late, nothing is created for a Deployment that was deleted.",
        delete_late_watches
    ),
    solo!(
        "deployment-write-answers-lost",
        "Writes that were carried out and answered with 504 are not repeated, and the rollout keeps within its bounds.",
        write_answers_lost
    ),
    solo!(
        "deployment-service-restarts",
        "While the service is killed and restarted in the middle of a rollout, the rollout keeps within its bounds and completes.",
        service_restarts
    ),
    solo!(
        "deployment-killed-while-rolling",
        "SIGKILL in the middle of a rollout: it keeps within its bounds across the restarts.",
        killed_while_rolling
    ),
    solo!(
        "deployment-sigterm-at-work",
        "After SIGTERM in the middle of a rollout the executor ends within 30 s with status 0, and a new one continues.",
        sigterm_at_work
    ),
];

/// Waits until version 2 of `agent` is rolled out. Fails unless the rollout kept within its bounds, and created one pod
/// for each replica.
async fn expect_rolled_out(solo: &SoloFixture, begun: &Beginning) -> Result<()> {
    solo.wait_for_deployment("agent").await?;
    solo.wait_for_sizes("agent", &[(1, 0), (2, 10)]).await?;
    let history = solo.history(begun).await?;
    history.expect_within(13, 8)?;
    history.expect_pods(10, 10)?;
    solo.expect_running()
}

/// Rolls out a new version while the executor uses this proxy of the apiserver.
async fn roll_by_way_of(solo: &mut SoloFixture, api: &ApiProxy) -> Result<()> {
    let servers = [solo.proxy().url()];
    solo.start_with(Some(api.kubeconfig()), &servers)?;
    let begun = start(solo, agent()).await?;
    solo.patch_deployment("agent", image_patch(2)).await?;
    expect_rolled_out(solo, &begun).await
}

// P-4, P-64, R-45
async fn late_watches(solo: &mut SoloFixture) -> Result<()> {
    let resources = &["pods", "replicasets"];
    let late = ApiProxy::late(solo.cluster(), resources, Duration::from_millis(300)).await?;
    roll_by_way_of(solo, &late).await?;
    expect_nothing_again(solo).await
}

// R-26, P-27
async fn delete_late_watches(solo: &mut SoloFixture) -> Result<()> {
    for resources in [&["deployments"][..], &["deployments", "replicasets"]] {
        let late = ApiProxy::late(solo.cluster(), resources, Duration::from_millis(1_500)).await?;
        let servers = [solo.proxy().url()];
        solo.start_with(Some(late.kubeconfig()), &servers)?;
        let begun = start(solo, agent()).await?;
        // While the executor does not see its own writes, it plans nothing. Once the other one is complete, it has seen them.
        start(solo, deployment("other", 1)).await?;
        delete_agent(solo).await?;
        solo.history(&begun)
            .await?
            .expect_pods(0, 10)
            .with_context(|| format!("watch events of {resources:?} were late"))?;
        solo.expect_running()?;
        solo.stop().await?;
        solo.deployment_api()
            .delete("other", &DeleteParams::background())
            .await?;
    }
    Ok(())
}

// P-4, P-64
async fn write_answers_lost(solo: &mut SoloFixture) -> Result<()> {
    let losing = ApiProxy::losing_answers(solo.cluster(), 3).await?;
    roll_by_way_of(solo, &losing).await?;
    let lost = losing.lost_answers();
    ensure!(lost >= 10, "only {lost} answers were lost");
    Ok(())
}

async fn service_restarts(solo: &mut SoloFixture) -> Result<()> {
    let (begun, _) = start_solo(solo, agent()).await?;
    let watch = solo.watch("agent");
    solo.patch_deployment("agent", image_patch(2)).await?;
    for created in [11, 14, 17] {
        solo.wait_until_created(&watch, created).await?;
        solo.restart_server().await?;
    }
    expect_rolled_out(solo, &begun).await
}

// P-64, R-47
async fn killed_while_rolling(solo: &mut SoloFixture) -> Result<()> {
    let (begun, _) = start_solo(solo, agent()).await?;
    let watch = solo.watch("agent");
    solo.patch_deployment("agent", image_patch(2)).await?;
    for created in [11, 14, 17] {
        solo.wait_until_created(&watch, created).await?;
        solo.kill()?;
        solo.start()?;
    }
    expect_rolled_out(solo, &begun).await
}

async fn sigterm_at_work(solo: &mut SoloFixture) -> Result<()> {
    let (begun, _) = start_solo(solo, agent()).await?;
    let watch = solo.watch("agent");
    solo.patch_deployment("agent", image_patch(2)).await?;
    solo.wait_until_created(&watch, 11).await?;
    solo.stop().await?;
    let position = solo.audit_position().await?;
    solo.start()?;
    expect_rolled_out(solo, &begun).await?;
    let writes = solo.writes_since(position).await?;
    ensure!(!writes.is_empty(), "the first one had finished before it ended");
    Ok(())
}
