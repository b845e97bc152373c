//! Calls as nobody's library makes them: bytes of a message that come when the test says so, from an address of its choice.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;
use tonic::{
    Status,
    body::Body,
    transport::{Channel, Endpoint},
};
use tower::{Service as _, ServiceExt as _, service_fn};

/// An address of this machine by which a client can be told from others.
#[derive(Debug, Clone, Copy)]
pub struct From(pub u8);

impl From {
    /// A connection to a server.
    pub async fn channel(self, server: SocketAddr) -> Result<Channel, tonic::transport::Error> {
        self.counted(server).await.map(|(channel, _)| channel)
    }

    /// The same, and how often it connects. It takes 64 KiB of an answer before somebody reads it.
    pub async fn counted(
        self,
        server: SocketAddr,
    ) -> Result<(Channel, Arc<AtomicUsize>), tonic::transport::Error> {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let connect = move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                let socket = TcpSocket::new_v4()?;
                socket.bind((Ipv4Addr::new(127, 0, 0, self.0), 0).into())?;
                socket.connect(server).await.map(TokioIo::new)
            }
        };
        let channel = Endpoint::from_static("http://server")
            .initial_stream_window_size(64 << 10)
            .connect_with_connector(service_fn(connect))
            .await?;
        Ok((channel, count))
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
