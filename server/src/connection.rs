//! A connection, from its first byte: TLS if that is spoken, and who is at the other end.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use nodewise_tls::server::{Acceptor, TlsStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_util::{either::Either, task::AbortOnDropHandle};
use tonic::transport::server::{Connected, TcpIncoming};

/// Longest time that a connection may take to begin: less than clients wait for that, so that those who say nothing do not
/// hold others up for so long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections that begin at the same time; further ones wait for that. Each takes some kilobytes.
const HANDSHAKES: usize = 1_024;

/// A connection that has begun.
pub(crate) struct Connection {
    /// As it is, or encrypted.
    stream: Either<TcpStream, Box<TlsStream>>,
    client: Client,
}

/// Who is at the other end, as calls find it among their extensions.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The name in its certificate that tells it from others, if it has one.
    pub(crate) principal: Option<Arc<str>>,
    /// Where it is; none when it was gone again.
    pub(crate) address: Option<SocketAddr>,
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

/// The connections that have begun, in the order of that.
pub(crate) fn incoming(
    connections: TcpIncoming,
    tls: Option<Acceptor>,
) -> impl Stream<Item = io::Result<Connection>> {
    let Some(tls) = tls else {
        return futures::future::Either::Left(connections.map_ok(Connection::plain));
    };
    let begun = connections
        .map(move |stream| begin(stream, tls.clone()))
        .buffer_unordered(HANDSHAKES)
        .filter_map(async |begun| match begun {
            Ok(connection) => Some(Ok(connection)),
            Err(Failed::Connection(error)) => Some(Err(error)),
            Err(Failed::Handshake(client, reason)) => {
                tracing::debug!(?client, reason, "a connection did not begin");
                None
            }
        });
    futures::future::Either::Right(begun)
}

enum Failed {
    /// There is none.
    Connection(io::Error),
    /// It speaks no TLS, or was not let in.
    Handshake(Option<SocketAddr>, String),
}

/// On another thread, if there is one: signatures take a while.
async fn begin(stream: io::Result<TcpStream>, tls: Acceptor) -> Result<Connection, Failed> {
    let stream = stream.map_err(Failed::Connection)?;
    let address = stream.peer_addr().ok();
    let failed = |reason| Failed::Handshake(address, reason);
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, async move { tls.accept(stream).await });
    let handshake = AbortOnDropHandle::new(tokio::spawn(handshake));
    let (stream, names) = match handshake.await {
        Ok(Ok(Ok(accepted))) => accepted,
        Ok(Ok(Err(error))) => return Err(failed(error.to_string())),
        Ok(Err(_)) => return Err(failed(format!("not within {HANDSHAKE_TIMEOUT:?}"))),
        Err(error) => return Err(failed(error.to_string())),
    };
    Ok(Connection {
        stream: Either::Right(Box::new(stream)),
        client: Client {
            principal: names.map(|names| names.principal()),
            address,
        },
    })
}

impl Connection {
    fn plain(stream: TcpStream) -> Self {
        let address = stream.peer_addr().ok();
        Self {
            stream: Either::Left(stream),
            client: Client {
                principal: None,
                address,
            },
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        self.client.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
