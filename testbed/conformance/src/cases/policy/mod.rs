//! RolloutPolicies: what a policy holds back stays as it is, whatever happens meanwhile, and the budget of the DaemonSet holds.
//!
//! The decisions are the service's. These cases check that an executor sends policies, watches them, and carries out what plans say
//! about them: patches of their status, evictions, checks, and plans at the times that the service named.

mod analysis;
mod approvals;
mod evictions;
mod failures;
mod holds;
mod kills;
mod moves;
mod nodes;
mod owners;
mod stages;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::{
    budget::{BudgetWatch, is_ready},
    case::Case,
    fixture::Fixture,
};

/// The cases of RolloutPolicies, by topic.
pub(super) const TOPICS: &[&[Case]] = &[
    holds::CASES,
    stages::CASES,
    nodes::CASES,
    evictions::CASES,
    approvals::CASES,
    analysis::CASES,
    failures::CASES,
    owners::CASES,
    kills::CASES,
];

/// Rolls out version 1 of `agent` on new nodes, with this maxUnavailable, and then creates the policy `agents` with this spec.
/// Returns a watch that checks the budget from then on.
async fn start(fixture: &Fixture, nodes: usize, unavailable: usize, spec: Value) -> Result<BudgetWatch> {
    let watch = fixture.start_watched(nodes, unavailable).await?;
    create(fixture, spec).await?;
    Ok(watch)
}

/// Creates the policy `agents`, and waits until its status says that version 1 of `agent` is rolled out.
async fn create(fixture: &Fixture, spec: Value) -> Result<()> {
    fixture.create_policy("agents", &["agent"], spec).await?;
    fixture.wait_for_state(1, "Complete").await?;
    Ok(())
}

/// Fails unless so many live pods have version 1, and so many have version 2.
async fn expect_versions(fixture: &Fixture, first: usize, second: usize) -> Result<()> {
    let found = (
        fixture.count_of_version("agent", 1).await?,
        fixture.count_of_version("agent", 2).await?,
    );
    ensure!(
        found == (first, second),
        "{} pods of version 1 and {} of version 2, where {first} and {second} should be",
        found.0,
        found.1
    );
    Ok(())
}

/// Waits until so many live pods have version 1, so many have version 2, and all are ready.
async fn wait_for_versions(fixture: &Fixture, first: usize, second: usize) -> Result<()> {
    let what = format!("{first} pods of version 1 and {second} of version 2");
    fixture
        .eventually(what, async || {
            expect_versions(fixture, first, second).await?;
            let pods = fixture.pods("agent").await?;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            ensure!(
                ready == first + second && ready == pods.len(),
                "{ready} of {} pods are ready",
                pods.len()
            );
            Ok(())
        })
        .await
}

/// The only live pod of `agent` with this version.
async fn only_pod(fixture: &Fixture, version: u32) -> Result<Pod> {
    let end = format!(":{version}");
    let mut pods = fixture.live_pods("agent").await?;
    pods.retain(|pod| image_of(pod).is_some_and(|image| image.ends_with(&end)));
    ensure!(pods.len() == 1, "{} pods have version {version}", pods.len());
    pods.pop().context("there is one")
}

fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}
