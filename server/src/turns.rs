//! Slots that clients get in turns: who has a hundred calls waiting waits no less for the next one than who has one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::client::Key;

/// So many slots.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Whose turn it is, and the calls that wait. Nobody waits while a slot is free.
    clients: VecDeque<(Key, VecDeque<oneshot::Sender<Slot>>)>,
}

/// The right to run. Given on, or back, on drop.
#[derive(Debug)]
pub(crate) struct Slot(Turns);

impl Turns {
    pub(crate) fn new(slots: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: slots,
            clients: VecDeque::new(),
        })))
    }

    /// The slots that nobody has.
    pub(crate) fn free(&self) -> usize {
        self.state().free
    }

    /// A slot, when it is the client's turn.
    pub(crate) async fn acquire(&self, client: &Key) -> Slot {
        let waiting = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Slot(self.clone());
            }
            state.queue(client)
        };
        waiting.await.expect("a slot is given on before the turns end")
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

    /// The next call whose turn it is. Its client is the last one from then on.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        loop {
            let (client, mut calls) = self.clients.pop_front()?;
            let call = calls.pop_front();
            if !calls.is_empty() {
                self.clients.push_back((client, calls));
            }
            if let Some(call) = call.filter(|call| !call.is_closed()) {
                return Some(call);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            let next = state.next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // When it has just been given up the slot comes back in the error, and goes on from there.
            drop(next.send(Self(self.0.clone())));
        }
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
    fn waiting(turns: &Turns, name: &str) -> BoxFuture<'static, Slot> {
        let (turns, client) = (turns.clone(), client(name));
        let mut call = async move { turns.acquire(&client).await }.boxed();
        assert!(call.as_mut().now_or_never().is_none(), "nobody has ended");
        call
    }

    fn taken(turns: &Turns) -> Slot {
        turns
            .acquire(&client("first"))
            .now_or_never()
            .expect("a slot is free")
    }

    #[test]
    fn clients_take_turns_however_many_calls_they_have() {
        let turns = Turns::new(1);
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
    fn calls_that_are_given_up_lose_no_slot() {
        let turns = Turns::new(1);
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
        let turns = Turns::new(1);
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
