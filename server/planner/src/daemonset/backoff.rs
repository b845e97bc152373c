//! Back-off of failed pods (D-95 to D-99): the longer pods keep failing on a node, the later they are replaced.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::snapshot::{FailedPodBackoff, Snapshot},
    daemonset::workload::DaemonSet,
};

/// The first delay.
const INITIAL: Duration = Duration::from_secs(1);
/// The longest delay.
const MAX: Duration = Duration::from_mins(15);
/// Entries older than this are dropped.
const FORGET: SignedDuration = SignedDuration::from_mins(30);

/// The delay before a failed pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The whole delay.
    pub(crate) whole: Duration,
    /// The rest of the delay.
    pub(crate) left: Duration,
}

/// The back-off table of one workload.
#[derive(Debug, Clone)]
pub(crate) struct Backoffs {
    now: Timestamp,
    observed_generation: i64,
    /// By (observed generation, node).
    entries: Vec<FailedPodBackoff>,
}

impl Backoffs {
    /// The table of a snapshot, without old entries (D-99). An entry with a time in the future counts as made now: the clock was
    /// set back, and that must not make the delay longer (D-97).
    pub(crate) fn of(snapshot: &Snapshot<DaemonSet>) -> Self {
        let remembered = |entry: &&FailedPodBackoff| snapshot.now.duration_since(entry.last) <= FORGET;
        let mut entries: Vec<_> = snapshot
            .state
            .failed_pod_backoffs
            .iter()
            .filter(remembered)
            .cloned()
            .map(|entry| FailedPodBackoff {
                last: entry.last.min(snapshot.now),
                ..entry
            })
            .collect();
        // Of entries with the same key the newest stays.
        entries.sort_by(|a, b| {
            key(a)
                .cmp(&key(b))
                .then_with(|| b.last.cmp(&a.last))
                .then_with(|| b.delay.cmp(&a.delay))
        });
        entries.dedup_by(|a, b| key(a) == key(b));
        Self {
            now: snapshot.now,
            observed_generation: snapshot.workload.status.observed_generation,
            entries,
        }
    }

    /// The delay that a failed pod on this node must wait; `None` if it can be deleted now (D-95).
    pub(crate) fn wait(&self, node: &str) -> Option<Wait> {
        let entry = &self.entries[self.position(node).ok()?];
        let passed = self.now.duration_since(entry.last);
        let left = SignedDuration::try_from(entry.delay)
            .unwrap_or(SignedDuration::MAX)
            .saturating_sub(passed);
        left.is_positive().then(|| Wait {
            whole: entry.delay,
            left: left.unsigned_abs(),
        })
    }

    /// The delay that starts when a failed pod on this node is deleted now (D-97).
    pub(crate) fn next_delay(&self, node: &str) -> Duration {
        self.position(node).map_or(INITIAL, |index| {
            self.entries[index].delay.saturating_mul(2).min(MAX)
        })
    }

    /// Starts the next delay, because a failed pod on this node is deleted now.
    pub(crate) fn advance(&mut self, node: &str) {
        let entry = FailedPodBackoff {
            observed_generation: self.observed_generation,
            node_name: node.to_owned(),
            delay: self.next_delay(node),
            last: self.now,
        };
        match self.position(node) {
            Ok(index) => self.entries[index] = entry,
            Err(index) => self.entries.insert(index, entry),
        }
    }

    /// The entries, for the executor's state.
    pub(crate) fn into_entries(self) -> Vec<FailedPodBackoff> {
        self.entries
    }

    fn position(&self, node: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| key(entry).cmp(&(self.observed_generation, node)))
    }
}

fn key(entry: &FailedPodBackoff) -> (i64, &str) {
    (entry.observed_generation, &entry.node_name)
}
