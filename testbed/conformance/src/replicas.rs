//! Requests about ReplicaSets and Deployments.

use std::{collections::BTreeMap, fmt::Debug};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, ReplicaSet};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::test_namespace::TestNamespace;

/// The label by which a Deployment's ReplicaSets and their pods differ.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// The annotation with the number of a Deployment's revision.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";

/// The uid of an object's controller.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.as_str())
}

/// The version of the image in the template of a ReplicaSet.
fn version_of(set: &ReplicaSet) -> Result<u32> {
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let spec = template.and_then(|template| template.spec.as_ref());
    let container = spec.and_then(|spec| spec.containers.first());
    let image = container.and_then(|container| container.image.as_deref());
    let (_, version) = image
        .and_then(|image| image.rsplit_once(':'))
        .context("an image with a version")?;
    Ok(version.parse()?)
}

/// The number of pods that a ReplicaSet wants.
pub(crate) fn size_of(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

impl TestNamespace {
    /// The API of its ReplicaSets.
    #[must_use]
    pub fn replica_set_api(&self) -> Api<ReplicaSet> {
        self.api()
    }

    /// The API of its Deployments.
    #[must_use]
    pub(crate) fn deployment_api(&self) -> Api<Deployment> {
        self.api()
    }

    /// Creates a ReplicaSet and waits until all its pods are available.
    pub async fn start_replica_set(&self, object: Value) -> Result<ReplicaSet> {
        let created: ReplicaSet = self.create_as(object).await?;
        self.wait_for_replica_set(&created.name_any()).await
    }

    /// Creates a Deployment and waits until it is rolled out.
    pub async fn start_deployment(&self, object: Value) -> Result<Deployment> {
        let created: Deployment = self.create_as(object).await?;
        self.wait_for_deployment(&created.name_any()).await
    }

    /// Changes a workload with a strategic merge patch.
    pub(crate) async fn patch_as<K>(&self, name: &str, patch: Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let patch = Patch::Strategic(patch);
        Ok(self.api().patch(name, &PatchParams::default(), &patch).await?)
    }

    /// Changes a Deployment with a strategic merge patch.
    pub async fn patch_deployment(&self, name: &str, patch: Value) -> Result<Deployment> {
        self.patch_as(name, patch).await
    }

    /// Sets the number of replicas as a HorizontalPodAutoscaler does: it reads the scale subresource and writes it, and
    /// tries again after a conflict.
    pub(crate) async fn scale<K>(&self, name: &str, replicas: i32) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        loop {
            let mut scale = api.get_scale(name).await?;
            scale.spec.get_or_insert_default().replicas = Some(replicas);
            match api.replace_scale(name, &PostParams::default(), &scale).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return Ok(written.map(|_| ())?),
            }
        }
    }

    /// Waits until a ReplicaSet has as many available pods as replicas, and its status says so. Returns it.
    pub async fn wait_for_replica_set(&self, name: &str) -> Result<ReplicaSet> {
        self.eventually(format!("the ReplicaSet {name} to be complete"), async || {
            let set = self.replica_set_api().get(name).await?;
            let (wanted, status) = (size_of(&set), set.status.clone().unwrap_or_default());
            ensure!(
                status.observed_generation == set.metadata.generation
                    && status.replicas == wanted
                    && status.available_replicas.unwrap_or(0) == wanted
                    && status.terminating_replicas.unwrap_or(0) == 0,
                "{wanted} replicas: {status:?}"
            );
            self.expect_only_live_pods(name, Some(wanted)).await?;
            Ok(set)
        })
        .await
    }

    /// Fails unless a workload has `wanted` pods, none of them in deletion: a status may be older than a deletion.
    async fn expect_only_live_pods(&self, name: &str, wanted: Option<i32>) -> Result<()> {
        let pods = self.pods(name).await?;
        let leaving = pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_some())
            .count();
        ensure!(
            i32::try_from(pods.len()).ok() == wanted && leaving == 0,
            "{} pods, {leaving} of them in deletion",
            pods.len()
        );
        Ok(())
    }

    /// Waits until a Deployment is rolled out completely, and its status says so. Returns it.
    pub async fn wait_for_deployment(&self, name: &str) -> Result<Deployment> {
        self.eventually(format!("the Deployment {name} to be complete"), async || {
            let deployment = self.deployment_api().get(name).await?;
            let status = deployment.status.clone().unwrap_or_default();
            let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
            let reason = condition(&deployment, "Progressing").map(|(_, reason)| reason);
            ensure!(
                status.observed_generation == deployment.metadata.generation
                    && status.replicas.or(Some(0)) == wanted
                    && status.updated_replicas.or(Some(0)) == wanted
                    && status.available_replicas.or(Some(0)) == wanted
                    && status.terminating_replicas.unwrap_or(0) == 0
                    && reason.as_deref() == Some("NewReplicaSetAvailable"),
                "{wanted:?} replicas: {status:?}"
            );
            self.expect_only_live_pods(name, wanted).await?;
            Ok(deployment)
        })
        .await
    }

    /// Waits until a condition of a Deployment has this status and this reason.
    pub(crate) async fn wait_for_condition(
        &self,
        name: &str,
        kind: &str,
        expected: (&str, &str),
    ) -> Result<()> {
        self.eventually(format!("the condition {kind} {expected:?}"), async || {
            let deployment = self.deployment_api().get(name).await?;
            let found = condition(&deployment, kind);
            let is_right = found
                .as_ref()
                .is_some_and(|(status, reason)| (status.as_str(), reason.as_str()) == expected);
            ensure!(is_right, "it is {found:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the generation of a Deployment is observed.
    pub(crate) async fn wait_until_observed(&self, name: &str) -> Result<()> {
        self.eventually(format!("the spec of {name} to be observed"), async || {
            let deployment = self.deployment_api().get(name).await?;
            let status = deployment.status.unwrap_or_default();
            ensure!(
                status.observed_generation == deployment.metadata.generation,
                "{status:?}"
            );
            Ok(())
        })
        .await
    }

    /// The ReplicaSets of a Deployment, by the versions of their images.
    pub(crate) async fn replica_sets(&self, name: &str) -> Result<BTreeMap<u32, ReplicaSet>> {
        let params = ListParams::default().labels(&format!("app={name}"));
        let sets = self.replica_set_api().list(&params).await?.items;
        let sets = sets.into_iter().map(|set| Ok((version_of(&set)?, set)));
        sets.collect()
    }

    /// The ReplicaSet of a Deployment whose image has this version.
    pub(crate) async fn replica_set_of(&self, name: &str, version: u32) -> Result<ReplicaSet> {
        let found = self.replica_sets(name).await?.remove(&version);
        found.with_context(|| format!("{name} has no ReplicaSet of version {version}"))
    }

    /// Waits until the ReplicaSets of a Deployment have these sizes, by the versions of their images, and as many pods.
    pub async fn wait_for_sizes(&self, name: &str, expected: &[(u32, i32)]) -> Result<()> {
        self.eventually(format!("ReplicaSets of the sizes {expected:?}"), async || {
            let sets = self.replica_sets(name).await?;
            let sizes: Vec<_> = sets
                .iter()
                .map(|(version, set)| (*version, size_of(set)))
                .collect();
            ensure!(sizes == expected, "they are {sizes:?}");
            for (version, set) in &sets {
                let pods = set.status.as_ref().map_or(0, |status| status.replicas);
                ensure!(pods == size_of(set), "version {version} has {pods} pods");
            }
            Ok(())
        })
        .await
    }
}

/// The status and the reason of a condition of a Deployment.
pub(crate) fn condition(deployment: &Deployment, kind: &str) -> Option<(String, String)> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let of_kind = |condition: &&DeploymentCondition| condition.type_ == kind;
    let found = conditions.iter().find(of_kind)?;
    Some((found.status.clone(), found.reason.clone().unwrap_or_default()))
}

/// The revision of a Deployment or of one of its ReplicaSets.
pub(crate) fn revision_of(object: &impl Resource) -> Option<&str> {
    let annotations = object.meta().annotations.as_ref()?;
    annotations.get(REVISION).map(String::as_str)
}
