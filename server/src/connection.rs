//! Connections: their limit, the TLS handshake, the identity of the client, and timeouts for clients that stall.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture};
use nodewise_tls::server::{Acceptor, TlsStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};
use tokio_util::{either::Either, sync::CancellationToken, task::AbortOnDropHandle};
use tonic::transport::server::Connected;

use crate::{
    client::{Client, Key},
    fair_share::{FairShare, MaxShare, Share},
};

/// Longest time for the TLS handshake, and for the HTTP/2 preface. Shorter than the connect timeout of clients.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after an error of the listener, such as too many open files, which would occur again at once.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of the HTTP/2 connection preface of a client.
const PREFACE: usize = 24;

/// The open connections.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    shares: FairShare,
    /// Longest time for which a write may block.
    write_timeout: Duration,
    refused: Arc<[AtomicU64; Reason::ALL.len()]>,
}

/// Why the server refused a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There are too many connections, in total or from this address.
    Limit,
    /// The TLS handshake failed, or the client is not allowed.
    Tls,
    /// The client sent no HTTP/2 preface in time.
    Stalled,
}

impl Reason {
    pub(crate) const ALL: [Self; 3] = [Self::Limit, Self::Tls, Self::Stalled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Tls => "tls",
            Self::Stalled => "stalled",
        }
    }
}

impl Connections {
    pub(crate) fn new(most: usize, write_timeout: Duration) -> Self {
        Self {
            shares: FairShare::new(most, MaxShare::QUARTER),
            write_timeout,
            refused: Arc::default(),
        }
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.shares.taken()
    }

    /// The most connections that may be open.
    pub(crate) fn capacity(&self) -> usize {
        self.shares.capacity()
    }

    /// The number of connections refused for this reason.
    pub(crate) fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    fn refuse(&self, address: Option<SocketAddr>, reason: Reason, because: &str) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
        tracing::debug!(
            ?address,
            because,
            "a connection was refused before its first request"
        );
    }

    /// The accepted connections, in the order in which their handshakes end.
    pub(crate) fn incoming<L>(
        &self,
        listening: L,
        tls: Option<Acceptor>,
    ) -> impl Stream<Item = io::Result<Connection>> + use<L>
    where
        L: Stream<Item = io::Result<TcpStream>>,
    {
        let most = self.capacity().max(1);
        let connections = self.clone();
        // Handshakes run concurrently, so a slow client delays no other. `begin` refuses connections over the limit.
        listening
            .filter_map(accepted)
            .map(move |stream| connections.clone().begin(stream, tls.clone()))
            .buffer_unordered(most)
            .filter_map(std::future::ready)
            .map(Ok)
    }

    async fn begin(self, stream: TcpStream, tls: Option<Acceptor>) -> Option<Connection> {
        let address = stream.peer_addr().ok();
        let key = Key::of(None, address);
        let Some(share) = self.shares.take(&key, 1) else {
            self.refuse(address, Reason::Limit, "too many connections are open");
            return None;
        };
        let (stream, principal) = match tls {
            None => (Either::Left(stream), None),
            Some(tls) => match handshake(stream, tls).await {
                Ok((stream, principal)) => (Either::Right(Box::new(stream)), principal),
                Err(because) => {
                    self.refuse(address, Reason::Tls, &because);
                    return None;
                }
            },
        };
        let cut = CancellationToken::new();
        Some(Connection {
            stream,
            preface: Some(Preface {
                left: PREFACE,
                timeout: Box::pin(tokio::time::sleep(HANDSHAKE_TIMEOUT)),
            }),
            is_cut: cut.clone().cancelled_owned().boxed(),
            blocked: None,
            client: Client {
                principal,
                address,
                cut,
            },
            connections: self,
            _share: share,
        })
    }
}

/// The next TCP connection, or `None` after a pause if the listener had an error.
async fn accepted(stream: io::Result<TcpStream>) -> Option<TcpStream> {
    match stream {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "no connection can be accepted; retrying");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Runs the TLS handshake in its own task: signatures take CPU time.
async fn handshake(stream: TcpStream, tls: Acceptor) -> Result<(TlsStream, Option<Arc<str>>), String> {
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, async move { tls.accept(stream).await });
    let handshake = AbortOnDropHandle::new(tokio::spawn(handshake));
    match handshake.await {
        Ok(Ok(Ok((stream, names)))) => Ok((stream, names.map(|names| names.principal()))),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(_)) => Err(format!("not within {HANDSHAKE_TIMEOUT:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// An accepted connection.
pub(crate) struct Connection {
    /// Plain text or TLS.
    stream: Either<TcpStream, Box<TlsStream>>,
    /// `None` once the HTTP/2 preface has arrived.
    preface: Option<Preface>,
    is_cut: BoxFuture<'static, ()>,
    /// The timeout of a write that blocks.
    blocked: Option<Pin<Box<Sleep>>>,
    client: Client,
    connections: Connections,
    _share: Share,
}

/// The rest of an HTTP/2 preface that the server waits for.
struct Preface {
    left: usize,
    timeout: Pin<Box<Sleep>>,
}

impl Connection {
    /// An error if the server has closed the connection, or if the preface has not arrived in time.
    fn poll_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let timed_out = |because| Err(io::Error::new(io::ErrorKind::TimedOut, because));
        if self.is_cut.poll_unpin(context).is_ready() {
            return timed_out("the client does not read responses");
        }
        let late = |preface: &mut Preface| preface.timeout.as_mut().poll(context).is_ready();
        if self.preface.as_mut().is_some_and(late) {
            let because = "HTTP/2 did not start in time";
            self.connections
                .refuse(self.client.address, Reason::Stalled, because);
            return timed_out(because);
        }
        Ok(())
    }

    /// Writes, with a timeout. While a write blocks, HTTP/2 does not read from the connection either.
    fn poll_written<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Either<TcpStream, Box<TlsStream>>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.poll_end(context)?;
        let written = write(Pin::new(&mut self.stream), context);
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let timeout = self.connections.write_timeout;
        let blocked = self
            .blocked
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if blocked.as_mut().poll(context).is_ready() {
            tracing::warn!(client = %self.client, "closed: the client read nothing for {timeout:?}");
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read",
            )));
        }
        Poll::Pending
    }

    fn has_read(&mut self, bytes: usize) {
        self.preface = self.preface.take().and_then(|preface| {
            let left = preface.left.checked_sub(bytes).filter(|left| *left > 0)?;
            Some(Preface { left, ..preface })
        });
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
        self.poll_end(context)?;
        let before = into.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        self.has_read(into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(context, |stream, context| {
            stream.poll_write_vectored(context, parts)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(context, AsyncWrite::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures::stream;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_server_pauses_after_an_error_of_the_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let _client = TcpStream::connect(address).await.expect("a connection");
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut errors = 0;
        let listening = stream::repeat_with(|| {
            errors += 1;
            Err(io::Error::other("too many open files"))
        })
        .take(3)
        .chain(stream::iter([Ok(stream)]));
        let since = Instant::now();
        let connections = Connections::new(8, Duration::from_secs(20));
        {
            let incoming = connections.incoming(listening, None);
            tokio::pin!(incoming);
            let accepted = tokio::time::timeout(Duration::from_secs(20), incoming.next()).await;
            let accepted = accepted.expect("the server goes on").expect("a connection");
            assert!(accepted.is_ok(), "errors are not passed on");
        }
        assert_eq!(errors, 3);
        assert!(since.elapsed() >= 3 * PAUSE, "one pause for each error");
    }
}
