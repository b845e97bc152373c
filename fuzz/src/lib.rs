//! Fuzz targets for untrusted input. No input may cause a panic, take more than a second, or take memory out of proportion to
//! its size.
//!
//! [`targets`] has the targets, each a function of bytes; [`budget`] measures time and memory. The programs in `bin/` pass the
//! targets to libFuzzer (`make fuzz`). `tests/replay.rs` runs the same targets over the seeds, the regressions and the large
//! inputs.

pub mod budget;
pub mod files;
pub mod large;
pub mod mutate;
pub mod seeds;
pub mod targets;
