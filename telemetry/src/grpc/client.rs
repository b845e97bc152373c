//! The caller's side.

use http::Uri;
use tonic::{Code, Request, Status, metadata::MetadataMap};
use tracing::{Instrument as _, Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::inject;

/// One attempt of a call: its span, and its context on the way to the server.
#[derive(Debug)]
pub struct ClientCall(Span);

impl ClientCall {
    /// A call of `service`'s `method` at the server of this URL. Its span is named `name`, and is a child of the current one.
    #[must_use]
    pub fn new(name: &'static str, service: &'static str, method: &'static str, url: &str) -> Self {
        let span = tracing::debug_span!(
            "rpc",
            otel.name = name,
            otel.kind = "client",
            otel.status_description = Empty,
            rpc.system = "grpc",
            rpc.service = service,
            rpc.method = method,
            rpc.grpc.status_code = Empty,
            server.address = Empty,
            server.port = Empty,
        );
        if !span.is_disabled()
            && let Ok(url) = url.parse::<Uri>()
        {
            span.record("server.address", url.host());
            span.record("server.port", url.port_u16());
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
        inject(&self.0.context(), &mut headers);
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        let result = send(request).instrument(self.0.clone()).await;
        let code = result.as_ref().err().map_or(Code::Ok, Status::code);
        self.0.record("rpc.grpc.status_code", code as i64);
        if let Err(status) = &result {
            self.0.record("otel.status_description", status.message());
        }
        result
    }
}
