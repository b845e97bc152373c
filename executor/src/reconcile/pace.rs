//! How often a workload comes back at once: as a plan or the answer to its report says, but not again and again for nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Ending;
use crate::event::Key;

/// A workload without a token comes back no sooner than this, whatever the service says.
pub(super) const SOONEST: Duration = Duration::from_millis(100);

/// Most tokens that a workload has. A rollout over the largest cluster takes fewer in a row than it gets meanwhile.
const MOST_TOKENS: f64 = 100.0;

/// How many tokens a workload gets in a second.
const TOKENS_PER_SECOND: f64 = 10.0;

/// How a reconcile ends whose plan is to be followed by another one.
pub(super) const AT_ONCE: Ending = Ending::Settled {
    after: Some(Duration::ZERO),
};

/// When to come back after a plan of which nothing is known, or that did nothing. "At once" goes on from what was done.
pub(super) fn unless_at_once(after: Option<Duration>) -> Option<Duration> {
    after.filter(|after| !after.is_zero())
}

/// The tokens of workloads. Each time that one comes back sooner than after [`SOONEST`] takes a token of it.
#[derive(Debug, Default)]
pub struct Pace(Mutex<HashMap<Key, Tokens>>);

#[derive(Debug)]
struct Tokens {
    left: f64,
    at: Instant,
}

impl Pace {
    /// The ending of a reconcile, with a wait for as long as the workload has no token.
    pub(super) fn slow(&self, key: &Key, mut ending: Ending) -> Ending {
        if let Ending::Settled { after } | Ending::Failed { after, .. } = &mut ending
            && after.is_some_and(|after| after < SOONEST)
            && !self.take(key)
        {
            *after = Some(SOONEST);
        }
        ending
    }

    /// The workload is there no more.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Takes a token, if there is one.
    fn take(&self, key: &Key) -> bool {
        let (mut tokens, now) = (self.lock(), Instant::now());
        let tokens = tokens.entry(key.clone()).or_insert(Tokens {
            left: MOST_TOKENS,
            at: now,
        });
        let new = now.duration_since(tokens.at).as_secs_f64() * TOKENS_PER_SECOND;
        tokens.left = (tokens.left + new).min(MOST_TOKENS);
        tokens.at = now;
        let is_there = tokens.left >= 1.0;
        if is_there {
            tokens.left -= 1.0;
        }
        is_there
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Tokens>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
