//! A codec that encodes a response into a buffer of exactly its length. With tonic's encoder the buffer grows by doubling, so that
//! a long response takes up to three times its length.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{Codec, EncodeBuf, Encoder},
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Encodes responses with [`ResponseEncoder`], and decodes requests as [`ProstCodec`] does.
#[derive(Debug)]
pub(crate) struct ResponseCodec<A, Q>(PhantomData<(A, Q)>);

impl<A, Q> Default for ResponseCodec<A, Q> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A, Q> Codec for ResponseCodec<A, Q>
where
    A: Message + 'static,
    Q: Message + Default + 'static,
{
    type Encode = A;
    type Decode = Q;
    type Encoder = ResponseEncoder<A>;
    type Decoder = ProstDecoder<Q>;

    fn encoder(&mut self) -> Self::Encoder {
        ResponseEncoder(ProstEncoder::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<A, Q>::default().decoder()
    }
}

/// Encodes responses.
#[derive(Debug)]
pub(crate) struct ResponseEncoder<A>(ProstEncoder<A>);

impl<A: Message + 'static> Encoder for ResponseEncoder<A> {
    type Item = A;
    type Error = Status;

    fn encode(&mut self, answer: A, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(answer.encoded_len());
        self.0.encode(answer, into)
    }
}
