//! The `nodewise.v1` protocol: messages, client and server stubs, and their JSON form.
//!
//! The contract itself is `proto/nodewise/v1/*.proto`; everything under `generated/` is made from it and proven fresh by
//! `tests/generated.rs`. Besides the generated code this crate owns only what every party of the protocol must compute in
//! the same way: the bucket of a node name, how pods share metadata, and names and times of workloads; and the walk over a
//! plan's actions.

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
/// The well-known types as this crate uses them.
pub use pbjson_types::{Duration, Timestamp};

pub mod bucket;
mod options;
mod plan;
pub mod pods;
pub mod workload;
