//! What the check reads of an object that a plan names.

use std::collections::BTreeMap;

use nodewise_projection::{Pod, Revision};
use nodewise_proto::v1;
use nodewise_runtime::Resource;
use serde::Deserialize;

use super::named::Identity;

/// The fields of an object that the check reads.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: Option<v1::ControllerReference>,
    pub(crate) labels: Vec<v1::Label>,
    /// spec.replicas, or its default; `None` for pods and revisions.
    pub(crate) replicas: Option<i64>,
}

impl Known {
    /// Its name and uid.
    pub(super) fn identity(&self) -> Identity<'_> {
        (&self.name, &self.uid)
    }

    /// Reads an object of this resource, as the apiserver sent it. The error says why it cannot be read.
    pub(crate) fn read(resource: Resource, object: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(object);
        let known = match resource {
            Resource::REVISIONS => Revision::from_text(&text).map(|revision| Self::from(&revision)),
            Resource::PODS => Pod::from_text(&text).map(|pod| Self::from(pod.projection)),
            _ => nodewise_projection::parse_text::<Served>(&text).map(Self::from),
        };
        known.map_err(|error| error.to_string())
    }
}

impl From<v1::Pod> for Known {
    fn from(pod: v1::Pod) -> Self {
        Self {
            name: pod.name,
            uid: pod.uid,
            controller: pod.controller,
            labels: pod.labels,
            replicas: None,
        }
    }
}

impl From<&Revision> for Known {
    fn from(revision: &Revision) -> Self {
        Self {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
            controller: revision.controller.clone(),
            labels: revision.labels.clone(),
            replicas: None,
        }
    }
}

/// The fields that are read of an object that is neither a pod nor a revision.
#[derive(Deserialize)]
struct Served {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i64>,
}

/// The default of spec.replicas.
pub(super) const DEFAULT_REPLICAS: i64 = 1;

impl From<Served> for Known {
    fn from(served: Served) -> Self {
        let Served { metadata, spec } = served;
        let mut owners = metadata.owner_references.into_iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        let labels = metadata.labels.into_iter().flatten();
        Self {
            name: metadata.name,
            uid: metadata.uid,
            controller: controller.map(|owner| v1::ControllerReference {
                kind: owner.kind,
                name: owner.name,
                uid: owner.uid,
            }),
            labels: labels.map(|(key, value)| v1::Label { key, value }).collect(),
            replicas: Some(spec.replicas.unwrap_or(DEFAULT_REPLICAS)),
        }
    }
}
