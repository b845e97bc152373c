//! Reads and writes the W3C trace context (`traceparent`, `tracestate`).

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context, TraceFlags,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::{SpanContext, TraceContextExt as _, TraceState},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// The largest size of a `tracestate` in bytes that the specification requires to be passed on. A longer one is dropped.
const LONGEST_STATE: usize = 512;

const TRACEPARENT: &str = "traceparent";

/// The context of the current span. Not valid if there is no span or tracing is off.
#[must_use]
pub fn current() -> SpanContext {
    Context::current().span().span_context().clone()
}

/// Wraps a closure so that it runs with the present trace context, also on another thread.
pub fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let here = Context::current();
    move || {
        let _here = here.attach();
        work()
    }
}

/// Writes `traceparent` and `tracestate`. Writes nothing if the context is not valid.
pub fn inject(span: &SpanContext, headers: &mut HeaderMap) {
    let context = Context::new().with_remote_span_context(span.clone());
    TraceContextPropagator::new().inject_context(&context, &mut Headers(headers));
}

/// Reads `traceparent` and `tracestate`. Invalid values count as absent.
#[must_use]
pub fn extract(headers: &HeaderMap) -> Context {
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
    let span = context.span().span_context().clone();
    if span.trace_state().header().len() <= LONGEST_STATE {
        return context;
    }
    // Drop the state: every child span would keep it.
    let state = TraceState::default();
    let span = SpanContext::new(span.trace_id(), span.span_id(), span.trace_flags(), true, state);
    Context::new().with_remote_span_context(span)
}

/// The same context with the sampled flag off, so that child spans are not recorded.
#[must_use]
pub fn unsampled(span: &SpanContext) -> SpanContext {
    let flags = TraceFlags::default();
    let state = span.trace_state().clone();
    SpanContext::new(span.trace_id(), span.span_id(), flags, span.is_remote(), state)
}

/// The value of a `traceparent` header for a context. `None` if the context is not valid.
#[must_use]
pub fn traceparent(span: &SpanContext) -> Option<String> {
    let mut headers = HeaderMap::new();
    inject(span, &mut headers);
    let value = headers.get(TRACEPARENT)?;
    value.to_str().ok().map(str::to_owned)
}

/// Parses the value of a `traceparent` header.
#[must_use]
pub fn read_traceparent(text: &str) -> Option<SpanContext> {
    let mut headers = HeaderMap::new();
    headers.insert(TRACEPARENT, text.parse().ok()?);
    let span = extract(&headers).span().span_context().clone();
    span.is_valid().then_some(span)
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
    use super::*;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_written_and_read_and_garbage_is_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(SENT));
        let mut copied = HeaderMap::new();
        inject(extract(&headers).span().span_context(), &mut copied);
        assert_eq!(copied["traceparent"], SENT);
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
            inject(context.span().span_context(), &mut copied);
            assert!(!copied.contains_key("traceparent"), "{garbage:?}");
        }
    }

    #[test]
    fn a_long_tracestate_is_dropped() {
        for (length, kept) in [(500, true), (600, false)] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_static(SENT));
            let state =
                format!("a={}", "x".repeat(length / 2)) + &format!(",b={}", "y".repeat(length / 2 - 6));
            headers.insert("tracestate", state.parse().expect("a value"));
            let span = extract(&headers).span().span_context().clone();
            assert_eq!(traceparent(&span).as_deref(), Some(SENT));
            assert_eq!(!span.trace_state().header().is_empty(), kept, "{length}");
        }
    }

    #[test]
    fn a_traceparent_is_written_and_read() {
        let span = read_traceparent(SENT).expect("a context");
        assert_eq!(traceparent(&span).as_deref(), Some(SENT));
        let unsampled = traceparent(&unsampled(&span)).expect("still a context");
        assert_eq!(unsampled, SENT.replace("-01", "-00"));
        assert_eq!(read_traceparent("none\n"), None);
        assert_eq!(traceparent(&SpanContext::NONE), None);
    }
}
