//! Calls as nobody's library makes them: bytes of a message that come when the test says so, from an address of its choice.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpSocket, TcpStream},
};
use tonic::{
    Status,
    body::Body,
    transport::{Channel, Endpoint},
};
use tower::{Service as _, ServiceExt as _, service_fn};

/// An address of this machine by which a client can be told from others.
#[derive(Debug, Clone, Copy)]
pub struct From(pub u8);

/// How a client takes answers.
#[derive(Debug, Clone)]
pub struct Reader {
    /// Bytes of an answer that are taken before somebody reads it.
    pub window: u32,
    /// Nothing at all is read from now on.
    pub is_deaf: Arc<AtomicBool>,
}

impl Reader {
    pub fn with_window(window: u32) -> Self {
        Self {
            window,
            is_deaf: Arc::default(),
        }
    }
}

impl From {
    /// A connection to a server.
    pub async fn channel(self, server: SocketAddr) -> Result<Channel, tonic::transport::Error> {
        self.channel_of(server, &Reader::with_window(64 << 10)).await
    }

    pub async fn channel_of(
        self,
        server: SocketAddr,
        reader: &Reader,
    ) -> Result<Channel, tonic::transport::Error> {
        let is_deaf = Arc::clone(&reader.is_deaf);
        let connect = move |_| {
            let is_deaf = Arc::clone(&is_deaf);
            async move {
                let socket = TcpSocket::new_v4()?;
                // So that little of what nobody reads is with the operating system.
                socket.set_recv_buffer_size(64 << 10)?;
                socket.bind((Ipv4Addr::new(127, 0, 0, self.0), 0).into())?;
                let stream = socket.connect(server).await?;
                Ok::<_, io::Error>(TokioIo::new(Listening { stream, is_deaf }))
            }
        };
        Endpoint::from_static("http://server")
            .initial_stream_window_size(reader.window)
            .initial_connection_window_size(reader.window.max(64 << 10))
            .connect_with_connector(service_fn(connect))
            .await
    }
}

/// A connection from which reading may end.
struct Listening {
    stream: TcpStream,
    is_deaf: Arc<AtomicBool>,
}

impl AsyncRead for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_deaf.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Listening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A message of gRPC, with a length that may be wrong.
pub fn framed(length: usize, bytes: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + bytes.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).expect("a length of gRPC"));
    framed.put_slice(bytes);
    framed.freeze()
}

/// Calls a method with these bytes.
pub async fn call(
    mut channel: Channel,
    path: &str,
    bytes: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<http::Response<Body>, tonic::transport::Error> {
    let frames = bytes.map(|bytes| Ok::<_, Status>(Frame::data(bytes)));
    let request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(StreamBody::new(frames)))
        .expect("a request");
    channel.ready().await?.call(request).await
}
