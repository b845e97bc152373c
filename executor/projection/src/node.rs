//! Projection of a v1 Node.

use bytes::Bytes;
use nodewise_proto::v1;
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;

use crate::error::ProjectError;
use crate::meta::{Meta, labels};
use crate::parse::{parse, parse_from, parse_text};
use crate::protobuf::{self, object, text};
use crate::status::Status;

/// Projects a v1 Node from a JSON value.
pub fn node(object: &Value) -> Result<v1::Node, ProjectError> {
    node_from(object)
}

/// Projects a v1 Node while it is deserialized, so that the rest of the object takes no memory.
pub fn node_from<'de>(object: impl Deserializer<'de>) -> Result<v1::Node, ProjectError> {
    parse_from::<NodeObject, _>(object)?.project()
}

/// A v1 Node.
#[derive(Clone, Debug)]
pub struct Node {
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// The fields that a plan reads.
    pub projection: v1::Node,
}

impl Node {
    /// Reads the JSON of a Node.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        parse::<NodeObject>(object)?.try_into()
    }

    /// Reads the JSON of a Node.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        parse_text::<NodeObject>(object)?.try_into()
    }

    /// Reads the Protobuf message of a Node, without the envelope that objects outside of lists have. The result is the same as
    /// from the JSON of the same object.
    pub fn from_protobuf(object: &Bytes) -> Result<Self, ProjectError> {
        NodeObject::from(protobuf::decode::<object::Node>(object)?).try_into()
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

/// The parts of a v1 Node that are read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeObject {
    pub(crate) metadata: Meta,
    spec: Option<NodeSpec>,
    status: Option<Status>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeSpec {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    effect: String,
}

impl From<object::Node> for NodeObject {
    fn from(node: object::Node) -> Self {
        Self {
            metadata: node.metadata.unwrap_or_default().into(),
            spec: node.spec.map(NodeSpec::from),
            status: node.status.map(Status::from),
        }
    }
}

impl From<object::NodeSpec> for NodeSpec {
    fn from(spec: object::NodeSpec) -> Self {
        let taints = spec.taints.iter().map(|taint| Taint {
            key: text(&taint.key),
            value: text(&taint.value),
            effect: text(&taint.effect),
        });
        Self {
            unschedulable: Some(spec.unschedulable),
            taints: Some(taints.collect()),
        }
    }
}

impl NodeObject {
    pub(crate) fn project(self) -> Result<v1::Node, ProjectError> {
        self.metadata.require_name()?;
        let (unschedulable, taints) = self
            .spec
            .map_or((None, None), |spec| (spec.unschedulable, spec.taints));
        let maintenance = self.status.as_ref().is_some_and(Status::is_in_maintenance);
        let (_, ready, ready_transition_time) = Status::read(self.status);
        Ok(v1::Node {
            name: self.metadata.name,
            uid: self.metadata.uid,
            labels: labels(self.metadata.labels),
            taints: taints
                .into_iter()
                .flatten()
                .map(|Taint { key, value, effect }| v1::Taint { key, value, effect })
                .collect(),
            unschedulable: unschedulable.unwrap_or(false),
            ready: ready.into(),
            ready_transition_time: ready_transition_time.map(Into::into),
            maintenance_in_progress: maintenance,
            shared_labels: Vec::new(),
        })
    }
}
