//! How the executor's process ends.

use anyhow::{Result, ensure};

use crate::{
    case::{Case, solo},
    daemon_set::image_patch,
    proxy::Fault,
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "sigterm-at-rest",
        "After SIGTERM an executor that has nothing to do ends within 30 s, with status 0.",
        sigterm_at_rest
    ),
    solo!(
        "sigterm-at-work",
        "After SIGTERM in the middle of a rollout it ends within 30 s, with status 0, and the next one goes on.",
        sigterm_at_work
    ),
    solo!(
        "sigterm-service-away",
        "After SIGTERM while no replica can be reached it ends within 30 s, with status 0.",
        sigterm_service_away
    ),
    solo!(
        "sigterm-service-hangs",
        "After SIGTERM in a rollout whose replica does not answer any more it ends within 30 s, with status 0.",
        sigterm_service_hangs
    ),
];

async fn sigterm_at_rest(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(2).await?;
    solo.at_rest().await?;
    solo.stop().await
}

async fn sigterm_at_work(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(8, 1).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.made(&watch, 10).await?;
    solo.stop().await?;
    let place = solo.place().await?;
    solo.start()?;
    solo.settled("agent").await?;
    let writes = solo.writes_since(place).await?;
    ensure!(!writes.is_empty(), "the first one had finished before it ended");
    watch.seen().await?.expect_rollout(1, 16)
}

async fn sigterm_service_away(solo: &mut Solo) -> Result<()> {
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

async fn sigterm_service_hangs(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    let watch = solo.start_watched(8, 1).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.made(&watch, 10).await?;
    let calls = solo.proxy().mark();
    solo.proxy().fault(Fault::Hang, 1);
    solo.eventually("the executor to wait for an answer", async || {
        ensure!(!solo.proxy().calls_since(calls).is_empty(), "it has not asked");
        Ok(())
    })
    .await?;
    solo.stop().await
}
