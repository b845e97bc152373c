//! The work queue: which workload is to be looked at next, and when.
//!
//! [`Queue`] is the pure machine, with the time passed in; [`WorkQueue`] lets workers wait on it. A key is handed out
//! once at a time; what is added while it is queued or in work is merged (M-28). Nothing here knows what a key means.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// How failed keys are slowed down (M-30): the larger of the two delays counts.
#[derive(Clone, Copy, Debug)]
pub struct RateLimits {
    /// Delay after a key's first failure; doubles with each further one.
    pub base_delay: Duration,
    /// Longest delay of a key.
    pub max_delay: Duration,
    /// Retries per second over all keys, once the burst is used up. Must be positive.
    pub rate: f64,
    /// Retries that may be made at once over all keys.
    pub burst: u32,
}

impl Default for RateLimits {
    /// Upstream's: 5 ms doubling to 1000 s, 10 per second with a burst of 100.
    fn default() -> Self {
        Self {
            base_delay: Duration::from_millis(5),
            max_delay: Duration::from_secs(1000),
            rate: 10.0,
            burst: 100,
        }
    }
}

/// Longest delay. Longer ones, which nobody would live to see, could not be added to a time.
const FAR: Duration = Duration::from_hours(24 * 365);

/// What a queue has for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Work on this key, then call [`Queue::done`].
    Key(K),
    /// Nothing before this time (if any), unless a key is added.
    Wait(Option<Instant>),
    /// Shut down and drained: there will be nothing more.
    Finished,
}

/// The queue as a state machine.
#[derive(Debug)]
pub struct Queue<K> {
    /// In order of arrival; each key at most once.
    ready: VecDeque<Queued<K>>,
    /// Queued, or to be queued when its work is done.
    dirty: HashSet<K>,
    /// In work, since when.
    processing: HashMap<K, Instant>,
    /// When each delayed key is due.
    due: HashMap<K, Instant>,
    /// The same ordered by time. An entry that disagrees with `due` was replaced by an earlier one and is skipped.
    timers: BinaryHeap<Reverse<(Instant, K)>>,
    failures: HashMap<K, u32>,
    limits: RateLimits,
    bucket: TokenBucket,
    shutting_down: bool,
    adds: u64,
    retries: u64,
}

#[derive(Debug)]
struct Queued<K> {
    key: K,
    since: Instant,
}

/// Reserves tokens ahead of time: a reservation says how long to wait for its token.
#[derive(Debug)]
struct TokenBucket {
    tokens: f64,
    updated: Instant,
}

impl TokenBucket {
    fn reserve(&mut self, limits: &RateLimits, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.updated).as_secs_f64() * limits.rate;
        self.tokens = (self.tokens + gained).min(f64::from(limits.burst)) - 1.0;
        self.updated = self.updated.max(now);
        if self.tokens >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(-self.tokens / limits.rate)
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: RateLimits, now: Instant) -> Self {
        Self {
            ready: VecDeque::new(),
            dirty: HashSet::new(),
            processing: HashMap::new(),
            due: HashMap::new(),
            timers: BinaryHeap::new(),
            failures: HashMap::new(),
            limits,
            bucket: TokenBucket {
                tokens: f64::from(limits.burst),
                updated: now,
            },
            shutting_down: false,
            adds: 0,
            retries: 0,
        }
    }

    /// Asks for work on a key as soon as possible.
    pub fn add(&mut self, key: K, now: Instant) {
        if self.shutting_down || !self.dirty.insert(key.clone()) {
            return;
        }
        self.adds += 1;
        if !self.processing.contains_key(&key) {
            self.ready.push_back(Queued { key, since: now });
        }
    }

    /// Asks for work on a key after a delay. One delay per key is kept: the earliest (M-29).
    pub fn add_after(&mut self, key: K, delay: Duration, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.retries += 1;
        if delay.is_zero() {
            return self.add(key, now);
        }
        let at = now + delay.min(FAR);
        if self.due.get(&key).is_none_or(|&present| at < present) {
            self.due.insert(key.clone(), at);
            self.timers.push(Reverse((at, key)));
        }
    }

    /// Asks for work on a key whose work failed; answers after which delay it comes.
    pub fn add_rate_limited(&mut self, key: K, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let own = 2_u32
            .checked_pow(*failures)
            .and_then(|factor| self.limits.base_delay.checked_mul(factor))
            .map_or(self.limits.max_delay, |delay| delay.min(self.limits.max_delay));
        *failures = failures.saturating_add(1);
        let delay = own.max(self.bucket.reserve(&self.limits, now));
        self.add_after(key, delay, now);
        delay
    }

    /// Forgets the failures of a key.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// The next key to work on.
    pub fn next(&mut self, now: Instant) -> Next<K> {
        self.fire_timers(now);
        if let Some(Queued { key, .. }) = self.ready.pop_front() {
            self.dirty.remove(&key);
            self.processing.insert(key.clone(), now);
            return Next::Key(key);
        }
        // A key in work may have become dirty before the shutdown: it is still due once.
        if self.shutting_down && self.dirty.is_empty() {
            return Next::Finished;
        }
        Next::Wait(self.timers.peek().map(|Reverse((at, _))| *at))
    }

    /// Work on a key has ended, whatever came of it.
    pub fn done(&mut self, key: &K, now: Instant) {
        self.processing.remove(key);
        if self.dirty.contains(key) {
            self.ready.push_back(Queued {
                key: key.clone(),
                since: now,
            });
        }
    }

    /// From now on nothing is added, and delayed keys are dropped; queued keys are still handed out (M-33).
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.timers.clear();
        self.due.clear();
    }

    /// Keys that wait for a worker, without the delayed ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key waits for a worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether nothing is queued, in work or delayed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.dirty.is_empty() && self.processing.is_empty() && self.due.is_empty()
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(Reverse((at, _))) = self.timers.peek()
            && *at <= now
        {
            let Some(Reverse((at, key))) = self.timers.pop() else {
                return;
            };
            if self.due.get(&key) == Some(&at) {
                self.due.remove(&key);
                self.add(key, now);
            }
        }
    }
}

/// A key that a worker took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// How long it waited in the queue.
    pub waited: Duration,
}

/// A [`Queue`] that several tasks use at once, on the clock of tokio.
#[derive(Debug)]
pub struct WorkQueue<K> {
    queue: Mutex<Queue<K>>,
    changed: Notify,
    metrics: Metrics,
}

impl<K: Clone + Eq + Hash + Ord> WorkQueue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: RateLimits, metrics: Metrics) -> Self {
        Self {
            queue: Mutex::new(Queue::new(limits, Instant::now())),
            changed: Notify::new(),
            metrics,
        }
    }

    /// See [`Queue::add`].
    pub fn add(&self, key: K) {
        self.change(|queue, now| queue.add(key, now));
    }

    /// See [`Queue::add_after`].
    pub fn add_after(&self, key: K, delay: Duration) {
        self.change(|queue, now| queue.add_after(key, delay, now));
    }

    /// See [`Queue::add_rate_limited`].
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.change(|queue, now| queue.add_rate_limited(key, now))
    }

    /// See [`Queue::forget`].
    pub fn forget(&self, key: &K) {
        self.lock().forget(key);
    }

    /// See [`Queue::done`].
    pub fn done(&self, key: &K) {
        self.change(|queue, now| queue.done(key, now));
    }

    /// See [`Queue::shut_down`].
    pub fn shut_down(&self) {
        self.change(|queue, _| queue.shut_down());
    }

    /// See [`Queue::is_idle`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.lock().is_idle()
    }

    /// Waits for the next key; none after the shutdown, when the queue is drained. Safe to drop while waiting.
    pub async fn take(&self) -> Option<Taken<K>> {
        loop {
            // Registered before the queue is looked at, so that no change in between is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (next, waited) = self.with(|queue, now| {
                queue.fire_timers(now);
                let since = queue.ready.front().map_or(now, |queued| queued.since);
                (queue.next(now), now.saturating_duration_since(since))
            });
            match next {
                Next::Key(key) => return Some(Taken { key, waited }),
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

    fn change<T>(&self, change: impl FnOnce(&mut Queue<K>, Instant) -> T) -> T {
        let answer = self.with(change);
        // All of them: a shutdown, or an earlier timer, concerns every waiting worker.
        self.changed.notify_waiters();
        answer
    }

    fn with<T>(&self, action: impl FnOnce(&mut Queue<K>, Instant) -> T) -> T {
        let mut queue = self.lock();
        let (adds, retries) = (queue.adds, queue.retries);
        let answer = action(&mut queue, Instant::now());
        let depth = queue.len();
        (adds..queue.adds).for_each(|_| self.metrics.queue_added(depth));
        (retries..queue.retries).for_each(|_| self.metrics.queue_retried());
        self.metrics.queue_depth(depth);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const SECOND: Duration = Duration::from_secs(1);

    fn queue(now: Instant) -> Queue<&'static str> {
        Queue::new(RateLimits::default(), now)
    }

    #[test]
    fn a_delay_without_end_does_no_harm() {
        let now = Instant::now();
        let mut queue = queue(now);
        queue.add_after("a", Duration::MAX, now);
        assert!(matches!(queue.next(now), Next::Wait(Some(_))));
    }

    // D-106, M-28, T-11: added three times while queued gives one turn; while in work, exactly one more.
    #[test]
    fn adds_are_merged_and_a_key_is_never_handed_out_twice() {
        let now = Instant::now();
        let mut queue = queue(now);
        for _ in 0..3 {
            queue.add("a", now);
        }
        assert_eq!(queue.next(now), Next::Key("a"));
        for _ in 0..3 {
            queue.add("a", now);
        }
        assert_eq!(
            queue.next(now),
            Next::Wait(None),
            "in work: not handed out a second time"
        );
        queue.done(&"a", now);
        assert_eq!(queue.next(now), Next::Key("a"));
        queue.done(&"a", now);
        assert_eq!(queue.next(now), Next::Wait(None));
        assert!(queue.is_idle());
    }

    // M-29, T-12: 10 s, then 2 s, then 30 s for one key fires once, at 2 s.
    #[test]
    fn the_earliest_delay_of_a_key_counts() {
        let start = Instant::now();
        let mut queue = queue(start);
        for seconds in [10, 2, 30] {
            queue.add_after("a", seconds * SECOND, start);
        }
        assert_eq!(queue.next(start), Next::Wait(Some(start + 2 * SECOND)));
        assert_eq!(queue.next(start + 2 * SECOND), Next::Key("a"));
        queue.done(&"a", start + 2 * SECOND);
        for seconds in [10, 30] {
            let next = queue.next(start + seconds * SECOND);
            assert!(matches!(next, Next::Wait(_)), "fired again at {seconds} s");
        }
    }

    // M-29: an immediate add leaves the delayed one in place; no delay adds at once.
    #[test]
    fn an_immediate_add_does_not_cancel_a_delayed_one() {
        let start = Instant::now();
        let mut queue = queue(start);
        queue.add_after("a", SECOND, start);
        queue.add("a", start);
        assert_eq!(queue.next(start), Next::Key("a"));
        queue.done(&"a", start);
        assert_eq!(queue.next(start + SECOND), Next::Key("a"));
        queue.add_after("b", Duration::ZERO, start);
        assert_eq!(queue.next(start + SECOND), Next::Key("b"));
    }

    // M-30: 5 ms doubling per key to 1000 s; forgetting starts afresh.
    #[test]
    fn failures_of_a_key_double_its_delay() {
        // Late enough for the shared bucket to be full at each call.
        let mut now = Instant::now();
        let mut queue = queue(now);
        let mut delays = Vec::new();
        for _ in 0..40 {
            now += 60 * SECOND;
            delays.push(queue.add_rate_limited("a", now));
        }
        let expected = (0..40).map(|n| Duration::from_millis(5 << n.min(30)).min(1000 * SECOND));
        assert_eq!(delays, expected.collect::<Vec<_>>());
        queue.forget(&"a");
        assert_eq!(queue.add_rate_limited("a", now), Duration::from_millis(5));
    }

    // M-30: over all keys 100 at once, then 10 per second; plain adds are never limited.
    #[test]
    fn retries_share_a_token_bucket() {
        let now = Instant::now();
        let mut queue = Queue::new(RateLimits::default(), now);
        for key in 0..100 {
            assert_eq!(
                queue.add_rate_limited(key, now),
                Duration::from_millis(5),
                "{key}"
            );
        }
        assert_eq!(queue.add_rate_limited(100, now), Duration::from_millis(100));
        assert_eq!(queue.add_rate_limited(101, now), Duration::from_millis(200));
        let later = now + SECOND;
        assert_eq!(
            queue.add_rate_limited(102, later),
            Duration::from_millis(5),
            "refilled by 10, 2 owed"
        );
        queue.add(200, now);
        assert_eq!(queue.next(now), Next::Key(200));
    }

    // M-33: nothing new, but what is queued is handed out, and what became due during its work once more.
    #[test]
    fn shutting_down_drains() {
        let now = Instant::now();
        let mut queue = queue(now);
        queue.add("a", now);
        queue.add("b", now);
        queue.add_after("c", SECOND, now);
        assert_eq!(queue.next(now), Next::Key("a"));
        queue.add("a", now);
        queue.shut_down();
        queue.add("d", now);
        assert_eq!(queue.next(now), Next::Key("b"));
        assert_eq!(queue.next(now), Next::Wait(None), "a is still in work and dirty");
        queue.done(&"a", now);
        assert_eq!(queue.next(now), Next::Key("a"));
        queue.done(&"a", now);
        queue.done(&"b", now);
        assert_eq!(queue.next(now + 2 * SECOND), Next::Finished);
    }

    #[tokio::test(start_paused = true)]
    async fn workers_wait_for_keys_and_timers() {
        let queue = Arc::new(WorkQueue::new(RateLimits::default(), Metrics::new()));
        let worker = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move {
                let mut taken = Vec::new();
                while let Some(Taken { key, .. }) = queue.take().await {
                    queue.done(&key);
                    taken.push(key);
                }
                taken
            }
        });
        queue.add_after("late", 5 * SECOND);
        queue.add_after("later", 500 * SECOND);
        tokio::task::yield_now().await;
        queue.add("now");
        tokio::time::sleep(6 * SECOND).await;
        queue.shut_down();
        assert_eq!(worker.await.expect("the worker ends"), ["now", "late"]);
    }

    // M-42
    #[tokio::test(start_paused = true)]
    async fn metrics_follow_the_queue() {
        let metrics = Metrics::new();
        let queue = WorkQueue::new(RateLimits::default(), metrics.clone());
        queue.add("a");
        queue.add("a");
        queue.add("b");
        queue.add_after("c", SECOND);
        tokio::time::advance(2 * SECOND).await;
        let taken = queue.take().await.expect("a key");
        assert_eq!(
            taken,
            Taken {
                key: "a",
                waited: 2 * SECOND
            }
        );
        let text = metrics.encode();
        for line in [
            "workqueue_depth{name=\"daemonset\"} 2",
            "workqueue_adds_total{name=\"daemonset\"} 3",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(
            text.contains("workqueue_retries_total{name=\"daemonset\"} 1"),
            "{text}"
        );
    }
}
