//! Clusters to plan for, and servers to ask.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test file uses a part"
)]

mod cluster;
mod collector;
mod process;
mod raw;
mod requests;
mod server;

pub use cluster::*;
pub use collector::*;
pub use process::*;
pub use raw::{From, Reader, call, framed};
pub use requests::*;
pub use server::*;

use std::time::Duration;

/// How long a test waits for what must happen soon.
pub const SOON: Duration = Duration::from_secs(20);
