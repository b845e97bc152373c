//! The trace of the slowest reconcile, kept in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use opentelemetry::{
    Context, TraceId, Value,
    trace::{SpanId, SpanKind},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use serde::Serialize;

/// The root span of a reconcile.
const ROOT: &str = "reconcile";
/// What is shown beside the name of a span, in this order: the attribute, and words behind its value.
const DETAILS: [(&str, &str); 12] = [
    ("nodewise.plan.verdict", ""),
    ("nodewise.plan.actions", " actions"),
    ("nodewise.request.bytes", " bytes"),
    ("nodewise.nodes", " nodes"),
    ("nodewise.pods", " pods"),
    ("nodewise.phase", ""),
    ("nodewise.batch.actions", " actions"),
    ("nodewise.batch.failed", " failed"),
    ("nodewise.apply.actions", " actions"),
    ("nodewise.outcomes", " outcomes"),
    ("nodewise.reconcile.outcome", ""),
    ("rpc.response.status_code", ""),
];

/// Keeps the spans of the slowest reconcile that has ended. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Slowest(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Of traces whose root has not ended, and of the slowest one.
    spans: HashMap<TraceId, Vec<SpanData>>,
    slowest: Option<(Duration, TraceId)>,
}

/// A trace, as programs and people see it.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub(super) id: String,
    /// Objects whose events woke the workload.
    pub(super) triggers: Vec<String>,
    pub(super) spans: Vec<Row>,
}

/// One span, below the one that it is part of.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// `internal`, `client` or `server`.
    pub(super) kind: &'static str,
    /// How far below the root.
    pub(super) depth: usize,
    /// Whether it is the last one below its parent, for itself and for each one above it but the root.
    #[serde(skip)]
    pub(super) last: Vec<bool>,
    /// From the beginning of the trace.
    pub(super) start_ms: f64,
    pub(super) duration_ms: f64,
    pub(super) detail: String,
}

impl Slowest {
    /// The slowest reconcile; none where none was recorded.
    pub(super) fn trace(&self) -> Option<Trace> {
        let kept = self.lock();
        let (_, trace_id) = kept.slowest?;
        let spans = kept.spans.get(&trace_id)?;
        let root = spans.iter().find(|span| is_root(span))?;
        let mut rows = Vec::new();
        add(&mut rows, spans, root, root.start_time, &[]);
        let triggers = root.events.iter().filter(|event| event.name == "trigger");
        Some(Trace {
            id: trace_id.to_string(),
            triggers: triggers
                .map(|event| {
                    let values = event
                        .attributes
                        .iter()
                        .map(|attribute| attribute.value.to_string());
                    values.collect::<Vec<_>>().join(" ")
                })
                .collect(),
            spans: rows,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanProcessor for Slowest {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let trace = span.span_context.trace_id();
        let took = is_root(&span).then(|| elapsed(span.start_time, span.end_time));
        let mut kept = self.lock();
        kept.spans.entry(trace).or_default().push(span);
        let Some(took) = took else { return };
        let beaten = match kept.slowest {
            Some((slowest, _)) if slowest >= took => Some(trace),
            before => {
                kept.slowest = Some((took, trace));
                before.map(|(_, trace)| trace)
            }
        };
        if let Some(beaten) = beaten {
            kept.spans.remove(&beaten);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn is_root(span: &SpanData) -> bool {
    span.parent_span_id == SpanId::INVALID && span.name == ROOT
}

fn elapsed(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}

/// Adds a span and what is below it, in the order in which they began.
fn add(rows: &mut Vec<Row>, spans: &[SpanData], span: &SpanData, began: SystemTime, last: &[bool]) {
    let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    rows.push(Row {
        name: span.name.to_string(),
        kind: match span.span_kind {
            SpanKind::Client => "client",
            SpanKind::Server => "server",
            _ => "internal",
        },
        depth: last.len(),
        last: last.to_vec(),
        start_ms: ms(elapsed(began, span.start_time)),
        duration_ms: ms(elapsed(span.start_time, span.end_time)),
        detail: detail(span),
    });
    let id = span.span_context.span_id();
    let mut below: Vec<_> = spans.iter().filter(|span| span.parent_span_id == id).collect();
    below.sort_by_key(|span| (span.start_time, span.end_time));
    let count = below.len();
    for (index, child) in below.into_iter().enumerate() {
        let last = [last, &[index + 1 == count]].concat();
        add(rows, spans, child, began, &last);
    }
}

/// The attributes that say most.
fn detail(span: &SpanData) -> String {
    let shown = DETAILS.iter().filter_map(|(name, unit)| {
        let attribute = span.attributes.iter().find(|found| found.key.as_str() == *name)?;
        match &attribute.value {
            // Nothing failed, and nothing went wrong: that needs no words.
            Value::I64(0) if *name == "nodewise.batch.failed" => None,
            Value::String(text) if text.as_str() == "OK" => None,
            Value::I64(1) => Some(format!("1{}", unit.trim_end_matches('s'))),
            value => Some(format!("{value}{unit}")),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}
