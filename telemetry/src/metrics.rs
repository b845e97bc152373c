//! Histograms with exemplars, and the metrics about span export and the process.

use std::{fmt, time::SystemTime};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{counter::ConstCounter, exemplar::HistogramWithExemplars, family::Family, gauge::ConstGauge},
    registry::{Registry, Unit},
};

use crate::{process::Process, propagation, traces::tally::TALLY};

/// The labels of an exemplar: the trace id and the span id of the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Exemplar {
    trace_id: String,
    span_id: String,
}

impl Exemplar {
    /// The current span, if it is sampled.
    fn current() -> Option<Self> {
        let span = propagation::current();
        (span.is_valid() && span.is_sampled()).then(|| Self {
            trace_id: span.trace_id().to_string(),
            span_id: span.span_id().to_string(),
        })
    }
}

/// A histogram. Each bucket has an exemplar: the trace of its last observation.
pub type Histogram = HistogramWithExemplars<Exemplar>;

/// A family of histograms, one for each set of labels.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Observes a value, with the current span as exemplar.
pub fn observe(histogram: &Histogram, value: f64) {
    let exemplar = Exemplar::current();
    let when = exemplar.is_some().then(SystemTime::now);
    histogram.observe(value, exemplar, when);
}

/// Registers the metrics that every process has: version, resource usage, and span export.
pub fn register_process(registry: &mut Registry) {
    registry.register_collector(Box::new(Process));
    registry.register_collector(Box::new(Spans));
}

#[derive(Debug)]
struct Spans;

impl Collector for Spans {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, count) in [
            (
                "nodewise_trace_spans_exported",
                "Spans that the collector accepted",
                TALLY.exported(),
            ),
            (
                "nodewise_trace_spans_dropped",
                "Spans that were dropped, because the queue was full or the collector did not accept them",
                TALLY.dropped(),
            ),
        ] {
            let count = ConstCounter::new(count);
            count.encode(encoder.encode_descriptor(name, help, None, count.metric_type())?)?;
        }
        let help = "Spans in the queue or in an export";
        encode_gauge(
            &mut encoder,
            "nodewise_trace_spans_waiting",
            help,
            None,
            TALLY.waiting() as u64,
        )
    }
}

/// Encodes a gauge without labels.
pub fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: u64,
) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)
}
