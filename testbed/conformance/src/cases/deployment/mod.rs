//! Deployments.

mod faults;
mod kills;
mod rollout;
mod scaling;
mod sets;
mod takeover;
mod wrong_plans;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, PropagationPolicy},
};
use serde_json::json;

use crate::{
    audit::AuditPosition,
    case::Case,
    fixture::{Fixture, SoloFixture},
    history::Beginning,
    workload_builder::WorkloadBuilder,
};

/// The cases of Deployments, by topic.
pub(super) const TOPICS: &[&[Case]] = &[
    sets::CASES,
    rollout::CASES,
    scaling::CASES,
    faults::CASES,
    kills::CASES,
    takeover::CASES,
    wrong_plans::CASES,
];

/// Adds nodes, creates a Deployment and waits until it is rolled out. Returns the begin of the history after that.
async fn start(fixture: &Fixture, object: WorkloadBuilder) -> Result<Beginning> {
    fixture.add_nodes(2).await?;
    let deployment = fixture.start_deployment(object.build()).await?;
    fixture.begin_history(&deployment.name_any()).await
}

/// The same with an executor that was just started. Returns also the audit position after that.
async fn start_solo(solo: &mut SoloFixture, object: WorkloadBuilder) -> Result<(Beginning, AuditPosition)> {
    solo.start()?;
    let begun = start(solo, object).await?;
    solo.wait_until_idle().await?;
    Ok((begun, solo.audit_position().await?))
}

/// Deletes `agent`, orphans its ReplicaSets, and waits until it is gone.
async fn delete_and_orphan(fixture: &Fixture) -> Result<()> {
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    fixture.deployment_api().delete("agent", &orphan).await?;
    wait_until_gone(fixture).await
}

async fn wait_until_gone(fixture: &Fixture) -> Result<()> {
    fixture
        .eventually("the Deployment to be gone", async || {
            let left = fixture.deployment_api().get_opt("agent").await?;
            anyhow::ensure!(left.is_none(), "it is still there");
            Ok(())
        })
        .await
}

/// Pauses or resumes `agent`.
async fn set_paused(fixture: &Fixture, paused: bool) -> Result<Deployment> {
    let patch = json!({ "spec": { "paused": paused } });
    fixture.patch_deployment("agent", patch).await
}
