//! ReplicaSets while watches are late, responses are lost, or the executor is killed again and again.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;

use super::start;
use crate::{
    api_proxy::ApiProxy,
    case::{Case, solo},
    cases::apiserver::expect_nothing_again,
    fixture::SoloFixture,
    workload_builder::replica_set,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "rs-late-watches",
        "While watch events of pods are late, creates and deletes are not repeated, and there are never too many pods.",
        late_watches
    ),
    solo!(
        "rs-write-answers-lost",
        "Writes that were carried out and answered with 504 are not repeated.",
        write_answers_lost
    ),
    solo!(
        "rs-killed-while-creating",
        "SIGKILL in the middle of batches of creates: there are never more pods than replicas.",
        killed_while_creating
    ),
];

const REPLICAS: i32 = 12;

/// Creates `agent` and makes it smaller, while the executor uses this proxy of the apiserver.
async fn scale_by_way_of(solo: &mut SoloFixture, api: &ApiProxy) -> Result<()> {
    let servers = [solo.proxy().url()];
    solo.start_with(Some(api.kubeconfig()), &servers)?;
    let begun = solo.begin_history("agent").await?;
    start(solo, REPLICAS).await?;
    solo.scale::<ReplicaSet>("agent", 4).await?;
    solo.wait_for_replica_set("agent").await?;
    solo.history(&begun).await?.expect_pods(12, 8)?;
    solo.expect_running()
}

//
async fn late_watches(solo: &mut SoloFixture) -> Result<()> {
    // Not also of ReplicaSets: after a write of the status the executor would plan nothing until it sees that.
    let late = ApiProxy::late(solo.cluster(), &["pods"], Duration::from_millis(700)).await?;
    scale_by_way_of(solo, &late).await?;
    expect_nothing_again(solo).await
}

//
async fn write_answers_lost(solo: &mut SoloFixture) -> Result<()> {
    let losing = ApiProxy::losing_answers(solo.cluster(), 3).await?;
    scale_by_way_of(solo, &losing).await?;
    let lost = losing.lost_answers();
    ensure!(lost >= 6, "only {lost} answers were lost");
    Ok(())
}

//
async fn killed_while_creating(solo: &mut SoloFixture) -> Result<()> {
    let replicas = 80;
    solo.start()?;
    solo.add_nodes(2).await?;
    let (watch, begun) = (solo.watch("agent"), solo.begin_history("agent").await?);
    let _: ReplicaSet = solo.create_as(replica_set("agent", replicas).build()).await?;
    for created in [5, 25, 50] {
        solo.wait_until_created(&watch, created).await?;
        solo.kill()?;
        solo.start()?;
    }
    solo.wait_for_replica_set("agent").await?;
    solo.history(&begun).await?.expect_pods(80, 0)
}
