//! What the watches show: the objects as the executor keeps them, and the changes to them.
//!
//! Nodes and pods, of which there are thousands, are kept as projections. DaemonSets and revisions, of which there are
//! few, are kept as the JSON that was served, besides the fields that the executor reads itself.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::{Timestamp, v1};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::actuator::HASH_LABEL;
use crate::project::{
    self, KeySet, Meta, NodeObject, PodObject, ProjectError, Reads, StatusWriter, Template,
};
use crate::selector::Selector;
use crate::store::KIND;

/// The namespace and name of a workload: what queues, expectations and own-write records are kept by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// metadata.namespace.
    pub namespace: Arc<str>,
    /// metadata.name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A kind of object that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// apps/v1 daemonsets.
    DaemonSets,
    /// v1 pods.
    Pods,
    /// v1 nodes.
    Nodes,
    /// apps/v1 controllerrevisions.
    Revisions,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::DaemonSets, Self::Pods, Self::Nodes, Self::Revisions];

    /// The name in the API.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::DaemonSets => "daemonsets",
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Revisions => "controllerrevisions",
        }
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::DaemonSets | Self::Revisions => "apps",
            Self::Pods | Self::Nodes => "",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural())
    }
}

/// A change that a watch showed. The events of one resource are in the order of the watch; nothing is promised across
/// resources.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// Of the DaemonSets.
    DaemonSets(Delta<DaemonSet>),
    /// Of the pods.
    Pods(Delta<Pod>),
    /// Of the nodes.
    Nodes(Delta<Node>),
    /// Of the ControllerRevisions.
    Revisions(Delta<Revision>),
    /// Revisions of a list that is not complete yet: as [`Self::PodPage`].
    RevisionPage {
        /// Some of the list's revisions.
        revisions: Vec<Revision>,
        /// It begins a list.
        is_first: bool,
    },
    /// Pods of a list that is not complete yet: they count when [`Self::Pods`] brings the rest of the list, and what was there
    /// before is there until then.
    PodPage {
        /// Some of the list's pods.
        pods: Vec<Pod>,
        /// It begins a list: pages of one before it, which was given up, do not count.
        is_first: bool,
    },
    /// A revision that was read live, in a version that its watch has not shown yet. It says nothing about which version the watch has
    /// reached.
    RevisionRead(Revision),
    /// A revision was read live and not found.
    RevisionGone {
        /// metadata.namespace.
        namespace: String,
        /// metadata.name.
        name: String,
    },
    /// Nothing changed, but the watch of this resource has reached this metadata.resourceVersion.
    Bookmark(Resource, String),
}

impl ClusterEvent {
    /// What it is about.
    #[must_use]
    pub fn resource(&self) -> Resource {
        match self {
            Self::DaemonSets(_) => Resource::DaemonSets,
            Self::Pods(_) | Self::PodPage { .. } => Resource::Pods,
            Self::Nodes(_) => Resource::Nodes,
            Self::Revisions(_)
            | Self::RevisionPage { .. }
            | Self::RevisionRead(_)
            | Self::RevisionGone { .. } => Resource::Revisions,
            Self::Bookmark(resource, _) => *resource,
        }
    }

    /// The version of the list that this completes, if it does.
    #[must_use]
    pub fn listed(&self) -> Option<&str> {
        match self {
            Self::DaemonSets(delta) => delta.listed(),
            Self::Pods(delta) => delta.listed(),
            Self::Nodes(delta) => delta.listed(),
            Self::Revisions(delta) => delta.listed(),
            Self::PodPage { .. }
            | Self::RevisionPage { .. }
            | Self::RevisionRead(_)
            | Self::RevisionGone { .. }
            | Self::Bookmark(..) => None,
        }
    }
}

/// How the objects of one resource changed.
#[derive(Clone, Debug)]
pub enum Delta<T> {
    /// The object was added or modified.
    Applied(T),
    /// The object was deleted; this is its last state.
    Deleted(T),
    /// A complete list, the first one or one after a gap: what is missing in it is gone.
    Listed {
        /// Every object there is, but for those that pages showed.
        objects: Vec<T>,
        /// The list's own metadata.resourceVersion.
        resource_version: String,
    },
}

impl<T> Delta<T> {
    fn listed(&self) -> Option<&str> {
        match self {
            Self::Listed { resource_version, .. } => Some(resource_version),
            Self::Applied(_) | Self::Deleted(_) => None,
        }
    }
}

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
    /// What the decisions about it read of nodes and pods.
    pub reads: Reads,
    /// spec.minReadySeconds.
    pub min_ready_seconds: u32,
    /// spec.updateStrategy.type is OnDelete, and nobody is asked to delete: a rollout may last forever.
    pub updates_on_delete: bool,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.generation.
    pub generation: i64,
    /// How far the pods are, as the status says.
    pub status: DaemonSetStatus,
    /// Whoever else than this executor wrote the status last.
    pub other_status_writer: Option<StatusWriter>,
    /// The annotation [`crate::trace::ANNOTATION`].
    pub traceparent: Option<String>,
    /// The object as JSON, without its managed fields.
    pub object: Bytes,
}

/// Counts of a DaemonSet's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// The metadata.generation that the counts are about.
    pub observed_generation: i64,
    /// Nodes that should run a pod.
    pub desired_number_scheduled: i64,
    /// Of these, nodes that have one.
    pub current_number_scheduled: i64,
    /// Nodes with a pod of the current template.
    pub updated_number_scheduled: i64,
    /// Nodes with an available pod.
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
    /// It, as Events name what they are about.
    #[must_use]
    pub fn reference(&self) -> v1::WorkloadReference {
        v1::WorkloadReference {
            kind: KIND.to_owned(),
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

    /// Reads the JSON of a DaemonSet.
    ///
    /// One whose spec cannot be read is kept as it is, and nothing wakes it but itself: the service refuses it and says why.
    /// Left out, it would look deleted.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        let DaemonSetObject {
            mut metadata,
            spec,
            status,
        } = project::parse_text(object)?;
        metadata.require_name()?;
        let spec = spec.map(|spec| project::parse_text::<DaemonSetSpec>(spec.get()));
        let spec = spec.transpose().unwrap_or_else(|error| {
            let (namespace, name) = (&metadata.namespace, &metadata.name);
            tracing::warn!("the spec of DaemonSet {namespace}/{name} cannot be read: {error}");
            None
        });
        let spec = spec.unwrap_or_default();
        let traceparent = metadata.traceparent();
        let other_status_writer = metadata.take_writers().other_of_status;
        let selector = Selector::from_json(&spec.selector);
        let template = spec.template.as_ref();
        let template = template.and_then(|template| project::parse_text::<Template>(template.get()).ok());
        let updates_on_delete = spec.update_strategy["type"] == "OnDelete" && !metadata.asks_for_rollouts();
        Ok(Self {
            key: Key::new(&metadata.namespace, &metadata.name),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version,
            labels: project::labels(metadata.labels),
            reads: Reads::new(&selector, template.unwrap_or_default()),
            selector,
            min_ready_seconds: spec
                .min_ready_seconds
                .and_then(|s| s.try_into().ok())
                .unwrap_or(0),
            updates_on_delete,
            deleting: metadata.deletion_timestamp.is_some(),
            generation: metadata.generation.unwrap_or_default(),
            status: status
                .and_then(|status| project::parse_text(status.get()).ok())
                .unwrap_or_default(),
            other_status_writer,
            traceparent,
            object: project::kept(object),
        })
    }
}

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
    /// The keys of those labels that the cache keeps; absent if all are there.
    pub known: Option<Arc<KeySet>>,
    /// The owner reference with `controller: true`.
    pub controller: Option<v1::ControllerReference>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// Its number; 0 where it has none that can be read.
    pub number: i64,
    /// How many bytes [`Self::object`] has, or would have.
    pub size: usize,
    /// The object as JSON, without its managed fields. Absent where the cache keeps only what is above.
    pub object: Option<Bytes>,
}

impl Revision {
    /// Reads the JSON of a ControllerRevision.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::from_text(&object.to_string())
    }

    /// Reads the JSON of a ControllerRevision. Its data may be what no [`Value`] can hold: it is not looked into.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        #[derive(Deserialize)]
        struct RevisionObject<'a> {
            metadata: Meta,
            #[serde(borrow)]
            revision: Option<&'a RawValue>,
        }
        let RevisionObject { metadata, revision } = project::parse_text(object)?;
        metadata.require_name()?;
        let number = revision.and_then(|number| serde_json::from_str(number.get()).ok());
        let object = project::kept(object);
        Ok(Self {
            controller: metadata.controller(),
            deleting: metadata.deletion_timestamp.is_some(),
            created: metadata.creation_timestamp.map(Into::into),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: project::labels(metadata.labels),
            known: None,
            number: number.unwrap_or_default(),
            size: object.len(),
            object: Some(object),
        })
    }

    /// Whether those of its labels are there that the selector of a workload names.
    #[must_use]
    pub fn is_decided(&self, workload: &DaemonSet) -> bool {
        let known = self.known.as_ref();
        known.is_none_or(|known| known.has(workload.selector.keys()))
    }

    /// Its hash label; empty where it has none.
    #[must_use]
    pub fn hash(&self) -> &str {
        let label = self.labels.iter().find(|label| label.key == HASH_LABEL);
        label.map_or("", |label| &label.value)
    }
}

/// A v1 Pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// The field manager that created it, as long as its managed fields tell.
    pub created_by: Option<String>,
    /// Why it is about to be deleted: the reason of its condition `DisruptionTarget`.
    pub disruption: Option<String>,
    /// The annotation [`crate::trace::ANNOTATION`].
    pub traceparent: Option<String>,
    /// Everything else that matters.
    pub projection: v1::Pod,
}

impl Pod {
    /// Reads the JSON of a Pod.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        project::parse::<PodObject>(object)?.try_into()
    }

    /// Reads the JSON of a Pod.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        project::parse_text::<PodObject>(object)?.try_into()
    }
}

impl TryFrom<PodObject> for Pod {
    type Error = ProjectError;

    fn try_from(mut object: PodObject) -> Result<Self, ProjectError> {
        Ok(Self {
            namespace: std::mem::take(&mut object.metadata.namespace),
            resource_version: std::mem::take(&mut object.metadata.resource_version),
            created_by: object.metadata.take_writers().creator,
            disruption: object.disruption(),
            traceparent: object.metadata.traceparent(),
            projection: object.project()?,
        })
    }
}

/// A v1 Node.
#[derive(Clone, Debug)]
pub struct Node {
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Everything else that matters.
    pub projection: v1::Node,
}

impl Node {
    /// Reads the JSON of a Node.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        project::parse::<NodeObject>(object)?.try_into()
    }

    /// Reads the JSON of a Node.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        project::parse_text::<NodeObject>(object)?.try_into()
    }
}

impl TryFrom<NodeObject> for Node {
    type Error = ProjectError;

    fn try_from(mut object: NodeObject) -> Result<Self, ProjectError> {
        Ok(Self {
            resource_version: std::mem::take(&mut object.metadata.resource_version),
            projection: object.project()?,
        })
    }
}
