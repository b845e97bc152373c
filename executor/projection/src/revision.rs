//! Projection of an apps/v1 ControllerRevision.

use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::workload::HASH_LABEL;
use nodewise_proto::{Timestamp, v1};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::error::ProjectError;
use crate::label_keys::KeySet;
use crate::managed_fields::object_json;
use crate::meta::{Meta, labels};
use crate::parse::parse_text;
use crate::workload::Workload;

/// An apps/v1 ControllerRevision.
#[derive(Clone, Debug)]
pub struct Revision {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.labels, ordered by key.
    pub labels: Vec<v1::Label>,
    /// The keys of the labels that the cache stores; `None` if it stores all.
    pub known: Option<Arc<KeySet>>,
    /// The owner reference with `controller: true`.
    pub controller: Option<v1::ControllerReference>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// The field `revision`; 0 if it is missing or invalid.
    pub number: i64,
    /// The size of [`Self::object`] in bytes, also if it is `None`.
    pub size: usize,
    /// The object as JSON, without its managed fields. `None` if the cache stores only the other fields.
    pub object: Option<Bytes>,
}

impl Revision {
    /// Reads the JSON of a ControllerRevision.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::from_text(&object.to_string())
    }

    /// Reads the JSON of a ControllerRevision from text. Its data is not parsed, because it may not be valid for a [`Value`].
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        #[derive(Deserialize)]
        struct RevisionObject<'a> {
            metadata: Meta,
            #[serde(borrow)]
            revision: Option<&'a RawValue>,
        }
        let RevisionObject { metadata, revision } = parse_text(object)?;
        metadata.require_name()?;
        let number = revision.and_then(|number| serde_json::from_str(number.get()).ok());
        let object = object_json(object);
        Ok(Self {
            controller: metadata.controller(),
            deleting: metadata.deletion_timestamp.is_some(),
            created: metadata.creation_timestamp.map(Into::into),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: labels(metadata.labels),
            known: None,
            number: number.unwrap_or_default(),
            size: object.len(),
            object: Some(object),
        })
    }

    /// Whether all labels that the selector of the workload reads are stored, so that it can be evaluated.
    #[must_use]
    pub fn has_labels_of(&self, workload: &Workload) -> bool {
        let known = self.known.as_ref();
        known.is_none_or(|known| known.has(workload.selector.keys()))
    }

    /// The hash label; empty if there is none.
    #[must_use]
    pub fn hash(&self) -> &str {
        let label = self.labels.iter().find(|label| label.key == HASH_LABEL);
        label.map_or("", |label| &label.value)
    }
}
