//! Reads the request messages of a call.
//!
//! A gRPC message starts with its length. The reader holds memory for the message before it reads the rest. Once the message has
//! arrived, the reader estimates what it takes until it is answered, and holds that much. If there is no memory, a unary call is
//! refused and a stream waits. Long messages are decompressed and decoded on the planning pool.

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

/// Bytes of the gRPC header of a message: a compressed flag and the length.
const PREFIX: usize = 5;
/// Bytes of memory that requests of real clusters take for each of their bytes, plus a fifth.
const USUAL_EXPANSION: usize = 5;
/// The highest compression ratio of gzip.
const INFLATION: usize = 1_032;
/// Bytes of memory from which a message is processed on the pool. A smaller one takes less than a millisecond.
const LONG: usize = 1 << 20;

/// The limits of a reader.
#[derive(Debug, Clone)]
pub(crate) struct ReadLimits {
    /// Most bytes of one message, before and after decompression.
    pub(crate) most: usize,
    /// Longest time for a message to arrive.
    pub(crate) timeout: Duration,
    /// Decompresses and decodes long messages.
    pub(crate) pool: Pool,
}

impl ReadLimits {
    /// Bounds the time of `reading` by the timeout.
    async fn in_time<T>(&self, reading: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::time::timeout(self.timeout, reading)
            .await
            .unwrap_or_else(|_| Err(refusal::not_received(self.timeout)))
    }

    /// The decompressed message, and the bytes that it takes in total, before and after decoding.
    async fn unpack<Q: size_estimate::Request>(
        &self,
        header: Header,
        bytes: Bytes,
        memory: &Arc<Share>,
    ) -> Result<(Bytes, usize), Status> {
        let most = self.most;
        let unpack = move || {
            let bytes = if header.is_compressed() {
                inflated(&bytes, most)?
            } else {
                bytes
            };
            let taken = bytes.len() + size_estimate::estimate::<Q>(&bytes)?;
            Ok((bytes, taken))
        };
        self.work(header.bytes(most), memory, unpack).await
    }

    async fn decode<Q: size_estimate::Request>(
        &self,
        bytes: Bytes,
        memory: &Arc<Share>,
    ) -> Result<Q, Status> {
        let usual = bytes.len().saturating_mul(USUAL_EXPANSION);
        self.work(usual, memory, || size_estimate::decode_estimated(bytes))
            .await
    }

    /// Runs `work` for a message that takes `bytes` of memory: here if the message is short, on the pool if it is long.
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

/// The memory for the messages of a stream.
pub(crate) struct MemorySource {
    pub(crate) memory: FairShare,
    /// The client of the stream.
    pub(crate) client: Key,
    /// Longest time that a message waits for memory.
    pub(crate) timeout: Duration,
}

impl MemorySource {
    /// Waits until the client may have `bytes`.
    async fn hold(&self, memory: &Share, bytes: usize) -> Result<(), Status> {
        tokio::time::timeout(self.timeout, memory.grow(bytes))
            .await
            .map_err(|_| refusal::out_of_memory())
    }
}

/// Reads the request messages of one call.
pub(crate) struct RequestReader<Q> {
    body: RequestBody,
    limits: ReadLimits,
    message: PhantomData<fn() -> Q>,
}

/// A message, and the memory that is held for it.
#[derive(Debug)]
pub(crate) struct Held<Q> {
    pub(crate) message: Q,
    pub(crate) memory: Arc<Share>,
}

/// The gRPC header of a message.
#[derive(Debug, Clone, Copy)]
struct Header([u8; PREFIX]);

impl Header {
    fn length(self) -> usize {
        let [_, length @ ..] = self.0;
        usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX)
    }

    fn is_compressed(self) -> bool {
        self.0[0] != 0
    }

    /// The memory to hold until the message has arrived and can be estimated: what messages of this length usually take, so that
    /// few messages are refused after they were read.
    fn bytes(self, most: usize) -> usize {
        let length = self.length();
        if length > most {
            // The message will be refused without being read.
            return 0;
        }
        let besides = if self.is_compressed() {
            length.saturating_mul(INFLATION).min(most)
        } else {
            length.saturating_mul(USUAL_EXPANSION)
        };
        length + besides
    }
}

impl<Q: size_estimate::Request> RequestReader<Q> {
    pub(crate) fn new(head: &Parts, body: Body, limits: ReadLimits) -> Self {
        // The transport refuses other encodings before the message is read.
        let is_gzip = head
            .headers
            .get("grpc-encoding")
            .is_some_and(|encoding| encoding == "gzip");
        Self {
            body: RequestBody {
                body,
                is_gzip,
                next: Bytes::new(),
            },
            limits,
            message: PhantomData,
        }
    }

    /// Reads the message of a unary call.
    pub(crate) async fn only(self, memory: Arc<Share>) -> Result<Q, Status> {
        let Self { mut body, limits, .. } = self;
        let arriving = async {
            let header = body
                .header()
                .await?
                .ok_or_else(|| Status::internal("Missing request message."))?;
            if !memory.resize(header.bytes(limits.most)) {
                return Err(refusal::out_of_memory());
            }
            let bytes = body.read(header, limits.most).await?;
            if body.header().await?.is_some() {
                return Err(Status::internal(
                    "this method accepts one message, and the call has more",
                ));
            }
            Ok((header, bytes))
        };
        let (header, bytes) = limits.in_time(arriving).await?;
        let (bytes, taken) = limits.unpack::<Q>(header, bytes, &memory).await?;
        if !memory.resize(taken) {
            return Err(refusal::out_of_memory());
        }
        limits.decode(bytes, &memory).await
    }

    /// Reads the messages of a stream, which ends at the first error.
    pub(crate) fn all(
        self,
        memory_source: MemorySource,
    ) -> impl Stream<Item = Result<Held<Q>, Status>> + Send + 'static {
        stream::try_unfold((self, memory_source), |(mut reader, memory_source)| async move {
            let held = reader.next(&memory_source).await?;
            Ok(held.map(|held| (held, (reader, memory_source))))
        })
    }

    async fn next(&mut self, memory_source: &MemorySource) -> Result<Option<Held<Q>>, Status> {
        let Self { body, limits, .. } = self;
        let Some(header) = body.header().await? else {
            return Ok(None);
        };
        let memory = Arc::new(memory_source.memory.empty(&memory_source.client));
        memory_source.hold(&memory, header.bytes(limits.most)).await?;
        let bytes = limits.in_time(body.read(header, limits.most)).await?;
        let (bytes, taken) = limits.unpack::<Q>(header, bytes, &memory).await?;
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
        .map_err(|error| Status::internal(format!("a message cannot be decompressed with gzip: {error}")))?;
    if inflated.len() > most {
        return Err(refusal::too_long(inflated.len(), most));
    }
    Ok(inflated.into())
}

/// The request body of a call.
struct RequestBody {
    body: Body,
    /// Whether `grpc-encoding` is gzip, so that messages may be compressed.
    is_gzip: bool,
    /// Bytes of the next message that arrived with the last one.
    next: Bytes,
}

impl RequestBody {
    /// Reads the header of the next message; `None` at the end of the body.
    async fn header(&mut self) -> Result<Option<Header>, Status> {
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
        Ok(Some(Header(prefix)))
    }

    /// Reads the message after its header. It may be compressed.
    async fn read(&mut self, header: Header, most: usize) -> Result<Bytes, Status> {
        let length = header.length();
        if length > most {
            return Err(refusal::too_long(length, most));
        }
        if header.is_compressed() && !self.is_gzip {
            return Err(Status::internal(
                "a message is marked as compressed, but the header grpc-encoding is missing",
            ));
        }
        let mut message = BytesMut::with_capacity(length);
        while message.len() < length {
            let mut data = self.data().await?.ok_or_else(cut_short)?;
            self.next = data.split_off(data.len().min(length - message.len()));
            if data.len() == length {
                // The whole message arrived in one frame: no copy is needed.
                return Ok(data);
            }
            message.extend_from_slice(&data);
        }
        Ok(message.freeze())
    }

    /// The next bytes of the body; `None` at its end.
    async fn data(&mut self) -> Result<Option<Bytes>, Status> {
        if !self.next.is_empty() {
            return Ok(Some(mem::take(&mut self.next)));
        }
        while let Some(frame) = self.body.frame().await.transpose()? {
            // Trailers of a request are ignored.
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
            assert!(
                status.message().contains(&found),
                "inflated beyond the limit: {status}"
            );
        }
        for broken in [&b"no gzip"[..], &zeros[..zeros.len() / 2], b""] {
            assert_eq!(
                inflated(broken, 1 << 20).expect_err("broken").code(),
                Code::Internal
            );
        }
    }
}
