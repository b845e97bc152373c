//! The client span of a gRPC call.

use http::Uri;
use tonic::{Code, Request, Status, metadata::MetadataMap};
use tracing::{Instrument as _, Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::code_name;
use crate::propagation;

/// One gRPC call: makes its client span, and sends the trace context to the server.
#[derive(Debug)]
pub struct ClientCall(Span);

impl ClientCall {
    /// A call of `method` (`package.Service/Method`) at the server with this URL. The span is a child of the current span.
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

    /// Sets an integer attribute of the span.
    pub fn count(&self, name: &'static str, count: usize) {
        self.0
            .set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets a string attribute of the span.
    pub fn tell(&self, name: &'static str, what: &'static str) {
        self.0.set_attribute(name, what);
    }

    /// Makes the call and records its status.
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
        let mut ending = Ending(&self.0, Code::Cancelled);
        let result = send(request).instrument(self.0.clone()).await;
        ending.1 = result.as_ref().err().map_or(Code::Ok, Status::code);
        if let Err(status) = &result {
            self.0.record("otel.status_description", status.message());
        }
        result
    }
}

/// Records the status code of a call when it is dropped. The code is CANCELLED if the future was dropped before the call ended.
struct Ending<'a>(&'a Span, Code);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let Self(span, code) = self;
        span.record("rpc.response.status_code", code_name(*code));
        if *code != Code::Ok {
            span.record("error.type", code_name(*code));
            span.record("otel.status_code", "ERROR");
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
    use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

    use super::*;

    fn ended(answer: impl Future<Output = Result<(), Status>>) -> (String, bool) {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layers = tracing_subscriber::registry().with(crate::traces::layer(&provider));
        let _guard = layers.set_default();
        let call = ClientCall::new("a.B/C", "http://127.0.0.1:7443");
        let running = call.run(Request::new(()), |_| answer);
        // Polled once, then dropped.
        let _ = futures::FutureExt::now_or_never(running);
        drop(call);
        let span = exporter.get_finished_spans().expect("spans").remove(0);
        let attribute = |name| span.attributes.iter().find(|found| found.key.as_str() == name);
        let code = attribute("rpc.response.status_code")
            .expect("a code")
            .value
            .to_string();
        (code, attribute("error.type").is_some())
    }

    #[test]
    fn the_status_code_is_that_of_the_response_or_cancelled() {
        let (answered, refused) = (async { Ok(()) }, async { Err(Status::unavailable("away")) });
        assert_eq!(ended(answered), ("OK".to_owned(), false));
        assert_eq!(ended(refused), ("UNAVAILABLE".to_owned(), true));
        let hangs = std::future::pending();
        assert_eq!(ended(hangs), ("CANCELLED".to_owned(), true));
    }
}
