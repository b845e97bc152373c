//! The planning service: requests in, plans out.
//!
//! A request passes the gate (draining, load, deadline), is parsed into what the planner takes, planned for on
//! a bounded pool of threads, and rendered. Everything that decides is in `nodewise-planner`; this crate owns the protocol's
//! side of it. [`Engine`] gives the same answers without a network.

mod answer;
pub mod args;
mod cache;
mod capabilities;
mod client;
mod codec;
mod config;
mod connection;
mod engine;
mod gate;
mod intake;
mod limits;
mod methods;
mod metrics;
mod outflow;
mod parse;
mod pool;
mod refusal;
mod render;
mod route;
mod serve;
mod service;
mod shares;
mod size;
mod stream;
mod streams;
mod turns;
mod weigh;

pub use cache::{Cache, Kind, Usage};
pub use config::Config;
pub use engine::{Engine, never};
pub use limits::Limits;
pub use parse::{OddKind, OddReason};
pub use refusal::{MISSING_BUCKETS_TYPE_URL, Refusal, Violation};
pub use serve::{Ended, Error, Listeners, run};
pub use service::Service;
pub use size::ByteSize;
pub use weigh::{Request, decode, weigh};
