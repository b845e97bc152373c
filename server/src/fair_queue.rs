//! Slots that are given round-robin, per client, and of which no client gets all. A client with one call waits no longer because
//! another client has a hundred calls.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{client::Key, fair_share::MaxShare};

/// The part of the slots that a single client may have.
const MAX_SHARE: MaxShare = MaxShare::FOUR_FIFTHS;

/// A fixed number of slots and the calls that wait for them.
#[derive(Debug, Clone)]
pub(crate) struct FairQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// The number of slots of each client that has any.
    taken: HashMap<Key, usize>,
    /// The waiting calls per client, in round-robin order. While slots are free, only clients that have used up their part wait.
    clients: VecDeque<(Key, VecDeque<oneshot::Sender<Slot>>)>,
}

/// The right to run. On drop, the next call gets the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    of: FairQueue,
    client: Key,
}

impl FairQueue {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: slots,
            taken: HashMap::new(),
            clients: VecDeque::new(),
        })))
    }

    /// The number of free slots.
    pub(crate) fn free(&self) -> usize {
        self.state().free
    }

    /// Waits for a slot: until it is the client's turn and the client has less than its part.
    pub(crate) async fn acquire(&self, client: &Key) -> Slot {
        let waiting = self.state().queue(client);
        self.give();
        waiting.await.expect("the queue outlives its waiting calls")
    }

    /// Gives free slots to waiting calls.
    fn give(&self) {
        loop {
            // Send without the lock: if the call was just cancelled, `send` returns the slot, and dropping it takes the lock.
            let next = self.state().next();
            let Some((client, call)) = next else { return };
            let of = self.clone();
            drop(call.send(Slot { of, client }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, client: &Key) -> oneshot::Receiver<Slot> {
        let (sender, receiver) = oneshot::channel();
        if let Some((_, calls)) = self.clients.iter_mut().find(|(key, _)| key == client) {
            // Cancelled calls must not pile up.
            calls.retain(|call| !call.is_closed());
            calls.push_back(sender);
        } else {
            self.clients.push_back((client.clone(), [sender].into()));
        }
        receiver
    }

    /// Whether a client may have one more slot.
    fn allows(&self, client: &Key) -> bool {
        let taken = self.taken.get(client).copied().unwrap_or(0);
        let left = self.free.checked_sub(1);
        left.is_some_and(|left| MAX_SHARE.allows(taken, 1, left))
    }

    /// Takes a slot for the next call in round-robin order, and moves its client to the end of the order.
    fn next(&mut self) -> Option<(Key, oneshot::Sender<Slot>)> {
        loop {
            let first = self.clients.iter().position(|(client, _)| self.allows(client))?;
            let (client, mut calls) = self.clients.remove(first)?;
            let call = calls.pop_front();
            if !calls.is_empty() {
                self.clients.push_back((client.clone(), calls));
            }
            if let Some(call) = call.filter(|call| !call.is_closed()) {
                self.free -= 1;
                *self.taken.entry(client.clone()).or_default() += 1;
                return Some((client, call));
            }
        }
    }

    fn take_back(&mut self, client: &Key) {
        self.free += 1;
        if let Some(taken) = self.taken.get_mut(client) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(client);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.of.state().take_back(&self.client);
        self.of.give();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{FutureExt as _, future::BoxFuture};

    use super::*;

    fn client(name: &str) -> Key {
        Key::Principal(Arc::from(name))
    }

    /// A call that waits for a slot.
    fn waiting(queue: &FairQueue, name: &str) -> BoxFuture<'static, Slot> {
        let (queue, client) = (queue.clone(), client(name));
        let mut call = async move { queue.acquire(&client).await }.boxed();
        assert!(call.as_mut().now_or_never().is_none(), "no slot is free");
        call
    }

    fn taken(queue: &FairQueue) -> Slot {
        queue
            .acquire(&client("first"))
            .now_or_never()
            .expect("a slot is free")
    }

    #[test]
    fn slots_are_given_round_robin_per_client() {
        let queue = FairQueue::new(1);
        let mut slot = taken(&queue);
        let names = ["noisy", "noisy", "noisy", "quiet", "other", "quiet"];
        let mut calls: Vec<_> = names.map(|name| (name, waiting(&queue, name))).into();
        let mut order = Vec::new();
        while !calls.is_empty() {
            drop(slot);
            let (index, next) = calls
                .iter_mut()
                .enumerate()
                .find_map(|(index, (_, call))| Some((index, call.as_mut().now_or_never()?)))
                .expect("one of them runs");
            order.push(calls.remove(index).0);
            slot = next;
        }
        assert_eq!(order, ["noisy", "quiet", "other", "noisy", "quiet", "noisy"]);
        drop(slot);
        assert_eq!(queue.free(), 1);
    }

    #[test]
    fn no_client_gets_all_slots() {
        let queue = FairQueue::new(4);
        let mut noisy: Vec<_> = (0..3).map(|_| taken(&queue)).collect();
        let more = waiting(&queue, "first");
        let quiet = queue.acquire(&client("quiet")).now_or_never();
        let quiet = quiet.expect("a slot is left for others");
        let other = waiting(&queue, "other");
        // A slot that the noisy client releases goes to the client that has none, though that one asked later.
        noisy.pop();
        let other = other.now_or_never().expect("a slot for the other");
        drop((quiet, other));
        let more = more.now_or_never().expect("the other clients have ended");
        assert_eq!(queue.free(), 1);
        drop((noisy, more));
        assert_eq!(queue.free(), 4);
        assert!(queue.state().taken.is_empty());
    }

    #[test]
    fn a_cancelled_call_loses_no_slot() {
        let queue = FairQueue::new(1);
        let slot = taken(&queue);
        let (gone, stays, chosen) = (
            waiting(&queue, "gone"),
            waiting(&queue, "stays"),
            waiting(&queue, "chosen"),
        );
        drop(gone);
        drop(slot);
        let slot = stays.now_or_never().expect("the call before it is cancelled");
        drop(slot);
        // This call has already been sent the slot when it is cancelled.
        drop(chosen);
        assert_eq!(queue.free(), 1);
    }

    #[test]
    fn cancelled_calls_do_not_pile_up() {
        let queue = FairQueue::new(1);
        let slot = taken(&queue);
        for _ in 0..1_000 {
            drop(waiting(&queue, "fickle"));
        }
        assert_eq!(queue.state().clients.len(), 1);
        assert_eq!(
            queue.state().clients[0].1.len(),
            1,
            "only the last call is still queued"
        );
        drop(slot);
        assert_eq!(queue.free(), 1);
    }
}
