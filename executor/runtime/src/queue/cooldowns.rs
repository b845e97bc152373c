//! Keys that are cooling down: after its work, a key waits for a short time before it is processed again, so that a burst of
//! events causes one reconcile.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Cooldowns<K> {
    pause: Duration,
    until: HashMap<K, Instant>,
    /// The same keys, ordered by time, because all cooldowns have the same length. An entry that differs from `until` is
    /// stale.
    order: VecDeque<(Instant, K)>,
}

impl<K: Clone + Eq + Hash> Cooldowns<K> {
    pub(super) fn new(pause: Duration) -> Self {
        Self {
            pause,
            until: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Starts the cooldown of a key.
    pub(super) fn begin(&mut self, key: &K, now: Instant) {
        if self.pause.is_zero() {
            return;
        }
        let until = now + self.pause;
        self.until.insert(key.clone(), until);
        self.order.push_back((until, key.clone()));
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.until.contains_key(key)
    }

    /// Ends the cooldown of a key early.
    pub(super) fn end(&mut self, key: &K) {
        self.until.remove(key);
    }

    /// Removes and returns a key whose cooldown is over.
    pub(super) fn next_ended(&mut self, now: Instant) -> Option<K> {
        while let Some((until, _)) = self.order.front()
            && *until <= now
        {
            let (until, key) = self.order.pop_front()?;
            if self.until.get(&key) == Some(&until) {
                self.until.remove(&key);
                return Some(key);
            }
        }
        None
    }

    /// The earliest end of a cooldown among the keys for which `is_waited_for` is true.
    pub(super) fn first_end(&self, is_waited_for: impl Fn(&K) -> bool) -> Option<Instant> {
        let is_current =
            |(until, key): &&(Instant, K)| self.until.get(key) == Some(until) && is_waited_for(key);
        self.order.iter().find(is_current).map(|(until, _)| *until)
    }

    /// Ends all cooldowns. No further cooldown starts.
    pub(super) fn disable(&mut self) {
        self.pause = Duration::ZERO;
        self.until.clear();
        self.order.clear();
    }
}
