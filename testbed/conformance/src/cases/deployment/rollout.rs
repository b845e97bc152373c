//! Rollouts, rollbacks and pauses.

use std::{collections::BTreeSet, time::Instant};

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use serde_json::json;

use super::{set_paused, start};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    history::Beginning,
    replicas::revision_of,
    workload_builder::{WorkloadBuilder, deployment, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "deployment-roll",
        "A rollout keeps within maxSurge and maxUnavailable, also if a newer version replaces one that never becomes ready.",
        roll_numbers
    ),
    shared!(
        "deployment-roll-percent",
        "The same with percentages: maxSurge is rounded up, and maxUnavailable is rounded down.",
        roll_percentages
    ),
    shared!(
        "deployment-recreate",
        "With Recreate all old pods are gone before the first new pod is created.",
        recreate
    ),
    shared!(
        "deployment-undo",
        "A rollback in the middle of a rollout restarts no pod that still has the old template, and gives its ReplicaSet a new \
         revision.",
        undo
    ),
    shared!(
        "deployment-rollback-annotation",
        "The annotation deprecated.deployment.rollback.to restores the template of an earlier revision, with an event.",
        rollback_annotation
    ),
    shared!(
        "deployment-pause",
        "A paused Deployment is scaled, but not rolled out, until it is resumed.",
        pause
    ),
    shared!(
        "deployment-deadline",
        "A rollout without progress exceeds progressDeadlineSeconds. The condition Progressing says so, until there is progress.",
        deadline
    ),
    shared!(
        "deployment-min-ready-seconds",
        "A new pod counts as available only after minReadySeconds, and the rollout waits until then.",
        min_ready_seconds
    ),
    shared!(
        "deployment-kubectl-rollout",
        "kubectl rollout status, history, undo, pause, resume and restart work.",
        kubectl_rollout
    ),
];

const REPLICAS: i32 = 10;

/// A Deployment that may have 13 pods in a rollout, of which 8 must be available.
pub(super) fn agent() -> WorkloadBuilder {
    deployment("agent", REPLICAS).rolling(3, 2)
}

/// Rolls out version 2 of [`agent`], which never becomes ready, until the rollout stands still.
pub(super) async fn roll_until_stuck(fixture: &Fixture) -> Result<()> {
    let patch = fixture.never_ready_patch(2);
    fixture.patch_deployment("agent", patch).await?;
    fixture.wait_for_sizes("agent", &[(1, 8), (2, 5)]).await
}

/// Rolls out a version that never becomes ready until its ReplicaSets have these sizes, then another version.
async fn roll(fixture: &Fixture, agent: WorkloadBuilder, stuck: (i32, i32)) -> Result<Beginning> {
    let begun = start(fixture, agent).await?;
    let patch = fixture.never_ready_patch(2);
    fixture.patch_deployment("agent", patch).await?;
    fixture
        .wait_for_sizes("agent", &[(1, stuck.0), (2, stuck.1)])
        .await?;
    let patch = fixture.ready_again_patch(3);
    fixture.patch_deployment("agent", patch).await?;
    fixture.wait_for_deployment("agent").await?;
    fixture
        .wait_for_sizes("agent", &[(1, 0), (2, 0), (3, REPLICAS)])
        .await?;
    let revision = fixture.replica_set_of("agent", 3).await?;
    ensure!(
        revision_of(&revision) == Some("3"),
        "{:?}",
        revision_of(&revision)
    );
    Ok(begun)
}

// P-31, P-32, P-33, P-34, P-35, P-65
async fn roll_numbers(fixture: &Fixture) -> Result<()> {
    let begun = roll(fixture, agent(), (8, 5)).await?;
    let history = fixture.history(&begun).await?;
    history.expect_within(13, 8)?;
    // Five pods of version 2 and ten of version 3 were created; those of versions 1 and 2 were deleted.
    history.expect_pods(15, 15)
}

// P-29: 25 % of 10 is 2.5. maxSurge is 3, and maxUnavailable is 2.
async fn roll_percentages(fixture: &Fixture) -> Result<()> {
    let agent = deployment("agent", REPLICAS).rolling("25%", "25%");
    let begun = roll(fixture, agent, (8, 5)).await?;
    fixture.history(&begun).await?.expect_within(13, 8)
}

// P-38, P-39, P-40
async fn recreate(fixture: &Fixture) -> Result<()> {
    let begun = start(fixture, deployment("agent", 6).recreate()).await?;
    fixture.patch_deployment("agent", image_patch(2)).await?;
    fixture.wait_for_deployment("agent").await?;
    let history = fixture.history(&begun).await?;
    history.expect_pods(6, 6)?;
    let templates = history.most_templates;
    ensure!(
        templates == 1,
        "there were pods of {templates} templates at a time"
    );
    Ok(())
}

/// The uids of the pods of a version.
async fn uids_of(fixture: &Fixture, version: u32) -> Result<BTreeSet<String>> {
    let set = fixture.replica_set_of("agent", version).await?.name_any();
    let mut pods = fixture.live_pods("agent").await?;
    pods.retain(|pod| {
        let owners = pod.owner_references().iter();
        owners.map(|owner| &owner.name).any(|owner| *owner == set)
    });
    Ok(pods.into_iter().filter_map(|pod| pod.metadata.uid).collect())
}

// P-16, P-20
async fn undo(fixture: &Fixture) -> Result<()> {
    start(fixture, agent()).await?;
    roll_until_stuck(fixture).await?;
    let (begun, before) = (fixture.begin_history("agent").await?, uids_of(fixture, 1).await?);
    let patch = fixture.ready_again_patch(1);
    fixture.patch_deployment("agent", patch).await?;
    fixture.wait_for_deployment("agent").await?;
    fixture.wait_for_sizes("agent", &[(1, REPLICAS), (2, 0)]).await?;
    ensure!(
        before.is_subset(&uids_of(fixture, 1).await?),
        "pods with the old template were replaced"
    );
    // Two pods are missing, and five of version 2 are too many.
    fixture.history(&begun).await?.expect_pods(2, 5)?;
    let set = fixture.replica_set_of("agent", 1).await?;
    ensure!(revision_of(&set) == Some("3"), "{:?}", revision_of(&set));
    Ok(())
}

// P-48, P-49, P-50
async fn rollback_annotation(fixture: &Fixture) -> Result<()> {
    start(fixture, agent()).await?;
    fixture.patch_deployment("agent", image_patch(2)).await?;
    fixture.wait_for_deployment("agent").await?;
    let request = json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": "1" } } });
    fixture.patch_deployment("agent", request).await?;
    fixture.wait_for_sizes("agent", &[(1, REPLICAS), (2, 0)]).await?;
    let deployment = fixture.wait_for_deployment("agent").await?;
    let is_kept = deployment
        .annotations()
        .keys()
        .any(|key| key.contains("rollback.to"));
    ensure!(!is_kept, "the request is still there");
    let message = fixture
        .eventually("an event about the rollback", async || {
            let event = fixture.events("DeploymentRollback").await?.pop();
            event.and_then(|event| event.message).context("there is none yet")
        })
        .await?;
    ensure!(message.contains("to revision 1"), "{message}");
    Ok(())
}

// P-46, P-47
async fn pause(fixture: &Fixture) -> Result<()> {
    start(fixture, agent()).await?;
    set_paused(fixture, true).await?;
    fixture
        .wait_for_condition("agent", "Progressing", ("Unknown", "DeploymentPaused"))
        .await?;
    let patch = json!({ "spec": { "replicas": 12 } });
    fixture.patch_deployment("agent", patch).await?;
    fixture.patch_deployment("agent", image_patch(2)).await?;
    fixture.wait_until_observed("agent").await?;
    fixture.wait_for_sizes("agent", &[(1, 12)]).await?;
    set_paused(fixture, false).await?;
    fixture.wait_for_deployment("agent").await?;
    fixture.wait_for_sizes("agent", &[(1, 0), (2, 12)]).await
}

// P-59, P-61, P-62
async fn deadline(fixture: &Fixture) -> Result<()> {
    let agent = agent().set("/spec", "progressDeadlineSeconds", json!(1));
    start(fixture, agent).await?;
    roll_until_stuck(fixture).await?;
    fixture
        .wait_for_condition("agent", "Progressing", ("False", "ProgressDeadlineExceeded"))
        .await?;
    let status = fixture
        .kubectl(&["rollout", "status", "deployment/agent", "--timeout=60s"])
        .await;
    let error = status.err().context("kubectl calls it rolled out")?;
    ensure!(
        format!("{error:#}").contains("exceeded its progress deadline"),
        "{error:#}"
    );
    let patch = fixture.ready_again_patch(3);
    fixture.patch_deployment("agent", patch).await?;
    fixture.wait_for_deployment("agent").await?;
    Ok(())
}

// R-57, P-22
async fn min_ready_seconds(fixture: &Fixture) -> Result<()> {
    let agent = deployment("agent", 2)
        .rolling(0, 1)
        .set("/spec", "minReadySeconds", json!(2));
    let begun = start(fixture, agent).await?;
    let start_time = Instant::now();
    fixture.patch_deployment("agent", image_patch(2)).await?;
    fixture.wait_for_deployment("agent").await?;
    // The kubelet writes whole seconds, so up to one second of each two has already passed when a pod becomes ready.
    let took = start_time.elapsed().as_secs_f64();
    fixture.history(&begun).await?.expect_within(2, 1)?;
    ensure!(took > 2.0, "two pods were replaced in {took} s");
    Ok(())
}

// The commands that people use.
async fn kubectl_rollout(fixture: &Fixture) -> Result<()> {
    let kubectl = async |args: &[&str]| fixture.kubectl(args).await;
    let rollout = async |command: &str| kubectl(&["rollout", command, "deployment/agent"]).await;
    let status = async || {
        let said = kubectl(&["rollout", "status", "deployment/agent", "--timeout=60s"]).await?;
        ensure!(said.contains("successfully rolled out"), "{said}");
        fixture.wait_for_deployment("agent").await
    };
    start(fixture, deployment("agent", 3)).await?;
    status().await?;
    let set_image = async |version: u32| {
        let image = format!("main=registry.example/agent:{version}");
        kubectl(&["set", "image", "deployment/agent", &image]).await
    };
    set_image(2).await?;
    status().await?;
    let history = rollout("history").await?;
    for revision in ['1', '2'] {
        let is_listed = history.lines().any(|line| line.starts_with(revision));
        ensure!(is_listed, "{history}");
    }
    rollout("undo").await?;
    status().await?;
    fixture.wait_for_sizes("agent", &[(1, 3), (2, 0)]).await?;
    kubectl(&["rollout", "undo", "deployment/agent", "--to-revision=2"]).await?;
    status().await?;
    fixture.wait_for_sizes("agent", &[(1, 0), (2, 3)]).await?;

    rollout("pause").await?;
    set_image(3).await?;
    fixture.wait_until_observed("agent").await?;
    fixture.wait_for_sizes("agent", &[(1, 0), (2, 3)]).await?;
    rollout("resume").await?;
    status().await?;
    fixture.wait_for_sizes("agent", &[(1, 0), (2, 0), (3, 3)]).await?;

    let before = fixture.uids("agent").await?;
    rollout("restart").await?;
    status().await?;
    let kept = before.intersection(&fixture.uids("agent").await?).count();
    ensure!(kept == 0, "{kept} pods were not restarted");
    Ok(())
}
