//! The messages of a call on their way in.
//!
//! Each says its length before it comes. From there on memory is held for it, before a byte of it is read; once it is there,
//! and weighed, as much is held as it takes until it is answered. What there is no memory for is refused, or waits where its
//! sender waits for it (on a stream).

use std::{
    future::poll_fn,
    marker::PhantomData,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use futures::{Stream, TryStreamExt as _, stream};
use http::request::Parts;
use http_body::{Body as _, Frame};
use tonic::{
    Code, Status, Streaming,
    body::Body,
    codec::{CompressionEncoding, DecodeBuf, Decoder},
};

use crate::{
    client::Key,
    refusal,
    shares::{Share, Shares},
    weigh,
};

/// What stands before each message: a byte that says whether it is compressed, and its length.
const PREFIX: usize = 5;
/// What requests of real clusters take for each of their bytes, and a fifth more.
const USUAL_WEIGHT: usize = 5;
/// What gzip can make of a byte at most.
const INFLATION: usize = 1_032;

/// Bytes from which on a message is weighed and decoded on a thread that no other call waits for: that takes about a millisecond.
const LONG: usize = 256 << 10;

/// What may come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Most bytes of one message, before and after decompression.
    pub(crate) most: usize,
    /// Longest time that a message may be on its way.
    pub(crate) within: Duration,
}

impl Terms {
    /// What is read in time.
    async fn in_time<T>(&self, reading: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::time::timeout(self.within, reading)
            .await
            .unwrap_or_else(|_| Err(refusal::not_received(self.within)))
    }
}

/// Where the memory for messages of a stream is.
pub(crate) struct Room {
    pub(crate) memory: Shares,
    /// Whose they are.
    pub(crate) client: Key,
    /// Longest time that one waits for memory.
    pub(crate) patience: Duration,
}

impl Room {
    /// Waits until the client may have so much.
    async fn hold(&self, memory: &Share, bytes: usize) -> Result<(), Status> {
        tokio::time::timeout(self.patience, memory.grow(bytes))
            .await
            .map_err(|_| refusal::out_of_memory())
    }
}

/// The messages of a call.
pub(crate) struct Intake<Q> {
    wire: Wire,
    encoding: Option<CompressionEncoding>,
    terms: Terms,
    message: PhantomData<fn() -> Q>,
}

/// A message, and the memory that is held for it.
#[derive(Debug)]
pub(crate) struct Held<Q> {
    pub(crate) message: Q,
    pub(crate) memory: Arc<Share>,
}

/// A message that has begun.
#[derive(Debug, Clone, Copy)]
struct Begun([u8; PREFIX]);

impl Begun {
    fn length(self) -> usize {
        let [_, length @ ..] = self.0;
        usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX)
    }

    /// The memory to hold for it until it can be weighed: what one of its length takes as a rule, so that those that were let in are
    /// not refused when they are there.
    fn bytes(self, most: usize) -> usize {
        let length = self.length();
        if length > most {
            // It is refused for that, unread.
            return 0;
        }
        let is_compressed = self.0[0] != 0;
        let besides = if is_compressed {
            length.saturating_mul(INFLATION).min(most)
        } else {
            length.saturating_mul(USUAL_WEIGHT)
        };
        length + besides
    }
}

impl<Q: weigh::Request> Intake<Q> {
    pub(crate) fn new(head: &Parts, body: Body, terms: Terms) -> Self {
        // Others are refused before anything is taken in.
        let gzip = head
            .headers
            .get("grpc-encoding")
            .is_some_and(|encoding| encoding == "gzip");
        Self {
            wire: Wire::new(body),
            encoding: gzip.then_some(CompressionEncoding::Gzip),
            terms,
            message: PhantomData,
        }
    }

    /// The message of a call that has one.
    pub(crate) async fn only(self, memory: Arc<Share>) -> Result<Q, Status> {
        let only = async {
            let begun = self
                .begun()
                .await?
                .ok_or_else(|| Status::internal("Missing request message."))?;
            if !memory.resize(begun.bytes(self.terms.most)) {
                return Err(refusal::out_of_memory());
            }
            let bytes = self.read(begun).await?;
            if !memory.resize(aside(bytes.clone(), |bytes| taken_by::<Q>(&bytes)).await?) {
                return Err(refusal::out_of_memory());
            }
            let message = aside(bytes, weigh::decode_weighed).await?;
            if self.begun().await?.is_some() {
                return Err(Status::internal(
                    "this method takes one message, and more have come",
                ));
            }
            Ok(message)
        };
        self.terms.in_time(only).await
    }

    /// The messages of a stream. The first error is the end.
    pub(crate) fn all(self, room: Room) -> impl Stream<Item = Result<Held<Q>, Status>> + Send + 'static {
        stream::try_unfold((self, room), |(intake, room)| async move {
            let held = intake.next(&room).await?;
            Ok(held.map(|held| (held, (intake, room))))
        })
    }

    async fn next(&self, room: &Room) -> Result<Option<Held<Q>>, Status> {
        let Some(begun) = self.begun().await? else {
            return Ok(None);
        };
        let memory = room.memory.nothing(&room.client);
        room.hold(&memory, begun.bytes(self.terms.most)).await?;
        let bytes = self.terms.in_time(self.read(begun)).await?;
        room.hold(
            &memory,
            aside(bytes.clone(), |bytes| taken_by::<Q>(&bytes)).await?,
        )
        .await?;
        let message = aside(bytes, weigh::decode_weighed).await?;
        let memory = Arc::new(memory);
        Ok(Some(Held { message, memory }))
    }

    /// The next message, once its length is known; none at the end.
    async fn begun(&self) -> Result<Option<Begun>, Status> {
        let mut prefix = [0; PREFIX];
        let mut filled = 0;
        while filled < PREFIX {
            let Some(mut data) = poll_fn(|context| self.wire.lock().poll_data(context)).await? else {
                return match filled {
                    0 => Ok(None),
                    _ => Err(Status::internal("the call ends within a message")),
                };
            };
            let length = data.len().min(PREFIX - filled);
            data.copy_to_slice(&mut prefix[filled..filled + length]);
            filled += length;
            self.wire.lock().next = data;
        }
        Ok(Some(Begun(prefix)))
    }

    /// The message as bytes, decompressed.
    async fn read(&self, begun: Begun) -> Result<Bytes, Status> {
        let body = Rest {
            wire: self.wire.clone(),
            prefix: Some(begun.0),
            left: begun.length(),
        };
        // One for each message: its buffers keep the size of the largest message as long as they live.
        Streaming::new_request(Whole, Body::new(body), self.encoding, Some(self.terms.most))
            .try_next()
            .await
            .map_err(as_the_contract_says)?
            .ok_or_else(|| Status::cancelled("the call was given up"))
    }
}

/// What a message takes on the whole, itself and what it is decoded to.
fn taken_by<Q: weigh::Request>(bytes: &Bytes) -> Result<usize, Status> {
    Ok(bytes.len() + weigh::weigh::<Q>(bytes)?)
}

/// Does with a message what takes longer the longer it is.
async fn aside<T: Send + 'static>(
    message: Bytes,
    work: impl FnOnce(Bytes) -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    if message.len() < LONG {
        return work(message);
    }
    tokio::task::spawn_blocking(move || work(message))
        .await
        .unwrap_or_else(|error| Err(Status::internal(error.to_string())))
}

/// The transport answers OUT_OF_RANGE to a message over the limit, the contract (and every other gRPC implementation)
/// RESOURCE_EXHAUSTED. Nothing else answers OUT_OF_RANGE.
fn as_the_contract_says(status: Status) -> Status {
    if status.code() == Code::OutOfRange {
        Status::resource_exhausted(status.message())
    } else {
        status
    }
}

/// The bytes of a call, for one reader at a time.
#[derive(Clone)]
struct Wire(Arc<Mutex<Bytewise>>);

impl Wire {
    fn new(body: Body) -> Self {
        let next = Bytes::new();
        Self(Arc::new(Mutex::new(Bytewise { body, next })))
    }

    fn lock(&self) -> MutexGuard<'_, Bytewise> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Bytewise {
    body: Body,
    /// What came with the last message, and belongs to the next.
    next: Bytes,
}

impl Bytewise {
    /// Some bytes; none at the end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        if !self.next.is_empty() {
            return Poll::Ready(Ok(Some(mem::take(&mut self.next))));
        }
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => return Poll::Ready(Ok(None)),
                Some(frame) => frame?,
            };
            // Trailers of a request mean nothing.
            if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }
}

/// One message, as a body of its own.
struct Rest {
    wire: Wire,
    prefix: Option<[u8; PREFIX]>,
    left: usize,
}

impl http_body::Body for Rest {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(prefix) = self.prefix.take() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&prefix)))));
        }
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let data = {
            let mut wire = self.wire.lock();
            let Some(mut data) = ready!(wire.poll_data(context))? else {
                return Poll::Ready(None);
            };
            wire.next = data.split_off(data.len().min(self.left));
            data
        };
        self.left -= data.len();
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

/// Takes a message as it is.
struct Whole;

impl Decoder for Whole {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        // No copy: the message is split off the buffer.
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_a_long_message() {
        let (release, released) = mpsc::channel::<()>();
        let zeros = |length| Bytes::from(vec![0; length]);
        let mut long = aside(zeros(LONG), move |message| {
            released.recv().expect("released");
            Ok(message.len())
        })
        .boxed();
        assert!(poll!(&mut long).is_pending());
        let short = aside(zeros(LONG - 1), |message| Ok(message.len()));
        assert_eq!(short.await.expect("a length"), LONG - 1);
        release.send(()).expect("it waits");
        assert_eq!(long.await.expect("a length"), LONG);
    }
}
