//! The fields of ObjectMeta that are read.

use std::collections::BTreeMap;

use nodewise_proto::v1;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::ProjectError;
use crate::first_match::{ElementFilter, FirstMatch};
use crate::protobuf::{object, text};
use crate::time::Time;
use crate::writers::Writers;

/// Converts labels to messages, ordered by key.
pub(crate) fn labels(labels: Option<BTreeMap<String, String>>) -> Vec<v1::Label> {
    labels
        .into_iter()
        .flatten()
        .map(|(key, value)| v1::Label { key, value })
        .collect()
}

/// Most bytes of a kind.
const MAX_KIND_LEN: usize = 63;
/// Most bytes of the name of an object.
const MAX_NAME_LEN: usize = 253;
/// Most bytes of a uid. The apiserver generates uids of 36 bytes.
const MAX_UID_LEN: usize = 128;

/// The parts of ObjectMeta that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    owner_references: Option<FirstMatch<OwnerReference>>,
    pub(crate) finalizers: Option<Vec<IgnoredAny>>,
    pub(crate) creation_timestamp: Option<Time>,
    pub(crate) deletion_timestamp: Option<Time>,
    pub(crate) generation: Option<i64>,
    annotations: Option<Annotations>,
    managed_fields: Option<Writers>,
}

const TRACEPARENT: &str = "nodewise.dev/traceparent";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The annotations that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    // The same key as `TRACEPARENT`, and as `trace::ANNOTATION` of the executor.
    #[serde(rename = "nodewise.dev/traceparent")]
    traceparent: Option<String>,
    /// Which controller deletes old pods under the OnDelete strategy. The planner for companions reads this annotation.
    #[serde(rename = "nodewise.dev/rollout")]
    rollout: Option<String>,
    // The same key as `DELETION_COST`.
    #[serde(rename = "controller.kubernetes.io/pod-deletion-cost")]
    deletion_cost: Option<String>,
}

/// Reads the metadata of a pod or a node. Nobody reads their generation, their annotation `nodewise.dev/rollout`, or who wrote their
/// statuses.
impl From<object::ObjectMeta> for Meta {
    fn from(meta: object::ObjectMeta) -> Self {
        let labels = meta.labels.into_iter();
        let owners = meta.owner_references.into_iter();
        Self {
            name: text(&meta.name),
            namespace: text(&meta.namespace),
            uid: text(&meta.uid),
            resource_version: text(&meta.resource_version),
            labels: Some(
                labels
                    .map(|label| (text(&label.key), text(&label.value)))
                    .collect(),
            ),
            owner_references: Some(owners.map(OwnerReference::from).collect()),
            finalizers: Some(meta.finalizers.iter().map(|_| IgnoredAny).collect()),
            creation_timestamp: Time::of(meta.creation_timestamp),
            deletion_timestamp: Time::of(meta.deletion_timestamp),
            generation: None,
            annotations: Some(Annotations::of(&meta.annotations)),
            managed_fields: Some(Writers::of(&meta.managed_fields)),
        }
    }
}

impl Annotations {
    /// Reads the annotations of a pod or a node. The last entry of a key counts.
    fn of(annotations: &[object::Entry]) -> Self {
        let value = |key: &str| {
            let mut entries = annotations.iter().rev();
            let entry = entries.find(|entry| entry.key == key.as_bytes());
            entry.map(|entry| text(&entry.value))
        };
        Self {
            traceparent: value(TRACEPARENT),
            rollout: None,
            deletion_cost: value(DELETION_COST),
        }
    }
}

/// Most bytes of a deletion cost. A valid one is a 32-bit number; a minus sign may be followed by some zeros.
const MAX_COST_LEN: usize = 64;

impl Meta {
    /// Whether the annotation asks a companion controller to roll out.
    pub(crate) fn has_managed_rollout(&self) -> bool {
        let annotations = self.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.rollout.as_deref() == Some("managed"))
    }

    /// Takes the writers of the object.
    pub(crate) fn take_writers(&mut self) -> Writers {
        self.managed_fields.take().unwrap_or_default()
    }

    /// The annotation `nodewise.dev/traceparent`.
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.annotations.as_ref()?.traceparent.clone()
    }

    /// The annotation with the pod's deletion cost. Empty if there is none, or if it is too long to be valid.
    pub(crate) fn take_deletion_cost(&mut self) -> String {
        let annotations = self.annotations.as_mut();
        let cost = annotations.and_then(|annotations| annotations.deletion_cost.take());
        cost.filter(|cost| cost.len() <= MAX_COST_LEN).unwrap_or_default()
    }

    /// The owner reference with `controller: true`. If one of its fields is longer than the API allows for workloads, the
    /// result is an empty reference: a client that may create the object could make it very large.
    pub(crate) fn controller(&self) -> Option<v1::ControllerReference> {
        let owner = self.owner_references.as_ref()?.0.as_ref()?;
        if owner.kind.len() > MAX_KIND_LEN || owner.name.len() > MAX_NAME_LEN || owner.uid.len() > MAX_UID_LEN
        {
            return Some(v1::ControllerReference::default());
        }
        Some(v1::ControllerReference {
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        })
    }

    pub(crate) fn require_name(&self) -> Result<(), ProjectError> {
        if self.name.is_empty() {
            Err(ProjectError::at("metadata.name", "is missing"))
        } else {
            Ok(())
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

impl From<object::OwnerReference> for OwnerReference {
    fn from(owner: object::OwnerReference) -> Self {
        Self {
            kind: text(&owner.kind),
            name: text(&owner.name),
            uid: text(&owner.uid),
            controller: Some(owner.controller),
        }
    }
}

impl ElementFilter for OwnerReference {
    fn is_match(&self) -> bool {
        self.controller == Some(true)
    }
}
