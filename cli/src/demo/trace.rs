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
/// The attributes in the detail column, in this order: the name, and a unit that is appended to the value.
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

/// A span processor that keeps the spans of the slowest reconcile so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowestReconcile(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// The spans of traces whose root span has not ended, and of the slowest trace.
    spans: HashMap<TraceId, Vec<SpanData>>,
    slowest: Option<(Duration, TraceId)>,
}

/// A trace in the report.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub(super) id: String,
    /// The objects whose watch events triggered the reconcile.
    pub(super) triggers: Vec<String>,
    pub(super) spans: Vec<Row>,
}

/// One span of a trace.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// `internal`, `client` or `server`.
    pub(super) kind: &'static str,
    /// The depth below the root.
    pub(super) depth: usize,
    /// For each ancestor below the root, and for the span itself: whether it is the last child of its parent.
    #[serde(skip)]
    pub(super) last: Vec<bool>,
    /// Milliseconds from the start of the trace.
    pub(super) start_ms: f64,
    pub(super) duration_ms: f64,
    pub(super) detail: String,
}

impl SlowestReconcile {
    /// The trace of the slowest reconcile. `None` if no reconcile was recorded.
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

impl SpanProcessor for SlowestReconcile {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let trace = span.span_context.trace_id();
        let took = is_root(&span).then(|| elapsed(span.start_time, span.end_time));
        let mut kept = self.lock();
        kept.spans.entry(trace).or_default().push(span);
        let Some(took) = took else { return };
        let faster = match kept.slowest {
            Some((slowest, _)) if slowest >= took => Some(trace),
            before => {
                kept.slowest = Some((took, trace));
                before.map(|(_, trace)| trace)
            }
        };
        if let Some(faster) = faster {
            kept.spans.remove(&faster);
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

/// Adds a span and its descendants, sorted by start time.
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

/// The text of the detail column.
fn detail(span: &SpanData) -> String {
    let shown = DETAILS.iter().filter_map(|(name, unit)| {
        let attribute = span.attributes.iter().find(|found| found.key.as_str() == *name)?;
        match &attribute.value {
            // Zero failures and status OK are not shown.
            Value::I64(0) if *name == "nodewise.batch.failed" => None,
            Value::String(text) if text.as_str() == "OK" => None,
            Value::I64(1) => Some(format!("1{}", unit.trim_end_matches('s'))),
            value => Some(format!("{value}{unit}")),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}
