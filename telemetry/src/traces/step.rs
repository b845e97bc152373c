//! Records the steps of a call: their durations, and spans for long ones.

use std::time::{Duration, Instant, SystemTime};

use opentelemetry::{
    Context, KeyValue,
    trace::{Span as _, TraceContextExt as _, Tracer as _},
};
use opentelemetry_sdk::trace::SdkTracer;

/// The shortest step that gets a span. A span costs about 10 µs with its export, which is much for a step of some 100 µs, and such
/// a short span is not visible in a trace of calls that take milliseconds.
const MIN_SPAN: Duration = Duration::from_millis(1);

/// A kind of step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The name of its span.
    pub name: &'static str,
    /// The attribute for its duration: `nodewise.<name>.duration`.
    pub duration: &'static str,
}

/// Runs a step of the current span's work. If the span is recorded, it gets the duration of the step in seconds as an attribute. A step
/// of at least one millisecond also gets a child span, which is not the current span during the step.
pub fn step<T>(step: Step, work: impl FnOnce() -> T) -> T {
    let is_recorded = Context::map_current(|here| here.span().is_recording());
    let Some(tracer) = super::tracer().filter(|_| is_recorded) else {
        return work();
    };
    let (start, began) = (SystemTime::now(), Instant::now());
    let result = work();
    record(tracer, step, start, began.elapsed());
    result
}

fn record(tracer: &SdkTracer, step: Step, start: SystemTime, took: Duration) {
    if took >= MIN_SPAN {
        let span = tracer.span_builder(step.name).with_start_time(start);
        span.start(tracer).end_with_timestamp(start + took);
    }
    set_attribute(KeyValue::new(step.duration, took.as_secs_f64()));
}

/// Sets an integer attribute of the current span.
pub fn count(name: &'static str, count: usize) {
    set_attribute(KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX)));
}

fn set_attribute(attribute: KeyValue) {
    Context::map_current(|here| here.span().set_attribute(attribute));
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

    use super::*;

    #[test]
    fn every_step_is_an_attribute_and_long_ones_are_spans() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let tracer = provider.tracer("test");
        let call = Context::new().with_span(tracer.start("call"));
        let [short, long] = [
            ("short", "nodewise.short.duration"),
            ("long", "nodewise.long.duration"),
        ]
        .map(|(name, duration)| Step { name, duration });
        let start = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        {
            let _here = call.attach();
            record(&tracer, short, start, Duration::from_micros(999));
            record(&tracer, long, start, Duration::from_millis(1));
            count("nodes", 7);
        }
        let spans = exporter.get_finished_spans().expect("spans");
        let [long, call] = &spans[..] else {
            panic!("two spans: {spans:?}");
        };
        assert_eq!((&*long.name, long.start_time), ("long", start));
        assert_eq!(long.end_time, start + Duration::from_millis(1));
        assert_eq!(long.parent_span_id, call.span_context.span_id());
        let attributes: Vec<_> = call
            .attributes
            .iter()
            .map(|attribute| (attribute.key.as_str(), attribute.value.to_string()))
            .collect();
        let expected = [
            ("nodewise.short.duration", "0.000999"),
            ("nodewise.long.duration", "0.001"),
            ("nodes", "7"),
        ];
        assert_eq!(attributes, expected.map(|(name, value)| (name, value.to_owned())));
    }
}
