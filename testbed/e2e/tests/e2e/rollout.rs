//! New versions, and back again.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use nodewise_e2e::{DEADLINE, Rig, RigOptions, daemon_set, image_patch};
use nodewise_testbed::eventually;
use serde_json::json;

/// The revisions' numbers, ascending.
async fn revisions(rig: &Rig) -> Result<Vec<i64>> {
    let api: Api<ControllerRevision> = Api::namespaced(rig.client(), "default");
    let mut numbers: Vec<i64> = api
        .list(&ListParams::default())
        .await?
        .items
        .iter()
        .map(|r| r.revision)
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Rolls `builder`'s DaemonSet out to 20 nodes, then version 2, and gives the worst that was seen meanwhile.
async fn roll(builder: nodewise_e2e::DaemonSetBuilder) -> Result<nodewise_e2e::Seen> {
    let rig = Rig::start(RigOptions::nodes(20)).await?;
    let watch = rig.watch("agent");
    rig.create(builder.build()).await?;
    rig.rolled_out("agent").await?;
    rig.expect_one_pod_per_node("agent").await?;
    watch.arm();
    rig.patch("agent", image_patch(2)).await?;
    rig.rolled_out("agent").await?;
    eventually(DEADLINE, "the old pods to be gone", async || {
        rig.expect_one_pod_per_node("agent").await
    })
    .await?;
    let images = rig.images("agent").await?;
    ensure!(
        images.iter().all(|image| image.ends_with(":2")),
        "images after the rollout: {images:?}"
    );
    assert_eq!(revisions(&rig).await?, [1, 2], "S-102");
    let seen = watch.seen();
    assert_eq!(seen.created.len(), 40, "each pod was replaced once");
    Ok(seen)
}

/// D-40, D-41, D-42, S-69.
#[tokio::test(flavor = "multi_thread")]
async fn rolls_within_a_number_of_unavailable_nodes() -> Result<()> {
    let seen = roll(daemon_set("agent").max_unavailable(3)).await?;
    assert_eq!(seen.most_unavailable, 3, "as many as are allowed, and no more");
    assert_eq!(seen.most_live.0, 1, "never two on a node without surge");
    Ok(())
}

/// D-40: 12 % of 20 is 2.4, rounded up to 3.
#[tokio::test(flavor = "multi_thread")]
async fn rolls_within_a_percentage_of_unavailable_nodes() -> Result<()> {
    let seen = roll(daemon_set("agent").max_unavailable("12%")).await?;
    assert_eq!(seen.most_unavailable, 3, "as many as are allowed, and no more");
    assert_eq!(seen.most_live.0, 1, "never two on a node without surge");
    Ok(())
}

/// D-45, D-46, D-47, S-84.
#[tokio::test(flavor = "multi_thread")]
async fn surges_without_a_node_going_without() -> Result<()> {
    let seen = roll(daemon_set("agent").max_surge(4)).await?;
    assert_eq!(seen.most_unavailable, 0, "surge takes no node down");
    assert_eq!(seen.most_live.0, 2, "one old and one new");
    assert_eq!(seen.most_surging, 4, "as many as are allowed, and no more");
    Ok(())
}

/// D-50, S-100, S-101.
#[tokio::test(flavor = "multi_thread")]
async fn on_delete_replaces_what_the_user_deletes() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.create(daemon_set("agent").on_delete().build()).await?;
    rig.rolled_out("agent").await?;
    rig.patch("agent", image_patch(2)).await?;
    eventually(DEADLINE, "revision 2 and status updated 0", async || {
        ensure!(
            revisions(&rig).await? == [1, 2],
            "revisions {:?}",
            revisions(&rig).await?
        );
        let status = rig.observed_status("agent").await?;
        ensure!(status.updated_number_scheduled.unwrap_or(0) == 0, "{status:?}");
        Ok(())
    })
    .await?;
    let images = rig.images("agent").await?;
    ensure!(images.iter().all(|image| image.ends_with(":1")), "{images:?}");
    let victim = rig.live_pods("agent").await?[0]
        .metadata
        .name
        .clone()
        .context("a pod has a name")?;
    rig.pod_api().delete(&victim, &DeleteParams::default()).await?;
    eventually(DEADLINE, "one replacement of version 2", async || {
        let mut images = rig.images("agent").await?;
        images.sort();
        ensure!(
            images.len() == 3 && images[1].ends_with(":1") && images[2].ends_with(":2"),
            "{images:?}"
        );
        Ok(())
    })
    .await
}

/// S-82, D-54: going back in the middle restarts no pod of the returning revision, and renumbers it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_keeps_pods_that_still_match() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(6)).await?;
    rig.create(daemon_set("agent").max_unavailable(1).build()).await?;
    rig.rolled_out("agent").await?;
    let before = rig.uids("agent").await?;
    // Version 2 never becomes ready, so the rollout stops after the first node.
    rig.patch("agent", rig.never_ready_patch(2)).await?;
    eventually(DEADLINE, "one pod of version 2", async || {
        let images = rig.images("agent").await?;
        ensure!(
            images.iter().filter(|image| image.ends_with(":2")).count() == 1,
            "{images:?}"
        );
        Ok(())
    })
    .await?;
    rig.patch("agent", rig.ready_again_patch(1)).await?;
    rig.rolled_out("agent").await?;
    let after = rig.uids("agent").await?;
    assert_eq!(
        before.intersection(&after).count(),
        5,
        "five pods were never touched"
    );
    assert_eq!(revisions(&rig).await?, [2, 3], "revision 1 came back as 3");
    Ok(())
}

/// D-63, D-64.
#[tokio::test(flavor = "multi_thread")]
async fn keeps_as_many_old_revisions_as_the_limit_says() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2)).await?;
    rig.create(
        daemon_set("agent")
            .max_unavailable("100%")
            .set("/spec", "revisionHistoryLimit", json!(2))
            .build(),
    )
    .await?;
    rig.rolled_out("agent").await?;
    for version in 2..=5 {
        rig.patch("agent", image_patch(version)).await?;
        rig.rolled_out("agent").await?;
    }
    eventually(DEADLINE, "two old revisions and the current one", async || {
        let numbers = revisions(&rig).await?;
        ensure!(numbers == [3, 4, 5], "{numbers:?}");
        Ok(())
    })
    .await
}

/// What people type.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_rollout_works_against_it() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.create(daemon_set("agent").max_unavailable(1).build()).await?;
    let status = rig
        .kubectl(&["rollout", "status", "daemonset/agent", "--timeout=60s"])
        .await?;
    ensure!(status.contains("successfully rolled out"), "{status}");
    rig.kubectl(&["set", "image", "daemonset/agent", "main=registry.example/agent:2"])
        .await?;
    let status = rig
        .kubectl(&["rollout", "status", "daemonset/agent", "--timeout=60s"])
        .await?;
    ensure!(status.contains("successfully rolled out"), "{status}");
    let history = rig.kubectl(&["rollout", "history", "daemonset/agent"]).await?;
    ensure!(history.lines().any(|line| line.starts_with('1')), "{history}");
    ensure!(history.lines().any(|line| line.starts_with('2')), "{history}");
    let first = rig
        .kubectl(&["rollout", "history", "daemonset/agent", "--revision=1"])
        .await?;
    ensure!(first.contains("registry.example/agent:1"), "{first}");
    rig.kubectl(&["rollout", "undo", "daemonset/agent"]).await?;
    rig.kubectl(&["rollout", "status", "daemonset/agent", "--timeout=60s"])
        .await?;
    let images = rig.images("agent").await?;
    ensure!(images.iter().all(|image| image.ends_with(":1")), "{images:?}");
    assert_eq!(revisions(&rig).await?, [2, 3]);
    Ok(())
}
