//! Slots that clients get in turns, and of which no client has all: a call waits no longer beside a hundred calls of another client,
//! however long each of them runs.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{client::Key, fair_share::Alone};

/// The most slots that a client has while others have none.
const MOST: Alone = Alone::FOUR_FIFTHS;

/// So many slots.
#[derive(Debug, Clone)]
pub(crate) struct FairQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// How many slots each client has that has any.
    taken: HashMap<Key, usize>,
    /// Whose turn it is, and the calls that wait. While slots are free only those wait whose client has its part of them.
    clients: VecDeque<(Key, VecDeque<oneshot::Sender<Slot>>)>,
}

/// The right to run. Given on, or back, on drop.
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

    /// The slots that nobody has.
    pub(crate) fn free(&self) -> usize {
        self.state().free
    }

    /// A slot, when it is the client's turn and it has less than its part.
    pub(crate) async fn acquire(&self, client: &Key) -> Slot {
        let waiting = self.state().queue(client);
        self.give();
        waiting.await.expect("a slot is given on before the turns end")
    }

    /// Gives free slots to those who may have them.
    fn give(&self) {
        loop {
            // The lock must be free when a slot is sent: if the call has just been given up, the slot comes back and is dropped here.
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
            // Those that were given up must not pile up.
            calls.retain(|call| !call.is_closed());
            calls.push_back(sender);
        } else {
            self.clients.push_back((client.clone(), [sender].into()));
        }
        receiver
    }

    /// Whether a client may have one more.
    fn allows(&self, client: &Key) -> bool {
        let taken = self.taken.get(client).copied().unwrap_or(0);
        let left = self.free.checked_sub(1);
        left.is_some_and(|left| MOST.allows(taken, 1, left))
    }

    /// Takes a slot for the next call whose turn it is. Its client is the last one from then on.
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

    /// A call that waits.
    fn waiting(turns: &FairQueue, name: &str) -> BoxFuture<'static, Slot> {
        let (turns, client) = (turns.clone(), client(name));
        let mut call = async move { turns.acquire(&client).await }.boxed();
        assert!(call.as_mut().now_or_never().is_none(), "nobody has ended");
        call
    }

    fn taken(turns: &FairQueue) -> Slot {
        turns
            .acquire(&client("first"))
            .now_or_never()
            .expect("a slot is free")
    }

    #[test]
    fn clients_take_turns_however_many_calls_they_have() {
        let turns = FairQueue::new(1);
        let mut slot = taken(&turns);
        let names = ["noisy", "noisy", "noisy", "quiet", "other", "quiet"];
        let mut calls: Vec<_> = names.map(|name| (name, waiting(&turns, name))).into();
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
        assert_eq!(turns.free(), 1);
    }

    #[test]
    fn no_client_has_all_slots_and_the_others_do_not_wait_for_it() {
        let turns = FairQueue::new(4);
        let mut noisy: Vec<_> = (0..3).map(|_| taken(&turns)).collect();
        let more = waiting(&turns, "first");
        let quiet = turns.acquire(&client("quiet")).now_or_never();
        let quiet = quiet.expect("a slot is left for others");
        let other = waiting(&turns, "other");
        // What the noisy client gives back is for the one that has none, though it asked later.
        noisy.pop();
        let other = other.now_or_never().expect("a slot for the other");
        drop((quiet, other));
        let more = more.now_or_never().expect("the others have gone");
        assert_eq!(turns.free(), 1);
        drop((noisy, more));
        assert_eq!(turns.free(), 4);
        assert!(turns.state().taken.is_empty());
    }

    #[test]
    fn calls_that_are_given_up_lose_no_slot() {
        let turns = FairQueue::new(1);
        let slot = taken(&turns);
        let (gone, stays, chosen) = (
            waiting(&turns, "gone"),
            waiting(&turns, "stays"),
            waiting(&turns, "chosen"),
        );
        drop(gone);
        drop(slot);
        let slot = stays.now_or_never().expect("the one before it has gone");
        drop(slot);
        // It has been given the slot, and goes before it looks.
        drop(chosen);
        assert_eq!(turns.free(), 1);
    }

    #[test]
    fn who_asks_and_goes_again_and_again_is_forgotten() {
        let turns = FairQueue::new(1);
        let slot = taken(&turns);
        for _ in 0..1_000 {
            drop(waiting(&turns, "fickle"));
        }
        assert_eq!(turns.state().clients.len(), 1);
        assert_eq!(
            turns.state().clients[0].1.len(),
            1,
            "only the last one is still known"
        );
        drop(slot);
        assert_eq!(turns.free(), 1);
    }
}
