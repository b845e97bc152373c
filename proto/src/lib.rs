//! The `nodewise.v1` protocol: messages, client and server stubs, and their JSON form.
//!
//! The contract itself is `proto/nodewise/v1/*.proto`. Everything under `generated/` is generated from it, and
//! `tests/generated.rs` checks that it is up to date. In addition this crate has the functions and constants on which the
//! service and its clients must agree: the bucket of a node, the shared labels of nodes and metadata of pods, names and times of workloads, and
//! an iterator over the actions of a plan.

#![allow(
    // Generated code.
    clippy::all,
    clippy::pedantic,
    unreachable_pub
)]

/// Version 1 of the protocol.
pub mod v1 {
    include!("generated/nodewise.v1.rs");
    include!("generated/nodewise.v1.serde.rs");
}

mod descriptor {
    include!("generated/descriptor.rs");
}

pub use descriptor::FILE_DESCRIPTOR_SET;
/// The well-known Protobuf types that the messages use.
pub use pbjson_types::{Duration, Timestamp};

pub mod bucket;
pub mod nodes;
mod options;
mod plan;
pub mod pods;
pub mod workload;
