//! An answer on its way out.
//!
//! A client that asks and takes nothing of the answer, or little at a time, would keep it here. So an answer is handed over piece by
//! piece, and when one of them has not gone in time, or the message as a whole, the connection is cut: of a reader that waits, HTTP/2
//! tells nobody but the connection.

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

/// What is handed over at once: as much as most readers take in one frame. The transport may keep the last piece of an answer,
/// of which it could send a byte.
const PIECE: usize = 16 << 10;

/// An answer.
pub(crate) struct ResponseBody {
    answer: Body,
    /// What has not been handed over of the present message.
    left: Bytes,
    /// That message has several pieces.
    is_long: bool,
    /// Cuts the connection when the last piece does not go.
    late: Option<AbortOnDropHandle<()>>,
    /// When the present message must have gone as a whole.
    until: Instant,
    timeouts: Timeouts,
    client: Option<Client>,
    /// Held for a request, and then for its answer, as long as it is here. Nothing on a stream, whose questions hold their own.
    memory: Arc<Share>,
}

/// How long a client may take over an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Over each piece.
    pub(crate) piece: Duration,
    /// Over each message.
    pub(crate) message: Duration,
}

impl ResponseBody {
    /// An answer that must be taken in time.
    pub(crate) fn new(answer: Body, timeouts: Timeouts, client: Option<Client>, memory: Arc<Share>) -> Self {
        Self {
            answer,
            left: Bytes::new(),
            is_long: false,
            late: None,
            until: Instant::now(),
            timeouts,
            client,
            memory,
        }
    }

    /// What there is of a message: all of it, since it is encoded as a whole.
    fn begin(&mut self, message: Bytes) {
        // What it was encoded from is gone.
        self.memory.shrink(message.len());
        self.until = Instant::now() + self.timeouts.message;
        self.is_long = message.len() > PIECE;
        self.left = message;
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let length = self.left.len().min(PIECE);
        let mut piece = self.left.split_to(length);
        if self.is_long {
            // The transport may keep a piece when this is gone, and with it all that it is a part of.
            piece = Bytes::copy_from_slice(&piece);
        }
        self.late = self.client.clone().map(|client| {
            let Timeouts { piece, message } = self.timeouts;
            let (piece_late, message_late) = (Instant::now() + piece, self.until);
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep_until(piece_late.min(message_late)).await;
                if piece_late <= message_late {
                    tracing::warn!(%client, "cut off: it took nothing of an answer for {piece:?}");
                } else {
                    tracing::warn!(%client, "cut off: it did not take an answer within {message:?}");
                }
                client.cut.cancel();
            }))
        });
        Frame::data(piece)
    }
}

impl http_body::Body for ResponseBody {
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
                Ok(data) => self.begin(data),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(Some(Ok(self.piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.answer.is_end_stream()
    }
}
