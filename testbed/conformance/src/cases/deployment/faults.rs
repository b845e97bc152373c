//! Rollouts while watches are late, responses are lost, the service fails, or the executor is killed again and again.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{rollout::agent, start, start_solo};
use crate::{
    api_proxy::ApiProxy,
    case::{Case, solo},
    cases::apiserver::expect_nothing_again,
    fixture::SoloFixture,
    history::Beginning,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "deployment-late-watches",
        "While watch events of pods and ReplicaSets are late, a rollout repeats no write of a pod, and keeps within its bounds.",
        late_watches
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
