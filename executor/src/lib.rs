//! The executor: watches the apiserver, asks the service for plans, applies them and reports the outcomes. It makes no
//! decision about a workload; every decision comes from the service over `nodewise.v1`.
//!
//! The `nodewise-executor` command is [`args::Args`] and [`run`]. A program of your own can run the same controller:
//! connect a [`PlanClient`](nodewise_client::PlanClient), create an [`Actuator`](runtime::actuator::Actuator) for the
//! writes, start the watches with [`watch::start`], and call [`controller::run`] once for each term of leadership.
//! [`sim`] has an apiserver in memory for tests.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use nodewise_client::{ClientConfig, PlanClient};
//! use nodewise_executor::runtime::{actuator::KubeActuator, connect, events::EventRecorder};
//! use nodewise_executor::{controller, event::DAEMON_SET_COMPONENT, metrics::Metrics, watch};
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
//! let (recorder, events) = EventRecorder::new(client.clone(), DAEMON_SET_COMPONENT, runtime_metrics.clone());
//! tokio::spawn(events);
//! let timeout = Duration::from_secs(30);
//! let actuator = Arc::new(KubeActuator::new(client.clone(), timeout, runtime_metrics, recorder));
//!
//! // The watches and the control loop. Cancel `stop` to end the loop.
//! let mut watches = watch::start(&client, None, &Checks::default(), metrics.runtime());
//! let stop = CancellationToken::new();
//! let config = controller::Config::default();
//! controller::run(&mut watches, actuator, service, config, metrics, stop).await?;
//! watches.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/controller.rs` is a complete program.

pub mod apply;
pub mod args;
pub mod config;
pub mod controller;
mod divergence;
pub mod event;
mod foreign_deletes;
pub mod handlers;
pub mod metrics;
mod other_owner;
mod plan_check;
pub mod reconcile;
mod run;
pub mod sim;
pub mod snapshot;
pub mod state;
pub mod store;
#[cfg(test)]
mod testing;
pub mod trace;
#[cfg(test)]
mod vectors;
pub mod watch;

pub use nodewise_projection as projection;
pub use nodewise_runtime as runtime;
pub use run::{RunError, run};
