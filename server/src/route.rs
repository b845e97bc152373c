//! From a method's path to the service, by way of a codec that weighs a request before it decodes it.
//!
//! This stands in for the generated router, whose codec decodes whatever comes.

use std::{
    convert::Infallible,
    marker::PhantomData,
    task::{Context, Poll},
};

use bytes::Buf as _;
use futures::future::BoxFuture;
use nodewise_proto::v1::reconcile_service_server::{ReconcileService, SERVICE_NAME};
use prost::Message;
use tonic::{
    Request, Status,
    body::Body,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder},
    server::{Grpc, NamedService},
};
use tonic_prost::ProstEncoder;
use tower::service_fn;

use crate::{service::Service, weigh};

/// The methods of the service.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    service: Service,
    /// Most bytes of one message.
    most: usize,
}

impl Router {
    pub(crate) fn new(service: Service, most: usize) -> Self {
        Self { service, most }
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        let Self { service, most } = self;
        let service = &service;
        let path = request.uri().path().strip_prefix('/');
        match path.and_then(|path| path.strip_prefix(SERVICE_NAME)) {
            Some("/Plan") => {
                let plan = |request: Request<_>| service.plan(request);
                grpc(most).unary(service_fn(plan), request).await
            }
            Some("/PlanStream") => {
                let plan_stream = |request: Request<_>| service.plan_stream(request);
                grpc(most).streaming(service_fn(plan_stream), request).await
            }
            Some("/Report") => {
                let report = |request: Request<_>| service.report(request);
                grpc(most).unary(service_fn(report), request).await
            }
            Some("/GetCapabilities") => {
                let get_capabilities = |request: Request<_>| service.get_capabilities(request);
                grpc(most).unary(service_fn(get_capabilities), request).await
            }
            Some("/Explain") => {
                let explain = |request: Request<_>| service.explain(request);
                grpc(most).unary(service_fn(explain), request).await
            }
            _ => Status::unimplemented("").into_http(),
        }
    }
}

impl NamedService for Router {
    const NAME: &'static str = SERVICE_NAME;
}

impl tower::Service<http::Request<Body>> for Router {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let router = self.clone();
        Box::pin(async move { Ok(router.answer(request).await) })
    }
}

/// How a method is served.
fn grpc<Q: weigh::Request, A: Message + 'static>(most: usize) -> Grpc<Weighing<Q, A>> {
    Grpc::new(Weighing(PhantomData))
        .max_decoding_message_size(most)
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
}

/// Weighs, then decodes.
struct Weighing<Q, A>(PhantomData<(Q, A)>);

impl<Q: weigh::Request, A: Message + 'static> Codec for Weighing<Q, A> {
    type Encode = A;
    type Decode = Q;
    type Encoder = ProstEncoder<A>;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self {
        Self(PhantomData)
    }
}

impl<Q: weigh::Request, A> Decoder for Weighing<Q, A> {
    type Item = Q;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Q>, Status> {
        // No copy: the message is split off the buffer.
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        weigh::decode(bytes).map(Some)
    }
}
