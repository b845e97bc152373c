//! Servers, clients and collectors for the tests, and the clusters of `nodewise-fixtures`.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test file uses a part"
)]

mod collector;
mod process;
mod raw;
mod server;

pub use collector::*;
pub use nodewise_fixtures::*;
pub use process::*;
pub use raw::{LocalClient, Reader, call, framed};
pub use server::*;

use std::time::Duration;

/// How long a test waits before it fails.
pub const SOON: Duration = Duration::from_secs(20);
