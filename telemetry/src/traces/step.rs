//! Steps of a call's work.

use opentelemetry::{
    Context, KeyValue,
    trace::{Span as _, TraceContextExt as _, Tracer as _},
};

/// Does a step of what is recorded here, in a span of its own that counts these things. It is not the current span meanwhile.
pub fn step<T>(name: &'static str, counts: &[(&'static str, usize)], work: impl FnOnce() -> T) -> T {
    let is_recorded = Context::map_current(|here| here.span().is_recording());
    let Some(tracer) = super::tracer().filter(|_| is_recorded) else {
        return work();
    };
    let count = |&(name, count): &(_, usize)| KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX));
    let mut span = tracer
        .span_builder(name)
        .with_attributes(counts.iter().map(count))
        .start(tracer);
    let result = work();
    span.end();
    result
}
