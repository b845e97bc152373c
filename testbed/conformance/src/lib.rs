//! The conformance kit: cases that test an executor written in any language.
//!
//! An executor is a command ([`Candidate::executor`]). The kit observes only the apiserver, the service and the executor's
//! process. Each [`Case`] has its own namespace and nodes, and a [`FaultProxy`] between executor and service. The
//! README describes the contract and lists the cases.
//!
//! The end-to-end tests of the Rust programs use [`Cluster`], [`TestNamespace`] and [`BudgetWatch`] too.

mod api_proxy;
mod audit;
mod binaries;
mod budget;
mod case;
mod cases;
mod cluster;
mod cluster_state;
mod controllers;
mod deadline;
mod executor;
mod fixture;
mod history;
mod http;
pub mod proxy;
mod replicas;
pub mod report;
pub mod rights;
pub mod rollout_policies;
mod run;
mod server;
mod test_namespace;
pub mod traces;
mod tricky_templates;
mod workload_builder;

pub use api_proxy::{ApiProxy, add_later_fields, later_fields};
pub use audit::{Audit, AuditPosition};
pub use binaries::{Binaries, binaries, release_binaries};
pub use budget::{BudgetWatch, Seen, is_live, is_ready, node_of};
pub use case::Case;
pub use cases::all as all_cases;
pub use cluster::{Cluster, EXECUTOR_USER, UPSTREAM_USER, Upstream};
pub use controllers::Controllers;
pub use deadline::DEADLINE;
pub use history::{Beginning, History};
pub use http::http_get;
pub use proxy::FaultProxy;
pub use run::{Candidate, Run};
pub use server::Server;
pub use test_namespace::TestNamespace;
pub use workload_builder::{WorkloadBuilder, daemon_set, deployment, image_patch, replica_set};
