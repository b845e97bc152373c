//! Revisions that fail.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{image_of, start, wait_for_versions};
use crate::{
    budget::node_of,
    case::{Case, shared},
    cluster::EXECUTOR_USER,
    fixture::Fixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[shared!(
    "policy-rollback",
    "A revision whose pods crash on the canaries reaches no other node. The canaries go back within the budget, and the DaemonSet's \
     spec stays as it is.",
    policy_rollback
)];

const NODES: usize = 6;
const CANARIES: usize = 2;

/// A version whose pods have restarted four times.
const CRASHING: &str = "registry.example/crashing:2";

fn crashing() -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": CRASHING }] } } } })
}

// L-10, L-11, L-25, L-26, L-28, L-36
async fn policy_rollback(fixture: &Fixture) -> Result<()> {
    let policy = json!({
        "stages": [{ "name": "canary", "replicas": CANARIES }, { "name": "rest" }],
        "maxRestarts": 3, "failureThreshold": CANARIES,
    });
    let watch = start(fixture, NODES, CANARIES, policy).await?;
    let before = fixture.uids("agent").await?;
    let changed = fixture.patch("agent", crashing()).await?;
    let crashed = fixture
        .eventually("the canaries to get the new template", async || {
            let pods = fixture.pods("agent").await?;
            let crashing = pods.iter().filter(|pod| image_of(pod) == Some(CRASHING));
            let on: BTreeSet<String> = crashing.map(node_of).collect();
            ensure!(!on.is_empty(), "no node has it");
            Ok(on)
        })
        .await?;
    ensure!(
        crashed.len() <= CANARIES,
        "these nodes got the new template: {crashed:?}"
    );
    let target = fixture.wait_for_state(2, "RolledBack").await?;
    ensure!(
        target["rejectedRevision"]["number"] == 2 && target["stableRevision"]["number"] == 1,
        "{target}"
    );
    wait_for_versions(fixture, NODES, 0).await?;
    let wait = [
        "wait",
        "rolloutpolicy/agents",
        "--for=condition=RolledBack",
        "--timeout=10s",
    ];
    fixture.kubectl(&wait).await?;

    let kept = fixture.uids("agent").await?.intersection(&before).count();
    ensure!(
        kept == NODES - CANARIES,
        "{kept} pods were left alone, where all but the canaries' should be"
    );
    watch
        .seen()
        .await?
        .expect_rollout(CANARIES, NODES + 2 * CANARIES)?;
    let now = fixture.daemon_set_api().get("agent").await?;
    ensure!(
        now.spec == changed.spec && now.metadata.generation == changed.metadata.generation,
        "the DaemonSet's spec was changed: {:?}",
        now.spec
    );
    let writes = fixture.writes().await?;
    let mut of_spec = writes
        .iter()
        .filter(|event| event.resource == "daemonsets" && event.subresource.is_empty());
    ensure!(
        of_spec.next().is_none(),
        "{EXECUTOR_USER} wrote the DaemonSet itself"
    );

    // Another template ends the rejection.
    fixture.patch("agent", image_patch(3)).await?;
    fixture.wait_for_state(3, "Complete").await?;
    fixture.wait_until_settled("agent").await?;
    let condition = fixture.policy_condition("agents", "RolledBack").await?;
    ensure!(condition["status"] == "False", "it is over, but says {condition}");
    watch
        .seen()
        .await?
        .expect_rollout(CANARIES, 2 * NODES + 2 * CANARIES)
}
