//! When the executor calls the service, and what it does while replicas are unavailable.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use nodewise_testbed::eventually;

use crate::{
    case::{Case, solo},
    fixture::SoloFixture,
    proxy::{FaultProxy, Mark},
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "idle",
        "While nothing changes, the executor writes nothing and calls nothing.",
        idle
    ),
    solo!(
        "service-away",
        "While no replica is reachable, nothing is written. Work resumes when a replica is back.",
        service_away
    ),
    solo!(
        "service-restarts",
        "While the service is repeatedly killed and restarted, the budget holds, no extra pod is created, and the rollout \
         completes.",
        service_restarts
    ),
    solo!(
        "replica-dies",
        "With several replicas, the executor uses the others when one is killed.",
        replica_dies
    ),
    solo!(
        "buckets-by-digest",
        "Unchanged buckets are not sent again, and buckets that a replica lacks are sent in the same reconcile.",
        buckets_by_digest
    ),
];

/// How long the test observes an idle executor.
const IDLE: Duration = Duration::from_secs(5);

async fn idle(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.start_agent(5).await?;
    solo.roll_out("second", daemon_set("second").on_delete().build())
        .await?;
    solo.wait_until_idle().await?;
    let (calls, position, began) = (solo.proxy().mark(), solo.audit_position().await?, Instant::now());
    solo.eventually("an idle time", async || {
        // The time is read before the log, so that a late event is still seen.
        let over = began.elapsed() > IDLE;
        let (calls, writes) = (
            solo.proxy().calls_since(calls),
            solo.writes_since(position).await?,
        );
        if !calls.is_empty() || !writes.is_empty() {
            return Ok(Err((calls, writes)));
        }
        ensure!(over, "{:?} so far", began.elapsed());
        Ok(Ok(()))
    })
    .await?
    .or_else(|(calls, writes)| bail!("nothing had changed, and there were {calls:?} and {writes:?}"))
}

/// How long the service is away: longer than the deadline of a call.
const AWAY: Duration = Duration::from_secs(32);

async fn service_away(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.start_agent(5).await?;
    solo.wait_until_idle().await?;
    solo.proxy().cut();
    let position = solo.audit_position().await?;
    let refused = solo.proxy().refused();
    solo.create(daemon_set("second").build()).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.delete_a_pod("agent").await?;
    let began = Instant::now();
    eventually(
        AWAY + solo.deadline(),
        "the executor to have given up",
        async || {
            let (over, tries) = (began.elapsed() > AWAY, solo.proxy().refused() - refused);
            let mut writes = solo.writes_since(position).await?;
            // The executor may write one event, about the pod that the test has deleted.
            if let Some(told) = writes.iter().position(|write| write.resource == "events") {
                writes.remove(told);
            }
            ensure!(
                !writes.is_empty() || over && tries >= 3,
                "{tries} tries to reach the service in {:?}",
                began.elapsed()
            );
            Ok(writes)
        },
    )
    .await
    .and_then(|writes| {
        ensure!(writes.is_empty(), "written without a plan: {writes:?}");
        Ok(())
    })?;
    solo.expect_running()?;
    solo.proxy().heal();
    for name in ["second", "agent"] {
        solo.wait_until_settled(name).await?;
    }
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 5, "{updated} pods have the second version");
    Ok(())
}

/// How many pods are replaced between two restarts.
const PROGRESS: usize = 3;

async fn service_restarts(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(10, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    for restart in 1..=3 {
        solo.wait_until_created(&watch, 10 + restart * PROGRESS - 1)
            .await?;
        solo.restart_server().await?;
    }
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 20)
}

async fn replica_dies(solo: &mut SoloFixture) -> Result<()> {
    let servers = [
        solo.another_server(&[]).await?,
        solo.another_server(&[]).await?,
        solo.another_server(&[]).await?,
    ];
    let mut ways = Vec::new();
    for server in &servers {
        ways.push(FaultProxy::to(server.address()).await?);
    }
    let urls: Vec<String> = ways.iter().map(FaultProxy::url).collect();
    solo.start_with(None, &urls)?;
    solo.add_nodes(3).await?;
    // Enough DaemonSets that each replica gets some.
    let names: Vec<String> = (0..15).map(|index| format!("agent-{index}")).collect();
    for name in &names {
        solo.create(daemon_set(name).max_unavailable(1).build()).await?;
    }
    for name in &names {
        solo.wait_until_settled(name).await?;
    }
    let asked: Vec<usize> = ways
        .iter()
        .map(|way| way.calls_since(Mark::BEGINNING).len())
        .collect();
    // All of them hash to the same replica of three once in 4.8 million runs.
    ensure!(
        asked.iter().filter(|calls| **calls > 0).count() > 1,
        "the replicas were asked {asked:?} times: the work is not shared"
    );
    let (busiest, _) = asked
        .iter()
        .enumerate()
        .max_by_key(|(_, calls)| **calls)
        .context("three replicas")?;
    let watches: Vec<_> = names.iter().map(|name| solo.watch(name)).collect();
    for (name, watch) in names.iter().zip(&watches) {
        solo.eventually(format!("all of {name} to be seen"), async || {
            let made = watch.seen_so_far().created.len();
            ensure!(made == 3, "{made}");
            Ok(())
        })
        .await?;
        watch.arm().await?;
        solo.patch(name, image_patch(2)).await?;
        if name.ends_with('4') {
            servers[busiest].process().kill9()?;
            ways[busiest].cut();
        }
    }
    for (name, watch) in names.iter().zip(&watches) {
        solo.wait_until_settled(name).await?;
        let seen = watch.seen().await?;
        seen.expect_unavailable_at_most(1)?;
        seen.expect_no_doubles()?;
        seen.expect_created(6)?;
    }
    Ok(())
}

async fn buckets_by_digest(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.start_agent(40).await?;
    solo.wait_until_settled("agent").await?;
    solo.wait_until_idle().await?;
    let calls = solo.proxy().mark();
    solo.delete_a_pod("agent").await?;
    solo.eventually("a new pod", async || solo.expect_settled("agent").await)
        .await?;
    solo.wait_until_idle().await?;
    let calls = solo.plan_calls(calls, "agent");
    ensure!(!calls.is_empty(), "it was never asked about");
    for call in &calls {
        ensure!(
            call.inline * 4 < call.buckets,
            "after one pod had changed, {} of {} buckets were sent again",
            call.inline,
            call.buckets
        );
    }
    // A restarted server has an empty cache, so the executor must send all buckets.
    solo.restart_server().await?;
    let calls = solo.proxy().mark();
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_settled("agent").await?;
    let plans = solo.plans(calls, "agent").len();
    ensure!(plans > 0, "no plan came after the restart");
    Ok(())
}
