//! Logs overlapping selectors, at most once a minute for the same workloads.

use std::sync::Arc;

use nodewise_projection::Key;
use nodewise_runtime::log_limiter::LogLimiter;

/// The overlaps that were logged lately. The limit is needed because anyone who may label a pod may change the label
/// all the time.
#[derive(Debug, Default)]
pub(crate) struct Overlaps(LogLimiter<Vec<Key>>);

impl Overlaps {
    /// Logs that these workloads select the same orphan, unless that was logged within the last minute.
    pub(crate) fn log(&mut self, keys: Vec<Key>) {
        let names: Vec<_> = keys.iter().map(|key| Arc::clone(&key.name)).collect();
        let Some(first) = keys.first().cloned() else {
            return;
        };
        if self.0.is_due(keys) {
            tracing::warn!(
                namespace = &*first.namespace,
                ?names,
                "several {}s select the same orphan: their selectors overlap",
                first.kind
            );
        }
    }
}
