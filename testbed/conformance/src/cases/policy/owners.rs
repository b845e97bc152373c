//! Which policy counts for a DaemonSet: the oldest one, and none after it was deleted.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{expect_versions, nodes::next_second, start, wait_for_versions};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "policy-deleted-half-way",
        "When the policy is deleted in the middle of a rollout, the DaemonSet goes on at once as one without a policy.",
        policy_deleted_half_way
    ),
    shared!(
        "policy-two-for-one-daemonset",
        "Of two policies for one DaemonSet the older one counts. The other one says so, and counts when the older one is deleted.",
        policy_two_for_one_daemonset
    ),
];

// L-3
async fn policy_deleted_half_way(fixture: &Fixture) -> Result<()> {
    let stages = json!([{ "name": "canary", "replicas": 2, "soak": "1h" }, { "name": "rest" }]);
    let watch = start(fixture, 6, 2, json!({ "stages": stages })).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Soaking").await?;
    wait_for_versions(fixture, 4, 2).await?;
    fixture.delete_policy("agents").await?;
    fixture.wait_until_settled("agent").await?;
    expect_versions(fixture, 0, 6).await?;
    watch.seen().await?.expect_rollout(2, 12)
}

// L-1
async fn policy_two_for_one_daemonset(fixture: &Fixture) -> Result<()> {
    // By name the younger one would be the first.
    let watch = start(fixture, 3, 1, json!({ "paused": true })).await?;
    next_second(fixture).await?;
    fixture.create_policy("additional", json!({})).await?;
    let conflict = accepted(fixture, "False").await?;
    let message = conflict["message"].as_str().unwrap_or_default();
    ensure!(
        conflict["reason"] == "Conflict" && message.contains("agents"),
        "it does not name the policy that counts: {conflict}"
    );
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Paused").await?;
    expect_versions(fixture, 3, 0).await?;
    fixture.delete_policy("agents").await?;
    accepted(fixture, "True").await?;
    fixture.wait_until_settled("agent").await?;
    expect_versions(fixture, 0, 3).await?;
    watch.seen().await?.expect_rollout(1, 6)
}

/// Waits until the condition Accepted of the younger policy has this status. Returns it.
async fn accepted(fixture: &Fixture, status: &str) -> Result<Value> {
    fixture
        .eventually(format!("Accepted to be {status}"), async || {
            let condition = fixture.policy_condition("additional", "Accepted").await?;
            ensure!(condition["status"] == status, "{condition}");
            Ok(condition)
        })
        .await
}
