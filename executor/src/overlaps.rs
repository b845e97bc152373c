//! Logs overlapping selectors, at most once a minute for each workload that comes first among them.

use nodewise_projection::Key;
use nodewise_runtime::log_limiter::LogLimiter;

/// The most workloads that a line names.
const MAX_NAMES: usize = 5;

/// The overlaps that were logged lately, by their first workload. The limit is needed because anyone who may label a pod may
/// change the label all the time, and each label may select others of thousands of workloads.
#[derive(Debug, Default)]
pub(crate) struct Overlaps(LogLimiter<Key>);

impl Overlaps {
    /// Logs that these workloads select the same orphan, unless that was logged within the last minute.
    pub(crate) fn log(&mut self, keys: &[Key]) {
        let Some(first) = keys.first().filter(|first| self.0.is_due((*first).clone())) else {
            return;
        };
        let names: Vec<_> = keys.iter().take(MAX_NAMES).map(|key| &*key.name).collect();
        tracing::warn!(
            namespace = &*first.namespace,
            ?names,
            others = keys.len() - names.len(),
            "several {}s select the same orphan: their selectors overlap",
            first.kind
        );
    }
}
