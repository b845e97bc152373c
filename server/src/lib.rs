//! The planning service: requests in, plans out.
//!
//! A request passes the gate (draining, load, deadline), is parsed into what the planner takes, planned for on
//! a bounded pool of threads, and rendered. Everything that decides is in `nodewise-planner`; this crate owns the protocol's
//! side of it. [`Engine`] gives the same answers without a network.

mod admission;
mod answer;
pub mod args;
mod cache;
mod capabilities;
mod client;
mod codec;
mod config;
mod connection;
mod engine;
mod fair_queue;
mod fair_share;
mod gate;
mod limits;
mod methods;
mod metrics;
mod parse;
mod pool;
mod refusal;
mod render;
mod request_reader;
mod response_body;
mod route;
mod serve;
mod service;
mod size;
mod size_estimate;
mod stream;
mod streams;
mod warnings;

pub use cache::{Cache, Kind, Usage};
pub use config::Config;
pub use engine::{Engine, never};
pub use limits::Limits;
pub use refusal::{MISSING_BUCKETS_TYPE_URL, Refusal, Violation};
pub use serve::{Ended, Error, Listeners, run};
pub use service::Service;
pub use size::ByteSize;
pub use size_estimate::{Request, decode, estimate};
pub use warnings::{OddKind, OddReason};
