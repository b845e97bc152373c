//! Projection of an apps/v1 DaemonSet.

use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::{v1, workload::DAEMON_SET};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::error::ProjectError;
use crate::key::Key;
use crate::label_keys::{LabelKeysRead, Template};
use crate::managed_fields::object_json;
use crate::meta::{Meta, labels};
use crate::parse::parse_text;
use crate::selector::Selector;
use crate::writers::StatusWriter;

/// An apps/v1 DaemonSet.
#[derive(Clone, Debug)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: Key,
    /// metadata.uid.
    pub uid: Arc<str>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.labels, ordered by key.
    pub labels: Vec<v1::Label>,
    /// spec.selector.
    pub selector: Selector,
    /// The label keys that plans for this DaemonSet read.
    pub reads: LabelKeysRead,
    /// spec.minReadySeconds.
    pub min_ready_seconds: u32,
    /// spec.updateStrategy.type is OnDelete, and no companion controller is asked to delete old pods. A rollout may then
    /// never end.
    pub updates_on_delete: bool,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.generation.
    pub generation: i64,
    /// The counts of the status.
    pub status: DaemonSetStatus,
    /// The last writer of the status other than this executor.
    pub other_status_writer: Option<StatusWriter>,
    /// The annotation `nodewise.dev/traceparent`.
    pub traceparent: Option<String>,
    /// The object as JSON, without its managed fields.
    pub object: Bytes,
}

/// Counts of a DaemonSet's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// The metadata.generation that the counts refer to.
    pub observed_generation: i64,
    /// Number of nodes that should run a pod.
    pub desired_number_scheduled: i64,
    /// Number of those nodes that have a pod.
    pub current_number_scheduled: i64,
    /// Number of nodes with a pod of the current template.
    pub updated_number_scheduled: i64,
    /// Number of nodes with an available pod.
    pub number_available: i64,
}

#[derive(Deserialize)]
struct DaemonSetObject<'a> {
    metadata: Meta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonSetSpec {
    selector: Value,
    template: Option<Box<RawValue>>,
    min_ready_seconds: Option<i32>,
    update_strategy: Value,
}

impl DaemonSet {
    /// Returns the reference for Events about this DaemonSet.
    #[must_use]
    pub fn reference(&self) -> v1::WorkloadReference {
        v1::WorkloadReference {
            kind: DAEMON_SET.to_owned(),
            namespace: self.key.namespace.to_string(),
            name: self.key.name.to_string(),
            uid: self.uid.to_string(),
            resource_version: self.resource_version.clone(),
        }
    }

    /// Reads the JSON of a DaemonSet.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::from_text(&object.to_string())
    }

    /// Reads the JSON of a DaemonSet from text.
    ///
    /// A DaemonSet whose spec cannot be read is kept, with an empty spec: no pods or nodes trigger a reconcile of it, and the
    /// service rejects it with a reason. If it were left out, it would look deleted.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        let DaemonSetObject {
            mut metadata,
            spec,
            status,
        } = parse_text(object)?;
        metadata.require_name()?;
        let spec = spec.map(|spec| parse_text::<DaemonSetSpec>(spec.get()));
        let spec = spec.transpose().unwrap_or_else(|error| {
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            tracing::warn!("the spec of DaemonSet {namespace}/{name} cannot be read: {error}");
            None
        });
        let spec = spec.unwrap_or_default();
        let traceparent = metadata.traceparent();
        let other_status_writer = metadata.take_writers().other_status_writer;
        let selector = Selector::from_json(&spec.selector);
        let template = spec.template.as_ref();
        let template = template.and_then(|template| parse_text::<Template>(template.get()).ok());
        let updates_on_delete = spec.update_strategy["type"] == "OnDelete" && !metadata.has_managed_rollout();
        Ok(Self {
            key: Key::new(&metadata.namespace, &metadata.name),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version,
            labels: labels(metadata.labels),
            reads: LabelKeysRead::new(&selector, template.unwrap_or_default()),
            selector,
            min_ready_seconds: spec
                .min_ready_seconds
                .and_then(|s| s.try_into().ok())
                .unwrap_or(0),
            updates_on_delete,
            deleting: metadata.deletion_timestamp.is_some(),
            generation: metadata.generation.unwrap_or_default(),
            status: status
                .and_then(|status| parse_text(status.get()).ok())
                .unwrap_or_default(),
            other_status_writer,
            traceparent,
            object: object_json(object),
        })
    }
}
