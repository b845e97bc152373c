//! A workload, as the caches store it: what every kind of workload has, and counts that kinds name differently.
//!
//! Each kind has a module that reads its JSON, such as `daemon_set`.

use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::{Timestamp, v1};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use crate::error::ProjectError;
use crate::key::Key;
use crate::label_keys::LabelKeysRead;
use crate::managed_fields::object_json;
use crate::meta::{Meta, labels};
use crate::parse::parse_text;
use crate::selector::Selector;
use crate::writers::StatusWriter;

/// A workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Kind, namespace and name.
    pub key: Key,
    /// metadata.uid.
    pub uid: Arc<str>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.labels, ordered by key.
    pub labels: Vec<v1::Label>,
    /// The owner reference with `controller: true`.
    pub controller: Option<v1::ControllerReference>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// spec.selector.
    pub selector: Selector,
    /// The label keys that plans for this workload read.
    pub reads: LabelKeysRead,
    /// spec.minReadySeconds.
    pub min_ready_seconds: u32,
    /// The number of pods that there should be: spec.replicas, or its default. `None` if the kind has no such number.
    pub replicas: Option<i32>,
    /// How pods of another template are replaced.
    pub strategy: Strategy,
    /// spec.paused of a Deployment: its rollout stands still until somebody resumes it.
    pub is_paused: bool,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.generation.
    pub generation: i64,
    /// The counts of the status.
    pub status: StatusCounts,
    /// The last writer of the status other than this executor.
    pub other_status_writer: Option<StatusWriter>,
    /// The annotation `nodewise.dev/traceparent`.
    pub traceparent: Option<String>,
    /// The object as JSON, without its managed fields.
    pub object: Bytes,
}

/// How pods of another template are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Some at a time.
    #[default]
    RollingUpdate,
    /// All old pods of a Deployment stop before new ones start.
    Recreate,
    /// Somebody other than a controller is expected to delete old pods of a DaemonSet. A rollout may then never end.
    OnDelete,
}

/// The counts of a workload's status from which the progress of its rollout is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// The metadata.generation that the counts refer to.
    pub observed_generation: i64,
    /// Number of pods that there should be.
    pub desired: i64,
    /// Number of those that exist.
    pub current: i64,
    /// Number of pods of the current template.
    pub updated: i64,
    /// Number of available pods.
    pub available: i64,
}

impl Workload {
    /// Whether there are no pods, and should be none.
    #[must_use]
    pub fn is_scaled_to_zero(&self) -> bool {
        self.replicas == Some(0) && self.status.current == 0
    }

    /// Returns the reference for Events about this workload.
    #[must_use]
    pub fn reference(&self) -> v1::WorkloadReference {
        v1::WorkloadReference {
            kind: self.key.kind.to_owned(),
            namespace: self.key.namespace.to_string(),
            name: self.key.name.to_string(),
            uid: self.uid.to_string(),
            resource_version: self.resource_version.clone(),
        }
    }
}

/// A workload that was read, and the parts of its JSON that its kind reads.
pub(crate) struct Read<S> {
    pub(crate) workload: Workload,
    pub(crate) spec: Spec,
    pub(crate) status: S,
}

/// The fields that are read from the spec of any kind.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    selector: Value,
    min_ready_seconds: Option<i32>,
    template: Option<Box<RawValue>>,
    pub(crate) replicas: Option<i32>,
    pub(crate) update_strategy: Value,
    pub(crate) strategy: Value,
    pub(crate) paused: bool,
    /// metadata has the annotation that asks a companion controller to roll out.
    #[serde(skip)]
    pub(crate) has_managed_rollout: bool,
}

impl Spec {
    /// Reads the pod template; the default if it cannot be read.
    pub(crate) fn template<T: DeserializeOwned + Default>(&self) -> T {
        let template = self.template.as_ref();
        let template = template.and_then(|template| parse_text(template.get()).ok());
        template.unwrap_or_default()
    }

    /// spec.replicas, or the default of the API.
    pub(crate) fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }
}

impl Workload {
    /// Reads what every kind has from the JSON of a workload.
    ///
    /// A workload whose spec cannot be read is kept, with an empty spec: no pods or nodes trigger a reconcile of it, and the
    /// service rejects it with a reason. If it were left out, it would look deleted.
    pub(crate) fn read<S: DeserializeOwned + Default>(
        kind: &'static str,
        object: &str,
    ) -> Result<Read<S>, ProjectError> {
        #[derive(Deserialize)]
        struct Object<'a> {
            metadata: Meta,
            #[serde(borrow)]
            spec: Option<&'a RawValue>,
            #[serde(borrow)]
            status: Option<&'a RawValue>,
        }
        let Object {
            mut metadata,
            spec,
            status,
        } = parse_text(object)?;
        metadata.require_name()?;
        let spec = spec.map(|spec| parse_text::<Spec>(spec.get()));
        let spec = spec.transpose().unwrap_or_else(|error| {
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            tracing::warn!("the spec of {kind} {namespace}/{name} cannot be read: {error}");
            None
        });
        let mut spec = spec.unwrap_or_default();
        spec.has_managed_rollout = metadata.has_managed_rollout();
        let status = status.and_then(|status| parse_text(status.get()).ok());
        let workload = Self {
            key: Key::new(kind, &metadata.namespace, &metadata.name),
            controller: metadata.controller(),
            created: metadata.creation_timestamp.map(Into::into),
            selector: Selector::from_json(&spec.selector),
            reads: LabelKeysRead::default(),
            min_ready_seconds: spec
                .min_ready_seconds
                .and_then(|s| s.try_into().ok())
                .unwrap_or(0),
            replicas: None,
            strategy: Strategy::default(),
            is_paused: false,
            deleting: metadata.deletion_timestamp.is_some(),
            generation: metadata.generation.unwrap_or_default(),
            status: StatusCounts::default(),
            traceparent: metadata.traceparent(),
            other_status_writer: metadata.take_writers().other_status_writer,
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version,
            labels: labels(metadata.labels),
            object: object_json(object),
        };
        Ok(Read {
            workload,
            spec,
            status: status.unwrap_or_default(),
        })
    }
}
