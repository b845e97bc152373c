//! RolloutPolicies on the apiserver.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use nodewise_testbed::{ControlPlane, eventually, manifests};
use serde_json::{Value, json};

use super::DEADLINE;

const DEFINITION: &str = include_str!("../../../../deploy/kustomize/components/rollout-policy/crd.yaml");

/// Installs the CustomResourceDefinition, and waits until it is served.
pub(super) async fn install(plane: &ControlPlane) -> Result<()> {
    let client = plane.client();
    for definition in manifests::parse(DEFINITION)? {
        manifests::apply(&client, &definition, &PatchParams::apply("nodewise-bench")).await?;
    }
    let all = Api::<DynamicObject>::all_with(client, &resource());
    eventually(DEADLINE, "the apiserver to serve RolloutPolicies", async || {
        Ok(all.list_metadata(&ListParams::default()).await?)
    })
    .await?;
    Ok(())
}

/// Creates a policy with this spec, and waits until the owner has accepted it.
pub(super) async fn create(client: &Client, namespace: &str, spec: &Value) -> Result<()> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource());
    let mut policy = DynamicObject::new("agents", &resource());
    policy.data = json!({ "spec": spec });
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

fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("nodewise.dev", "v1alpha1", "RolloutPolicy"),
        "rolloutpolicies",
    )
}
