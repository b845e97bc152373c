//! A real Kubernetes control plane for tests and benchmarks, and what a test of separate processes needs.
//!
//! * [`ControlPlane`]: etcd and kube-apiserver, and on request kube-controller-manager, kube-scheduler and
//!   kwok's fake kubelets, each a real process on a free port of the loopback interface;
//! * [`Process`]: a program under test (a server, an executor), with its log, signals and a certain end;
//! * [`Collector`]: the OpenTelemetry Collector, and the spans that it was sent;
//! * [`manifests`]: the objects of manifests, also of a kustomization;
//! * [`Prometheus`]: scrapes metrics, evaluates rules and answers questions;
//! * [`eventually`]: the one way to wait, for a condition and with a deadline;
//! * [`Tool`]: the programs behind it, mostly built once from the Go modules pinned in `tools/`.
//!
//! Whatever is started here is gone when its owner is: on drop, after a panic, and also when the owner is
//! killed with SIGKILL (see [`Workdir`]).
//!
//! Errors are [`anyhow::Error`]: a test has nothing to decide on them, it shows them to a person.

mod collector;
mod control_plane;
pub mod manifests;
mod ports;
mod process;
mod prometheus;
mod raw;
mod tools;
mod wait;
mod workdir;

pub use collector::span::{Attributes, Span, SpanEvent, SpanKind, SpanLink, SpanStatus};
pub use collector::{Collector, CollectorTls};
pub use control_plane::ControlPlane;
pub use control_plane::audit::{AuditEvent, AuditTail};
pub use control_plane::backup::EtcdBackup;
pub use control_plane::builder::{Builder, Component, User};
pub use control_plane::nodes::{
    NODE_ANNOTATION, NODE_NOT_READY, NODE_SILENT_LABEL, POD_ANNOTATION, POD_DELETION_ANNOTATION,
    PodBehaviour, fake_node,
};
pub use process::Process;
pub use prometheus::api::{Alert, AlertState, Exemplar, Labels, Sample, Target};
pub use prometheus::{Prometheus, PrometheusBuilder};
pub use raw::RawCodec;
pub use tools::Tool;
pub use wait::eventually;
pub use workdir::Workdir;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
