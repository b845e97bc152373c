//! An answer on its way out.
//!
//! Whoever asks and takes nothing of the answer would keep it here. So an answer is handed over piece by piece, and when one of
//! them has not gone in time the connection is cut: of a reader that waits, HTTP/2 tells nobody but the connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, body::Body};

use crate::{client::Client, shares::Share};

/// What is handed over at once: as much as most readers take in one frame. The transport may keep the last piece of an answer,
/// of which it could send a byte.
const PIECE: usize = 16 << 10;

/// An answer.
pub(crate) struct Outflow {
    answer: Body,
    /// What has not been handed over of the present message.
    left: Bytes,
    /// Cuts the connection when the last piece does not go.
    late: Option<AbortOnDropHandle<()>>,
    within: Duration,
    client: Option<Client>,
    /// Held for the request, and so for its answer, as long as it is here.
    _memory: Arc<Share>,
}

impl Outflow {
    /// An answer of which each piece may be on its way for so long.
    pub(crate) fn new(answer: Body, within: Duration, client: Option<Client>, memory: Arc<Share>) -> Self {
        Self {
            answer,
            left: Bytes::new(),
            late: None,
            within,
            client,
            _memory: memory,
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.left.split_to(self.left.len().min(PIECE));
        self.late = self.client.clone().map(|client| {
            let within = self.within;
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(within).await;
                tracing::warn!(%client, "cut off: it took nothing of an answer for {within:?}");
                client.cut.cancel();
            }))
        });
        Frame::data(piece)
    }
}

impl http_body::Body for Outflow {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // The transport asks for more when the last piece has gone.
        self.late = None;
        if self.left.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.answer).poll_frame(context)?) else {
                return Poll::Ready(None);
            };
            match frame.into_data() {
                Ok(data) => self.left = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(Some(Ok(self.piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.answer.is_end_stream()
    }
}
