//! A workload, as the caches store it: what every kind of workload has, and counts that kinds name differently.
//!
//! Each kind has a module that reads its JSON, such as `daemon_set`.

use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::v1;

use crate::key::Key;
use crate::label_keys::LabelKeysRead;
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
    /// spec.selector.
    pub selector: Selector,
    /// The label keys that plans for this workload read.
    pub reads: LabelKeysRead,
    /// spec.minReadySeconds.
    pub min_ready_seconds: u32,
    /// Somebody other than a controller is expected to delete old pods. A rollout may then never end.
    pub updates_on_delete: bool,
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
