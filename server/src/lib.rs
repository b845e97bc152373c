//! The planning service: the gRPC side of `nodewise-planner`, which makes every decision.
//!
//! The server admits a call (drain, load, deadline), parses its request into a snapshot, plans on a bounded pool of threads, and
//! renders the response. [`Engine`] gives the same responses without a network.

mod admission;
mod admission_service;
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
mod limits;
mod methods;
mod metrics;
mod overhead;
mod parse;
mod pool;
mod refusal;
mod render;
mod request_reader;
mod response_body;
mod response_memory;
mod route;
mod serve;
mod service;
mod simulate;
mod simulated;
mod size;
mod size_estimate;
mod steps;
mod stream;
mod streams;
mod warnings;
mod workload;

pub use cache::{Cache, Kind, Usage};
pub use config::Config;
pub use engine::{Engine, never};
pub use limits::Limits;
pub use refusal::{MISSING_BUCKETS_TYPE_URL, Refusal, Violation};
pub use serve::{Ended, Error, Listeners, run};
pub use service::Service;
pub use simulated::Simulated;
pub use size::ByteSize;
pub use size_estimate::{Request, decode, estimate};
pub use warnings::{OddKind, OddReason};
