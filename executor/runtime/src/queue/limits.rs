//! Rate limits of retries.

use std::time::Duration;

use tokio::time::Instant;

/// Rate limits of failed keys: an exponential delay per key and a token bucket over all keys. The larger delay counts.
#[derive(Clone, Copy, Debug)]
pub struct RateLimits {
    /// Delay after the first failure of a key. It doubles with each further failure.
    pub base_delay: Duration,
    /// Longest delay of a key.
    pub max_delay: Duration,
    /// Retries per second over all keys, after the burst is used up. Must be positive.
    pub rate: f64,
    /// Retries that may be made at once over all keys.
    pub burst: u32,
    /// How often in a row a key is retried. `None`: any number of times.
    pub max_retries: Option<u32>,
}

impl Default for RateLimits {
    /// The defaults of client-go: 5 ms doubling to 1000 s, and 10 per second with a burst of 100.
    fn default() -> Self {
        Self {
            base_delay: Duration::from_millis(5),
            max_delay: Duration::from_secs(1000),
            rate: 10.0,
            burst: 100,
            max_retries: None,
        }
    }
}

impl RateLimits {
    /// The delay of a key after so many failures before this one.
    pub(super) fn back_off(&self, failures: u32) -> Duration {
        2_u32
            .checked_pow(failures)
            .and_then(|factor| self.base_delay.checked_mul(factor))
            .map_or(self.max_delay, |delay| delay.min(self.max_delay))
    }
}

/// A token bucket. A reservation returns how long to wait for its token.
#[derive(Debug)]
pub(super) struct TokenBucket {
    tokens: f64,
    updated: Instant,
}

impl TokenBucket {
    pub(super) fn new(limits: &RateLimits, now: Instant) -> Self {
        Self {
            tokens: f64::from(limits.burst),
            updated: now,
        }
    }

    /// Reserves the next token. Returns how long to wait for it.
    pub(super) fn reserve(&mut self, limits: &RateLimits, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.updated).as_secs_f64() * limits.rate;
        let tokens = (self.tokens + gained).min(f64::from(limits.burst)) - 1.0;
        // A key that fails again and again must not make the delay of the other keys grow without limit.
        self.tokens = tokens.max(-limits.rate * limits.max_delay.as_secs_f64());
        self.updated = self.updated.max(now);
        if self.tokens >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(-self.tokens / limits.rate)
        }
    }
}
