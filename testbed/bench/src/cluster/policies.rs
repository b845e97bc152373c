//! RolloutPolicies on the apiserver.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::PostParams;
use nodewise_conformance::rollout_policies;
use nodewise_testbed::eventually;
use serde_json::{Value, json};

use super::DEADLINE;

/// Creates a policy with this spec, and waits until the owner has accepted it.
pub(super) async fn create(client: &Client, namespace: &str, spec: &Value) -> Result<()> {
    let api = rollout_policies::api(client.clone(), namespace);
    let policy = serde_json::from_value(json!({
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": { "name": "agents" },
        "spec": spec,
    }))?;
    api.create(&PostParams::default(), &policy)
        .await
        .context("creating the RolloutPolicy")?;
    eventually(DEADLINE, "the RolloutPolicy to be accepted", async || {
        let policy = api.get("agents").await?;
        let state = policy
            .data
            .pointer("/status/targets/0/state")
            .and_then(Value::as_str);
        ensure!(state == Some("Complete"), "{}", policy.data);
        Ok(())
    })
    .await
}
