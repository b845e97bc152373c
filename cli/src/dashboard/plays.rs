//! Bounds the plays of changes: one at a time for each caller, and a few in the process.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nodewise_dashboard::{Problem, Reason};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::questions::invalid;
use crate::simulate::Preview;

/// The most plays at a time in the process. Each uses one processor.
const MAX_PLAYS: usize = 4;
/// A play ends if nobody takes its next step for so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The plays of all callers.
#[derive(Debug, Clone)]
pub(super) struct AllPlays(Arc<Semaphore>);

impl Default for AllPlays {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_PLAYS)))
    }
}

/// The plays of one caller. A new one replaces the one before.
#[derive(Debug)]
pub(super) struct Plays {
    all: AllPlays,
    own: Arc<Semaphore>,
    /// Ends the newest one.
    newest: Mutex<CancellationToken>,
}

/// A play that may run.
#[derive(Debug)]
pub(super) struct Play {
    /// Ends it.
    pub(super) end: CancellationToken,
    _own: OwnedSemaphorePermit,
    _one_of_all: OwnedSemaphorePermit,
}

impl Plays {
    pub(super) fn new(all: AllPlays) -> Self {
        Self {
            all,
            own: Arc::new(Semaphore::new(1)),
            newest: Mutex::default(),
        }
    }

    /// Ends the play of this caller that runs, and begins a new one when it has ended.
    pub(super) async fn begin(&self) -> Result<Play, Problem> {
        let end = CancellationToken::new();
        {
            let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *newest, end.clone()).cancel();
        }
        let own = tokio::select! {
            own = Arc::clone(&self.own).acquire_owned() => own.map_err(|_| too_many())?,
            () = end.cancelled() => return Err(replaced()),
        };
        let one_of_all = Arc::clone(&self.all.0).try_acquire_owned();
        Ok(Play {
            end,
            _own: own,
            _one_of_all: one_of_all.map_err(|_| too_many())?,
        })
    }
}

impl Play {
    /// Plays on this thread, which must be one that may block.
    ///
    /// # Errors
    /// The planner refuses the change, another play replaces this one, or nobody takes the steps.
    pub(super) fn run(self, preview: Preview, steps: &mpsc::Sender<Value>) -> Result<(), Problem> {
        let runtime = Handle::current();
        let mut problem = None;
        let played = preview.play(
            &|| self.end.is_cancelled() || steps.is_closed(),
            &mut |step| match runtime.block_on(self.give(step, steps, PATIENCE)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(found) => {
                    problem.get_or_insert(found);
                    ControlFlow::Break(())
                }
            },
        );
        match problem {
            Some(problem) => Err(problem),
            None => played.map_err(|error| invalid(&error)),
        }
    }

    /// Gives a step to whoever reads the play.
    async fn give(
        &self,
        step: Value,
        steps: &mpsc::Sender<Value>,
        patience: Duration,
    ) -> Result<(), Problem> {
        let given = tokio::select! {
            biased;
            () = self.end.cancelled() => return Err(replaced()),
            given = timeout(patience, steps.send(step)) => given,
        };
        let not_taken = || format!("the play has ended, because nobody has taken its steps for {patience:?}");
        given
            .map_err(|_| Problem::new(Reason::Unavailable, not_taken()))?
            .map_err(|_| Problem::new(Reason::Unavailable, "nobody reads the play"))
    }
}

fn too_many() -> Problem {
    let message = format!("{MAX_PLAYS} changes are being played already; try again later");
    Problem::new(Reason::Unavailable, message)
}

fn replaced() -> Problem {
    let message = "this play has ended, because you have started another one";
    Problem::new(Reason::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_play_of_a_caller_replaces_the_one_before() {
        let plays = Arc::new(Plays::new(AllPlays::default()));
        let begin = || {
            let plays = Arc::clone(&plays);
            tokio::spawn(async move { plays.begin().await })
        };
        let first = plays.begin().await.expect("the first play runs");
        assert!(!first.end.is_cancelled());
        let second = begin();
        first.end.cancelled().await;
        let third = begin();
        let second = second.await.expect("no panic");
        assert_eq!(second.expect_err("the third one replaces it"), replaced());
        assert!(!third.is_finished(), "the first play has not ended yet");
        drop(first);
        let third = third.await.expect("no panic").expect("the third play runs");
        assert!(!third.end.is_cancelled());
    }

    #[tokio::test]
    async fn only_a_few_plays_run_at_a_time() {
        let all = AllPlays::default();
        let mut running = Vec::new();
        for _ in 0..MAX_PLAYS {
            let play = Plays::new(all.clone()).begin().await;
            running.push(play.expect("there is a slot"));
        }
        let one_more = Plays::new(all);
        assert_eq!(
            one_more.begin().await.expect_err("all slots are taken"),
            too_many()
        );
        running.pop();
        assert!(one_more.begin().await.is_ok(), "a slot is free again");
    }

    #[tokio::test]
    async fn a_play_whose_steps_nobody_takes_ends() {
        let play = Plays::new(AllPlays::default()).begin().await.expect("it runs");
        let (steps, mut taken) = mpsc::channel(1);
        let give = || play.give(Value::Null, &steps, Duration::from_millis(50));
        assert_eq!(give().await, Ok(()));
        let problem = give().await.expect_err("the channel is full");
        assert!(
            problem.message.contains("nobody has taken its steps for 50ms"),
            "{problem:?}"
        );
        taken.recv().await;
        assert_eq!(give().await, Ok(()));
        play.end.cancel();
        assert_eq!(give().await, Err(replaced()));
    }
}
