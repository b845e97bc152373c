//! The service: asked when there is something to ask, away, or more than one.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use nodewise_testbed::eventually;

use crate::{
    case::{Case, solo},
    daemon_set::{daemon_set, image_patch},
    proxy::{FaultProxy, Mark},
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "idle",
        "While nothing changes the executor writes nothing and asks nothing.",
        idle
    ),
    solo!(
        "service-away",
        "While no replica can be reached nothing is written; work resumes by itself when one is back.",
        service_away
    ),
    solo!(
        "service-restarts",
        "A service that is killed and comes back, again and again, costs no budget and no pod, and everything converges.",
        service_restarts
    ),
    solo!(
        "replica-dies",
        "With several replicas, one that dies holds up nobody: the others are asked.",
        replica_dies
    ),
    solo!(
        "buckets-by-digest",
        "Buckets that did not change are not sent again, and those that a replica lacks are sent in the same reconcile.",
        buckets_by_digest
    ),
];

/// How long an idle executor is looked at.
const IDLE: Duration = Duration::from_secs(5);

async fn idle(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(5).await?;
    solo.roll_out("second", daemon_set("second").on_delete().build())
        .await?;
    solo.at_rest().await?;
    let (calls, place, began) = (solo.proxy().mark(), solo.place().await?, Instant::now());
    solo.eventually("an idle time", async || {
        // Looked at first: what happens is seen also when it is late.
        let over = began.elapsed() > IDLE;
        let (calls, writes) = (solo.proxy().calls_since(calls), solo.writes_since(place).await?);
        if !calls.is_empty() || !writes.is_empty() {
            return Ok(Err((calls, writes)));
        }
        ensure!(over, "{:?} so far", began.elapsed());
        Ok(Ok(()))
    })
    .await?
    .or_else(|(calls, writes)| bail!("nothing had changed, and there were {calls:?} and {writes:?}"))
}

/// How long nobody is there: longer than a call may take, so that the executor has given up by then.
const AWAY: Duration = Duration::from_secs(32);

async fn service_away(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(5).await?;
    solo.at_rest().await?;
    solo.proxy().cut();
    let place = solo.place().await?;
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
            let mut writes = solo.writes_since(place).await?;
            // It may tell once, by itself, that somebody deleted a pod.
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
        solo.settled(name).await?;
    }
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 5, "{updated} pods have the second version");
    Ok(())
}

/// How many replaced pods are between two restarts.
const PROGRESS: usize = 3;

async fn service_restarts(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(10, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    for restart in 1..=3 {
        solo.made(&watch, 10 + restart * PROGRESS - 1).await?;
        solo.restart_server().await?;
    }
    solo.settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 20)
}

async fn replica_dies(solo: &mut Solo) -> Result<()> {
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
    // So many that each replica is asked about some of them.
    let names: Vec<String> = (0..9).map(|index| format!("agent-{index}")).collect();
    for name in &names {
        solo.create(daemon_set(name).max_unavailable(1).build()).await?;
    }
    for name in &names {
        solo.settled(name).await?;
    }
    let asked: Vec<usize> = ways
        .iter()
        .map(|way| way.calls_since(Mark::BEGINNING).len())
        .collect();
    // That all of nine hash to one of three replicas happens once in 6,561 runs.
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
        solo.settled(name).await?;
        let seen = watch.seen().await?;
        seen.expect_unavailable_at_most(1)?;
        seen.expect_no_doubles()?;
        seen.expect_created(6)?;
    }
    Ok(())
}

async fn buckets_by_digest(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(40).await?;
    solo.settled("agent").await?;
    solo.at_rest().await?;
    let calls = solo.proxy().mark();
    solo.delete_a_pod("agent").await?;
    solo.eventually("a new pod", async || solo.expect_settled("agent").await)
        .await?;
    solo.at_rest().await?;
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
    // One that has forgotten everything is told everything, and answers.
    solo.restart_server().await?;
    let calls = solo.proxy().mark();
    solo.patch("agent", image_patch(2)).await?;
    solo.settled("agent").await?;
    let plans = solo.plans(calls, "agent").len();
    ensure!(plans > 0, "no plan came after the restart");
    Ok(())
}
