//! The watches of a command, and when what it shows is computed again.

use std::{future::pending, time::Duration};

use anyhow::anyhow;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::input::{Change, Follower};

/// Events that follow each other are shown together.
const TOGETHER: Duration = Duration::from_millis(150);
/// Without an event the status of a workload is computed again after this time: a pod may be late by now.
pub(crate) const AGAIN: Duration = Duration::from_secs(2);
/// A failure is shown for at least this time.
const SHOWN: Duration = Duration::from_secs(5);
/// A watch that failed is tried again within 30 seconds, and connecting takes at most 30 more. If it has not failed by then, it works.
const QUIET: Duration = Duration::from_secs(65);

/// Watches of a cluster.
pub(crate) struct Watches {
    pub(crate) follower: Follower,
    /// When the command computes again. Kept here, so that a cancelled `next` delays nothing.
    due: Instant,
    failure: Option<Failure>,
}

/// What has happened.
pub(crate) enum Tick {
    /// It is time to compute. The caller says [`Watches::computed`] when it has.
    Due,
    /// A watch failed. It is tried again.
    Problem(String),
    /// The watches work again.
    Recovered,
}

/// The last failure of a watch.
struct Failure {
    at: Instant,
    /// Whether a watch has shown an event since.
    was_event: bool,
}

impl Failure {
    /// When it counts as over.
    fn end(&self) -> Instant {
        self.at + if self.was_event { SHOWN } else { QUIET }
    }
}

impl Watches {
    pub(crate) fn new(follower: Follower) -> Self {
        Self {
            follower,
            due: Instant::now() + AGAIN,
            failure: None,
        }
    }

    /// Waits until something has happened. May be cancelled: no event is lost.
    ///
    /// # Errors
    /// An object cannot be read, or the user has no right to list a kind.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Tick> {
        loop {
            let over = self.failure.as_ref().map(Failure::end);
            tokio::select! {
                change = self.follower.next() => match change? {
                    Change::Objects => {
                        self.due = self.due.min(Instant::now() + TOGETHER);
                        if let Some(failure) = &mut self.failure {
                            failure.was_event = true;
                        }
                    }
                    Change::Failed(problem) => {
                        self.failure = Some(Failure { at: Instant::now(), was_event: false });
                        return Ok(Tick::Problem(format!("{problem}; it is tried again")));
                    }
                },
                () = until(over) => {
                    self.failure = None;
                    return Ok(Tick::Recovered);
                }
                () = sleep_until(self.due), if self.follower.is_complete() => return Ok(Tick::Due),
            }
        }
    }

    /// What is due has been computed. Without an event it is computed again after this time.
    pub(crate) fn computed(&mut self, again: Duration) {
        self.due = Instant::now() + again;
    }
}

/// The end of a watch of this length. `None`: it has no end, as with 0.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    let timeout = timeout.filter(|timeout| !timeout.is_zero())?;
    Some(Instant::now() + timeout)
}

/// Waits for this moment, or for ever.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// The result of `work`, unless the watch ends before.
pub(crate) async fn before<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> anyhow::Result<T> {
    let Some(deadline) = deadline else {
        return Ok(work.await);
    };
    timeout_at(deadline, work).await.map_err(|_| no_answer())
}

/// The error of a watch that ended before it had anything to show.
pub(crate) fn no_answer() -> anyhow::Error {
    anyhow!("the apiserver has not answered in the time of --timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const SOON: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_watch_may_have_no_end() {
        assert_eq!(deadline(None), None);
        assert_eq!(deadline(Some(Duration::ZERO)), None);
        assert!(deadline(Some(MINUTE)) > Some(Instant::now()));
        let waited = timeout_at(Instant::now() + SOON, until(None)).await;
        assert!(waited.is_err(), "it waits for ever");
    }

    #[tokio::test]
    async fn what_does_not_answer_is_given_up_at_the_end() {
        assert_eq!(before(None, async { 1 }).await.expect("done"), 1);
        assert_eq!(
            before(deadline(Some(MINUTE)), async { 1 }).await.expect("done"),
            1
        );
        let error = before(deadline(Some(SOON)), pending::<()>()).await;
        assert_eq!(
            error.expect_err("it never ends").to_string(),
            no_answer().to_string()
        );
    }

    #[test]
    fn a_failure_is_over_soon_after_an_event() {
        let mut failure = Failure {
            at: Instant::now(),
            was_event: false,
        };
        assert_eq!(failure.end(), failure.at + QUIET);
        failure.was_event = true;
        assert_eq!(failure.end(), failure.at + SHOWN);
    }
}
