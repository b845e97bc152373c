//! The pool of planning threads: a bounded number of running calls, and a bounded queue.
//!
//! A call first takes a *permit*. If its client can have none, the server sheds the call before it reads the message. With a permit
//! the call waits for a *slot*; with a slot it runs. Slots are given round-robin, per client, and no client gets all of them.
//! Permit and slot are released when the work ends, even if the caller left earlier.

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
    fair_share::{FairShare, MaxShare, Share},
    refusal::{self, Refusal},
};

/// The pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Queued and running calls.
    permits: FairShare,
    /// Running calls.
    slots: FairQueue,
    most: Load,
}

/// Numbers of calls in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) queued: usize,
    pub(crate) running: usize,
}

/// The right to be queued or running. Released on drop.
#[derive(Debug)]
pub(crate) struct Permit(Share);

/// Tells the work, on drop, that its caller has left.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool that runs `concurrent` calls and queues `queued` more.
    pub(crate) fn new(concurrent: usize, queued: usize) -> Self {
        let running = concurrent.max(1);
        Self {
            permits: FairShare::new(running.saturating_add(queued), MaxShare::FOUR_FIFTHS),
            slots: FairQueue::new(running),
            most: Load { queued, running },
        }
    }

    /// The most calls that the pool accepts.
    pub(crate) fn capacity(&self) -> Load {
        self.most
    }

    /// The calls in the pool now. A call that is just starting may count as queued.
    pub(crate) fn load(&self) -> Load {
        let running = self.most.running.saturating_sub(self.slots.free());
        Load {
            queued: self.permits.taken().saturating_sub(running),
            running,
        }
    }

    /// A permit, or `None` if this client can have none now.
    pub(crate) fn try_enter(&self, client: &Key) -> Option<Permit> {
        self.permits.take(client, 1).map(Permit)
    }

    /// Waits for a permit for this client.
    pub(crate) async fn enter(&self, client: &Key) -> Permit {
        Permit(self.permits.wait(client, 1).await)
    }

    /// Runs `work`. The work gets a function that is true once the deadline has passed or this future was dropped.
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

    /// Runs `work` that a message needs before it can be planned, such as decompression, in a slot of the client that holds
    /// `memory`. The memory and the slot are held until the work ends.
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
            // A bug: this caller gets an error, and the server goes on.
            tracing::error!(%error, "planning panicked");
            Err(Status::internal(
                "planning failed; the server's log has the reason",
            ))
        }
        Err(_) => Err(refusal::draining()),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tonic::Code;

    use super::*;

    /// Fails a test that hangs; everything here takes milliseconds.
    const SOON: Duration = Duration::from_secs(20);

    /// Runs until it is stopped, as a long plan does.
    fn until_stopped(stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        while !stop() {
            std::thread::yield_now();
        }
        Err(Refusal::Stopped)
    }

    async fn until_free(pool: &Pool) -> Permit {
        tokio::time::timeout(SOON, pool.enter(&Key::Unknown))
            .await
            .expect("the permit is released")
    }

    #[tokio::test]
    async fn a_full_pool_sheds_calls() {
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
        let ended = tokio::time::timeout(SOON, pool.run(permit, Some(deadline), until_stopped))
            .await
            .expect("in time");
        assert_eq!(ended.unwrap_err().code(), Code::DeadlineExceeded);
        until_free(&pool).await;
    }

    #[tokio::test]
    async fn work_whose_caller_has_left_ends_and_frees_its_slot() {
        let pool = Pool::new(1, 0);
        let permit = pool.try_enter(&Key::Unknown).unwrap();
        let (started, starts) = tokio::sync::oneshot::channel();
        let call = pool.run(permit, None, move |stop| {
            started.send(()).expect("the test waits");
            until_stopped(stop)
        });
        tokio::select! {
            _ = call => panic!("only a caller that leaves ends the work"),
            started = starts => started.expect("the work starts"),
        }
        // `select!` dropped the call, as the transport does when the client resets its stream.
        until_free(&pool).await;
    }

    #[tokio::test]
    async fn a_message_holds_its_memory_until_decoding_ends_even_if_the_caller_has_left() {
        let pool = Pool::new(1, 0);
        let memory = FairShare::new(10, MaxShare::HALF);
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
            "the caller has left, the work still runs"
        );
        release.send(()).expect("it runs");
        let all = tokio::time::timeout(SOON, memory.wait(&Key::Unknown, 1)).await;
        drop(all.expect("the memory is released"));
        // The slot is released before the memory.
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
