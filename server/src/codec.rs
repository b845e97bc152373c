//! How answers are written: into memory of their length. The encoder of the library lets its buffer grow by doubling, so that a long
//! answer takes up to three times its length.

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{Codec, EncodeBuf, Encoder},
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Writes answers; reads as the library does.
#[derive(Debug)]
pub(crate) struct AnswerCodec<A, Q>(PhantomData<(A, Q)>);

impl<A, Q> Default for AnswerCodec<A, Q> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A, Q> Codec for AnswerCodec<A, Q>
where
    A: Message + 'static,
    Q: Message + Default + 'static,
{
    type Encode = A;
    type Decode = Q;
    type Encoder = AnswerEncoder<A>;
    type Decoder = ProstDecoder<Q>;

    fn encoder(&mut self) -> Self::Encoder {
        AnswerEncoder(ProstEncoder::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<A, Q>::default().decoder()
    }
}

/// Writes answers.
#[derive(Debug)]
pub(crate) struct AnswerEncoder<A>(ProstEncoder<A>);

impl<A: Message + 'static> Encoder for AnswerEncoder<A> {
    type Item = A;
    type Error = Status;

    fn encode(&mut self, answer: A, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(answer.encoded_len());
        self.0.encode(answer, into)
    }
}
