//! Sends the body of a response.
//!
//! A client that does not read a response, or reads it very slowly, would keep it in the server's memory. So the response is handed
//! to the transport in chunks. If the transport does not take a chunk, or a whole message, in time, the connection is closed.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, body::Body};

use crate::{client::Client, fair_share::Share};

/// Most bytes of a chunk: the default maximum frame size of HTTP/2. The transport may hold on to the last chunk of a response, even
/// if only one byte of it is unsent.
const CHUNK: usize = 16 << 10;

/// The body of a response.
pub(crate) struct ResponseBody {
    response: Body,
    /// The part of the current message that was not handed over yet.
    left: Bytes,
    /// Whether the current message has several chunks.
    is_long: bool,
    /// Closes the connection if the transport does not take the last chunk in time.
    timer: Option<AbortOnDropHandle<()>>,
    /// When the current message must have been taken as a whole.
    until: Instant,
    timeouts: Timeouts,
    client: Option<Client>,
    /// The memory held for the request, and then for its response. Empty on a stream, where each request holds its own.
    memory: Arc<Share>,
}

/// How long a client may take to read a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// For each chunk.
    pub(crate) chunk: Duration,
    /// For each message.
    pub(crate) message: Duration,
}

impl ResponseBody {
    pub(crate) fn new(
        response: Body,
        timeouts: Timeouts,
        client: Option<Client>,
        memory: Arc<Share>,
    ) -> Self {
        Self {
            response,
            left: Bytes::new(),
            is_long: false,
            timer: None,
            until: Instant::now(),
            timeouts,
            client,
            memory,
        }
    }

    /// Starts a message, which the encoder has encoded as a whole.
    fn begin(&mut self, message: Bytes) {
        // The response that it was encoded from has been dropped.
        self.memory.shrink(message.len());
        self.until = Instant::now() + self.timeouts.message;
        self.is_long = message.len() > CHUNK;
        self.left = message;
    }

    fn chunk(&mut self) -> Frame<Bytes> {
        let length = self.left.len().min(CHUNK);
        let mut chunk = self.left.split_to(length);
        if self.is_long {
            // A copy: the transport may hold on to a chunk, and a slice would keep the whole message in memory.
            chunk = Bytes::copy_from_slice(&chunk);
        }
        self.timer = self.client.clone().map(|client| {
            let Timeouts {
                chunk: timeout,
                message,
            } = self.timeouts;
            let (chunk_until, message_until) = (Instant::now() + timeout, self.until);
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep_until(chunk_until.min(message_until)).await;
                if chunk_until <= message_until {
                    tracing::warn!(%client, "closed: the client read nothing of a response for {timeout:?}");
                } else {
                    tracing::warn!(%client, "closed: the client did not read a response within {message:?}");
                }
                client.cut.cancel();
            }))
        });
        Frame::data(chunk)
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // The transport polls again once it has taken the last chunk.
        self.timer = None;
        if self.left.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.response).poll_frame(context)?) else {
                return Poll::Ready(None);
            };
            match frame.into_data() {
                Ok(data) => self.begin(data),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(Some(Ok(self.chunk())))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.response.is_end_stream()
    }
}
