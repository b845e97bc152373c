//! The server's side.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::{Frame, SizeHint};
use opentelemetry::trace::TraceContextExt as _;
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::Service;
use tracing::{Instrument as _, Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::extract;

/// A method whose calls are traced.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Its name in the contract.
    pub rpc: &'static str,
    /// The name of its spans.
    pub span: &'static str,
    /// Whether calls that belong to no trace begin one.
    pub begins_traces: bool,
}

/// Stands around a service and spans each call, from the request's headers to the last byte of the answer.
#[derive(Debug, Clone)]
pub struct Traced<S> {
    inner: S,
    methods: &'static [Method],
}

impl<S> Traced<S> {
    /// Traces calls of these methods. Others pass untraced, since their names are the client's to choose.
    pub fn new(inner: S, methods: &'static [Method]) -> Self {
        Self { inner, methods }
    }

    /// The span of a call, which is disabled where there is nothing to trace.
    fn span<B>(&self, request: &Request<B>) -> Span {
        let mut path = request.uri().path().split('/').skip(1);
        let (service, rpc) = (path.next().unwrap_or_default(), path.next());
        let Some(method) = self.methods.iter().find(|method| Some(method.rpc) == rpc) else {
            return Span::none();
        };
        let caller = extract(request.headers());
        if !method.begins_traces && !caller.has_active_span() {
            return Span::none();
        }
        let span = tracing::debug_span!(
            parent: None,
            "rpc",
            otel.name = method.span,
            otel.kind = "server",
            otel.status_code = Empty,
            rpc.system = "grpc",
            rpc.service = service,
            rpc.method = method.rpc,
            rpc.grpc.status_code = Empty,
        );
        // Fails where spans only go to the log.
        let _ = span.set_parent(caller);
        span
    }
}

impl<S: NamedService> NamedService for Traced<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Traced<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let span = self.span(&request);
        if span.is_disabled() {
            return Box::pin(self.inner.call(request));
        }
        let response = span
            .in_scope(|| self.inner.call(request))
            .instrument(span.clone());
        let mut call = Call {
            span,
            code: Code::Cancelled,
        };
        Box::pin(async move {
            let (head, body) = response.await?.into_parts();
            call.read(&head.headers);
            let body = TracedBody { inner: body, call };
            Ok(Response::from_parts(head, Body::new(body)))
        })
    }
}

/// A call until its end, which is recorded when this is dropped.
struct Call {
    span: Span,
    /// How it ended; cancelled by its client until it is known better.
    code: Code,
}

impl Call {
    /// Headers tell how a call ended that failed before its first answer, trailers how any other did.
    fn read(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get(Status::GRPC_STATUS) {
            self.code = Code::from_bytes(status.as_bytes());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.span.record("rpc.grpc.status_code", self.code as i64);
        if is_servers_fault(self.code) {
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// What the conventions count as an error on this side; the rest is the client's.
fn is_servers_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

struct TracedBody {
    inner: Body,
    call: Call,
}

impl http_body::Body for TracedBody {
    type Data = <Body as http_body::Body>::Data;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Self { inner, call } = &mut *self;
        let polled = call.span.in_scope(|| Pin::new(inner).poll_frame(context));
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(trailers) = frame.trailers_ref()
        {
            call.read(trailers);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
