//! The client of a call, and the key by which limited resources are divided among clients.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

/// The client of a connection. Admission reads it from the extensions of a call.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The name in its certificate, if it has a certificate.
    pub(crate) principal: Option<Arc<str>>,
    /// Its address; `None` if the connection was closed before the server could read it.
    pub(crate) address: Option<SocketAddr>,
    /// Closes the connection when cancelled.
    pub(crate) cut: CancellationToken,
}

/// Identifies a client where limited resources are divided: by its certificate, or else by its IP address. All clients behind one
/// proxy without TLS count as one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Principal(Arc<str>),
    Address(IpAddr),
    Unknown,
}

impl Client {
    pub(crate) fn key(&self) -> Key {
        Key::of(self.principal.as_ref(), self.address)
    }
}

impl Key {
    pub(crate) fn of(principal: Option<&Arc<str>>, address: Option<SocketAddr>) -> Self {
        match (principal, address) {
            (Some(principal), _) => Self::Principal(Arc::clone(principal)),
            (None, Some(address)) => Self::Address(address.ip()),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.principal, self.address) {
            (Some(principal), _) => f.write_str(principal),
            (None, Some(address)) => address.fmt(f),
            (None, None) => f.write_str("unknown"),
        }
    }
}
