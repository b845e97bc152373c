//! The owner of Deployments and ReplicaSets changes from upstream's controllers to the executor, or back, at rest and in the
//! middle of a rollout. Nothing may change in the cluster.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use nodewise_testbed::AuditEvent;
use serde_json::json;

use super::{
    rollout::{agent, roll_until_stuck},
    start,
};
use crate::{
    audit::AuditPosition,
    case::{Case, solo},
    cases::takeover::{expect_idle_executor, expect_idle_upstream},
    cluster::{EXECUTOR_USER, UPSTREAM_USER, Upstream},
    cluster_state::{ClusterState, DEPLOYMENTS},
    controllers::Controllers,
    fixture::{Fixture, SoloFixture},
    tricky_templates::{tricky_scheduling, tricky_strings, tricky_volumes},
    workload_builder::{deployment, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "deployment-take-over-from-upstream",
        "The executor takes over Deployments with a history from kube-controller-manager: no pod restarts, and nothing is \
         written.",
        take_over_from_upstream
    ),
    solo!(
        "deployment-give-back-to-upstream",
        "kube-controller-manager takes over Deployments from the executor, and finds nothing to do.",
        give_back_to_upstream
    ),
    solo!(
        "deployment-takeover-mid-rollout",
        "The executor takes over a rollout that stands still from kube-controller-manager: nothing is written until there is a \
         newer version, which it rolls out within the bounds.",
        take_over_mid_rollout
    ),
    solo!(
        "deployment-give-back-mid-rollout",
        "The same in the other direction.",
        give_back_mid_rollout
    ),
    solo!(
        "deployment-takeover-moving-rollout",
        "The owner changes twice while a rollout makes progress: it keeps within its bounds, and no pod is replaced twice.",
        take_over_moving_rollout
    ),
];

const NAMES: [&str; 3] = ["rolling", "recreated", "waiting"];
const REPLICAS: i32 = 3;

async fn start_upstream(solo: &SoloFixture) -> Result<Upstream> {
    let controllers = Controllers::Deployments.names();
    solo.cluster().start_built_in(controllers).await
}

/// Creates the Deployments and gives each a second revision, under the present owner. The first one is rolled back.
async fn make_history(fixture: &Fixture) -> Result<()> {
    for object in [
        tricky_volumes(deployment("rolling", REPLICAS)).rolling("30%", 1),
        tricky_scheduling(deployment("recreated", REPLICAS)).recreate(),
        tricky_strings(deployment("waiting", REPLICAS)),
    ] {
        let _: Deployment = fixture.create_as(object.build()).await?;
    }
    for name in NAMES {
        fixture.wait_for_deployment(name).await?;
        fixture.patch_deployment(name, image_patch(2)).await?;
    }
    for name in NAMES {
        fixture.wait_for_deployment(name).await?;
        fixture.wait_for_sizes(name, &[(1, 0), (2, REPLICAS)]).await?;
    }
    fixture.patch_deployment("rolling", image_patch(1)).await?;
    fixture
        .wait_for_sizes("rolling", &[(1, REPLICAS), (2, 0)])
        .await?;
    fixture.wait_for_deployment("rolling").await?;
    fixture.wait_until_unchanged(DEPLOYMENTS, &NAMES).await
}

/// The new owner works: it rolls out a new version, and nobody else creates anything.
async fn owner_works(fixture: &Fixture, before: &ClusterState, owner: &str) -> Result<()> {
    let begun = fixture.begin_history("rolling").await?;
    fixture.patch_deployment("rolling", image_patch(3)).await?;
    fixture
        .wait_for_sizes("rolling", &[(1, 0), (2, 0), (3, REPLICAS)])
        .await?;
    fixture.wait_for_deployment("rolling").await?;
    fixture.history(&begun).await?.expect_pods(3, 3)?;
    fixture.expect_same(before, &NAMES[1..]).await?;
    expect_created_by(fixture, before, owner).await
}

/// Who created pods and ReplicaSets since then, in this order. Several in a row of the same owner are one.
async fn creators(fixture: &Fixture, since: AuditPosition) -> Result<Vec<String>> {
    let is_created = |event: &AuditEvent| {
        let is_created = event.verb == "create" && event.subresource.is_empty() && event.code == 201;
        is_created && ["pods", "replicasets"].contains(&event.resource.as_str())
    };
    let created = fixture.audited(since, is_created).await?;
    let mut users: Vec<_> = created.into_iter().map(|event| event.user).collect();
    users.dedup();
    Ok(users)
}

/// Fails unless only `owner` created pods and ReplicaSets since then.
async fn expect_created_by(fixture: &Fixture, before: &ClusterState, owner: &str) -> Result<()> {
    let users = creators(fixture, before.audited()).await?;
    ensure!(
        users == [owner],
        "{owner} owns them, and they were created by {users:?}"
    );
    Ok(())
}

/// The state of the Deployments that [`make_history`] left.
async fn whole_state(fixture: &Fixture) -> Result<ClusterState> {
    let state = fixture.cluster_state(DEPLOYMENTS, &NAMES).await?;
    let (pods, sets) = (state.count("Pod"), state.count("ReplicaSet"));
    ensure!((pods, sets) == (9, 6), "{pods} pods and {sets} ReplicaSets");
    Ok(state)
}

// P-16
async fn take_over_from_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(3).await?;
    let upstream = start_upstream(solo).await?;
    make_history(solo).await?;
    upstream.stop().await?;
    let mut before = whole_state(solo).await?;
    let since = solo.proxy().mark();
    solo.start()?;
    expect_idle_executor(solo, since, &mut before, &NAMES).await?;
    owner_works(solo, &before, EXECUTOR_USER).await
}

async fn give_back_to_upstream(solo: &mut SoloFixture) -> Result<()> {
    solo.add_nodes(3).await?;
    solo.start()?;
    make_history(solo).await?;
    solo.stop().await?;
    let mut before = whole_state(solo).await?;
    let upstream = start_upstream(solo).await?;
    expect_idle_upstream(solo, &upstream, &mut before, &NAMES).await?;
    owner_works(solo, &before, UPSTREAM_USER).await?;
    upstream.stop().await
}

/// Rolls out `agent` until the rollout stands still.
async fn stand_still(fixture: &Fixture) -> Result<()> {
    start(fixture, agent()).await?;
    roll_until_stuck(fixture).await?;
    fixture.wait_until_unchanged(DEPLOYMENTS, &["agent"]).await
}

/// The new owner replaces the version that never becomes ready by another one, and keeps within the bounds.
async fn owner_continues(fixture: &Fixture, before: &ClusterState, owner: &str) -> Result<()> {
    let begun = fixture.begin_history("agent").await?;
    let patch = fixture.ready_again_patch(3);
    fixture.patch_deployment("agent", patch).await?;
    fixture
        .wait_for_sizes("agent", &[(1, 0), (2, 0), (3, 10)])
        .await?;
    fixture.wait_for_deployment("agent").await?;
    let history = fixture.history(&begun).await?;
    history.expect_within(13, 8)?;
    history.expect_pods(10, 13)?;
    expect_created_by(fixture, before, owner).await
}

async fn take_over_mid_rollout(solo: &mut SoloFixture) -> Result<()> {
    let upstream = start_upstream(solo).await?;
    stand_still(solo).await?;
    upstream.stop().await?;
    let mut before = solo.cluster_state(DEPLOYMENTS, &["agent"]).await?;
    let since = solo.proxy().mark();
    solo.start()?;
    expect_idle_executor(solo, since, &mut before, &["agent"]).await?;
    owner_continues(solo, &before, EXECUTOR_USER).await
}

async fn give_back_mid_rollout(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    stand_still(solo).await?;
    solo.stop().await?;
    let mut before = solo.cluster_state(DEPLOYMENTS, &["agent"]).await?;
    let upstream = start_upstream(solo).await?;
    expect_idle_upstream(solo, &upstream, &mut before, &["agent"]).await?;
    owner_continues(solo, &before, UPSTREAM_USER).await?;
    upstream.stop().await
}

// P-65: two pods at a time, and each counts only after minReadySeconds, so that no owner completes the rollout before the next one.
async fn take_over_moving_rollout(solo: &mut SoloFixture) -> Result<()> {
    let upstream = start_upstream(solo).await?;
    let agent = deployment("agent", 10)
        .rolling(1, 1)
        .set("/spec", "minReadySeconds", json!(2));
    let begun = start(solo, agent).await?;
    let (watch, since) = (solo.watch("agent"), solo.audit_position().await?);
    solo.patch_deployment("agent", image_patch(2)).await?;
    solo.wait_until_created(&watch, 12).await?;
    upstream.stop().await?;
    let created = watch.seen_so_far().created.len();
    solo.start()?;
    solo.wait_until_created(&watch, created + 2).await?;
    solo.stop().await?;
    let upstream = start_upstream(solo).await?;
    solo.wait_for_deployment("agent").await?;
    solo.wait_for_sizes("agent", &[(1, 0), (2, 10)]).await?;
    let history = solo.history(&begun).await?;
    history.expect_within(11, 9)?;
    history.expect_pods(10, 10)?;
    let users = creators(solo, since).await?;
    ensure!(
        users == [UPSTREAM_USER, EXECUTOR_USER, UPSTREAM_USER],
        "pods were created by {users:?}"
    );
    upstream.stop().await
}
