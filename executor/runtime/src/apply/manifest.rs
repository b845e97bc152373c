//! The manifest of a plan's pods: parsed once per plan, rendered once per pod.

use bytes::Bytes;
use nodewise_projection::Pod;
use nodewise_proto::v1;
use nodewise_proto::workload::HASH_LABEL;
use nodewise_telemetry::propagation;
use serde_json::Value;

use crate::trace;

/// `Plan.pod_manifest`, parsed, with access to the fields that differ from pod to pod.
#[derive(Debug)]
pub(super) struct PodManifest {
    manifest: Value,
    node_name_pointers: Vec<String>,
    /// Whether pods carry the trace context in an annotation.
    annotated: bool,
}

impl PodManifest {
    /// Reads the manifest of a plan. The error says why the manifest cannot be read.
    pub(super) fn parse(plan: &v1::Plan) -> Result<Self, String> {
        let manifest: Value = serde_json::from_slice(&plan.pod_manifest)
            .map_err(|error| format!("the plan's pod_manifest: {error}"))?;
        if !manifest["metadata"].is_object() {
            return Err("the plan's pod_manifest has no metadata".to_owned());
        }
        if let Some(pointer) = plan
            .node_name_pointers
            .iter()
            .find(|pointer| !manifest.pointer(pointer).is_some_and(Value::is_string))
        {
            return Err(format!(
                "the plan's pod_manifest has no string at node_name_pointers entry {pointer}"
            ));
        }
        Ok(Self {
            manifest,
            node_name_pointers: plan.node_name_pointers.clone(),
            annotated: false,
        })
    }

    /// Sets whether rendered pods carry the context of the current span.
    pub(super) fn annotated(self, annotated: bool) -> Self {
        Self { annotated, ..self }
    }

    /// The pod for one node. An empty pod name leaves the name to the manifest's generateName.
    pub(super) fn render(&mut self, create: &v1::CreatePod) -> Bytes {
        for pointer in &self.node_name_pointers {
            if let Some(node_name) = self.manifest.pointer_mut(pointer) {
                *node_name = Value::from(create.node_name.as_str());
            }
        }
        if create.pod_name.is_empty() {
            if let Some(metadata) = self.manifest["metadata"].as_object_mut() {
                metadata.remove("name");
            }
        } else {
            self.manifest["metadata"]["name"] = Value::from(create.pod_name.as_str());
        }
        // Do not annotate pods with a span that is not sampled: a link to it would have no target.
        if let Some(context) = self.annotated.then(propagation::current)
            && context.is_sampled()
            && let Some(context) = propagation::traceparent(&context)
        {
            self.manifest["metadata"]["annotations"][trace::ANNOTATION] = Value::from(context);
        }
        self.manifest.to_string().into()
    }

    /// The value of the revision label that the plan's pods carry; empty for none.
    pub(super) fn revision_hash(&self) -> &str {
        self.manifest["metadata"]["labels"][HASH_LABEL]
            .as_str()
            .unwrap_or_default()
    }
}

/// The pod that one create action of a plan makes.
#[cfg(any(test, feature = "testing"))]
pub fn render_pod(plan: &v1::Plan, create: &v1::CreatePod) -> Result<Bytes, String> {
    Ok(PodManifest::parse(plan)?.render(create))
}

/// Whether a live pod is the one that a create of this plan would have made: same controller, node and revision. If the
/// create is for no node, any pod of the workload is.
///
/// Anyone who may create pods can name the workload's uid in a reference with another kind or name. The caches do not count such
/// a pod as the workload's.
pub(super) fn is_same_pod(
    live: Pod,
    workload: &v1::WorkloadReference,
    node_name: &str,
    revision_hash: &str,
) -> bool {
    let pod = live.projection;
    let hash = pod
        .labels
        .iter()
        .find(|label| label.key == HASH_LABEL)
        .map_or("", |label| &label.value);
    let target = if pod.node_name.is_empty() {
        &pod.target_node_name
    } else {
        &pod.node_name
    };
    let controlled = pod.controller.is_some_and(|controller| {
        (&controller.kind, &controller.name, &controller.uid)
            == (&workload.kind, &workload.name, &workload.uid)
    });
    controlled && (node_name.is_empty() || hash == revision_hash && target == node_name)
}
