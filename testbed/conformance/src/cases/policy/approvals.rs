//! Approvals.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{expect_versions, start};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[shared!(
    "policy-approval-outdated-digest",
    "A stage waits for the approval of what it would do now. An approval of what it would have done before does nothing, and an \
     Event says so.",
    policy_approval_outdated_digest
)];

/// A policy whose first stage has so many nodes and needs an approval.
fn stages(replicas: usize) -> Value {
    json!([{ "name": "canary", "replicas": replicas, "approval": "Required" }, { "name": "rest" }])
}

/// The digest that waits for an approval, if it is not this one.
async fn digest_other_than(fixture: &Fixture, outdated: &str) -> Result<String> {
    fixture
        .eventually("a digest to approve", async || {
            let target = fixture.policy_target().await?;
            let digest = target["pendingApproval"]["digest"].as_str();
            let digest = digest.with_context(|| format!("nothing waits for an approval: {target}"))?;
            ensure!(digest != outdated, "it is still {digest}");
            Ok(digest.to_owned())
        })
        .await
}

async fn approve(fixture: &Fixture, digest: &str) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { "nodewise.dev/approve": digest } } });
    fixture.patch_policy("agents", patch).await
}

// L-13, L-30, L-37
async fn policy_approval_outdated_digest(fixture: &Fixture) -> Result<()> {
    let watch = start(fixture, 4, 2, json!({ "stages": stages(1) })).await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "AwaitingApproval").await?;
    let first = digest_other_than(fixture, "").await?;
    fixture
        .patch_policy("agents", json!({ "spec": { "stages": stages(2) } }))
        .await?;
    let second = digest_other_than(fixture, &first).await?;
    approve(fixture, &first).await?;
    fixture
        .eventually("an Event about the approval", async || {
            let events = fixture.events("RolloutApprovalOutdated").await?;
            let kinds: Vec<_> = events
                .iter()
                .filter_map(|event| event.involved_object.kind.as_deref())
                .collect();
            ensure!(
                kinds.contains(&"RolloutPolicy") && kinds.contains(&"DaemonSet"),
                "there are Events on {kinds:?}"
            );
            Ok(())
        })
        .await?;
    let target = fixture.wait_for_state(2, "AwaitingApproval").await?;
    let pending = &target["pendingApproval"];
    ensure!(
        pending["refusedDigest"] == first.as_str() && pending["nodes"] == 2,
        "the status does not say that {first} is out of date: {pending}"
    );
    expect_versions(fixture, 4, 0).await?;
    approve(fixture, &second).await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 8)
}
