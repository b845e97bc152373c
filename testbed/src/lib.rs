//! Runs a real Kubernetes control plane for tests and benchmarks, and programs under test.
//!
//! * [`ControlPlane`]: etcd and kube-apiserver, and optionally kube-controller-manager, kube-scheduler and kwok's fake
//!   kubelets, each a real process on a free port of the loopback interface;
//! * [`Process`]: a program under test (a server, an executor), with its log and signals;
//! * [`Collector`]: the OpenTelemetry Collector, and the spans that it received;
//! * [`manifests`]: reads and applies manifests and kustomizations;
//! * [`Prometheus`]: scrapes metrics, evaluates rules and answers queries;
//! * [`eventually`]: waits for a condition with a deadline;
//! * [`Tool`]: the programs, most of them built once from the Go modules pinned in `tools/`.
//!
//! Everything ends with its owner: on drop, after a panic, and also when the owner is killed with SIGKILL (see
//! [`Workdir`]).
//!
//! Errors are [`anyhow::Error`], because tests only print them.

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

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
