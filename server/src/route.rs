//! Routes calls to the methods of the service.
//!
//! Replaces the router that tonic generates, which would decode a message before memory is held for it (`request_reader`).

use std::{future::ready, sync::Arc};

use futures::{Stream, stream};
use nodewise_proto::v1::{self, reconcile_service_server::SERVICE_NAME};
use prost::Message;
use tonic::{Request, Response, Status, Streaming, body::Body, codec::CompressionEncoding, server::Grpc};
use tower::service_fn;

use crate::{
    admission::Admission,
    codec::ResponseCodec,
    config::Config,
    engine::Engine,
    limits::Limits,
    request_reader::{ReadLimits, RequestReader},
    service::Service,
    size_estimate,
};

/// Routes calls to the service.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    service: Service,
    limits: ReadLimits,
}

impl Router {
    pub(crate) fn new(service: Service, config: &Config) -> Self {
        Self {
            limits: ReadLimits {
                most: config.max_message_size.as_usize(),
                timeout: config.transfer_timeout,
                pool: service.pool().clone(),
            },
            service,
        }
    }

    /// Answers an admitted call.
    pub(crate) async fn answer(
        self,
        request: http::Request<Body>,
        admission: Admission,
    ) -> http::Response<Body> {
        let Self { service, limits } = self;
        let service = &service;
        let small = ReadLimits {
            most: Limits::SMALL_MESSAGE_BYTES,
            ..limits.clone()
        };
        let path = request.uri().path().strip_prefix('/');
        match path.and_then(|path| path.strip_prefix(SERVICE_NAME)) {
            Some("/Plan") => {
                unary(request, limits, admission, |message, admission| {
                    service.answer(message, admission, Engine::plan_for)
                })
                .await
            }
            Some("/PlanStream") => {
                let plan = |reader| ready(service.plan_stream(&admission, reader));
                serve::<v1::PlanStreamRequest, _, _, _>(request, limits, plan).await
            }
            Some("/Report") => {
                unary(request, limits, admission, |message, admission| {
                    service.answer(message, admission, Engine::report_for)
                })
                .await
            }
            Some("/GetCapabilities") => {
                let answer = Ok(service.capabilities());
                unary(request, small, admission, |_: v1::GetCapabilitiesRequest, _| {
                    ready(answer)
                })
                .await
            }
            Some("/Explain") => {
                unary(request, limits, admission, |message, admission| {
                    service.answer(message, admission, Engine::explain_for)
                })
                .await
            }
            Some("/Simulate") => {
                let answer = async move |reader: RequestReader<v1::SimulateRequest>| {
                    let message = reader.only(Arc::clone(&admission.memory)).await?;
                    Ok(Response::new(service.simulate(message, admission).await?))
                };
                serve(request, limits, answer).await
            }
            Some("/EvaluateNodes") => {
                unary(request, limits, admission, |message, admission| {
                    service.answer(message, admission, Engine::evaluate_nodes_for)
                })
                .await
            }
            _ => Status::unimplemented("").into_http(),
        }
    }
}

/// A unary method.
async fn unary<Q, A, F>(
    request: http::Request<Body>,
    limits: ReadLimits,
    admission: Admission,
    ask: impl FnOnce(Q, Admission) -> F + Send,
) -> http::Response<Body>
where
    Q: size_estimate::Request,
    A: Message + 'static,
    F: Future<Output = Result<A, Status>> + Send,
{
    let answer = async move |reader: RequestReader<Q>| {
        let message = reader.only(Arc::clone(&admission.memory)).await?;
        let answer = ask(message, admission).await?;
        Ok(Response::new(stream::once(ready(Ok(answer)))))
    };
    serve(request, limits, answer).await
}

/// A method whose handler reads its own request messages. tonic checks the headers and sends the responses.
async fn serve<Q, A, S, F>(
    request: http::Request<Body>,
    limits: ReadLimits,
    answer: impl FnOnce(RequestReader<Q>) -> F + Send,
) -> http::Response<Body>
where
    Q: size_estimate::Request,
    A: Message + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
    F: Future<Output = Result<Response<S>, Status>>,
{
    let (head, body) = request.into_parts();
    let mut once = Some((RequestReader::new(&head, body, limits), answer));
    let answer = |_: Request<Streaming<Q>>| {
        let (reader, answer) = once.take().expect("a call is answered once");
        answer(reader)
    };
    Grpc::new(ResponseCodec::<A, Q>::default())
        .max_encoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .streaming(service_fn(answer), http::Request::from_parts(head, Body::empty()))
        .await
}
