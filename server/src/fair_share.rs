//! A limited resource (memory, permits, connections) that clients share.
//!
//! A client may hold at most a fixed multiple of what is free (the dynamic threshold by which network switches share their
//! buffers). So a single client gets a large part but never everything. With each further client the parts shrink, and a new client
//! always finds something free.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use crate::client::Key;

/// The resource.
#[derive(Debug, Clone)]
pub(crate) struct FairShare(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    capacity: usize,
    max_share: MaxShare,
    state: Mutex<State>,
    /// Notified when some of the resource is released.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    by_client: HashMap<Key, usize>,
}

/// The largest part that a client gets if it is the only one, as the ratio of what it has taken to what is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaxShare {
    taken: usize,
    left: usize,
}

impl MaxShare {
    pub(crate) const QUARTER: Self = Self { taken: 1, left: 3 };
    pub(crate) const HALF: Self = Self { taken: 1, left: 1 };
    pub(crate) const FOUR_FIFTHS: Self = Self { taken: 4, left: 1 };

    /// Whether a client that already holds `others` may take `amount`, so that `left` is left. A client that holds nothing may take
    /// all that is free.
    pub(crate) fn allows(self, others: usize, amount: usize, left: usize) -> bool {
        others == 0 || (others + amount).saturating_mul(self.left) <= left.saturating_mul(self.taken)
    }
}

/// An amount that a client holds. Released on drop.
#[derive(Debug)]
pub(crate) struct Share {
    of: FairShare,
    client: Key,
    /// Only changed while the state is locked.
    amount: AtomicUsize,
}

impl FairShare {
    pub(crate) fn new(capacity: usize, max_share: MaxShare) -> Self {
        Self(Arc::new(Inner {
            capacity,
            max_share,
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

    /// Takes `amount`, or `None` if the client may not have it now.
    pub(crate) fn take(&self, client: &Key, amount: usize) -> Option<Share> {
        let share = self.empty(client);
        share.resize(amount).then_some(share)
    }

    /// Waits until the client may have `amount`, and takes it.
    pub(crate) async fn wait(&self, client: &Key, amount: usize) -> Share {
        let share = self.empty(client);
        share.grow(amount).await;
        share
    }

    /// An empty share, to be grown later.
    pub(crate) fn empty(&self, client: &Key) -> Share {
        Share {
            of: self.clone(),
            client: client.clone(),
            amount: AtomicUsize::new(0),
        }
    }

    /// Whether the client could take `amount` if the share `without` were released.
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

    /// Whether a client that already holds `others` may have `amount`, after which `taken` is taken in total.
    fn allows(&self, taken: usize, others: usize, amount: usize) -> bool {
        let left = self.0.capacity.checked_sub(taken);
        left.is_some_and(|left| self.0.max_share.allows(others, amount, left))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(crate) fn client(&self) -> &Key {
        &self.client
    }

    /// The amount held.
    pub(crate) fn amount(&self) -> usize {
        self.amount.load(Ordering::Relaxed)
    }

    /// Releases what exceeds `amount`.
    pub(crate) fn shrink(&self, amount: usize) {
        // Shrinking cannot fail.
        let _ = self.resize(amount.min(self.amount()));
    }

    /// The total capacity of the resource.
    pub(crate) fn capacity(&self) -> usize {
        self.of.capacity()
    }

    /// Changes the amount held, once the client may have `amount`.
    pub(crate) async fn grow(&self, amount: usize) {
        loop {
            let freed = self.of.0.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that no release in between is missed.
            freed.as_mut().enable();
            if self.resize(amount) {
                return;
            }
            freed.await;
        }
    }

    /// Changes the amount held. Returns false, and changes nothing, if the client may not have `amount`.
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
        // Shrinking cannot fail.
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

    /// Takes shares of 1 until the client gets no more.
    fn all_of(shares: &FairShare, name: &str) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(&client(name), 1)).collect()
    }

    #[test]
    fn no_client_takes_everything_and_new_clients_find_something() {
        for (max_share, capacity, expected) in [
            (MaxShare::FOUR_FIFTHS, 20, [16, 3, 1]),
            (MaxShare::FOUR_FIFTHS, 5, [4, 1, 0]),
            (MaxShare::FOUR_FIFTHS, 2, [1, 1, 0]),
            (MaxShare::FOUR_FIFTHS, 1, [1, 0, 0]),
            (MaxShare::HALF, 12, [6, 3, 1]),
        ] {
            let shares = FairShare::new(capacity, max_share);
            let taken = ["first", "second", "third"].map(|name| all_of(&shares, name));
            assert_eq!(
                taken.each_ref().map(Vec::len),
                expected,
                "{max_share:?} of {capacity}"
            );
            assert_eq!(shares.taken(), expected.iter().sum::<usize>());
            drop(taken);
            assert_eq!(shares.taken(), 0);
            assert!(shares.state().by_client.is_empty());
        }
    }

    #[test]
    fn a_noisy_client_shrinks_to_its_part_while_others_ask() {
        let shares = FairShare::new(20, MaxShare::FOUR_FIFTHS);
        let mut noisy = all_of(&shares, "noisy");
        let mut quiet = Vec::new();
        for _ in 0..40 {
            // One call ends. Both clients ask for the released share, the noisy one first.
            noisy.remove(0);
            noisy.extend(shares.take(&client("noisy"), 1));
            quiet.extend(shares.take(&client("quiet"), 1));
        }
        assert!(quiet.len() >= 8, "{} of 20", quiet.len());
    }

    #[test]
    fn a_single_call_may_have_all_that_is_left() {
        let shares = FairShare::new(100, MaxShare::HALF);
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
    async fn a_waiting_client_gets_what_is_released() {
        let shares = FairShare::new(1, MaxShare::HALF);
        let taken = shares.take(&client("first"), 1).expect("all");
        let second = client("second");
        let waiting = shares.wait(&second, 1);
        tokio::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(taken);
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .expect("the share was released");
    }
}
