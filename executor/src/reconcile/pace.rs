//! Limits how often a workload is requeued at once. The service asks for such requeues, and a token bucket for each
//! workload bounds them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nodewise_projection::Key;
use tokio::time::Instant;

use super::Ending;

/// Minimum delay of a requeue for a workload without tokens, whatever the service asks for.
pub(super) const MIN_DELAY: Duration = Duration::from_millis(100);

/// Maximum tokens of a workload. A rollout over the largest cluster gets new tokens faster than it uses them up.
const MAX_TOKENS: f64 = 100.0;

/// New tokens of a workload per second.
const TOKENS_PER_SECOND: f64 = 10.0;

/// The outcome of a reconcile that needs another plan at once.
pub(super) const AT_ONCE: Ending = Ending::Settled {
    after: Some(Duration::ZERO),
};

/// The delay, unless it is zero. For plans that did nothing, or whose report has no answer yet: "at once" means to
/// continue after what was done.
pub(super) fn unless_zero(after: Option<Duration>) -> Option<Duration> {
    after.filter(|after| !after.is_zero())
}

/// Token buckets by workload. Each requeue sooner than [`MIN_DELAY`] takes a token.
#[derive(Debug, Default)]
pub struct Pace(Mutex<HashMap<Key, Tokens>>);

#[derive(Debug)]
struct Tokens {
    left: f64,
    at: Instant,
}

impl Pace {
    /// Returns the outcome of a reconcile, delayed if the workload has no token.
    pub(super) fn limit(&self, key: &Key, mut ending: Ending) -> Ending {
        if let Ending::Settled { after } | Ending::Failed { after, .. } | Ending::Conflict { after, .. } =
            &mut ending
            && after.is_some_and(|after| after < MIN_DELAY)
            && !self.take(key)
        {
            *after = Some(MIN_DELAY);
        }
        ending
    }

    /// Forgets a workload that is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Takes a token, if there is one.
    fn take(&self, key: &Key) -> bool {
        let (mut tokens, now) = (self.lock(), Instant::now());
        let tokens = tokens.entry(key.clone()).or_insert(Tokens {
            left: MAX_TOKENS,
            at: now,
        });
        let new = now.duration_since(tokens.at).as_secs_f64() * TOKENS_PER_SECOND;
        tokens.left = (tokens.left + new).min(MAX_TOKENS);
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
