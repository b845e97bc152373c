//! What this executor says and does when something is killed: its readiness, and its leader election.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::eventually;

/// kill -9 of the server: readiness says why nothing goes on, and work resumes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_tells_of_a_killed_server() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    rig.kill_server()?;
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
    rig.start_server_again().await?;
    rig.rolled_out("second").await?;
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
    assert_eq!(watch.seen().await?.most_live.0, 1);

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

/// Creates and deletes of pods that came in since then.
async fn pods_written(rig: &Rig, since: Option<Timestamp>) -> Result<usize> {
    let is_write = |event: &nodewise_testbed::AuditEvent| {
        event.resource == "pods"
            && event.subresource.is_empty()
            && ["create", "delete"].contains(&event.verb.as_str())
            && since.is_none_or(|since| event.received > since)
    };
    Ok(rig.audit(is_write).await?.len())
}

/// M-12: writes that wait for their turn are not sent any more when the leader was stopped and another has the lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_stopped_writes_nothing_more() -> Result<()> {
    let options = [
        "--client-qps=2",
        "--lease-duration=4s",
        "--renew-deadline=3s",
        "--retry-period=300ms",
    ]
    .into_iter()
    .fold(RigOptions::nodes(30).leader_election(), RigOptions::executor_arg);
    let rig = Rig::start(options).await?;
    eventually(DEADLINE, "the first executor to lead", async || {
        ensure!(rig.lease_holder().await?.is_some(), "nobody holds the lease");
        Ok(())
    })
    .await?;
    let (holder, standby) = (rig.lease_holder().await?, rig.spawn_executor("standby").await?);
    rig.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "some pods", async || {
        let written = pods_written(&rig, None).await?;
        ensure!(written >= 3, "{written} were written");
        Ok(())
    })
    .await?;
    rig.executor().pause()?;
    eventually(DEADLINE, "another holder of the lease", async || {
        let now = rig.lease_holder().await?;
        ensure!(now.is_some() && now != holder, "it is held by {now:?}");
        Ok(())
    })
    .await?;
    // From here on nothing writes but the leader that was stopped, if it does.
    standby.pause()?;
    let resumed = Timestamp::now();
    rig.executor().resume()?;
    eventually(
        DEADLINE,
        "the first executor to know that it leads no more",
        async || {
            let (_, metrics) = rig.executor_get("/metrics").await?;
            let leads = metrics
                .lines()
                .any(|line| line.starts_with("leader_election_master_status") && line.ends_with(" 1"));
            ensure!(!leads, "it leads");
            Ok(())
        },
    )
    .await?;
    let written = pods_written(&rig, Some(resumed)).await?;
    ensure!(
        written == 0,
        "{written} pods were written by an executor that did not lead"
    );
    standby.resume()?;
    rig.rolled_out("agent").await?;
    rig.expect_one_pod_per_node("agent").await?;
    standby.terminate(DEADLINE).await?;
    Ok(())
}

/// When pods of the workload last came, became ready or ceased to be.
async fn last_change(rig: &Rig, name: &str) -> Result<Timestamp> {
    let pods = rig.live_pods(name).await?;
    let times = pods.into_iter().flat_map(|pod| {
        let conditions = pod.status.unwrap_or_default().conditions.unwrap_or_default();
        let ready = conditions
            .into_iter()
            .filter(|condition| condition.type_ == "Ready");
        let ready = ready.filter_map(|condition| condition.last_transition_time);
        ready.chain(pod.metadata.creation_timestamp).map(|time| time.0)
    });
    times.max().context("a pod with a time")
}

/// What a scrape says about how long the rollout has not come closer to its end.
async fn since_progress(rig: &Rig, name: &str) -> Result<f64> {
    let series = format!("nodewise_rollout_since_progress_seconds{{namespace=\"default\",name=\"{name}\"}} ");
    let (_, scrape) = rig.executor_get("/metrics").await?;
    let age = scrape.lines().find_map(|line| line.strip_prefix(&series));
    Ok(age.with_context(|| format!("no {series}"))?.parse()?)
}

/// An alert about a rollout that is stuck would end with each restart otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_executor_knows_for_how_long_a_rollout_has_been_stuck() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.roll_out("agent", daemon_set("agent").max_unavailable(1).build())
        .await?;
    rig.patch("agent", rig.never_ready_patch(2)).await?;
    eventually(DEADLINE, "a pod that does not become ready", async || {
        let status = rig.observed_status("agent").await?;
        let counts = (status.updated_number_scheduled, status.number_available);
        ensure!(counts == (Some(1), Some(2)), "{status:?}");
        Ok(())
    })
    .await?;
    rig.stop_executor().await?;
    let stuck = Duration::from_secs(5);
    let since = last_change(&rig, "agent").await?;
    let age = || Timestamp::now().duration_since(since).as_secs_f64();
    eventually(DEADLINE, "the rollout to stand still for a while", async || {
        ensure!(age() > stuck.as_secs_f64(), "{} s", age());
        Ok(())
    })
    .await?;
    let began = Instant::now();
    rig.start_executor().await?;
    let told = eventually(DEADLINE, "the age of the rollout", async || {
        let (least, told) = (age(), since_progress(&rig, "agent").await?);
        ensure!(told >= least, "{told} s, and it was {least} s before");
        Ok(told)
    })
    .await?;
    ensure!(
        told > (began.elapsed() + stuck / 2).as_secs_f64(),
        "{told} s, which began with the executor"
    );
    // From here on it counts as ever.
    rig.patch("agent", rig.ready_again_patch(3)).await?;
    rig.rolled_out("agent").await?;
    eventually(DEADLINE, "the end of the rollout", async || {
        let told = since_progress(&rig, "agent").await?;
        ensure!(told == 0.0, "{told} s");
        Ok(())
    })
    .await
}
