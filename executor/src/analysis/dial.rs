//! Opens the connections to those who are asked: directly, without the proxies that the environment may name.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use nodewise_tls::{
    FileError,
    client::{Connector, Files, Protocol, ServerName},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::Address;

/// A connection, in plain text or over TLS.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Opens connections.
#[derive(Debug)]
pub(super) struct Dialer {
    http1: OnceLock<Connector>,
    http2: OnceLock<Connector>,
}

impl Dialer {
    /// Reads the file with the authorities. Those of the system are read when they are needed: most executors call nobody over TLS.
    pub(super) fn new(authorities: Option<PathBuf>) -> Result<Self, FileError> {
        let dialer = Self {
            http1: OnceLock::new(),
            http2: OnceLock::new(),
        };
        if authorities.is_some() {
            let files = Files {
                authorities,
                identity: None,
            };
            let (http1, http2) = (
                Connector::speaking(files.clone(), Protocol::Http1)?,
                Connector::speaking(files, Protocol::Http2)?,
            );
            dialer.http1.get_or_init(|| http1);
            dialer.http2.get_or_init(|| http2);
        }
        Ok(dialer)
    }

    /// Connects to an address.
    pub(super) async fn connect(
        &self,
        address: &Address,
        protocol: Protocol,
    ) -> Result<Box<dyn Connection>, String> {
        let failed = |error: io::Error| format!("no connection: {error}");
        let stream = TcpStream::connect((address.bare_host(), address.port))
            .await
            .map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        if !address.tls {
            return Ok(Box::new(stream));
        }
        let connector = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let connector = connector.get_or_init(|| Connector::of_system(protocol));
        let name = ServerName::try_from(address.bare_host().to_owned())
            .map_err(|_| "no certificate can have this name".to_owned())?;
        let stream = connector.connect(name, stream).await;
        Ok(Box::new(stream.map_err(|error| format!("no TLS: {error}"))?))
    }
}
