//! Rollouts and rollbacks.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::json;

use crate::{
    budget::Seen,
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::{WorkloadBuilder, daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "roll-max-unavailable-number",
        "A rollout makes at most maxUnavailable nodes unavailable at a time.",
        roll_max_unavailable_number
    ),
    shared!(
        "roll-max-unavailable-percent",
        "The same with maxUnavailable as a percentage, which is rounded up.",
        roll_max_unavailable_percent
    ),
    shared!(
        "roll-max-surge",
        "With maxSurge every node keeps a ready pod, and at most maxSurge nodes have two pods.",
        roll_max_surge
    ),
    shared!(
        "on-delete",
        "With OnDelete a node gets the new template only after its pod was deleted.",
        on_delete
    ),
    shared!(
        "min-ready-seconds",
        "A new pod counts as available only after minReadySeconds, and the next node waits until then.",
        min_ready_seconds
    ),
    shared!(
        "rollback-keeps-pods",
        "A rollback in the middle of a rollout restarts no pod that still has the old template.",
        rollback_keeps_pods
    ),
    shared!(
        "kubectl-rollout",
        "kubectl rollout status, history and undo work.",
        kubectl_rollout
    ),
];

const NODES: usize = 10;

/// Rolls out `agent`, then a version 2 that never becomes ready, so that the rollout stops when the budget is used,
/// then version 3. Returns what the watch recorded.
async fn roll(fixture: &Fixture, agent: WorkloadBuilder, budget: usize) -> Result<Seen> {
    let watch = fixture.watch("agent");
    fixture.start_as(NODES, agent).await?;
    fixture.wait_until_settled("agent").await?;
    watch.arm().await?;
    newer_pods_are_younger(fixture).await?;
    fixture.patch("agent", fixture.never_ready_patch(2)).await?;
    fixture
        .eventually("the budget to be used", async || {
            let second = fixture.count_of_version("agent", 2).await?;
            ensure!(second >= budget, "{second} of {budget}");
            Ok(())
        })
        .await?;
    fixture.patch("agent", fixture.ready_again_patch(3)).await?;
    fixture.wait_until_settled("agent").await?;
    let third = fixture.count_of_version("agent", 3).await?;
    ensure!(third == NODES, "{third} pods have the third version");
    let revisions = fixture.revisions("agent").await?;
    ensure!(revisions == [1, 2, 3], "its revisions are {revisions:?}");
    watch.seen().await
}

/// Waits until the clock is in a later second than the creation of the last pod. Of two old pods on a node the older
/// one is kept; if both were created in the same second, the name decides (D-38), whether they are ready or not.
async fn newer_pods_are_younger(fixture: &Fixture) -> Result<()> {
    let pods = fixture.live_pods("agent").await?;
    let created = pods.iter().filter_map(ResourceExt::creation_timestamp);
    let last = created.map(|time| time.0.as_second()).max();
    fixture
        .eventually("the next second", async || {
            ensure!(last < Some(Timestamp::now().as_second()), "it is still the same");
            Ok(())
        })
        .await
}

/// How many pods [`roll`] creates, including those of version 2.
const fn needed(budget: usize) -> usize {
    NODES + budget + NODES
}

async fn roll_unavailable(fixture: &Fixture, agent: WorkloadBuilder) -> Result<()> {
    roll(fixture, agent, 3).await?.expect_rollout(3, needed(3))
}

// D-40, D-41, D-42
async fn roll_max_unavailable_number(fixture: &Fixture) -> Result<()> {
    roll_unavailable(fixture, daemon_set("agent").max_unavailable(3)).await
}

// D-40: 24 % of 10 is 2.4, rounded up to 3.
async fn roll_max_unavailable_percent(fixture: &Fixture) -> Result<()> {
    roll_unavailable(fixture, daemon_set("agent").max_unavailable("24%")).await
}

// D-45, D-46, D-47
async fn roll_max_surge(fixture: &Fixture) -> Result<()> {
    let seen = roll(fixture, daemon_set("agent").max_surge(4), 4).await?;
    seen.expect_unavailable_at_most(0)?;
    ensure!(
        seen.most_surging == 4,
        "{} nodes surged, 4 may",
        seen.most_surging
    );
    let (most, node) = &seen.most_live;
    ensure!(*most == 2, "{node} had {most} pods at a time");
    seen.expect_created(needed(4))
}

// D-50
async fn on_delete(fixture: &Fixture) -> Result<()> {
    fixture.start_as(3, daemon_set("agent").on_delete()).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture
        .eventually("revision 2 and status updated 0", async || {
            let revisions = fixture.revisions("agent").await?;
            ensure!(revisions == [1, 2], "revisions {revisions:?}");
            let status = fixture.observed_status("agent").await?;
            ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
            Ok(())
        })
        .await?;
    ensure!(
        fixture.count_of_version("agent", 1).await? == 3,
        "pods were replaced"
    );
    fixture.delete_a_pod("agent").await?;
    fixture
        .eventually("one replacement of version 2", async || {
            let (first, second) = (
                fixture.count_of_version("agent", 1).await?,
                fixture.count_of_version("agent", 2).await?,
            );
            ensure!((first, second) == (2, 1), "{first} of version 1, {second} of 2");
            Ok(())
        })
        .await
}

const MIN_READY: Duration = Duration::from_secs(3);

// D-92
async fn min_ready_seconds(fixture: &Fixture) -> Result<()> {
    let agent =
        daemon_set("agent")
            .max_unavailable(1)
            .set("/spec", "minReadySeconds", json!(MIN_READY.as_secs()));
    let watch = fixture.watch("agent");
    fixture.start_as(3, agent).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_until_settled("agent").await?;
    let deleted = fixture.deletes_of_pods().await?;
    ensure!(deleted.len() == 3, "{} pods were deleted", deleted.len());
    // The kubelet writes whole seconds, so up to one second has already passed when a pod becomes ready.
    let least = MIN_READY
        .checked_sub(Duration::from_millis(1_100))
        .unwrap_or_default();
    for pair in deleted.windows(2) {
        let gap = pair[1].duration_since(pair[0]);
        ensure!(
            gap > SignedDuration::try_from(least)?,
            "the next node went {gap:?} after the one before it, in spite of {MIN_READY:?}"
        );
    }
    watch.seen().await?.expect_no_doubles()
}

// D-54
async fn rollback_keeps_pods(fixture: &Fixture) -> Result<()> {
    fixture
        .start_as(6, daemon_set("agent").max_unavailable(1))
        .await?;
    let before = fixture.uids("agent").await?;
    // Version 2 never becomes ready, so the rollout stops after the first node.
    fixture.patch("agent", fixture.never_ready_patch(2)).await?;
    fixture
        .eventually("one pod of version 2", async || {
            let second = fixture.count_of_version("agent", 2).await?;
            ensure!(second == 1, "{second}");
            Ok(())
        })
        .await?;
    fixture.patch("agent", fixture.ready_again_patch(1)).await?;
    fixture.wait_until_settled("agent").await?;
    let after = fixture.uids("agent").await?;
    let kept = before.intersection(&after).count();
    ensure!(kept == 5, "{kept} of 5 pods were never touched");
    let revisions = fixture.revisions("agent").await?;
    ensure!(
        revisions == [2, 3],
        "revision 1 comes back as 3, but there are {revisions:?}"
    );
    Ok(())
}

// The commands that people use.
async fn kubectl_rollout(fixture: &Fixture) -> Result<()> {
    let kubectl = async |args: &[&str]| fixture.kubectl(args).await;
    let status = async || {
        let said = kubectl(&["rollout", "status", "daemonset/agent", "--timeout=60s"]).await?;
        ensure!(said.contains("successfully rolled out"), "{said}");
        Ok(())
    };
    fixture.add_nodes(3).await?;
    fixture
        .create(daemon_set("agent").max_unavailable(1).build())
        .await?;
    status().await?;
    kubectl(&["set", "image", "daemonset/agent", "main=registry.example/agent:2"]).await?;
    status().await?;
    let history = kubectl(&["rollout", "history", "daemonset/agent"]).await?;
    for revision in ['1', '2'] {
        ensure!(
            history.lines().any(|line| line.starts_with(revision)),
            "{history}"
        );
    }
    let first = kubectl(&["rollout", "history", "daemonset/agent", "--revision=1"]).await?;
    ensure!(first.contains("registry.example/agent:1"), "{first}");
    kubectl(&["rollout", "undo", "daemonset/agent"]).await?;
    status().await?;
    ensure!(
        fixture.count_of_version("agent", 1).await? == 3,
        "it was not undone"
    );
    ensure!(
        fixture.revisions("agent").await? == [2, 3],
        "it has other revisions"
    );
    Ok(())
}
