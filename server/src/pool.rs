//! Where planning runs: on threads of its own, a bounded number at a time, with a bounded queue before them.
//!
//! A call first takes a *place*; when there is none it is shed at once, before its message is read. With a place it waits
//! for a *slot*; with a slot it runs. Both are given back when the work has really ended, not when the caller has gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::refusal::{self, Refusal};

/// A bounded pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Queued and running calls.
    places: Arc<Semaphore>,
    /// Running calls.
    slots: Arc<Semaphore>,
}

/// The right to be queued or running. Given back on drop.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

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
        let concurrent = concurrent.clamp(1, Semaphore::MAX_PERMITS / 2);
        let places = concurrent + queued.min(Semaphore::MAX_PERMITS / 2);
        Self {
            places: Arc::new(Semaphore::new(places)),
            slots: Arc::new(Semaphore::new(concurrent)),
        }
    }

    /// A place, if there is one.
    pub(crate) fn try_enter(&self) -> Option<Place> {
        Some(Place {
            _permit: Arc::clone(&self.places).try_acquire_owned().ok()?,
        })
    }

    /// A place, as soon as there is one.
    pub(crate) async fn enter(&self) -> Place {
        Place {
            _permit: acquire(&self.places).await,
        }
    }

    /// Runs `work` and hands it what tells whether to stop: that the deadline has passed, or that this future was dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        place: Arc<Place>,
        deadline: Option<Instant>,
        work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Status> {
        let slot = acquire(&self.slots).await;
        let abandoned = Arc::new(AtomicBool::new(false));
        let _abandon = AbandonOnDrop(Arc::clone(&abandoned));
        let span = tracing::Span::current();
        let job = tokio::task::spawn_blocking(move || {
            let _span = span.entered();
            let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let result = work(&|| abandoned.load(Ordering::Relaxed) || late());
            drop((slot, place));
            result
        });
        match job.await {
            Ok(result) => result.map_err(Status::from),
            Err(error) if error.is_panic() => {
                // A defect of the planner: the caller gets an error and the server lives on.
                tracing::error!(%error, "planning panicked");
                Err(Status::internal("planning failed; the server's log tells why"))
            }
            Err(_) => Err(refusal::draining()),
        }
    }
}

async fn acquire(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(semaphore)
        .acquire_owned()
        .await
        .expect("the semaphores of a pool are never closed")
}
