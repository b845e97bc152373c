//! The server span of a gRPC call, and its duration.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::{Frame, SizeHint};
use opentelemetry::{
    Context as OtelContext, KeyValue,
    context::FutureExt as _,
    trace::{self, SpanKind, TraceContextExt as _, Tracer as _},
};
use tonic::{Code, Status, body::Body, server::NamedService};
use tower::Service;

use super::code_name;
use crate::{propagation::extract, traces};

/// A method whose calls are traced and measured.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// `package.Service/Method`, which is also the span name.
    pub name: &'static str,
    /// Whether a call without a trace context starts a new trace.
    pub begins_traces: bool,
}

impl Method {
    /// The method name without package and service.
    #[must_use]
    pub fn rpc(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

/// Called at the end of each call, with the full method name, the status code, and the time until the last byte of the response.
/// The call's span is the current span meanwhile.
pub type OnEnd = Arc<dyn Fn(&'static str, Code, Duration) + Send + Sync>;

/// A tower service that adds a span to each call and measures it, from the request's headers to the last byte of the response.
#[derive(Clone)]
pub struct Traced<S> {
    inner: S,
    methods: &'static [Method],
    on_end: OnEnd,
}

impl<S: fmt::Debug> fmt::Debug for Traced<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced")
            .field("inner", &self.inner)
            .field("methods", &self.methods)
            .finish_non_exhaustive()
    }
}

impl<S> Traced<S> {
    /// Traces calls of these methods. Other calls have no span, because a client could choose any name.
    pub fn new(inner: S, methods: &'static [Method], on_end: OnEnd) -> Self {
        Self {
            inner,
            methods,
            on_end,
        }
    }

    fn method<B>(&self, request: &Request<B>) -> Option<&'static Method> {
        let name = request.uri().path().strip_prefix('/')?;
        self.methods.iter().find(|method| method.name == name)
    }
}

/// The attributes that the span of a call usually gets, so that their list need not grow.
const ATTRIBUTES: usize = 16;

/// The trace context of a call. It includes a new server span if the call is traced.
fn context<B>(method: &Method, request: &Request<B>) -> OtelContext {
    let Some(tracer) = traces::tracer() else {
        return OtelContext::new();
    };
    let caller = extract(request.headers());
    if !method.begins_traces && !caller.has_active_span() {
        return caller;
    }
    let mut attributes = Vec::with_capacity(ATTRIBUTES);
    attributes.push(KeyValue::new("rpc.system.name", "grpc"));
    attributes.push(KeyValue::new("rpc.method", method.name));
    let mut span = tracer.span_builder(method.name).with_kind(SpanKind::Server);
    span.attributes = Some(attributes);
    caller.with_span(span.start_with_context(tracer, &caller))
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
        let Some(method) = self.method(&request) else {
            return Box::pin(self.inner.call(request));
        };
        let context = context(method, &request);
        let mut call = Call {
            context: context.clone(),
            method: method.name,
            began: Instant::now(),
            code: Code::Cancelled,
            on_end: Arc::clone(&self.on_end),
        };
        let response = {
            let _here = context.clone().attach();
            self.inner.call(request).with_context(context)
        };
        Box::pin(async move {
            let (head, body) = response.await?.into_parts();
            call.read(&head.headers);
            let body = TracedBody { inner: body, call };
            Ok(Response::from_parts(head, Body::new(body)))
        })
    }
}

/// A call in progress. Dropping it ends the span and calls `on_end`.
struct Call {
    context: OtelContext,
    method: &'static str,
    began: Instant,
    /// The status code. CANCELLED until the response has one.
    code: Code,
    on_end: OnEnd,
}

impl Call {
    /// Reads `grpc-status`. It is in the headers if a call failed before its first message, otherwise in the trailers.
    fn read(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get(Status::GRPC_STATUS) {
            self.code = Code::from_bytes(status.as_bytes());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let name = code_name(self.code);
        let span = self.context.span();
        span.set_attribute(KeyValue::new("rpc.response.status_code", name));
        if is_server_error(self.code) {
            span.set_attribute(KeyValue::new("error.type", name));
            span.set_status(trace::Status::error(""));
        }
        let took = self.began.elapsed();
        {
            let _here = self.context.clone().attach();
            (self.on_end)(self.method, self.code, took);
        }
        span.end();
    }
}

/// The status codes that the semantic conventions count as server errors.
fn is_server_error(code: Code) -> bool {
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
        let here = call.context.clone().attach();
        let polled = Pin::new(inner).poll_frame(context);
        drop(here);
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
