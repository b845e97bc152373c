//! SIGKILL in every stage. All that a rollout must remember is in the status of its policy, so the restarted executor goes on where
//! the other one was.

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use serde_json::Value;

use super::{
    moves::{expect_in_order, is_removal, may_be_removal, moves, nodes_of_pods},
    only_pod,
    stages::{in_order, start_zones},
};
use crate::{
    budget::node_of,
    case::{Case, solo},
    fixture::SoloFixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[solo!(
    "policy-kill-in-every-stage",
    "SIGKILL in every stage of a policy, and in the soak of the first: no node is updated twice or before its turn, and the budget \
     holds.",
    policy_kill_in_every_stage
)];

// L-11, L-34
async fn policy_kill_in_every_stage(solo: &mut SoloFixture) -> Result<()> {
    solo.start()?;
    let (zones, watch) = start_zones(solo).await?;
    let before = nodes_of_pods(solo).await?;
    let position = solo.audit_position().await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.first_write(position, "a removed pod of the canary", is_removal)
        .await?;
    restart(solo).await?;
    let target = solo.wait_for_state(2, "Soaking").await?;
    let soak = began(&target)?;
    let canary = node_of(&only_pod(solo, 2).await?);
    restart(solo).await?;
    let groups = in_order(zones, &canary);
    for group in &groups[1..] {
        let is_of_group = |pod: &String| before.get(pod).is_some_and(|node| group.contains(node));
        let what = format!("a removed pod on {group:?}");
        solo.first_write(position, &what, |event| {
            may_be_removal(event) && is_of_group(&event.name)
        })
        .await?;
        restart(solo).await?;
    }
    let target = solo.wait_for_state(2, "Complete").await?;
    solo.wait_until_settled("agent").await?;
    ensure!(
        began(&target)? == soak,
        "the executor that was killed in the soak began it again"
    );
    // Fails if a node was updated twice.
    let moves = moves(solo, &before).await?;
    expect_in_order(&moves, &groups, SignedDuration::ZERO)?;
    watch.seen().await?.expect_rollout(2, 14)?;
    solo.expect_running()
}

async fn restart(solo: &mut SoloFixture) -> Result<()> {
    solo.kill()?;
    // All writes of the killed one are in the audit log before the next one starts.
    solo.audit_position().await?;
    solo.start()
}

/// When the soak of the canary began.
fn began(target: &Value) -> Result<String> {
    let began = target["stages"][0]["soakStartTime"].as_str();
    Ok(began.context("the canary soaks")?.to_owned())
}
