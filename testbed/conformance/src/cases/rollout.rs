//! New versions, and back again.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::json;

use crate::{
    budget::Seen,
    case::{Case, shared},
    daemon_set::{DaemonSetBuilder, daemon_set, image_patch},
    scene::Scene,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "roll-max-unavailable-number",
        "A rollout takes down as many nodes at a time as maxUnavailable says, and no more.",
        roll_max_unavailable_number
    ),
    shared!(
        "roll-max-unavailable-percent",
        "The same with maxUnavailable as a percentage, which is rounded up.",
        roll_max_unavailable_percent
    ),
    shared!(
        "roll-max-surge",
        "With maxSurge no node goes without a ready pod, and as many nodes as it says have two.",
        roll_max_surge
    ),
    shared!(
        "on-delete",
        "With OnDelete a new template reaches only the nodes whose pod is deleted.",
        on_delete
    ),
    shared!(
        "min-ready-seconds",
        "A new pod counts as available only after minReadySeconds, and the next node waits for that.",
        min_ready_seconds
    ),
    shared!(
        "rollback-keeps-pods",
        "Going back in the middle of a rollout restarts no pod that still has the old template.",
        rollback_keeps_pods
    ),
    shared!(
        "kubectl-rollout",
        "kubectl rollout status, history and undo work.",
        kubectl_rollout
    ),
];

const NODES: usize = 10;

/// Rolls `agent` out, then a version 2 that never becomes ready, so that the rollout stops when its budget is used, then
/// version 3. Gives all that was seen meanwhile.
async fn roll(scene: &Scene, agent: DaemonSetBuilder, budget: usize) -> Result<Seen> {
    let watch = scene.watch("agent");
    scene.start_as(NODES, agent).await?;
    scene.settled("agent").await?;
    watch.arm().await?;
    newer_pods_are_younger(scene).await?;
    scene.patch("agent", scene.never_ready_patch(2)).await?;
    scene
        .eventually("the budget to be used", async || {
            let second = scene.count_of_version("agent", 2).await?;
            ensure!(second >= budget, "{second} of {budget}");
            Ok(())
        })
        .await?;
    scene.patch("agent", scene.ready_again_patch(3)).await?;
    scene.settled("agent").await?;
    let third = scene.count_of_version("agent", 3).await?;
    ensure!(third == NODES, "{third} pods have the third version");
    let revisions = scene.revisions("agent").await?;
    ensure!(revisions == [1, 2, 3], "its revisions are {revisions:?}");
    watch.seen().await
}

/// Waits until the second is over in which the last pod was created: of two old pods on a node the older one stays, and by name if
/// both are of the same second (D-38), ready or not.
async fn newer_pods_are_younger(scene: &Scene) -> Result<()> {
    let pods = scene.live_pods("agent").await?;
    let created = pods.iter().filter_map(ResourceExt::creation_timestamp);
    let last = created.map(|time| time.0.as_second()).max();
    scene
        .eventually("the next second", async || {
            ensure!(last < Some(Timestamp::now().as_second()), "it is still the same");
            Ok(())
        })
        .await
}

/// How many pods [`roll`] needs: those of version 2 are in vain.
const fn needed(budget: usize) -> usize {
    NODES + budget + NODES
}

async fn roll_unavailable(scene: &Scene, agent: DaemonSetBuilder) -> Result<()> {
    roll(scene, agent, 3).await?.expect_rollout(3, needed(3))
}

// D-40, D-41, D-42, S-69, S-102
async fn roll_max_unavailable_number(scene: &Scene) -> Result<()> {
    roll_unavailable(scene, daemon_set("agent").max_unavailable(3)).await
}

// D-40: 24 % of 10 is 2.4, rounded up to 3.
async fn roll_max_unavailable_percent(scene: &Scene) -> Result<()> {
    roll_unavailable(scene, daemon_set("agent").max_unavailable("24%")).await
}

// D-45, D-46, D-47, S-84
async fn roll_max_surge(scene: &Scene) -> Result<()> {
    let seen = roll(scene, daemon_set("agent").max_surge(4), 4).await?;
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

// D-50, S-100, S-101
async fn on_delete(scene: &Scene) -> Result<()> {
    scene.start_as(3, daemon_set("agent").on_delete()).await?;
    scene.patch("agent", image_patch(2)).await?;
    scene
        .eventually("revision 2 and status updated 0", async || {
            let revisions = scene.revisions("agent").await?;
            ensure!(revisions == [1, 2], "revisions {revisions:?}");
            let status = scene.observed_status("agent").await?;
            ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
            Ok(())
        })
        .await?;
    ensure!(
        scene.count_of_version("agent", 1).await? == 3,
        "pods were replaced"
    );
    scene.delete_a_pod("agent").await?;
    scene
        .eventually("one replacement of version 2", async || {
            let (first, second) = (
                scene.count_of_version("agent", 1).await?,
                scene.count_of_version("agent", 2).await?,
            );
            ensure!((first, second) == (2, 1), "{first} of version 1, {second} of 2");
            Ok(())
        })
        .await
}

const MIN_READY: Duration = Duration::from_secs(3);

// D-92
async fn min_ready_seconds(scene: &Scene) -> Result<()> {
    let agent =
        daemon_set("agent")
            .max_unavailable(1)
            .set("/spec", "minReadySeconds", json!(MIN_READY.as_secs()));
    let watch = scene.watch("agent");
    scene.start_as(3, agent).await?;
    scene.patch("agent", image_patch(2)).await?;
    scene.settled("agent").await?;
    let deleted = scene.deletes_of_pods().await?;
    ensure!(deleted.len() == 3, "{} pods were deleted", deleted.len());
    // The kubelet writes whole seconds, so up to one of them is over when a pod becomes ready.
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

// S-82, D-54
async fn rollback_keeps_pods(scene: &Scene) -> Result<()> {
    scene.start_as(6, daemon_set("agent").max_unavailable(1)).await?;
    let before = scene.uids("agent").await?;
    // Version 2 never becomes ready, so the rollout stops after the first node.
    scene.patch("agent", scene.never_ready_patch(2)).await?;
    scene
        .eventually("one pod of version 2", async || {
            let second = scene.count_of_version("agent", 2).await?;
            ensure!(second == 1, "{second}");
            Ok(())
        })
        .await?;
    scene.patch("agent", scene.ready_again_patch(1)).await?;
    scene.settled("agent").await?;
    let after = scene.uids("agent").await?;
    let kept = before.intersection(&after).count();
    ensure!(kept == 5, "{kept} of 5 pods were never touched");
    let revisions = scene.revisions("agent").await?;
    ensure!(
        revisions == [2, 3],
        "revision 1 comes back as 3, but there are {revisions:?}"
    );
    Ok(())
}

// What people type.
async fn kubectl_rollout(scene: &Scene) -> Result<()> {
    let kubectl = async |args: &[&str]| {
        let namespace = ["--namespace", scene.namespace()];
        scene.cluster().plane().kubectl([&namespace, args].concat()).await
    };
    let status = async || {
        let said = kubectl(&["rollout", "status", "daemonset/agent", "--timeout=60s"]).await?;
        ensure!(said.contains("successfully rolled out"), "{said}");
        Ok(())
    };
    scene.add_nodes(3).await?;
    scene
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
        scene.count_of_version("agent", 1).await? == 3,
        "it was not undone"
    );
    ensure!(
        scene.revisions("agent").await? == [2, 3],
        "it has other revisions"
    );
    Ok(())
}
