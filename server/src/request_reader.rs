//! The messages of a call on their way in.
//!
//! Each says its length before it comes. From there on memory is held for it, before a byte of it is read; once it is there,
//! and weighed, as much is held as it takes until it is answered. What there is no memory for is refused, or waits where its
//! sender waits for it (on a stream). What takes long, decompressing and decoding, is the pool's work like plans.

use std::{io::Read as _, marker::PhantomData, mem, sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use flate2::read::GzDecoder;
use futures::{Stream, stream};
use http::request::Parts;
use http_body_util::BodyExt as _;
use tonic::{Status, body::Body};

use crate::{
    client::Key,
    fair_share::{FairShare, Share},
    pool::Pool,
    refusal, size_estimate,
};

/// What stands before each message: a byte that says whether it is compressed, and its length.
const PREFIX: usize = 5;
/// What requests of real clusters take for each of their bytes, and a fifth more.
const USUAL_WEIGHT: usize = 5;
/// What gzip can make of a byte at most.
const INFLATION: usize = 1_032;
/// Memory from which on a message is the pool's work, in bytes: below that it takes less than a millisecond.
const LONG: usize = 1 << 20;

/// What may come.
#[derive(Debug, Clone)]
pub(crate) struct ReadLimits {
    /// Most bytes of one message, before and after decompression.
    pub(crate) most: usize,
    /// Longest time that a message may be on its way.
    pub(crate) within: Duration,
    /// Who decodes long ones.
    pub(crate) pool: Pool,
}

impl ReadLimits {
    /// What is read in time.
    async fn in_time<T>(&self, reading: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::time::timeout(self.within, reading)
            .await
            .unwrap_or_else(|_| Err(refusal::not_received(self.within)))
    }

    /// The message decompressed, and what it takes on the whole: itself, and what it is decoded to.
    async fn unpack<Q: size_estimate::Request>(
        &self,
        begun: Begun,
        bytes: Bytes,
        memory: &Arc<Share>,
    ) -> Result<(Bytes, usize), Status> {
        let most = self.most;
        let unpack = move || {
            let bytes = if begun.is_compressed() {
                inflated(&bytes, most)?
            } else {
                bytes
            };
            let taken = bytes.len() + size_estimate::estimate::<Q>(&bytes)?;
            Ok((bytes, taken))
        };
        self.work(begun.bytes(most), memory, unpack).await
    }

    async fn decode<Q: size_estimate::Request>(
        &self,
        bytes: Bytes,
        memory: &Arc<Share>,
    ) -> Result<Q, Status> {
        let usual = bytes.len().saturating_mul(USUAL_WEIGHT);
        self.work(usual, memory, || size_estimate::decode_estimated(bytes))
            .await
    }

    /// Does with a message of so much memory what takes longer the longer it is.
    async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        memory: &Arc<Share>,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        if bytes < LONG {
            return work();
        }
        self.pool.prepare(Arc::clone(memory), work).await
    }
}

/// Where the memory for messages of a stream is.
pub(crate) struct MemorySource {
    pub(crate) memory: FairShare,
    /// Whose they are.
    pub(crate) client: Key,
    /// Longest time that one waits for memory.
    pub(crate) patience: Duration,
}

impl MemorySource {
    /// Waits until the client may have so much.
    async fn hold(&self, memory: &Share, bytes: usize) -> Result<(), Status> {
        tokio::time::timeout(self.patience, memory.grow(bytes))
            .await
            .map_err(|_| refusal::out_of_memory())
    }
}

/// The messages of a call.
pub(crate) struct RequestReader<Q> {
    wire: Wire,
    limits: ReadLimits,
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

    fn is_compressed(self) -> bool {
        self.0[0] != 0
    }

    /// The memory to hold for it until it can be weighed: what one of its length takes as a rule, so that those that were let in are
    /// not refused when they are there.
    fn bytes(self, most: usize) -> usize {
        let length = self.length();
        if length > most {
            // It is refused for that, unread.
            return 0;
        }
        let besides = if self.is_compressed() {
            length.saturating_mul(INFLATION).min(most)
        } else {
            length.saturating_mul(USUAL_WEIGHT)
        };
        length + besides
    }
}

impl<Q: size_estimate::Request> RequestReader<Q> {
    pub(crate) fn new(head: &Parts, body: Body, limits: ReadLimits) -> Self {
        // Others are refused before anything is taken in.
        let is_gzip = head
            .headers
            .get("grpc-encoding")
            .is_some_and(|encoding| encoding == "gzip");
        Self {
            wire: Wire {
                body,
                is_gzip,
                next: Bytes::new(),
            },
            limits,
            message: PhantomData,
        }
    }

    /// The message of a call that has one.
    pub(crate) async fn only(self, memory: Arc<Share>) -> Result<Q, Status> {
        let Self { mut wire, limits, .. } = self;
        let arriving = async {
            let begun = wire
                .begun()
                .await?
                .ok_or_else(|| Status::internal("Missing request message."))?;
            if !memory.resize(begun.bytes(limits.most)) {
                return Err(refusal::out_of_memory());
            }
            let bytes = wire.read(begun, limits.most).await?;
            if wire.begun().await?.is_some() {
                return Err(Status::internal(
                    "this method takes one message, and more have come",
                ));
            }
            Ok((begun, bytes))
        };
        let (begun, bytes) = limits.in_time(arriving).await?;
        let (bytes, taken) = limits.unpack::<Q>(begun, bytes, &memory).await?;
        if !memory.resize(taken) {
            return Err(refusal::out_of_memory());
        }
        limits.decode(bytes, &memory).await
    }

    /// The messages of a stream. The first error is the end.
    pub(crate) fn all(
        self,
        memory_source: MemorySource,
    ) -> impl Stream<Item = Result<Held<Q>, Status>> + Send + 'static {
        stream::try_unfold((self, memory_source), |(mut intake, memory_source)| async move {
            let held = intake.next(&memory_source).await?;
            Ok(held.map(|held| (held, (intake, memory_source))))
        })
    }

    async fn next(&mut self, memory_source: &MemorySource) -> Result<Option<Held<Q>>, Status> {
        let Self { wire, limits, .. } = self;
        let Some(begun) = wire.begun().await? else {
            return Ok(None);
        };
        let memory = Arc::new(memory_source.memory.nothing(&memory_source.client));
        memory_source.hold(&memory, begun.bytes(limits.most)).await?;
        let bytes = limits.in_time(wire.read(begun, limits.most)).await?;
        let (bytes, taken) = limits.unpack::<Q>(begun, bytes, &memory).await?;
        memory_source.hold(&memory, taken).await?;
        let message = limits.decode(bytes, &memory).await?;
        Ok(Some(Held { message, memory }))
    }
}

fn cut_short() -> Status {
    Status::internal("the call ends within a message")
}

fn inflated(bytes: &[u8], most: usize) -> Result<Bytes, Status> {
    let mut inflated = Vec::new();
    GzDecoder::new(bytes)
        .take(most as u64 + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| Status::internal(format!("a message is not what gzip makes: {error}")))?;
    if inflated.len() > most {
        return Err(refusal::too_long(inflated.len(), most));
    }
    Ok(inflated.into())
}

/// The bytes of a call.
struct Wire {
    body: Body,
    /// Whether messages may be compressed, and are so with gzip.
    is_gzip: bool,
    /// What came with the last message, and belongs to the next.
    next: Bytes,
}

impl Wire {
    /// The next message, once its length is known; none at the end.
    async fn begun(&mut self) -> Result<Option<Begun>, Status> {
        let mut prefix = [0; PREFIX];
        let mut filled = 0;
        while filled < PREFIX {
            let Some(mut data) = self.data().await? else {
                return match filled {
                    0 => Ok(None),
                    _ => Err(cut_short()),
                };
            };
            let length = data.len().min(PREFIX - filled);
            data.copy_to_slice(&mut prefix[filled..filled + length]);
            filled += length;
            self.next = data;
        }
        Ok(Some(Begun(prefix)))
    }

    /// The message as it comes.
    async fn read(&mut self, begun: Begun, most: usize) -> Result<Bytes, Status> {
        let length = begun.length();
        if length > most {
            return Err(refusal::too_long(length, most));
        }
        if begun.is_compressed() && !self.is_gzip {
            return Err(Status::internal(
                "a message says that it is compressed, and grpc-encoding does not say how",
            ));
        }
        let mut message = BytesMut::with_capacity(length);
        while message.len() < length {
            let mut data = self.data().await?.ok_or_else(cut_short)?;
            self.next = data.split_off(data.len().min(length - message.len()));
            if data.len() == length {
                // All of it at once, which needs no copy.
                return Ok(data);
            }
            message.extend_from_slice(&data);
        }
        Ok(message.freeze())
    }

    /// Some bytes; none at the end.
    async fn data(&mut self) -> Result<Option<Bytes>, Status> {
        if !self.next.is_empty() {
            return Ok(Some(mem::take(&mut self.next)));
        }
        while let Some(frame) = self.body.frame().await.transpose()? {
            // Trailers of a request mean nothing.
            if let Some(data) = frame.into_data().ok().filter(|data| !data.is_empty()) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use tonic::Code;

    use super::*;

    #[test]
    fn nothing_is_inflated_beyond_the_limit() {
        let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
        zeros.write_all(&vec![0; 1 << 20]).expect("memory takes all");
        let zeros = zeros.finish().expect("memory takes all");
        assert!(zeros.len() < 2 << 10);
        assert_eq!(
            inflated(&zeros, 1 << 20).expect("as long as allowed").len(),
            1 << 20
        );
        for most in [1 << 10, (1 << 20) - 1] {
            let status = inflated(&zeros, most).expect_err("too long");
            assert_eq!(status.code(), Code::ResourceExhausted);
            let found = format!("{} bytes or more", most + 1);
            assert!(status.message().contains(&found), "it went on: {status}");
        }
        for broken in [&b"no gzip"[..], &zeros[..zeros.len() / 2], b""] {
            assert_eq!(
                inflated(broken, 1 << 20).expect_err("broken").code(),
                Code::Internal
            );
        }
    }
}
