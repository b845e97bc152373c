//! Which policy counts for a DaemonSet: the oldest one, and none after it was deleted.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{expect_versions, nodes::next_second, start, wait_for_versions};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::{daemon_set, image_patch},
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
    shared!(
        "policy-deleted-daemonset",
        "The policy's status forgets a DaemonSet that was deleted.",
        policy_deleted_daemonset
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
    fixture.create_policy("additional", &["agent"], json!({})).await?;
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

// L-36
async fn policy_deleted_daemonset(fixture: &Fixture) -> Result<()> {
    let watch = start(fixture, 3, 1, json!({})).await?;
    let all = json!({ "spec": { "targets": { "names": null, "selector": {} } } });
    fixture.patch_policy("agents", all).await?;
    fixture.roll_out("other", daemon_set("other").build()).await?;
    wait_for_targets(fixture, &["agent", "other"]).await?;
    fixture.delete("other").await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Complete").await?;
    wait_for_targets(fixture, &["agent"]).await?;
    watch.seen().await?.expect_rollout(1, 6)
}

/// Waits until the status of the policy `agents` has these DaemonSets.
async fn wait_for_targets(fixture: &Fixture, expected: &[&str]) -> Result<()> {
    fixture
        .eventually(format!("the DaemonSets {expected:?}"), async || {
            let status = fixture.policy_status("agents").await?;
            let targets = status["targets"].as_array().into_iter().flatten();
            let names: Vec<_> = targets.filter_map(|target| target["name"].as_str()).collect();
            ensure!(names == expected, "the status has {names:?}");
            Ok(())
        })
        .await
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
