//! Projection of an apps/v1 DaemonSet.

use nodewise_proto::workload::DAEMON_SET;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::error::ProjectError;
use crate::key::Key;
use crate::label_keys::{LabelKeysRead, Template};
use crate::managed_fields::object_json;
use crate::meta::{Meta, labels};
use crate::parse::parse_text;
use crate::selector::Selector;
use crate::workload::{StatusCounts, Workload};

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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonSetStatus {
    observed_generation: i64,
    desired_number_scheduled: i64,
    current_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
}

impl From<DaemonSetStatus> for StatusCounts {
    fn from(status: DaemonSetStatus) -> Self {
        Self {
            observed_generation: status.observed_generation,
            desired: status.desired_number_scheduled,
            current: status.current_number_scheduled,
            updated: status.updated_number_scheduled,
            available: status.number_available,
        }
    }
}

impl Workload {
    /// Reads the JSON of a DaemonSet.
    pub fn daemon_set_from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::daemon_set_from_text(&object.to_string())
    }

    /// Reads the JSON of a DaemonSet from text.
    ///
    /// A DaemonSet whose spec cannot be read is kept, with an empty spec: no pods or nodes trigger a reconcile of it, and the
    /// service rejects it with a reason. If it were left out, it would look deleted.
    pub fn daemon_set_from_text(object: &str) -> Result<Self, ProjectError> {
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
        let status = status.and_then(|status| parse_text::<DaemonSetStatus>(status.get()).ok());
        let traceparent = metadata.traceparent();
        let other_status_writer = metadata.take_writers().other_status_writer;
        let selector = Selector::from_json(&spec.selector);
        let template = spec.template.as_ref();
        let template = template.and_then(|template| parse_text::<Template>(template.get()).ok());
        // With the annotation for a managed rollout, a companion controller deletes old pods.
        let updates_on_delete = spec.update_strategy["type"] == "OnDelete" && !metadata.has_managed_rollout();
        Ok(Self {
            key: Key::new(DAEMON_SET, &metadata.namespace, &metadata.name),
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
            status: status.unwrap_or_default().into(),
            other_status_writer,
            traceparent,
            object: object_json(object),
        })
    }
}
