//! The work queue: which workload to reconcile next, and when. It does not know what a key means.
//!
//! [`Queue`] is the state machine; the time is passed in. [`WorkQueue`] lets async workers wait on it. A key is handed out to
//! one worker at a time. Adds of a key that is queued or being processed are merged.
//!
//! After its work ends, a key cools down for a short time, so that a burst of events causes one reconcile. A key that is
//! added during its work or its cooldown waits for the end of both. Delayed adds, including retries, skip the cooldown.
//!
//! The queue is our own code: that of kube's runtime has no urgent keys, no cooldown, no back-off for each key, and not the
//! metrics of client-go.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

mod cooldowns;
mod limits;
mod ready;
mod work;

pub use limits::RateLimits;
pub use ready::Urgency;
pub use work::{KeyFilter, QueuedKey, WorkQueue};

use cooldowns::Cooldowns;
use limits::TokenBucket;
use ready::{Queued, Ready};

/// Longest delay. A longer one could overflow when it is added to a time.
const MAX_DELAY: Duration = Duration::from_hours(24 * 365);

/// A key whose work took longer than this is not given to workers that serve urgent keys only, so that a few slow keys do not
/// block those workers.
const SLOW_WORK: Duration = Duration::from_secs(1);

/// The result of asking the queue for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Process this key, then call [`Queue::done`].
    Key(K),
    /// No key is ready. Ask again at this time, if there is one, or after a key is added.
    Wait(Option<Instant>),
    /// The queue is shut down and empty.
    Finished,
}

/// A key that is being processed.
#[derive(Clone, Copy, Debug)]
struct Processing {
    urgency: Urgency,
    started: Instant,
    waited: Duration,
    /// A delay of the key has ended during its work. The key skips the next cooldown.
    skips_cooldown: bool,
}

/// The work queue as a state machine.
#[derive(Debug)]
pub struct Queue<K> {
    /// Keys that wait for a worker.
    ready: Ready<K>,
    /// Keys that must be processed. A dirty key waits for a worker, for the end of its work, or for the end of its cooldown.
    dirty: HashMap<K, Urgency>,
    processing: HashMap<K, Processing>,
    cooldowns: Cooldowns<K>,
    /// Keys whose last work was slow.
    slow: HashSet<K>,
    /// Keys whose next work is urgent, because their last urgent work had no effect.
    still_urgent: HashSet<K>,
    /// The time when each delayed key is due.
    due: HashMap<K, Instant>,
    /// The same keys, ordered by time. An entry that differs from `due` is stale and is skipped.
    timers: BinaryHeap<Reverse<(Instant, K)>>,
    failures: HashMap<K, u32>,
    /// How often in a row the work on a key failed for reasons that are not its own fault.
    refusals: HashMap<K, u32>,
    /// Failed keys that are not retried any more.
    given_up: HashSet<K>,
    limits: RateLimits,
    bucket: TokenBucket,
    shutting_down: bool,
    adds: u64,
    retries: u64,
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Creates an empty queue. A key cools down for `cooldown` after its work.
    #[must_use]
    pub fn new(limits: RateLimits, cooldown: Duration, now: Instant) -> Self {
        Self {
            ready: Ready::default(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            cooldowns: Cooldowns::new(cooldown.min(MAX_DELAY)),
            slow: HashSet::new(),
            still_urgent: HashSet::new(),
            due: HashMap::new(),
            timers: BinaryHeap::new(),
            failures: HashMap::new(),
            refusals: HashMap::new(),
            given_up: HashSet::new(),
            bucket: TokenBucket::new(&limits, now),
            limits,
            shutting_down: false,
            adds: 0,
            retries: 0,
        }
    }

    /// Adds a key. If the key is cooling down, it waits for the end of the cooldown.
    pub fn add(&mut self, key: &K, urgency: Urgency, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.end_cooldowns(now);
        self.mark(key, urgency);
        if !self.cooldowns.contains(key) {
            self.push(key, now);
        }
    }

    /// Adds a key after a delay. Only the earliest delay of a key is kept.
    pub fn add_after(&mut self, key: K, delay: Duration, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.retries += 1;
        if delay.is_zero() {
            self.add_now(&key, now);
            return;
        }
        let at = now + delay.min(MAX_DELAY);
        if self.due.get(&key).is_none_or(|&present| at < present) {
            self.due.insert(key.clone(), at);
            self.timers.push(Reverse((at, key)));
        }
    }

    /// Adds a key whose work failed, with back-off. Returns the delay; `None` if the key has been retried too often in a row. It
    /// then waits for the next add, and may be retried as often again.
    pub fn add_rate_limited(&mut self, key: K, now: Instant) -> Option<Duration> {
        let failures = self.failures.entry(key.clone()).or_default();
        if self.limits.max_retries.is_some_and(|most| *failures >= most) {
            self.failures.remove(&key);
            self.given_up.insert(key);
            return None;
        }
        let own = self.limits.back_off(*failures);
        *failures = failures.saturating_add(1);
        Some(self.add_backed_off(key, own, now))
    }

    /// Adds a key whose work failed because of something that is not its own fault, with back-off. It is never given up, and that does
    /// not count as one of its failures.
    pub fn add_rate_limited_without_end(&mut self, key: &K, now: Instant) -> Duration {
        let refusals = self.refusals.entry(key.clone()).or_default();
        let own = self.limits.back_off(*refusals);
        *refusals = refusals.saturating_add(1);
        self.add_backed_off(key.clone(), own, now)
    }

    fn add_backed_off(&mut self, key: K, own: Duration, now: Instant) -> Duration {
        let delay = own.max(self.bucket.reserve(&self.limits, now));
        self.given_up.remove(&key);
        self.add_after(key, delay, now);
        delay
    }

    /// Adds the failed keys for which `is_meant` is true now, without their delay, because the cause of the failure may be
    /// gone. A key that is being processed is processed again right afterwards.
    pub fn retry_failed(&mut self, is_meant: impl Fn(&K) -> bool, now: Instant) {
        let waits = |key: &&K| self.due.contains_key(*key) || self.processing.contains_key(*key);
        let failed = self.failures.keys().filter(waits).filter(|key| is_meant(key));
        let given_up = self.given_up.iter().filter(|key| is_meant(key));
        let mut failed: Vec<K> = failed.chain(given_up).cloned().collect();
        failed.sort_unstable();
        for key in failed {
            self.due.remove(&key);
            self.add_now(&key, now);
        }
    }

    /// Resets the failure count of a key.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
        self.refusals.remove(key);
        self.given_up.remove(key);
    }

    /// Reports that the work on a key had no effect. If the work was urgent, so is the next work on the key, even if the key
    /// is added as normal.
    pub fn keep_urgent(&mut self, key: &K) {
        let urgent = |work: &Processing| work.urgency == Urgency::Urgent;
        if self.processing.get(key).is_some_and(urgent) {
            self.still_urgent.insert(key.clone());
            if let Some(urgency) = self.dirty.get_mut(key) {
                *urgency = Urgency::Urgent;
            }
        }
    }

    /// Returns the next key to process.
    pub fn next(&mut self, now: Instant) -> Next<K> {
        self.advance(now);
        let queued = self.ready.pop();
        self.hand_out(queued, now)
    }

    /// Returns the next urgent key, except keys whose last work was slow.
    pub fn next_urgent(&mut self, now: Instant) -> Next<K> {
        self.advance(now);
        let queued = self.ready.pop_urgent(|key| !self.slow.contains(key));
        self.hand_out(queued, now)
    }

    fn hand_out(&mut self, queued: Option<Queued<K>>, now: Instant) -> Next<K> {
        if let Some(Queued { key, since }) = queued {
            let work = Processing {
                urgency: self.dirty.remove(&key).unwrap_or_default(),
                started: now,
                waited: now.saturating_duration_since(since),
                skips_cooldown: false,
            };
            self.still_urgent.remove(&key);
            self.processing.insert(key.clone(), work);
            return Next::Key(key);
        }
        // A key that is being processed may have become dirty before the shutdown. It is processed once more.
        if self.shutting_down && self.dirty.is_empty() {
            return Next::Finished;
        }
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let cooled_down = self.cooldowns.first_end(|key| self.dirty.contains_key(key));
        Next::Wait([timer, cooled_down].into_iter().flatten().min())
    }

    /// How long a key that is being processed had waited for its worker.
    #[must_use]
    pub fn waited(&self, key: &K) -> Duration {
        self.processing
            .get(key)
            .map_or(Duration::ZERO, |work| work.waited)
    }

    /// Ends the work on a key, whether it succeeded or not.
    pub fn done(&mut self, key: &K, now: Instant) {
        let Some(work) = self.processing.remove(key) else {
            return;
        };
        if now.saturating_duration_since(work.started) > SLOW_WORK {
            self.slow.insert(key.clone());
        } else {
            self.slow.remove(key);
        }
        if !work.skips_cooldown {
            self.cooldowns.begin(key, now);
        }
        if !self.cooldowns.contains(key) {
            self.push(key, now);
        }
    }

    /// Shuts the queue down. Further adds are ignored, and delayed keys are dropped. Queued keys are still handed out,
    /// without cooldowns.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        self.timers.clear();
        self.due.clear();
        self.cooldowns.disable();
        let mut left: Vec<K> = self.dirty.keys().cloned().collect();
        left.sort_unstable();
        for key in left {
            self.push(&key, now);
        }
    }

    /// Number of keys that wait for a worker, without delayed and cooling keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key waits for a worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys that workers process now, in no order.
    pub fn in_progress(&self) -> impl Iterator<Item = &K> {
        self.processing.keys()
    }

    /// Whether no key is queued, being processed, or delayed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.dirty.is_empty() && self.processing.is_empty() && self.due.is_empty()
    }

    fn advance(&mut self, now: Instant) {
        self.fire_timers(now);
        self.end_cooldowns(now);
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
                self.add_now(&key, now);
            }
        }
    }

    fn end_cooldowns(&mut self, now: Instant) {
        while let Some(key) = self.cooldowns.next_ended(now) {
            self.push(&key, now);
        }
    }

    fn add_now(&mut self, key: &K, now: Instant) {
        self.mark(key, Urgency::Normal);
        self.cooldowns.end(key);
        if let Some(work) = self.processing.get_mut(key) {
            work.skips_cooldown = true;
        }
        self.push(key, now);
    }

    fn mark(&mut self, key: &K, urgency: Urgency) {
        let urgency = if self.still_urgent.contains(key) {
            Urgency::Urgent
        } else {
            urgency
        };
        if let Some(present) = self.dirty.get_mut(key) {
            *present = urgency.max(*present);
        } else {
            self.dirty.insert(key.clone(), urgency);
            self.adds += 1;
        }
    }

    /// Queues a key if it is dirty and no worker processes it.
    fn push(&mut self, key: &K, now: Instant) {
        if let Some(urgency) = self.dirty.get(key)
            && !self.processing.contains_key(key)
        {
            self.ready.push(key, *urgency, now);
        }
    }
}

#[cfg(test)]
mod tests;
