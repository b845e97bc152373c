//! Projection of a v1 Pod.

use std::collections::HashSet;

use bytes::Bytes;
use nodewise_proto::{
    v1,
    workload::{DAEMON_SET, REPLICA_SET},
};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;

use crate::error::ProjectError;
use crate::first_match::{ElementFilter, FirstMatch};
use crate::meta::{Meta, labels};
use crate::parse::{parse, parse_from, parse_text};
use crate::protobuf::{self, object, text, text_if_any};
use crate::status::{Status, most_restarts};
use crate::unready::Unready;

/// Projects a v1 Pod from a JSON value.
pub fn pod(object: &Value) -> Result<v1::Pod, ProjectError> {
    pod_from(object)
}

/// Projects a v1 Pod while it is deserialized, so that the rest of the object takes no memory.
pub fn pod_from<'de>(object: impl Deserializer<'de>) -> Result<v1::Pod, ProjectError> {
    parse_from::<PodObject, _>(object)?.project()
}

/// A v1 Pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// The field manager that created the pod, if its managed fields name one.
    pub created_by: Option<String>,
    /// The reason of the condition `DisruptionTarget`, if the pod is about to be deleted.
    pub disruption: Option<String>,
    /// The annotation `nodewise.dev/traceparent`.
    pub traceparent: Option<String>,
    /// What people want to know about it, if it is not ready or is being deleted.
    pub unready: Option<Box<Unready>>,
    /// The other fields that a plan reads.
    pub projection: v1::Pod,
}

impl Pod {
    /// Reads the JSON of a Pod.
    pub fn from_json(object: &Value) -> Result<Self, ProjectError> {
        let mut pod: Self = parse::<PodObject>(object)?.try_into()?;
        if pod.is_unready() {
            pod.unready = Unready::of(&object.to_string(), &pod.projection);
        }
        Ok(pod)
    }

    /// Reads the JSON of a Pod.
    pub fn from_text(object: &str) -> Result<Self, ProjectError> {
        let mut pod: Self = parse_text::<PodObject>(object)?.try_into()?;
        if pod.is_unready() {
            pod.unready = Unready::of(object, &pod.projection);
        }
        Ok(pod)
    }

    /// Reads the Protobuf message of a Pod, without the envelope that objects outside of lists have. The result is the same as
    /// from the JSON of the same object.
    pub fn from_protobuf(object: &Bytes) -> Result<Self, ProjectError> {
        let mut pod: Self = PodObject::from(protobuf::decode::<object::Pod>(object)?).try_into()?;
        if pod.is_unready() {
            pod.unready = Unready::of_protobuf(object, &pod.projection);
        }
        Ok(pod)
    }

    /// Whether the pod is not ready, or is being deleted.
    fn is_unready(&self) -> bool {
        let pod = &self.projection;
        pod.ready() != v1::ConditionStatus::True || pod.deletion_time.is_some()
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
            unready: None,
            projection: object.project()?,
        })
    }
}

/// The parts of a v1 Pod that are read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PodObject {
    pub(crate) metadata: Meta,
    spec: Option<PodSpec>,
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    affinity: Option<Affinity>,
    init_containers: Option<Vec<InitContainer>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InitContainer {
    name: String,
    restart_policy: Option<String>,
}

/// What decides which pod of a ReplicaSet is deleted first. Of it, RolloutPolicies read the restarts.
#[derive(Default)]
struct DeletionRank {
    deletion_cost: String,
    restarts: u32,
    sidecar_restarts: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector {
    node_selector_terms: Option<FirstMatch<Term>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    match_fields: Option<FirstMatch<Requirement>>,
}

/// The first term that has a deciding field.
impl ElementFilter for Term {
    fn is_match(&self) -> bool {
        matches!(self.match_fields, Some(FirstMatch(Some(_))))
    }
}

/// The field that determines the target node (D-24).
impl ElementFilter for Requirement {
    fn is_match(&self) -> bool {
        self.key == "metadata.name" && self.operator == "In"
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

impl From<object::Pod> for PodObject {
    fn from(pod: object::Pod) -> Self {
        Self {
            metadata: pod.metadata.unwrap_or_default().into(),
            spec: pod.spec.map(PodSpec::from),
            status: pod.status.map(Status::from),
        }
    }
}

impl From<object::PodSpec> for PodSpec {
    fn from(spec: object::PodSpec) -> Self {
        let init_containers = spec.init_containers.iter().map(|container| InitContainer {
            name: text(&container.name),
            restart_policy: text_if_any(&container.restart_policy),
        });
        let required = spec
            .affinity
            .and_then(|affinity| affinity.node_affinity)
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution);
        Self {
            node_name: text_if_any(&spec.node_name),
            affinity: required.map(Affinity::from),
            init_containers: Some(init_containers.collect()),
        }
    }
}

impl From<object::NodeSelector> for Affinity {
    fn from(required: object::NodeSelector) -> Self {
        let terms = required.node_selector_terms.into_iter();
        let selector = NodeSelector {
            node_selector_terms: Some(terms.map(Term::from).collect()),
        };
        Self {
            node_affinity: Some(NodeAffinity {
                required_during_scheduling_ignored_during_execution: Some(selector),
            }),
        }
    }
}

impl From<object::NodeSelectorTerm> for Term {
    fn from(term: object::NodeSelectorTerm) -> Self {
        let fields = term.match_fields.into_iter();
        Self {
            match_fields: Some(fields.map(Requirement::from).collect()),
        }
    }
}

impl From<object::NodeSelectorRequirement> for Requirement {
    fn from(field: object::NodeSelectorRequirement) -> Self {
        Self {
            key: text(&field.key),
            operator: text(&field.operator),
            values: Some(field.values.iter().map(|value| text(value)).collect()),
        }
    }
}

/// Most bytes of the reason of a condition. A reason is a word in CamelCase; clients that may write statuses can write other
/// texts, which are ignored.
const MAX_REASON_LEN: usize = 64;

impl PodObject {
    /// The reason of the condition `DisruptionTarget`, if its status is True and the reason is a word.
    pub(crate) fn disruption(&mut self) -> Option<String> {
        let disruption = self.status.as_mut()?.conditions.as_mut()?.disruption.take()?;
        let is_word = |reason: &String| {
            (1..=MAX_REASON_LEN).contains(&reason.len())
                && reason.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let reason = disruption.reason.filter(is_word);
        reason.filter(|_| disruption.status == "True")
    }
}

impl PodSpec {
    /// The target node of an unbound pod, from its required node affinity (D-24). The first matchFields entry with key
    /// `metadata.name` and operator `In` decides, over the terms in their order. If it does not have exactly one value, there
    /// is no target node.
    fn target_node_name(self) -> String {
        let terms = self
            .affinity
            .and_then(|affinity| affinity.node_affinity)
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution)
            .and_then(|selector| selector.node_selector_terms);
        let deciding = terms
            .and_then(|terms| terms.0)
            .and_then(|term| term.match_fields)
            .and_then(|fields| fields.0);
        match deciding.and_then(|field| field.values).as_deref() {
            Some([name]) => name.clone(),
            _ => String::new(),
        }
    }
}

impl PodObject {
    /// What ReplicaSets read, and of pods of DaemonSets the restarts. Left out for pods of other controllers, so that a restart
    /// of their containers changes nothing.
    fn take_deletion_rank(&mut self) -> DeletionRank {
        let status = self.status.as_ref();
        let regular = status.and_then(|status| status.container_statuses.as_ref());
        match self.metadata.controller() {
            Some(controller) if controller.kind == DAEMON_SET => {
                return DeletionRank {
                    restarts: most_restarts(regular, |_| true),
                    ..DeletionRank::default()
                };
            }
            Some(controller) if controller.kind != REPLICA_SET => return DeletionRank::default(),
            _ => {}
        }
        let containers = self.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
        let sidecars: HashSet<&str> = (containers.into_iter().flatten())
            .filter(|container| container.restart_policy.as_deref() == Some("Always"))
            .map(|container| &*container.name)
            .collect();
        let init = status.and_then(|status| status.init_container_statuses.as_ref());
        DeletionRank {
            restarts: most_restarts(regular, |_| true),
            sidecar_restarts: most_restarts(init, |name| sidecars.contains(name)),
            deletion_cost: self.metadata.take_deletion_cost(),
        }
    }

    pub(crate) fn project(mut self) -> Result<v1::Pod, ProjectError> {
        self.metadata.require_name()?;
        if self.metadata.uid.is_empty() {
            return Err(ProjectError::at("metadata.uid", "is missing"));
        }
        let DeletionRank {
            deletion_cost,
            restarts,
            sidecar_restarts,
        } = self.take_deletion_rank();
        let mut spec = self.spec.unwrap_or_default();
        let node_name = spec.node_name.take().unwrap_or_default();
        let target_node_name = if node_name.is_empty() {
            spec.target_node_name()
        } else {
            String::new()
        };
        let (phase, ready, ready_transition_time) = Status::read(self.status);
        let meta = self.metadata;
        Ok(v1::Pod {
            controller: meta.controller(),
            has_finalizers: meta.finalizers.as_ref().is_some_and(|list| !list.is_empty()),
            name: meta.name,
            uid: meta.uid,
            labels: labels(meta.labels),
            node_name,
            target_node_name,
            phase: phase.into(),
            ready: ready.into(),
            ready_transition_time: ready_transition_time.map(Into::into),
            creation_time: meta.creation_timestamp.map(Into::into),
            deletion_time: meta.deletion_timestamp.map(Into::into),
            shared_metadata: 0,
            deletion_cost,
            restarts,
            sidecar_restarts,
        })
    }
}
