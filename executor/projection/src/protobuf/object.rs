//! The messages of pods and nodes, with the fields that are read.
//!
//! The names and numbers of the fields are those of Kubernetes 1.36, in `k8s.io/api/core/v1/generated.proto` and
//! `k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto`. Kubernetes never changes them.

use bytes::Bytes;

/// `core.v1.Pod`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Pod {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<PodSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<PodStatus>,
}

/// `core.v1.Node`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Node {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<NodeSpec>,
    #[prost(message, optional, tag = "3")]
    pub(crate) status: Option<NodeStatus>,
}

/// `meta.v1.ObjectMeta`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObjectMeta {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) namespace: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) uid: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) resource_version: Bytes,
    #[prost(message, optional, tag = "8")]
    pub(crate) creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    pub(crate) deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) labels: Vec<Entry>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) annotations: Vec<Entry>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) owner_references: Vec<OwnerReference>,
    #[prost(bytes = "bytes", repeated, tag = "14")]
    pub(crate) finalizers: Vec<Bytes>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) managed_fields: Vec<ManagedFieldsEntry>,
}

/// An entry of a map of texts. The keys of a `map` of prost cannot be bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// `meta.v1.Time`. The apiserver ignores and never writes its nanoseconds. Seconds are present unless the time is zero.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Time {
    #[prost(int64, optional, tag = "1")]
    pub(crate) seconds: Option<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) nanos: Option<i32>,
}

/// `meta.v1.OwnerReference`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OwnerReference {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) kind: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) name: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) uid: Bytes,
    #[prost(bool, tag = "6")]
    pub(crate) controller: bool,
}

/// `meta.v1.ManagedFieldsEntry`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ManagedFieldsEntry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) manager: Bytes,
    #[prost(bytes = "bytes", tag = "8")]
    pub(crate) subresource: Bytes,
}

/// `core.v1.PodSpec`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSpec {
    #[prost(bytes = "bytes", tag = "10")]
    pub(crate) node_name: Bytes,
    #[prost(message, optional, tag = "18")]
    pub(crate) affinity: Option<Affinity>,
    #[prost(message, repeated, tag = "20")]
    pub(crate) init_containers: Vec<Container>,
}

/// `core.v1.Container`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Container {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(bytes = "bytes", tag = "24")]
    pub(crate) restart_policy: Bytes,
}

/// `core.v1.Affinity`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Affinity {
    #[prost(message, optional, tag = "1")]
    pub(crate) node_affinity: Option<NodeAffinity>,
}

/// `core.v1.NodeAffinity`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeAffinity {
    #[prost(message, optional, tag = "1")]
    pub(crate) required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

/// `core.v1.NodeSelector`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeSelector {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node_selector_terms: Vec<NodeSelectorTerm>,
}

/// `core.v1.NodeSelectorTerm`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeSelectorTerm {
    #[prost(message, repeated, tag = "2")]
    pub(crate) match_fields: Vec<NodeSelectorRequirement>,
}

/// `core.v1.NodeSelectorRequirement`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeSelectorRequirement {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) operator: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(crate) values: Vec<Bytes>,
}

/// `core.v1.PodStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodStatus {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) phase: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) conditions: Vec<Condition>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

/// `core.v1.PodCondition` and `core.v1.NodeCondition`, which give these fields the same numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Condition {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) kind: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) status: Bytes,
    #[prost(message, optional, tag = "4")]
    pub(crate) last_transition_time: Option<Time>,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) reason: Bytes,
}

/// `core.v1.ContainerStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStatus {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(int32, tag = "5")]
    pub(crate) restart_count: i32,
}

/// `core.v1.NodeSpec`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeSpec {
    #[prost(bool, tag = "4")]
    pub(crate) unschedulable: bool,
    #[prost(message, repeated, tag = "5")]
    pub(crate) taints: Vec<Taint>,
}

/// `core.v1.Taint`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Taint {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) effect: Bytes,
}

/// `core.v1.NodeStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    pub(crate) conditions: Vec<Condition>,
}
