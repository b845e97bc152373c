//! The bare loop, the lower limit for the time: workers that create pods and do nothing else.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DynamicObject};
use serde_json::Value;

/// As many workers as upstream's controller has at the maximum of its slow start.
pub(super) const WORKERS: usize = 250;

/// A pod that an owner of DaemonSets created, used as a template.
#[derive(Clone, Debug)]
pub(super) struct Template(Value);

impl Template {
    /// Takes the first pod of a namespace as the template.
    pub(super) async fn of(client: &Client, namespace: &str) -> Result<Self> {
        let resource = kube::api::ApiResource::erase::<Pod>(&());
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
        let pods = api.list(&kube::api::ListParams::default().limit(1)).await?;
        let pod = pods.items.into_iter().next().context("no pod was created")?;
        let mut pod = serde_json::to_value(pod)?;
        pod.as_object_mut()
            .context("a pod is an object")?
            .remove("status");
        let metadata = pod["metadata"].as_object_mut().context("a pod has metadata")?;
        metadata.retain(|member, _| ["labels", "annotations", "ownerReferences"].contains(&member.as_str()));
        Ok(Self(pod))
    }

    /// The pod for a node.
    fn on(&self, node: &str, index: usize) -> Result<String> {
        let mut pod = self.0.clone();
        pod["metadata"]["name"] = format!("agent-{index:05}").into();
        let terms =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let values = pod.pointer_mut(&format!("{terms}/0/matchFields/0/values/0"));
        *values.context("a DaemonSet's pod says its node by its affinity")? = node.into();
        Ok(pod.to_string())
    }
}

/// Creates a pod for each node, as fast as possible.
pub(super) async fn create(
    client: &Client,
    namespace: &str,
    template: &Template,
    nodes: &[String],
) -> Result<()> {
    let bodies = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| template.on(node, index));
    let bodies: Vec<String> = bodies.collect::<Result<_>>()?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    stream::iter(bodies)
        .map(async |body| {
            let request = http::Request::post(&path)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body.into_bytes())?;
            client.request_text(request).await.context("creating a pod")
        })
        .buffer_unordered(WORKERS)
        .try_for_each(async |_| Ok(()))
        .await
}
