//! Where planning runs: on threads of its own, a bounded number at a time, with a bounded queue before them.
//!
//! A call first takes a *place*; when there is none for its client it is shed at once, before its message is read. With a
//! place it waits for a *slot*, in turns with other clients, of whom none has all slots; with a slot it runs. Both are given back when the work has really
//! ended, not when the caller has gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use nodewise_telemetry::propagation;
use tonic::Status;

use crate::{
    client::Key,
    fair_queue::FairQueue,
    fair_share::{Alone, FairShare, Share},
    refusal::{self, Refusal},
};

/// A bounded pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Queued and running calls.
    places: FairShare,
    /// Running calls.
    slots: FairQueue,
    most: Load,
}

/// How many calls there are in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) queued: usize,
    pub(crate) running: usize,
}

/// The right to be queued or running. Given back on drop.
#[derive(Debug)]
pub(crate) struct Permit(Share);

/// Tells the work that its caller has gone.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool that runs `concurrent` calls and lets `queued` more wait.
    pub(crate) fn new(concurrent: usize, queued: usize) -> Self {
        let running = concurrent.max(1);
        Self {
            places: FairShare::new(running.saturating_add(queued), Alone::FOUR_FIFTHS),
            slots: FairQueue::new(running),
            most: Load { queued, running },
        }
    }

    /// The most that it takes.
    pub(crate) fn capacity(&self) -> Load {
        self.most
    }

    /// What it has in hand. A call that is just beginning may count as queued.
    pub(crate) fn load(&self) -> Load {
        let running = self.most.running.saturating_sub(self.slots.free());
        Load {
            queued: self.places.taken().saturating_sub(running),
            running,
        }
    }

    /// A place, if there is one for this client.
    pub(crate) fn try_enter(&self, client: &Key) -> Option<Permit> {
        self.places.take(client, 1).map(Permit)
    }

    /// A place, as soon as there is one for this client.
    pub(crate) async fn enter(&self, client: &Key) -> Permit {
        Permit(self.places.wait(client, 1).await)
    }

    /// Runs `work` and hands it what tells whether to stop: that the deadline has passed, or that this future was dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        permit: Permit,
        deadline: Option<Instant>,
        work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Status> {
        let slot = self.slots.acquire(permit.0.client()).await;
        let abandoned = Arc::new(AtomicBool::new(false));
        let _abandon = AbandonOnDrop(Arc::clone(&abandoned));
        on_a_thread(move || {
            let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let result = work(&|| abandoned.load(Ordering::Relaxed) || late());
            drop((slot, permit));
            result.map_err(Status::from)
        })
        .await
    }

    /// Runs what a message needs before it can be planned for, when it is the turn of whom its memory is held for. That is held, and
    /// the slot, until the work has really ended.
    pub(crate) async fn prepare<T: Send + 'static>(
        &self,
        memory: Arc<Share>,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let slot = self.slots.acquire(memory.client()).await;
        on_a_thread(move || {
            let result = work();
            drop((slot, memory));
            result
        })
        .await
    }
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(propagation::carry(work)).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => {
            // A defect: the caller gets an error and the server lives on.
            tracing::error!(%error, "planning panicked");
            Err(Status::internal("planning failed; the server's log tells why"))
        }
        Err(_) => Err(refusal::draining()),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tonic::Code;

    use super::*;

    /// Longer than any of this takes, shorter than anybody waits.
    const SOON: Duration = Duration::from_secs(20);

    fn works(stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        // As a plan does: it looks now and then.
        while !stop() {
            std::thread::yield_now();
        }
        Err(Refusal::Stopped)
    }

    async fn until_free(pool: &Pool) -> Permit {
        tokio::time::timeout(SOON, pool.enter(&Key::Unknown))
            .await
            .expect("the place is given back")
    }

    #[tokio::test]
    async fn a_full_pool_has_no_place_and_a_queue_that_is_bounded() {
        let pool = Pool::new(1, 1);
        let (release, released) = mpsc::channel::<()>();
        let running = pool.try_enter(&Key::Unknown).expect("the slot");
        let other = Key::Principal(Arc::from("another client"));
        let queued = pool.try_enter(&other).expect("the queue");
        assert!(
            pool.try_enter(&Key::Unknown).is_none(),
            "one runs, one waits, the third is shed"
        );
        let work = pool.run(running, None, move |_| {
            released.recv().expect("released");
            Ok(())
        });
        let waiting = pool.run(queued, None, |_| Ok(()));
        let both = async { tokio::join!(work, waiting) };
        let ((), (worked, waited)) = tokio::join!(async { release.send(()).unwrap() }, both);
        assert!(worked.is_ok() && waited.is_ok());
        assert!(pool.try_enter(&Key::Unknown).is_some());
    }

    #[tokio::test]
    async fn work_whose_deadline_has_passed_ends_and_frees_its_slot() {
        let pool = Pool::new(1, 0);
        let permit = pool.try_enter(&Key::Unknown).unwrap();
        let deadline = Instant::now() + Duration::from_millis(10);
        let ended = tokio::time::timeout(SOON, pool.run(permit, Some(deadline), works))
            .await
            .expect("in time");
        assert_eq!(ended.unwrap_err().code(), Code::DeadlineExceeded);
        until_free(&pool).await;
    }

    #[tokio::test]
    async fn work_whose_caller_has_gone_ends_and_frees_its_slot() {
        let pool = Pool::new(1, 0);
        let permit = pool.try_enter(&Key::Unknown).unwrap();
        let (started, starts) = tokio::sync::oneshot::channel();
        let call = pool.run(permit, None, move |stop| {
            started.send(()).expect("the test waits");
            works(stop)
        });
        tokio::select! {
            _ = call => panic!("nothing ends the work but its caller"),
            started = starts => started.expect("the work starts"),
        }
        // The call was dropped by the select, as the transport drops it when the client resets its stream.
        until_free(&pool).await;
    }

    #[tokio::test]
    async fn a_message_that_nobody_waits_for_holds_its_memory_as_long_as_it_is_decoded() {
        let pool = Pool::new(1, 0);
        let memory = FairShare::new(10, Alone::HALF);
        let held = Arc::new(memory.take(&Key::Unknown, 5).expect("half of it"));
        let (release, released) = mpsc::channel::<()>();
        let (started, starts) = tokio::sync::oneshot::channel();
        let decoding = pool.prepare(held, move || {
            started.send(()).expect("the test waits");
            released.recv().expect("released");
            Ok(())
        });
        tokio::select! {
            _ = decoding => panic!("it waits"),
            started = starts => started.expect("it starts"),
        }
        assert_eq!(
            (memory.taken(), pool.load().running),
            (5, 1),
            "the caller has gone"
        );
        release.send(()).expect("it runs");
        let all = tokio::time::timeout(SOON, memory.wait(&Key::Unknown, 1)).await;
        drop(all.expect("it is given back"));
        // The slot goes first.
        assert_eq!(pool.load().running, 0);
    }

    #[tokio::test]
    async fn a_panic_is_one_calls_error() {
        let pool = Pool::new(1, 0);
        let permit = pool.try_enter(&Key::Unknown).unwrap();
        let result: Result<(), _> = pool.run(permit, None, |_| panic!("a defect")).await;
        assert_eq!(result.unwrap_err().code(), Code::Internal);
        let permit = until_free(&pool).await;
        assert!(pool.run(permit, None, |_| Ok(())).await.is_ok());
    }
}
