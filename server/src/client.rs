//! Who asks.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

/// Who is at the other end of a connection, as the gate finds it among the extensions of a call.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The name in its certificate that tells it from others, if it has one.
    pub(crate) principal: Option<Arc<str>>,
    /// Where it is; none when it was gone again.
    pub(crate) address: Option<SocketAddr>,
    /// Ends the connection.
    pub(crate) cut: CancellationToken,
}

/// What tells one client from another where something is divided among them: its certificate, else its address. Clients that
/// reach the service through one proxy without TLS are one.
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
