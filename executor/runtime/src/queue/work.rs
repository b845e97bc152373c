//! The work queue for async workers.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Next, Queue, RateLimits, Urgency};
use crate::metrics::{QueueMetrics, WorkTimer};

/// Which keys a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFilter {
    /// All keys.
    All,
    /// Urgent keys only; see [`Queue::next_urgent`].
    Urgent,
}

/// A key that a worker took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedKey<K> {
    /// The key.
    pub key: K,
    /// How long it waited in the queue.
    pub waited: Duration,
}

/// A [`Queue`] that several tasks share. It uses the clock of tokio.
#[derive(Debug)]
pub struct WorkQueue<K> {
    queue: Mutex<Queue<K>>,
    changed: Notify,
    metrics: QueueMetrics,
}

impl<K: Clone + Eq + Hash + Ord> WorkQueue<K> {
    /// Creates an empty queue. A key cools down for `cooldown` after its work.
    #[must_use]
    pub fn new(limits: RateLimits, cooldown: Duration, metrics: QueueMetrics) -> Self {
        Self {
            queue: Mutex::new(Queue::new(limits, cooldown, Instant::now())),
            changed: Notify::new(),
            metrics,
        }
    }

    /// See [`Queue::add`].
    pub fn add(&self, key: &K, urgency: Urgency) {
        self.change(|queue, now| queue.add(key, urgency, now));
    }

    /// See [`Queue::add_after`].
    pub fn add_after(&self, key: K, delay: Duration) {
        self.change(|queue, now| queue.add_after(key, delay, now));
    }

    /// See [`Queue::add_rate_limited`].
    pub fn add_rate_limited(&self, key: K) -> Option<Duration> {
        self.change(|queue, now| queue.add_rate_limited(key, now))
    }

    /// See [`Queue::add_rate_limited_without_end`].
    pub fn add_rate_limited_without_end(&self, key: &K) -> Duration {
        self.change(|queue, now| queue.add_rate_limited_without_end(key, now))
    }

    /// See [`Queue::forget`].
    pub fn forget(&self, key: &K) {
        self.lock().forget(key);
    }

    /// See [`Queue::retry_failed`].
    pub fn retry_failed(&self, is_meant: impl Fn(&K) -> bool) {
        self.change(|queue, now| queue.retry_failed(is_meant, now));
    }

    /// See [`Queue::keep_urgent`].
    pub fn keep_urgent(&self, key: &K) {
        self.lock().keep_urgent(key);
    }

    /// See [`Queue::done`].
    pub fn done(&self, key: &K) {
        self.change(|queue, now| queue.done(key, now));
    }

    /// See [`Queue::shut_down`].
    pub fn shut_down(&self) {
        self.change(Queue::shut_down);
    }

    /// See [`Queue::is_idle`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    /// See [`Queue::in_progress`].
    #[must_use]
    pub fn in_progress(&self) -> Vec<K> {
        self.lock().in_progress().cloned().collect()
    }

    /// Waits for the next key. Returns `None` when the queue is shut down and empty. Cancel safe.
    pub async fn take(&self, filter: KeyFilter) -> Option<QueuedKey<K>> {
        loop {
            // Register before the queue is checked, so that no change in between is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (next, waited) = self.with(|queue, now| {
                let next = match filter {
                    KeyFilter::All => queue.next(now),
                    KeyFilter::Urgent => queue.next_urgent(now),
                };
                let waited = match &next {
                    Next::Key(key) => queue.waited(key),
                    _ => Duration::ZERO,
                };
                (next, waited)
            });
            match next {
                Next::Key(key) => return Some(QueuedKey { key, waited }),
                Next::Finished => return None,
                Next::Wait(None) => changed.await,
                Next::Wait(Some(at)) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Measures the work on a key that waited this long. Drop the returned timer when the work ends.
    #[must_use]
    pub fn work_started(&self, waited: Duration) -> WorkTimer {
        self.metrics.work_started(waited)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Queue<K>, Instant) -> T) -> T {
        let answer = self.with(change);
        // Notify all workers: a shutdown or an earlier timer concerns every one of them.
        self.changed.notify_waiters();
        answer
    }

    fn with<T>(&self, action: impl FnOnce(&mut Queue<K>, Instant) -> T) -> T {
        let mut queue = self.lock();
        let (adds, retries) = (queue.adds, queue.retries);
        let answer = action(&mut queue, Instant::now());
        let depth = queue.len();
        (adds..queue.adds).for_each(|_| self.metrics.added(depth));
        (retries..queue.retries).for_each(|_| self.metrics.retried());
        self.metrics.depth(depth);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
