//! TLS between the service and its clients.
//!
//! Certificates come from files, as cert-manager and the kubelet put them there. They are looked through before they are used,
//! so that an error names the file and what is wrong with it, and read again when they change: connections that stand go on.

pub mod client;
mod files;
pub mod names;
mod refused;
pub mod server;
#[cfg(feature = "testing")]
pub mod testing;

pub use files::{FileError, Problem};
