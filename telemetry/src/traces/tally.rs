//! Counts exported, dropped and queued spans. The SDK does not report the spans that it drops.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use opentelemetry::Context;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor},
};

/// The counts of this process.
pub(crate) static TALLY: Tally = Tally::new();

/// The number of queued, exported and dropped spans.
#[derive(Debug)]
pub(crate) struct Tally {
    waiting: AtomicUsize,
    exported: AtomicU64,
    dropped: AtomicU64,
    /// Whether the last export failed.
    failing: AtomicBool,
}

impl Tally {
    const fn new() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            exported: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failing: AtomicBool::new(false),
        }
    }

    /// Spans that the collector accepted.
    pub(crate) fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    /// Spans that were dropped because the queue was full or the collector did not accept them.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Spans in the queue or in an export.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Reserves room in the queue for one span. Returns false, and counts the span as dropped, if the queue is full.
    fn enter(&self, most: usize) -> bool {
        let entered = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < most).then_some(waiting + 1)
            });
        if entered.is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        entered.is_ok()
    }

    /// Counts the result of an export. Logs when exports begin to fail, and when they succeed again.
    fn leave(&self, spans: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        match result {
            Ok(()) => {
                self.exported.fetch_add(spans as u64, Ordering::Relaxed);
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(dropped = self.dropped(), "the collector accepts spans again");
                }
            }
            Err(error) => {
                self.dropped.fetch_add(spans as u64, Ordering::Relaxed);
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "the collector does not accept spans; they are dropped until it does");
                }
            }
        }
    }
}

/// Drops and counts spans if the queue is full, before the SDK would drop them without counting.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) inner: BatchSpanProcessor,
    /// The size of the queue, including the spans of a running export.
    pub(super) most: usize,
    pub(super) tally: &'static Tally,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.tally.enter(self.most) {
            self.inner.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: std::time::Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Counts the results of exports.
#[derive(Debug)]
pub(super) struct Counted<E> {
    pub(super) inner: E,
    pub(super) tally: &'static Tally,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        self.tally.leave(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: std::time::Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_is_exported_dropped_or_queued() {
        let tally = Tally::new();
        let entered = (0..10).filter(|_| tally.enter(8)).count();
        assert_eq!(entered, 8, "there is no room for more");
        tally.leave(4, &Ok(()));
        assert!(tally.enter(8), "there is room again");
        tally.leave(3, &Err(opentelemetry_sdk::error::OTelSdkError::AlreadyShutdown));
        assert_eq!((tally.exported(), tally.dropped(), tally.waiting()), (4, 5, 2));
        assert!(tally.failing.load(Ordering::Relaxed));
    }
}
