//! Raw gRPC calls: the test chooses the bytes of a message, when they are sent, and the address of the client.

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

/// A client with the loopback address 127.0.0.N, by which the server distinguishes it from others.
#[derive(Debug, Clone, Copy)]
pub struct LocalClient(pub u8);

/// How a client reads responses.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The HTTP/2 flow-control window, in bytes.
    pub window: u32,
    /// Whether the client has stopped reading from its socket.
    pub is_stopped: Arc<AtomicBool>,
}

impl Reader {
    pub fn with_window(window: u32) -> Self {
        Self {
            window,
            is_stopped: Arc::default(),
        }
    }
}

impl LocalClient {
    /// A connection to a server.
    pub async fn channel(self, server: SocketAddr) -> Result<Channel, tonic::transport::Error> {
        self.channel_of(server, &Reader::with_window(64 << 10)).await
    }

    pub async fn channel_of(
        self,
        server: SocketAddr,
        reader: &Reader,
    ) -> Result<Channel, tonic::transport::Error> {
        let is_stopped = Arc::clone(&reader.is_stopped);
        let connect = move |_| {
            let is_stopped = Arc::clone(&is_stopped);
            async move {
                let socket = TcpSocket::new_v4()?;
                // A small buffer, so that the kernel holds little unread data.
                socket.set_recv_buffer_size(64 << 10)?;
                socket.bind((Ipv4Addr::new(127, 0, 0, self.0), 0).into())?;
                let stream = socket.connect(server).await?;
                Ok::<_, io::Error>(TokioIo::new(StoppableStream { stream, is_stopped }))
            }
        };
        Endpoint::from_static("http://server")
            .initial_stream_window_size(reader.window)
            .initial_connection_window_size(reader.window.max(64 << 10))
            .connect_with_connector(service_fn(connect))
            .await
    }
}

/// A connection that can stop reading.
struct StoppableStream {
    stream: TcpStream,
    is_stopped: Arc<AtomicBool>,
}

impl AsyncRead for StoppableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for StoppableStream {
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

/// A gRPC message with its header. `length` may differ from the length of `bytes`.
pub fn framed(length: usize, bytes: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + bytes.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).expect("a length of gRPC"));
    framed.put_slice(bytes);
    framed.freeze()
}

/// Calls a method with this request body.
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
