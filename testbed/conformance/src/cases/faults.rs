//! A rollout while the way to the service is bad: see [`FaultProxy`](crate::proxy::FaultProxy).

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{
    case::{Case, solo},
    daemon_set::image_patch,
    proxy::Fault,
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "fault-reset-before",
        "A rollout while connections are reset before the service hears a call: it converges within its budget, no pod is made twice; while all are, nothing is written.",
        reset_before
    ),
    solo!(
        "fault-reset-after",
        "The same while connections are reset after the service has answered, and the answer is lost.",
        reset_after
    ),
    solo!(
        "fault-delay",
        "A rollout while answers come late: it converges within its budget, and no pod is made twice.",
        delay
    ),
    solo!(
        "fault-twice",
        "The same while the service hears calls twice, and answers on a stream come twice.",
        twice
    ),
    solo!(
        "fault-unavailable",
        "A rollout while calls are answered with UNAVAILABLE: as above, and while all are, nothing is written.",
        unavailable
    ),
    solo!(
        "fault-exhausted",
        "The same while calls are answered with RESOURCE_EXHAUSTED and RetryInfo.",
        exhausted
    ),
    solo!(
        "fault-forgetful-replica",
        "A rollout by a replica that has forgotten all buckets at each call: it converges within its budget.",
        forgetful_replica
    ),
];

const NODES: usize = 8;

/// A fault that some calls meet is met by each of so many.
const EVERY: u64 = 3;

/// Creates `agent` and rolls it out anew while calls meet a fault; at first all of them, when they get no answer then.
async fn roll_through(solo: &mut Solo, fault: Fault, loses_calls: bool) -> Result<()> {
    solo.proxy().fault(fault, EVERY);
    solo.start()?;
    let watch = solo.start_watched(NODES, 2).await?;
    if loses_calls {
        silence(solo, fault).await?;
        solo.proxy().fault(fault, EVERY);
    } else {
        solo.patch("agent", image_patch(2)).await?;
    }
    solo.settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * NODES)?;
    solo.expect_running()
}

/// Patches `agent` while no call gets an answer; fails if anything is written then.
async fn silence(solo: &Solo, fault: Fault) -> Result<()> {
    solo.at_rest().await?;
    solo.proxy().fault(fault, 1);
    let (place, calls) = (solo.place().await?, solo.proxy().mark());
    solo.patch("agent", image_patch(2)).await?;
    solo.eventually("the executor to ask and to get no answer", async || {
        let tries = solo.plan_calls(calls, "agent").len();
        ensure!(tries >= 3, "{tries} tries");
        Ok(())
    })
    .await?;
    let writes = solo.writes_since(place).await?;
    ensure!(writes.is_empty(), "written without a plan: {writes:?}");
    Ok(())
}

async fn reset_before(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::ResetBefore, true).await
}

async fn reset_after(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::ResetAfter, true).await
}

async fn delay(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::Delay(Duration::from_millis(300)), false).await
}

async fn twice(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::Twice, false).await
}

async fn unavailable(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::Unavailable, true).await
}

async fn exhausted(solo: &mut Solo) -> Result<()> {
    roll_through(solo, Fault::Exhausted, true).await
}

async fn forgetful_replica(solo: &mut Solo) -> Result<()> {
    solo.replace_server(&["--bucket-cache-size=0"]).await?;
    solo.start()?;
    let watch = solo.start_watched(NODES, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * NODES)
}
