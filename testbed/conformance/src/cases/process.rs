//! SIGTERM.

use anyhow::{Result, ensure};

use crate::{
    case::{Case, solo},
    fixture::SoloFixture,
    proxy::Fault,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "sigterm-at-rest",
        "After SIGTERM an idle executor ends within 30 s with status 0.",
        sigterm_at_rest
    ),
    solo!(
        "sigterm-at-work",
        "After SIGTERM in the middle of a rollout the executor ends within 30 s with status 0, and a new one continues.",
        sigterm_at_work
    ),
    solo!(
        "sigterm-service-away",
        "After SIGTERM while no replica is reachable the executor ends within 30 s with status 0.",
        sigterm_service_away
    ),
    solo!(
        "sigterm-service-hangs",
        "After SIGTERM in a rollout whose replica no longer answers the executor ends within 30 s with status 0.",
        sigterm_service_hangs
    ),
];

async fn sigterm_at_rest(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.start_agent(2).await?;
    solo.wait_until_idle().await?;
    solo.stop().await
}

async fn sigterm_at_work(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(8, 1).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_created(&watch, 10).await?;
    solo.stop().await?;
    let position = solo.audit_position().await?;
    solo.start()?;
    solo.wait_until_settled("agent").await?;
    let writes = solo.writes_since(position).await?;
    ensure!(!writes.is_empty(), "the first one had finished before it ended");
    watch.seen().await?.expect_rollout(1, 16)
}

async fn sigterm_service_away(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    solo.start_agent(2).await?;
    solo.proxy().cut();
    let refused = solo.proxy().refused();
    solo.patch("agent", image_patch(2)).await?;
    solo.eventually("the executor to try to reach the service", async || {
        let tries = solo.proxy().refused() - refused;
        ensure!(tries >= 1, "{tries} tries");
        Ok(())
    })
    .await?;
    solo.stop().await
}

async fn sigterm_service_hangs(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(8, 1).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_created(&watch, 10).await?;
    let calls = solo.proxy().mark();
    solo.proxy().fault(Fault::Hang, 1);
    solo.eventually("the executor to wait for an answer", async || {
        ensure!(!solo.proxy().calls_since(calls).is_empty(), "it has not asked");
        Ok(())
    })
    .await?;
    solo.stop().await
}
