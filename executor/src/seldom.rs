//! What must not fill the log: whoever may cause it again and again would.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How often the same is told at most.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);

/// What was told within the last minute.
#[derive(Debug)]
pub(crate) struct Seldom<T>(HashMap<T, Instant>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Seldom<T> {
    /// Whether this is to be told now: it was not within the last minute. It counts as told then.
    pub(crate) fn is_due(&mut self, what: T) -> bool {
        let now = Instant::now();
        self.0
            .retain(|_, told| now.saturating_duration_since(*told) < PAUSE);
        let is_due = !self.0.contains_key(&what);
        if is_due {
            self.0.insert(what, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_once_a_minute() {
        let mut told = Seldom::default();
        assert!(told.is_due("a"));
        assert!(!told.is_due("a"));
        assert!(told.is_due("b"), "another one is");
        tokio::time::advance(PAUSE / 2).await;
        assert!(!told.is_due("a"));
        tokio::time::advance(PAUSE / 2).await;
        assert!(told.is_due("a"));
        assert_eq!(told.0.len(), 1, "what is over is forgotten");
        assert!(told.is_due("b"));
    }
}
