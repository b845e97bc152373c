//! The caller's side.

use http::Uri;
use tonic::{Code, Request, Status, metadata::MetadataMap};
use tracing::{Instrument as _, Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::code_name;
use crate::propagation;

/// One attempt of a call: its span, and its context on the way to the server.
#[derive(Debug)]
pub struct ClientCall(Span);

impl ClientCall {
    /// A call of `method`, such as `package.Service/Method`, at the server of this URL. Its span is a child of the current one.
    #[must_use]
    pub fn new(method: &'static str, url: &str) -> Self {
        let span = tracing::debug_span!(
            "rpc",
            otel.name = method,
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            rpc.system.name = "grpc",
            rpc.method = method,
            rpc.response.status_code = Empty,
            error.r#type = Empty,
            server.address = Empty,
            server.port = Empty,
        );
        if !span.is_disabled()
            && let Ok(url) = url.parse::<Uri>()
        {
            span.record("server.address", url.host());
            span.record("server.port", url.port_u16().map(i64::from));
        }
        Self(span)
    }

    /// Counts something about the call.
    pub fn count(&self, name: &'static str, count: usize) {
        self.0
            .set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Says something about the call.
    pub fn tell(&self, name: &'static str, what: &'static str) {
        self.0.set_attribute(name, what);
    }

    /// Makes the call and records how it ended.
    pub async fn run<Q, A, F>(
        &self,
        mut request: Request<Q>,
        send: impl FnOnce(Request<Q>) -> F,
    ) -> Result<A, Status>
    where
        F: Future<Output = Result<A, Status>>,
    {
        let mut headers = std::mem::take(request.metadata_mut()).into_headers();
        self.0
            .in_scope(|| propagation::inject(&propagation::current(), &mut headers));
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        let result = send(request).instrument(self.0.clone()).await;
        let code = result.as_ref().err().map_or(Code::Ok, Status::code);
        self.0.record("rpc.response.status_code", code_name(code));
        if let Err(status) = &result {
            self.0.record("error.type", code_name(code));
            self.0.record("otel.status_code", "ERROR");
            self.0.record("otel.status_description", status.message());
        }
        result
    }
}
