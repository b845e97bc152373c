//! SIGKILL while the executor creates or replaces many pods.

use anyhow::Result;

use crate::{
    budget::BudgetWatch,
    case::{Case, solo},
    fixture::SoloFixture,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "killed-while-creating",
        "SIGKILL in the middle of batches of creates: in the end each node has one pod, and never had two.",
        killed_while_creating
    ),
    solo!(
        "killed-while-rolling",
        "SIGKILL in the middle of a rollout: the budget holds across the restarts.",
        killed_while_rolling
    ),
];

/// Kills and restarts the executor each time the total of created pods reaches one of `counts`.
async fn kill_and_restart_at(solo: &mut SoloFixture, watch: &BudgetWatch, counts: [usize; 3]) -> Result<()> {
    for wanted in counts {
        solo.wait_until_created(watch, wanted).await?;
        solo.kill()?;
        solo.start()?;
    }
    Ok(())
}

async fn killed_while_creating(solo: &mut SoloFixture) -> Result<()> {
    let nodes = 80;
    solo.start()?;
    solo.add_nodes(nodes).await?;
    let watch = solo.watch("agent");
    solo.create(daemon_set("agent").build()).await?;
    kill_and_restart_at(solo, &watch, [5, 25, 50]).await?;
    solo.wait_until_settled("agent").await?;
    let seen = watch.seen().await?;
    seen.expect_no_doubles()?;
    seen.expect_created(nodes)
}

async fn killed_while_rolling(solo: &mut SoloFixture) -> Result<()> {
    let nodes = 12;
    solo.start()?;
    let watch = solo.start_watched(nodes, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    kill_and_restart_at(solo, &watch, [nodes + 2, nodes + 5, nodes + 8]).await?;
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * nodes)
}
