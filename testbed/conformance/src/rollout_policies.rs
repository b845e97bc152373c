//! RolloutPolicies of a cluster: their CustomResourceDefinition, and requests about them and their status.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use nodewise_testbed::{ControlPlane, eventually, manifests};
use serde_json::{Value, json};

use crate::{deadline::DEADLINE, test_namespace::TestNamespace};

const DEFINITION: &str = include_str!("../../../deploy/kustomize/components/rollout-policy/crd.yaml");

/// Installs the CustomResourceDefinition of RolloutPolicy, and waits until the apiserver serves it.
///
/// # Errors
/// The apiserver refuses it, or does not serve it in time.
pub async fn install(plane: &ControlPlane) -> Result<()> {
    for definition in manifests::parse(DEFINITION)? {
        let params = PatchParams::apply("nodewise-conformance");
        manifests::apply(&plane.client(), &definition, &params).await?;
    }
    eventually(DEADLINE, "the apiserver to serve RolloutPolicies", async || {
        plane
            .kubectl(["get", "rolloutpolicies.nodewise.dev", "--all-namespaces"])
            .await
    })
    .await?;
    Ok(())
}

/// The API of the RolloutPolicies of a namespace. They are untyped, so that tests see what the apiserver stores.
#[must_use]
pub fn api(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("nodewise.dev", "v1alpha1", "RolloutPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "rolloutpolicies");
    Api::namespaced_with(client, namespace, &resource)
}

impl TestNamespace {
    /// The API of its RolloutPolicies.
    #[must_use]
    pub fn policy_api(&self) -> Api<DynamicObject> {
        api(self.client(), self.namespace())
    }

    /// Creates a policy for the DaemonSets with these names. `spec` is the policy's spec without targets.
    pub async fn create_policy(&self, name: &str, targets: &[&str], mut spec: Value) -> Result<()> {
        spec["targets"] = json!({ "names": targets });
        let object = json!({
            "apiVersion": "nodewise.dev/v1alpha1",
            "kind": "RolloutPolicy",
            "metadata": { "name": name },
            "spec": spec,
        });
        let object = serde_json::from_value(object)?;
        self.policy_api().create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Changes a policy with a merge patch.
    pub async fn patch_policy(&self, name: &str, patch: Value) -> Result<()> {
        let params = PatchParams::default();
        self.policy_api()
            .patch(name, &params, &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Deletes a policy.
    pub async fn delete_policy(&self, name: &str) -> Result<()> {
        self.policy_api().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The status of a policy; `null` if it has none.
    pub async fn policy_status(&self, name: &str) -> Result<Value> {
        let policy = self.policy_api().get(name).await?;
        Ok(policy.data["status"].clone())
    }

    /// What the status of the policy `agents` says about its only DaemonSet.
    pub async fn policy_target(&self) -> Result<Value> {
        let status = self.policy_status("agents").await?;
        let target = &status["targets"][0];
        ensure!(!target.is_null(), "the policy has no target yet: {status}");
        Ok(target.clone())
    }

    /// Waits until the policy `agents` says that the rollout of this revision has this state. Returns what it says about the
    /// DaemonSet.
    pub async fn wait_for_state(&self, revision: i64, state: &str) -> Result<Value> {
        self.eventually(format!("revision {revision} to be {state}"), async || {
            let target = self.policy_target().await?;
            ensure!(
                target["updateRevision"]["number"] == revision && target["state"] == state,
                "revision {} is {}: {}; {}",
                target["updateRevision"]["number"],
                target["state"],
                target["message"],
                target["stages"]
            );
            Ok(target)
        })
        .await
    }

    /// The condition of this type of a policy.
    pub async fn policy_condition(&self, name: &str, condition: &str) -> Result<Value> {
        let status = self.policy_status(name).await?;
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions
            .find(|one| one["type"] == condition)
            .cloned()
            .with_context(|| format!("{name} has no condition {condition}: {status}"))
    }
}
