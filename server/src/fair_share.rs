//! Something of which there is only so much, divided among clients.
//!
//! What one of them takes may not exceed a multiple of what is left then (the dynamic thresholds by which switches divide
//! their buffers). So a client alone may take a large part, and never all; with each further one everybody's part becomes
//! smaller, and who comes new finds something left.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use crate::client::Key;

/// All there is of something.
#[derive(Debug, Clone)]
pub(crate) struct FairShare(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    capacity: usize,
    alone: Alone,
    state: Mutex<State>,
    /// Something was given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    by_client: HashMap<Key, usize>,
}

/// How much a client may take that is alone, as parts taken and parts left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone {
    takes: usize,
    leaves: usize,
}

impl Alone {
    pub(crate) const QUARTER: Self = Self { takes: 1, leaves: 3 };
    pub(crate) const HALF: Self = Self { takes: 1, leaves: 1 };
    pub(crate) const FOUR_FIFTHS: Self = Self { takes: 4, leaves: 1 };

    /// Whether a client that has `others` besides may take `amount`, so that `left` are left. What a client has besides decides,
    /// so that whoever has nothing may have whatever is left.
    pub(crate) fn allows(self, others: usize, amount: usize, left: usize) -> bool {
        others == 0 || (others + amount).saturating_mul(self.leaves) <= left.saturating_mul(self.takes)
    }
}

/// What a client has taken. Given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    of: FairShare,
    client: Key,
    /// Changes under the lock of the state only.
    amount: AtomicUsize,
}

impl FairShare {
    pub(crate) fn new(capacity: usize, alone: Alone) -> Self {
        Self(Arc::new(Inner {
            capacity,
            alone,
            state: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity
    }

    pub(crate) fn taken(&self) -> usize {
        self.state().taken
    }

    /// So much, if the client may have it.
    pub(crate) fn take(&self, client: &Key, amount: usize) -> Option<Share> {
        let share = self.nothing(client);
        share.resize(amount).then_some(share)
    }

    /// So much, as soon as the client may have it.
    pub(crate) async fn wait(&self, client: &Key, amount: usize) -> Share {
        let share = self.nothing(client);
        share.grow(amount).await;
        share
    }

    /// A share that is to grow.
    pub(crate) fn nothing(&self, client: &Key) -> Share {
        Share {
            of: self.clone(),
            client: client.clone(),
            amount: AtomicUsize::new(0),
        }
    }

    /// Whether the client could have so much if this share were given back.
    pub(crate) fn could_take(&self, client: &Key, amount: usize, without: &Share) -> bool {
        let state = self.state();
        let given = without.amount.load(Ordering::Relaxed);
        let has = state.by_client.get(client).copied().unwrap_or(0);
        let others = if without.client == *client {
            has - given
        } else {
            has
        };
        self.allows(state.taken - given + amount, others, amount)
    }

    /// Whether a client that has `others` besides may have `amount`, so that `taken` are taken on the whole.
    fn allows(&self, taken: usize, others: usize, amount: usize) -> bool {
        let left = self.0.capacity.checked_sub(taken);
        left.is_some_and(|left| self.0.alone.allows(others, amount, left))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(crate) fn client(&self) -> &Key {
        &self.client
    }

    /// How much it is.
    pub(crate) fn amount(&self) -> usize {
        self.amount.load(Ordering::Relaxed)
    }

    /// Gives back what is beyond so much.
    pub(crate) fn shrink(&self, amount: usize) {
        // Less is always granted.
        let _ = self.resize(amount.min(self.amount()));
    }

    /// All that there is.
    pub(crate) fn capacity(&self) -> usize {
        self.of.capacity()
    }

    /// Takes more, or gives some back, as soon as the client may have so much.
    pub(crate) async fn grow(&self, amount: usize) {
        loop {
            let freed = self.of.0.freed.notified();
            tokio::pin!(freed);
            // From here on nothing that is given back is missed.
            freed.as_mut().enable();
            if self.resize(amount) {
                return;
            }
            freed.await;
        }
    }

    /// Takes more, or gives some back. It stays as it is when the client may not have so much more.
    #[must_use = "there may be too little left"]
    pub(crate) fn resize(&self, amount: usize) -> bool {
        let mut state = self.of.state();
        let held = self.amount.load(Ordering::Relaxed);
        let taken = state.taken - held + amount;
        let mut others = state.by_client.get(&self.client).copied().unwrap_or(0) - held;
        if amount > held && !self.of.allows(taken, others, amount) {
            return false;
        }
        others += amount;
        state.taken = taken;
        if others == 0 {
            state.by_client.remove(&self.client);
        } else {
            state.by_client.insert(self.client.clone(), others);
        }
        self.amount.store(amount, Ordering::Relaxed);
        drop(state);
        if amount < held {
            self.of.0.freed.notify_waiters();
        }
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Less is always granted.
        let _ = self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    fn client(name: &str) -> Key {
        Key::Principal(Arc::from(name))
    }

    /// Takes one after the other until there is no more.
    fn all_of(shares: &FairShare, name: &str) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(&client(name), 1)).collect()
    }

    #[test]
    fn nobody_takes_all_and_who_comes_new_finds_something() {
        for (alone, capacity, expected) in [
            (Alone::FOUR_FIFTHS, 20, [16, 3, 1]),
            (Alone::FOUR_FIFTHS, 5, [4, 1, 0]),
            (Alone::FOUR_FIFTHS, 2, [1, 1, 0]),
            (Alone::FOUR_FIFTHS, 1, [1, 0, 0]),
            (Alone::HALF, 12, [6, 3, 1]),
        ] {
            let shares = FairShare::new(capacity, alone);
            let taken = ["first", "second", "third"].map(|name| all_of(&shares, name));
            assert_eq!(
                taken.each_ref().map(Vec::len),
                expected,
                "{alone:?} of {capacity}"
            );
            assert_eq!(shares.taken(), expected.iter().sum::<usize>());
            drop(taken);
            assert_eq!(shares.taken(), 0);
            assert!(shares.state().by_client.is_empty());
        }
    }

    #[test]
    fn who_gives_back_while_others_ask_comes_down_to_their_part() {
        let shares = FairShare::new(20, Alone::FOUR_FIFTHS);
        let mut noisy = all_of(&shares, "noisy");
        let mut quiet = Vec::new();
        for _ in 0..40 {
            // One call ends, and both ask for what it leaves, the noisy one first.
            noisy.remove(0);
            noisy.extend(shares.take(&client("noisy"), 1));
            quiet.extend(shares.take(&client("quiet"), 1));
        }
        assert!(quiet.len() >= 8, "{} of 20", quiet.len());
    }

    #[test]
    fn one_call_may_have_whatever_is_left() {
        let shares = FairShare::new(100, Alone::HALF);
        let call = shares.take(&client("one"), 10).expect("a part");
        assert!(call.resize(100), "all of it, for one call");
        assert!(!call.resize(101));
        assert!(call.resize(60));
        assert!(
            shares.take(&client("one"), 1).is_none(),
            "more than half, with another"
        );
        let other = shares.take(&client("another"), 40).expect("what is left");
        assert!(!call.resize(61), "nothing is left");
        drop(other);
        assert_eq!(shares.taken(), 60);
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back() {
        let shares = FairShare::new(1, Alone::HALF);
        let taken = shares.take(&client("first"), 1).expect("all");
        let second = client("second");
        let waiting = shares.wait(&second, 1);
        tokio::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(taken);
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .expect("it was given back");
    }
}
