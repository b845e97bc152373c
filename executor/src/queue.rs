//! The work queue: which workload is to be looked at next, and when.
//!
//! [`Queue`] is the pure machine, with the time passed in; [`WorkQueue`] lets workers wait on it. A key is handed out
//! once at a time; what is added while it is queued or in work is merged (M-28). Nothing here knows what a key means.
//!
//! A key that is added waits for a worker, unless it is in work, or rests since its work ended a moment ago; then it waits
//! for the end of that. Delays, those of retries among them, are set on purpose: when they are over no rest counts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

mod limits;
mod ready;
mod rests;
mod work;

pub use limits::RateLimits;
pub use ready::Urgency;
pub use work::{Serves, Taken, WorkQueue};

use limits::TokenBucket;
use ready::{Queued, Ready};
use rests::Rests;

/// Longest delay. Longer ones, which nobody would live to see, could not be added to a time.
const FAR: Duration = Duration::from_hours(24 * 365);

/// A key whose work took longer than this is left to the workers for all the next time, so that whoever takes urgent keys
/// only is not held up by a few that are long in work each time.
const LONG_TURN: Duration = Duration::from_secs(1);

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

/// A key in work.
#[derive(Clone, Copy, Debug)]
struct Turn {
    urgency: Urgency,
    started: Instant,
    waited: Duration,
    /// A delay of the key has ended meanwhile: the next turn need not wait for a rest.
    overdue: bool,
}

/// The queue as a state machine.
#[derive(Debug)]
pub struct Queue<K> {
    /// Those that wait for a worker.
    ready: Ready<K>,
    /// Those that are to be worked on, be it that they wait for a worker, for the end of their work or of their rest.
    dirty: HashMap<K, Urgency>,
    processing: HashMap<K, Turn>,
    rests: Rests<K>,
    /// Keys whose last turn was a long one.
    long: HashSet<K>,
    /// Keys whose next turn is urgent, since the last one was and came to nothing.
    owed: HashSet<K>,
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

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// An empty queue, in which a key rests for this long after its work.
    #[must_use]
    pub fn new(limits: RateLimits, rest: Duration, now: Instant) -> Self {
        Self {
            ready: Ready::default(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            rests: Rests::new(rest.min(FAR)),
            long: HashSet::new(),
            owed: HashSet::new(),
            due: HashMap::new(),
            timers: BinaryHeap::new(),
            failures: HashMap::new(),
            bucket: TokenBucket::new(&limits, now),
            limits,
            shutting_down: false,
            adds: 0,
            retries: 0,
        }
    }

    /// Asks for work on a key, as soon as its rest is over.
    pub fn add(&mut self, key: &K, urgency: Urgency, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.end_rests(now);
        self.mark(key, urgency);
        if !self.rests.contains(key) {
            self.push(key, now);
        }
    }

    /// Asks for work on a key after a delay. One delay per key is kept: the earliest (M-29).
    pub fn add_after(&mut self, key: K, delay: Duration, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.retries += 1;
        if delay.is_zero() {
            self.add_now(&key, now);
            return;
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

    /// Ends the delays of those keys that are meant and whose work failed: what made it fail may be gone. One that is in work has its
    /// next turn right after this one.
    pub fn retry_failed(&mut self, is_meant: impl Fn(&K) -> bool, now: Instant) {
        let waits = |key: &&K| self.due.contains_key(*key) || self.processing.contains_key(*key);
        let failed = self.failures.keys().filter(waits).filter(|key| is_meant(key));
        let mut failed: Vec<K> = failed.cloned().collect();
        failed.sort_unstable();
        for key in failed {
            self.due.remove(&key);
            self.add_now(&key, now);
        }
    }

    /// Forgets the failures of a key.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// The turn of a key in work came to nothing: if it was an urgent one, so is the next, whoever asks for it.
    pub fn put_off(&mut self, key: &K) {
        let urgent = |turn: &Turn| turn.urgency == Urgency::Urgent;
        if self.processing.get(key).is_some_and(urgent) {
            self.owed.insert(key.clone());
            if let Some(urgency) = self.dirty.get_mut(key) {
                *urgency = Urgency::Urgent;
            }
        }
    }

    /// The next key to work on.
    pub fn next(&mut self, now: Instant) -> Next<K> {
        self.advance(now);
        let queued = self.ready.pop();
        self.hand_out(queued, now)
    }

    /// The next key for a worker that must not be held up: an urgent one whose last turn was not a long one.
    pub fn next_urgent(&mut self, now: Instant) -> Next<K> {
        self.advance(now);
        let queued = self.ready.pop_urgent(|key| !self.long.contains(key));
        self.hand_out(queued, now)
    }

    fn hand_out(&mut self, queued: Option<Queued<K>>, now: Instant) -> Next<K> {
        if let Some(Queued { key, since }) = queued {
            let turn = Turn {
                urgency: self.dirty.remove(&key).unwrap_or_default(),
                started: now,
                waited: now.saturating_duration_since(since),
                overdue: false,
            };
            self.owed.remove(&key);
            self.processing.insert(key.clone(), turn);
            return Next::Key(key);
        }
        // A key in work may have become dirty before the shutdown: it is still due once.
        if self.shutting_down && self.dirty.is_empty() {
            return Next::Finished;
        }
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let rested = self.rests.first_end(|key| self.dirty.contains_key(key));
        Next::Wait([timer, rested].into_iter().flatten().min())
    }

    /// How long a key in work had waited for its worker.
    #[must_use]
    pub fn waited(&self, key: &K) -> Duration {
        self.processing
            .get(key)
            .map_or(Duration::ZERO, |turn| turn.waited)
    }

    /// Work on a key has ended, whatever came of it.
    pub fn done(&mut self, key: &K, now: Instant) {
        let Some(turn) = self.processing.remove(key) else {
            return;
        };
        if now.saturating_duration_since(turn.started) > LONG_TURN {
            self.long.insert(key.clone());
        } else {
            self.long.remove(key);
        }
        if !turn.overdue {
            self.rests.begin(key, now);
        }
        if !self.rests.contains(key) {
            self.push(key, now);
        }
    }

    /// From now on nothing is added, and delayed keys are dropped; queued keys are still handed out (M-33), and nobody rests.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        self.timers.clear();
        self.due.clear();
        self.rests.abolish();
        let mut left: Vec<K> = self.dirty.keys().cloned().collect();
        left.sort_unstable();
        for key in left {
            self.push(&key, now);
        }
    }

    /// Keys that wait for a worker, without the delayed and the resting ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key waits for a worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is queued, in work or delayed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.dirty.is_empty() && self.processing.is_empty() && self.due.is_empty()
    }

    fn advance(&mut self, now: Instant) {
        self.fire_timers(now);
        self.end_rests(now);
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

    fn end_rests(&mut self, now: Instant) {
        while let Some(key) = self.rests.next_ended(now) {
            self.push(&key, now);
        }
    }

    fn add_now(&mut self, key: &K, now: Instant) {
        self.mark(key, Urgency::Normal);
        self.rests.end(key);
        if let Some(turn) = self.processing.get_mut(key) {
            turn.overdue = true;
        }
        self.push(key, now);
    }

    fn mark(&mut self, key: &K, urgency: Urgency) {
        let urgency = if self.owed.contains(key) {
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

    /// Lets a key wait for a worker, if it is to be worked on and nobody does.
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
