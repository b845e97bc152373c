//! The executor: watches the apiserver, asks the service for plans, applies them and reports the outcomes. It makes no
//! decision about a workload; every decision comes from the service over `nodewise.v1`.
//!
//! The `nodewise-executor` command is [`args::Args`] and [`run`]. A program of your own can run the same controllers:
//! connect a [`PlanClient`](nodewise_client::PlanClient), create an [`Actuator`](runtime::actuator::Actuator) for the
//! writes, and run a [`Manager`] once for each term of leadership. Each kind of workload, such as [`DaemonSets`], has a
//! controller in the manager. [`sim`] has an apiserver in memory for tests.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use nodewise_client::{ClientConfig, PlanClient};
//! use nodewise_executor::runtime::{actuator::KubeActuator, connect, events::EventRecorder};
//! use nodewise_executor::{DaemonSets, Manager, Kind, controller, manager, metrics::Metrics};
//! use nodewise_telemetry::http::Checks;
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn example() -> anyhow::Result<()> {
//! let metrics = Metrics::new();
//! let client = connect::client(kube::Config::infer().await?)?;
//!
//! // The client of the service. `tend` keeps its connections and their health up to date.
//! let servers = ["https://nodewise.example.com:443".to_owned()];
//! let service = PlanClient::new(&servers, ClientConfig::default(), Arc::new(metrics.clone()))?;
//! let service = Arc::new(service);
//! let background = Arc::clone(&service);
//! tokio::spawn(async move { background.tend().await });
//!
//! // The writer. `events` sends the Kubernetes Events.
//! let runtime_metrics = metrics.runtime().clone();
//! let (recorder, events) = EventRecorder::new(client.clone(), DaemonSets::EVENT_SOURCE, runtime_metrics.clone());
//! tokio::spawn(events);
//! let timeout = Duration::from_secs(30);
//! let actuator = Arc::new(KubeActuator::new(client.clone(), timeout, runtime_metrics, recorder));
//!
//! // The controllers and their watches. Cancel `stop` to end the work.
//! let stop = CancellationToken::new();
//! let manager = Manager::new(manager::Config::default(), metrics, stop)
//!     .with::<DaemonSets>(controller::Config::default(), actuator, service);
//! let mut watches = manager.watch(&client, None, &Checks::default());
//! manager.run(&mut watches).await?;
//! watches.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/controller.rs` is a complete program.

pub mod analysis;
pub mod args;
pub mod config;
pub mod controller;
pub mod controllers;
pub mod daemon_set;
pub mod deployment;
pub mod divergence;
mod effects;
mod foreign_deletes;
pub mod manager;
pub mod metrics;
mod mode;
mod other_owner;
mod overlaps;
mod plan_check;
pub mod reconcile;
pub mod replica_set;
mod rollouts;
mod run;
mod served;
pub mod sim;
pub mod state;
#[cfg(test)]
mod testing;
pub mod trace;
#[cfg(test)]
mod vectors;

pub use daemon_set::DaemonSets;
pub use deployment::Deployments;
pub use manager::Manager;
pub use nodewise_projection as projection;
pub use nodewise_runtime as runtime;
pub use nodewise_runtime::kind::Kind;
pub use replica_set::ReplicaSets;
pub use run::{RunError, run};
