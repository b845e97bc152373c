//! The conformance kit: scenarios that any executor, in any language, can be run against.
//!
//! An executor is a command ([`Run::executor`]); nothing is asked of it but what the apiserver, the service and its process
//! show. A [`Case`] has a namespace and nodes to itself, and a way to the service that can be made bad ([`FaultProxy`]).
//! The README says what the contract is and lists the cases.
//!
//! The end-to-end tests of the Rust programs share what is asked of a cluster: [`Cluster`], [`Space`], [`BudgetWatch`].

mod api_proxy;
mod audit;
mod binaries;
mod budget;
mod case;
mod cases;
mod cluster;
mod daemon_set;
mod executor;
mod http;
mod odd;
mod picture;
pub mod proxy;
pub mod report;
pub mod rights;
mod run;
mod scene;
mod server;
mod space;
pub mod traces;

pub use api_proxy::{ApiProxy, add_later_fields, later_fields};
pub use audit::{Audit, Place};
pub use binaries::{Binaries, binaries, release_binaries};
pub use budget::{BudgetWatch, Seen, is_live, is_ready, node_of};
pub use case::{Case, all as all_cases};
pub use cluster::{Cluster, EXECUTOR_USER, UPSTREAM_USER, Upstream};
pub use daemon_set::{DaemonSetBuilder, daemon_set, image_patch};
pub use http::http_get;
pub use proxy::FaultProxy;
pub use run::Run;
pub use server::Server;
pub use space::{DEADLINE, Space};
