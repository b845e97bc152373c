//! Keys that were worked on a moment ago and are left alone for a while, so that a burst of events makes one turn.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Rests<K> {
    pause: Duration,
    until: HashMap<K, Instant>,
    /// The same in order of time, since all rests are equally long. An entry that disagrees with `until` is void.
    order: VecDeque<(Instant, K)>,
}

impl<K: Clone + Eq + Hash> Rests<K> {
    pub(super) fn new(pause: Duration) -> Self {
        Self {
            pause,
            until: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The work on a key has ended.
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

    /// Ends the rest of a key before its time.
    pub(super) fn end(&mut self, key: &K) {
        self.until.remove(key);
    }

    /// A key whose rest is over.
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

    /// When the first rest ends of a key that is waited for.
    pub(super) fn first_end(&self, is_waited_for: impl Fn(&K) -> bool) -> Option<Instant> {
        let rests = |(until, key): &&(Instant, K)| self.until.get(key) == Some(until) && is_waited_for(key);
        self.order.iter().find(rests).map(|(until, _)| *until)
    }

    /// No key rests any more, now and later.
    pub(super) fn abolish(&mut self) {
        self.pause = Duration::ZERO;
        self.until.clear();
        self.order.clear();
    }
}
