//! Limits the log lines about clients that the server rejects.
//!
//! A rejected client may reconnect many times a second. It is logged once a minute, with the number of connections since the last
//! line.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::names::ClientNames;

/// The time between two log lines about one client.
const PAUSE: Duration = Duration::from_mins(1);
/// The number of clients with log lines of their own. All further clients share one, until entries are older than `PAUSE`.
const MOST: usize = 1_024;
/// The longest name in bytes: of the key of a client, and of the names in a log line.
const LONGEST: usize = 1_024;

/// The clients that were rejected lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefusedClients(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: HashMap<Box<str>, Refused>,
    others: Option<Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    logged: Instant,
    /// The number of connections since then that were not logged.
    left_out: u64,
}

impl RefusedClients {
    /// Logs a client with a valid certificate that is not in the list of accepted clients.
    pub(crate) fn log(&self, names: &ClientNames) {
        if let Some(left_out) = self.note(&names.principal(), Instant::now()) {
            let shown = names.to_string();
            let names = beginning(&shown);
            tracing::warn!(
                names,
                left_out,
                "a client has a good certificate, and is none of those that are let in"
            );
        }
    }

    /// Notes a connection. Returns the number of connections that were not logged before it, or `None` if this one is not logged
    /// either.
    fn note(&self, name: &str, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { known, others } = &mut *state;
        let name = beginning(name);
        if let Some(refused) = known.get_mut(name) {
            return refused.again(now);
        }
        if known.len() >= MOST {
            known.retain(|_, refused| now.duration_since(refused.logged) < PAUSE);
        }
        if known.len() < MOST {
            known.insert(name.into(), Refused::new(now));
            return Some(0);
        }
        if let Some(refused) = others {
            return refused.again(now);
        }
        *others = Some(Refused::new(now));
        Some(0)
    }
}

impl Refused {
    fn new(now: Instant) -> Self {
        Self {
            logged: now,
            left_out: 0,
        }
    }

    fn again(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.logged) < PAUSE {
            self.left_out += 1;
            return None;
        }
        let left_out = self.left_out;
        *self = Self::new(now);
        Some(left_out)
    }
}

/// The text, cut to `LONGEST` bytes.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_logged_once_a_minute_with_the_number_of_connections() {
        let (refused, start) = (RefusedClients::default(), Instant::now());
        let at = |name: &str, seconds| refused.note(name, start + Duration::from_secs(seconds));
        assert_eq!(at("a", 0), Some(0));
        for second in 1..60 {
            assert_eq!(at("a", second), None);
        }
        assert_eq!(at("b", 30), Some(0), "another client");
        assert_eq!(at("a", 60), Some(59));
        assert_eq!(at("a", 61), None);
        assert_eq!(at("a", 500), Some(1));
    }

    #[test]
    fn the_number_of_remembered_clients_is_limited() {
        let (refused, start) = (RefusedClients::default(), Instant::now());
        let logged = |clients: std::ops::Range<usize>, seconds| {
            let now = start + Duration::from_secs(seconds);
            let long = "x".repeat(LONGEST - 10);
            let logged =
                clients.filter(|client| refused.note(&format!("{client:09}{long}{client}"), now).is_some());
            logged.count()
        };
        assert_eq!(logged(0..MOST, 0), MOST);
        assert_eq!(logged(MOST..10 * MOST, 1), 1, "all others are one");
        let known = || refused.0.lock().expect("no panic").known.len();
        assert_eq!(known(), MOST);
        let longest = refused
            .0
            .lock()
            .expect("no panic")
            .known
            .keys()
            .map(|name| name.len())
            .max();
        assert!(longest <= Some(LONGEST), "{longest:?}");
        assert_eq!(logged(MOST..MOST + 5, 60), 5, "those from before are forgotten");
        assert_eq!(known(), 5);
    }
}
