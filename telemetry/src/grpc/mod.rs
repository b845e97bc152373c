//! Traces over gRPC: a span on each side of a call, and the W3C trace context in its metadata in between.
//!
//! Attributes are named by OpenTelemetry's conventions for RPC.

mod client;
mod server;

pub use client::ClientCall;
pub use server::{Method, Traced};

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator as _},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// Writes `traceparent` and `tracestate`; nothing where there is no trace.
fn inject(context: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(context, &mut Headers(headers));
}

/// Reads them; what cannot be read counts as absent.
fn extract(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers))
}

struct Headers<H>(H);

impl Injector for Headers<&mut HeaderMap> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

impl Extractor for Headers<&HeaderMap> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    #[test]
    fn a_context_survives_the_way_and_garbage_is_none() {
        let sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(sent));
        let mut copied = HeaderMap::new();
        inject(&extract(&headers), &mut copied);
        assert_eq!(copied["traceparent"], sent);
        for garbage in [
            &b""[..],
            b"00-0-0-00",
            b"\xff",
            b"00-00000000000000000000000000000000-b7ad6b7169203331-01",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_bytes(garbage).expect("bytes"));
            let context = extract(&headers);
            assert!(!context.span().span_context().is_valid(), "{garbage:?}");
            let mut copied = HeaderMap::new();
            inject(&context, &mut copied);
            assert!(!copied.contains_key("traceparent"), "{garbage:?}");
        }
    }
}
