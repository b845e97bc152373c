//! What is killed comes back, and nothing is made twice.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodewise_e2e::{BudgetWatch, DEADLINE, EXECUTOR_USER, Rig, RigOptions, daemon_set, image_patch};
use nodewise_testbed::eventually;

/// Kills and restarts the executor each time when so many pods were ever made.
async fn kill_and_restart_at(rig: &mut Rig, watch: &BudgetWatch, counts: [usize; 3]) -> Result<()> {
    for wanted in counts {
        eventually(DEADLINE, format!("{wanted} pods ever made"), async || {
            let count = watch.seen().created.len();
            ensure!(count >= wanted, "{count} so far");
            Ok(())
        })
        .await?;
        rig.kill_executor()?;
        rig.start_executor().await?;
    }
    Ok(())
}

/// kill -9 of the executor in the middle of a batch: after the restart each node has one pod, and never had two.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_makes_no_pod_twice() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(150)).await?;
    let watch = rig.watch("agent");
    rig.create(daemon_set("agent").build()).await?;
    kill_and_restart_at(&mut rig, &watch, [5, 40, 90]).await?;
    rig.rolled_out("agent").await?;
    rig.expect_one_pod_per_node("agent").await?;
    let seen = watch.seen();
    assert_eq!(
        seen.most_live.0, 1,
        "node {} had {} pods at a time",
        seen.most_live.1, seen.most_live.0
    );
    assert_eq!(seen.created.len(), 150, "no pod was made in vain");
    Ok(())
}

/// kill -9 of the executor in the middle of a rollout: the budget holds across the restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_keeps_the_budget() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(20)).await?;
    let watch = rig.watch("agent");
    rig.create(daemon_set("agent").max_unavailable(2).build()).await?;
    rig.rolled_out("agent").await?;
    watch.arm();
    rig.patch("agent", image_patch(2)).await?;
    kill_and_restart_at(&mut rig, &watch, [22, 28, 34]).await?;
    rig.rolled_out("agent").await?;
    let seen = watch.seen();
    assert!(
        seen.most_unavailable <= 2,
        "{} were unavailable, 2 are allowed",
        seen.most_unavailable
    );
    assert_eq!((seen.most_live.0, seen.created.len()), (1, 40));
    Ok(())
}

/// How many writes of the executor the apiserver has answered.
async fn writes(rig: &Rig) -> Result<usize> {
    Ok(rig
        .audit(|event| event.user == EXECUTOR_USER && event.is_write())
        .await?
        .len())
}

/// kill -9 of the server: nothing is written meanwhile, readiness says why, and work resumes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_stops_all_writes_until_it_is_back() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(5)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    rig.kill_server()?;
    // What was under way when it died, such as the events of the rollout, may still come out.
    let before = eventually(DEADLINE, "the executor to come to rest", async || {
        let (earlier, now) = (writes(&rig).await?, writes(&rig).await?);
        let (_, metrics) = rig.executor_get("/metrics").await?;
        ensure!(
            earlier == now && metrics.contains("workqueue_depth{name=\"daemonset\"} 0"),
            "{now} writes"
        );
        Ok(now)
    })
    .await?;
    rig.create(daemon_set("second").build()).await?;
    eventually(
        DEADLINE,
        "the executor to say that it is not ready, and why",
        async || {
            let (status, body) = rig.executor_get("/readyz").await?;
            // 500, as every Kubernetes component answers when a check fails (M-37).
            ensure!(
                status == 500 && body.contains("no replica of the planning service answers"),
                "{status}: {body}"
            );
            Ok(())
        },
    )
    .await?;
    let during = writes(&rig).await?;
    ensure!(
        during == before,
        "{during} writes, {before} before: something was written without a plan"
    );
    rig.start_server_again().await?;
    rig.rolled_out("second").await?;
    rig.expect_one_pod_per_node("second").await?;
    eventually(DEADLINE, "the executor to be ready again", async || {
        let (status, body) = rig.executor_get("/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    })
    .await
}

/// M-9, M-11, M-12: two executors; the leader is killed and the other goes on within the lease time, without a double.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(20).leader_election()).await?;
    eventually(DEADLINE, "the first executor to lead", async || {
        ensure!(rig.lease_holder().await?.is_some(), "nobody holds the lease");
        Ok(())
    })
    .await?;
    let standby = rig.spawn_executor("standby").await?;
    let watch = rig.watch("agent");
    rig.create(daemon_set("agent").max_unavailable(2).build()).await?;
    rig.rolled_out("agent").await?;
    let holder = rig.lease_holder().await?;
    rig.patch("agent", image_patch(2)).await?;
    rig.kill_executor()?;
    let killed = Instant::now();
    eventually(DEADLINE, "another holder of the lease", async || {
        let now = rig.lease_holder().await?;
        ensure!(now.is_some() && now != holder, "it is held by {now:?}");
        Ok(())
    })
    .await?;
    // The lease lasts 15 s and a candidate looks every 2 s, with jitter.
    let waited = killed.elapsed();
    ensure!(waited < Duration::from_secs(25), "it took {waited:?}");
    rig.rolled_out("agent").await?;
    rig.expect_one_pod_per_node("agent").await?;
    assert_eq!(watch.seen().most_live.0, 1);

    // And by SIGTERM it is handed over at once.
    let (successor, began) = (rig.spawn_executor("successor").await?, Instant::now());
    let before = rig.lease_holder().await?;
    standby.terminate(DEADLINE).await?;
    eventually(DEADLINE, "the lease to be handed over", async || {
        let now = rig.lease_holder().await?;
        ensure!(
            now.as_deref().is_some_and(|holder| !holder.is_empty()) && now != before,
            "it is held by {now:?}"
        );
        Ok(())
    })
    .await?;
    ensure!(
        began.elapsed() < Duration::from_secs(14),
        "the successor waited for the lease to expire"
    );
    rig.create(daemon_set("second").build()).await?;
    rig.rolled_out("second").await?;
    successor.terminate(DEADLINE).await?;
    Ok(())
}
