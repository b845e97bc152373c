//! A limiter for log messages that a user could trigger without limit.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two equal messages.
pub const MIN_INTERVAL: Duration = Duration::from_mins(1);

/// The messages that were logged within the last minute, by a key.
#[derive(Debug)]
pub struct LogLimiter<T>(HashMap<T, Instant>);

impl<T> Default for LogLimiter<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> LogLimiter<T> {
    /// Whether to log this now: it was not logged within the last minute. If true, it counts as logged.
    pub fn is_due(&mut self, what: T) -> bool {
        let now = Instant::now();
        self.0
            .retain(|_, logged| now.saturating_duration_since(*logged) < MIN_INTERVAL);
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
    async fn equal_messages_are_due_once_a_minute() {
        let mut logged = LogLimiter::default();
        assert!(logged.is_due("a"));
        assert!(!logged.is_due("a"));
        assert!(logged.is_due("b"), "another one is");
        tokio::time::advance(MIN_INTERVAL / 2).await;
        assert!(!logged.is_due("a"));
        tokio::time::advance(MIN_INTERVAL / 2).await;
        assert!(logged.is_due("a"));
        assert_eq!(logged.0.len(), 1, "what is over is forgotten");
        assert!(logged.is_due("b"));
    }
}
