//! A rollout while calls between executor and service meet faults; see [`FaultProxy`](crate::proxy::FaultProxy).

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{
    case::{Case, solo},
    fixture::SoloFixture,
    proxy::Fault,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "fault-reset-before",
        "A rollout while connections are reset before the service gets a call: it completes within its budget, and no pod is \
         created twice. While every call fails, nothing is written.",
        reset_before
    ),
    solo!(
        "fault-reset-after",
        "The same while connections are reset after the service has answered, so that the response is lost.",
        reset_after
    ),
    solo!(
        "fault-delay",
        "A rollout while responses are delayed: it completes within its budget, and no pod is created twice.",
        delay
    ),
    solo!(
        "fault-twice",
        "The same while the service gets calls twice, and responses on a stream arrive twice.",
        twice
    ),
    solo!(
        "fault-unavailable",
        "A rollout while calls are answered with UNAVAILABLE: it completes within its budget, and no pod is created twice. \
         While every call fails, nothing is written.",
        unavailable
    ),
    solo!(
        "fault-exhausted",
        "The same while calls are answered with RESOURCE_EXHAUSTED and RetryInfo.",
        exhausted
    ),
    solo!(
        "fault-forgetful-replica",
        "A rollout with a replica that caches no buckets: it completes within its budget.",
        forgetful_replica
    ),
];

const NODES: usize = 8;

/// A fault that only some calls meet hits every third call.
const EVERY: u64 = 3;

/// Creates `agent` and rolls out a new version while calls meet a fault. If the fault loses calls, all calls meet it at
/// first.
async fn roll_through(solo: &mut SoloFixture, fault: Fault, loses_calls: bool) -> Result<()> {
    solo.proxy().fault(fault, EVERY);
    solo.start()?;
    let watch = solo.start_watched(NODES, 2).await?;
    if loses_calls {
        patch_while_unanswered(solo, fault).await?;
        solo.proxy().fault(fault, EVERY);
    } else {
        solo.patch("agent", image_patch(2)).await?;
    }
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * NODES)?;
    solo.expect_running()
}

/// Patches `agent` while no call is answered, and fails if the executor writes anything meanwhile.
async fn patch_while_unanswered(solo: &SoloFixture, fault: Fault) -> Result<()> {
    solo.wait_until_idle().await?;
    solo.proxy().fault(fault, 1);
    let (position, calls) = (solo.audit_position().await?, solo.proxy().mark());
    solo.patch("agent", image_patch(2)).await?;
    solo.eventually("the executor to ask and to get no answer", async || {
        let tries = solo.plan_calls(calls, "agent").len();
        ensure!(tries >= 3, "{tries} tries");
        Ok(())
    })
    .await?;
    let writes = solo.writes_since(position).await?;
    ensure!(writes.is_empty(), "written without a plan: {writes:?}");
    Ok(())
}

async fn reset_before(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::ResetBefore, true).await
}

async fn reset_after(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::ResetAfter, true).await
}

async fn delay(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::Delay(Duration::from_millis(300)), false).await
}

async fn twice(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::Twice, false).await
}

async fn unavailable(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::Unavailable, true).await
}

async fn exhausted(solo: &mut SoloFixture) -> Result<()> {
    roll_through(solo, Fault::Exhausted, true).await
}

async fn forgetful_replica(solo: &mut SoloFixture) -> Result<()> {
    solo.replace_server(&["--bucket-cache-size=0"]).await?;
    solo.start()?;
    let watch = solo.start_watched(NODES, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * NODES)
}
