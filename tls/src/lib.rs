//! TLS between the service and its clients.
//!
//! Certificates come from files, as cert-manager and the kubelet write them. They are checked before use, so that an error names
//! the file and the problem. Changed files are read again; open connections are not affected.

pub mod client;
mod files;
pub mod names;
mod refused;
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;

pub use files::{FileError, Problem};
