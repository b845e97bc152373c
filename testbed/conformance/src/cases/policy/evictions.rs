//! Policies that evict pods.

use anyhow::{Result, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use nodewise_testbed::AuditEvent;
use serde_json::json;

use super::{expect_versions, start};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[shared!(
    "policy-evict-pdb",
    "A policy that evicts deletes no pod. One that a PodDisruptionBudget protects stays, and is no failure; once the budget is \
     deleted, the rollout goes on.",
    policy_evict_pdb
)];

/// A budget that lets no pod of `agent` go, and that the disruption controller has seen.
async fn protect(fixture: &Fixture, nodes: usize) -> Result<Api<PodDisruptionBudget>> {
    let budgets: Api<PodDisruptionBudget> = fixture.api();
    let budget = json!({
        "metadata": { "name": "all" },
        "spec": { "minAvailable": nodes, "selector": { "matchLabels": { "app": "agent" } } },
    });
    let budget = serde_json::from_value(budget)?;
    budgets.create(&PostParams::default(), &budget).await?;
    fixture
        .eventually("the budget to count the pods", async || {
            let status = budgets.get("all").await?.status.unwrap_or_default();
            ensure!(
                status.observed_generation.is_some()
                    && status.current_healthy == i32::try_from(nodes).ok()
                    && status.disruptions_allowed == Some(0),
                "{status:?}"
            );
            Ok(())
        })
        .await?;
    Ok(budgets)
}

fn is_eviction(event: &AuditEvent) -> bool {
    event.resource == "pods" && event.subresource == "eviction" && event.verb == "create"
}

// L-24
async fn policy_evict_pdb(fixture: &Fixture) -> Result<()> {
    let nodes = 3;
    let policy = json!({ "disruption": "Evict", "onFailure": "Pause" });
    let watch = start(fixture, nodes, 1, policy).await?;
    let before = fixture.uids("agent").await?;
    let budgets = protect(fixture, nodes).await?;
    fixture.patch("agent", image_patch(2)).await?;
    let blocked = fixture
        .eventually("the status to name the node and the budget", async || {
            ensure!(fixture.uids("agent").await? == before, "a protected pod is gone");
            let target = fixture.policy_target().await?;
            let blocking = &target["blocking"][0];
            let reason = blocking["reason"].as_str().unwrap_or_default();
            ensure!(
                blocking["node"].is_string() && reason.contains("PodDisruptionBudget"),
                "{target}"
            );
            Ok(target)
        })
        .await?;
    ensure!(
        blocked["state"] == "Progressing" && blocked["stages"][0]["failed"] == 0,
        "a pod that a budget protects is no failure: {blocked}"
    );
    let refused = fixture.writes().await?;
    let refused = refused.iter().filter(|event| is_eviction(event)).count();
    ensure!(refused > 0, "no eviction was tried");
    ensure!(fixture.uids("agent").await? == before, "a protected pod is gone");
    expect_versions(fixture, nodes, 0).await?;

    budgets.delete("all", &DeleteParams::default()).await?;
    fixture.wait_for_state(2, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    let deletes = fixture.deletes_of_pods().await?.len();
    ensure!(deletes == 0, "{deletes} pods were deleted and not evicted");
    watch.seen().await?.expect_rollout(1, 2 * nodes)
}
