//! What must hold for whatever arrives from outside: no panic, at most a second, and memory in proportion to the input.
//!
//! [`targets`] are the entries, each a function of bytes; [`budget`] measures. The programs under `bin/` hand the targets
//! to libFuzzer (`make fuzz`), and `tests/replay.rs` runs the same targets over everything that is known to be nasty.

#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the server's tests, which use another part"
)]
#[path = "../../server/tests/support/cluster.rs"]
mod cluster;
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "shared with the server's tests, which use another part"
)]
#[path = "../../server/tests/support/requests.rs"]
mod requests;

pub mod budget;
pub mod files;
pub mod large;
pub mod mutate;
pub mod seeds;
pub mod targets;
