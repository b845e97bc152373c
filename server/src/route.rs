//! From a method's path to the service.
//!
//! This stands in for the generated router, which reads and decodes whatever comes: here memory is held first (`intake`).

use std::{
    convert::Infallible,
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{Stream, future::BoxFuture, stream};
use nodewise_proto::v1::{self, reconcile_service_server::SERVICE_NAME};
use prost::Message;
use tonic::{
    Extensions, Request, Response, Status, Streaming,
    body::Body,
    codec::CompressionEncoding,
    server::{Grpc, NamedService},
};
use tower::service_fn;

use crate::{
    codec::AnswerCodec,
    config::Config,
    intake::{Intake, Terms},
    limits::Limits,
    service::Service,
    shares::Share,
    weigh,
};

/// The methods of the service.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    service: Service,
    terms: Terms,
}

impl Router {
    pub(crate) fn new(service: Service, config: &Config) -> Self {
        Self {
            terms: Terms {
                most: config.max_message_size.as_usize(),
                within: config.transfer_timeout,
                pool: service.pool().clone(),
            },
            service,
        }
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        let Self { service, terms } = self;
        let service = &service;
        let small = Terms {
            most: Limits::SMALL_MESSAGE_BYTES,
            ..terms.clone()
        };
        let path = request.uri().path().strip_prefix('/');
        match path.and_then(|path| path.strip_prefix(SERVICE_NAME)) {
            Some("/Plan") => unary(request, terms, |request| service.plan(request)).await,
            Some("/PlanStream") => {
                let plan = |extensions, intake| ready(service.plan_stream(&extensions, intake));
                serve::<v1::PlanStreamRequest, _, _, _>(request, terms, plan).await
            }
            Some("/Report") => unary(request, terms, |request| service.report(request)).await,
            Some("/GetCapabilities") => {
                let answer = Ok(Response::new(service.capabilities()));
                unary(request, small, |_: Request<v1::GetCapabilitiesRequest>| {
                    ready(answer)
                })
                .await
            }
            Some("/Explain") => unary(request, terms, |request| service.explain(request)).await,
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

/// A method of one message, which has one answer.
async fn unary<Q, A, F>(
    request: http::Request<Body>,
    terms: Terms,
    ask: impl FnOnce(Request<Q>) -> F + Send,
) -> http::Response<Body>
where
    Q: weigh::Request,
    A: Message + 'static,
    F: Future<Output = Result<Response<A>, Status>> + Send,
{
    let answer = async move |extensions: Extensions, intake: Intake<Q>| {
        let memory: &Arc<Share> = extensions.get().expect("the gate holds the memory of a call");
        let message = intake.only(Arc::clone(memory)).await?;
        let mut request = Request::new(message);
        *request.extensions_mut() = extensions;
        let answer = ask(request).await?;
        Ok(answer.map(|answer| stream::once(ready(Ok(answer)))))
    };
    serve(request, terms, answer).await
}

/// A method, of whose messages the answer is made. The transport looks at the headers, and sends the answer.
async fn serve<Q, A, S, F>(
    request: http::Request<Body>,
    terms: Terms,
    answer: impl FnOnce(Extensions, Intake<Q>) -> F + Send,
) -> http::Response<Body>
where
    Q: weigh::Request,
    A: Message + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
    F: Future<Output = Result<Response<S>, Status>>,
{
    let (head, body) = request.into_parts();
    let mut once = Some((Intake::new(&head, body, terms), answer));
    let answer = |request: Request<Streaming<Q>>| {
        let (intake, answer) = once.take().expect("a call is answered once");
        let (_, extensions, _) = request.into_parts();
        answer(extensions, intake)
    };
    Grpc::new(AnswerCodec::<A, Q>::default())
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .streaming(service_fn(answer), http::Request::from_parts(head, Body::empty()))
        .await
}
