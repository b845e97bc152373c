//! The messages for what people want to know about a pod that is not ready or that is being deleted.
//!
//! The names and numbers of the fields are those of Kubernetes 1.36, in `k8s.io/api/core/v1/generated.proto`. Kubernetes never changes
//! them.

use bytes::Bytes;

use super::object::Time;

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

/// `meta.v1.ObjectMeta`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObjectMeta {
    #[prost(message, optional, tag = "9")]
    pub(crate) deletion_timestamp: Option<Time>,
    #[prost(bytes = "bytes", repeated, tag = "14")]
    pub(crate) finalizers: Vec<Bytes>,
}

/// `core.v1.PodSpec`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodSpec {
    #[prost(bytes = "bytes", tag = "10")]
    pub(crate) node_name: Bytes,
}

/// `core.v1.PodStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodStatus {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) phase: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(crate) conditions: Vec<PodCondition>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) message: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) reason: Bytes,
    #[prost(message, repeated, tag = "8")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[prost(message, repeated, tag = "10")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

/// `core.v1.PodCondition`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodCondition {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) kind: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) status: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) reason: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) message: Bytes,
}

/// `core.v1.ContainerStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStatus {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) name: Bytes,
    #[prost(message, optional, tag = "2")]
    pub(crate) state: Option<ContainerState>,
    #[prost(message, optional, tag = "3")]
    pub(crate) last_state: Option<ContainerState>,
    #[prost(bool, tag = "4")]
    pub(crate) ready: bool,
    #[prost(int32, tag = "5")]
    pub(crate) restart_count: i32,
    #[prost(bool, optional, tag = "9")]
    pub(crate) started: Option<bool>,
}

/// `core.v1.ContainerState`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerState {
    #[prost(message, optional, tag = "1")]
    pub(crate) waiting: Option<ContainerStateWaiting>,
    #[prost(message, optional, tag = "2")]
    pub(crate) running: Option<ContainerStateRunning>,
    #[prost(message, optional, tag = "3")]
    pub(crate) terminated: Option<ContainerStateTerminated>,
}

/// `core.v1.ContainerStateWaiting`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStateWaiting {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) reason: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) message: Bytes,
}

/// `core.v1.ContainerStateRunning`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ContainerStateRunning {}

/// `core.v1.ContainerStateTerminated`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerStateTerminated {
    #[prost(int32, tag = "1")]
    pub(crate) exit_code: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) reason: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) message: Bytes,
}
