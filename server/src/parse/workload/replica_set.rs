//! Parses a ReplicaSet.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use nodewise_planner::{json::Json, replicaset::ReplicaSet, snapshot::Labels};
use nodewise_proto::{v1, workload::REPLICA_SET};
use serde::Deserialize;

use super::{
    super::{
        json,
        problems::{Path, Problems},
    },
    object::{self, Read},
    status::SetStatus,
};

/// The fields of a ReplicaSet's spec.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) selector: Option<LabelSelector>,
    #[serde(default)]
    pub(super) template: Json,
    pub(super) replicas: Option<i32>,
    pub(super) min_ready_seconds: Option<i32>,
}

impl Spec {
    /// spec.replicas. The apiserver always sets it; if it is absent, its default applies.
    pub(super) fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }
}

/// Reads the ReplicaSet at `at`.
pub(super) fn read(message: v1::ReplicaSet, at: &Path<'_>, problems: &mut Problems) -> Option<ReplicaSet> {
    let at_object = at.field("object");
    let Read { head, spec, status } =
        object::read::<Spec, SetStatus>(&message.object, REPLICA_SET, &at_object, problems)?;
    object::require_template(spec.template.is_object(), &at_object, problems);
    let replicas = spec.replicas();
    let related_pods = related_pods(message.related_pods, &at.field("related_pods"), problems);
    let selector = object::selector(spec.selector, head.deleting, &at_object, problems);
    let (name, uid) = head.identity?;
    Some(ReplicaSet {
        name,
        uid,
        namespace: head.namespace,
        resource_version: head.resource_version,
        generation: head.generation,
        deleting: head.deleting,
        selector,
        replicas,
        min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
        template_labels: template_labels(&spec.template),
        template: spec.template,
        status: status.into(),
        related_pods,
    })
}

/// The number of related pods by node, sorted by the node's name.
fn related_pods(
    messages: Vec<v1::NodePodCount>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Vec<(String, u32)> {
    for (index, message) in messages.iter().enumerate() {
        problems.bound_name(&at.index(index).field("node_name"), &message.node_name);
    }
    let counts = messages.into_iter().map(|count| (count.node_name, count.pods));
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable();
    for pair in counts.windows(2) {
        if pair[0].0 == pair[1].0 {
            problems.add(at, format!("node_name: `{}` is there twice", pair[0].0));
        }
    }
    counts
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
}

/// The labels of a template; none if they cannot be read.
fn template_labels(template: &Json) -> Labels {
    let template: Template = serde_json::from_str(template.as_str()).unwrap_or_default();
    json::labels_of(&template.metadata.labels.unwrap_or_default())
}
