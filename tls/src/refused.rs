//! How often the log tells of a client that is not let in.
//!
//! Such a client comes back, many times a second if it likes. It is told of once a minute, with how often it came meanwhile.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::names::ClientNames;

/// How long nothing more is told of a client.
const PAUSE: Duration = Duration::from_mins(1);
/// Clients that are told apart. Further ones are one client, until others have not come for a while.
const MOST: usize = 1_024;
/// Bytes of a name by which clients are told apart, and of what the log shows of a client's names.
const LONGEST: usize = 1_024;

/// Clients that came and were not let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefusedClients(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: HashMap<Box<str>, Refused>,
    others: Option<Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    told: Instant,
    /// How often it came since.
    left_out: u64,
}

impl RefusedClients {
    /// Tells the log of a client with a good certificate that is none of those that are let in.
    pub(crate) fn tell(&self, names: &ClientNames) {
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

    /// How many connections of this client were left out before this one, if it is to be told of.
    fn note(&self, name: &str, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { known, others } = &mut *state;
        let name = beginning(name);
        if let Some(refused) = known.get_mut(name) {
            return refused.again(now);
        }
        if known.len() >= MOST {
            known.retain(|_, refused| now.duration_since(refused.told) < PAUSE);
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
            told: now,
            left_out: 0,
        }
    }

    fn again(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.told) < PAUSE {
            self.left_out += 1;
            return None;
        }
        let left_out = self.left_out;
        *self = Self::new(now);
        Some(left_out)
    }
}

/// As much of a text as there is room for.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_of_once_a_minute_with_how_often_it_came() {
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
    fn however_many_clients_there_are_few_are_remembered() {
        let (refused, start) = (RefusedClients::default(), Instant::now());
        let told = |clients: std::ops::Range<usize>, seconds| {
            let now = start + Duration::from_secs(seconds);
            let long = "x".repeat(LONGEST - 10);
            let told =
                clients.filter(|client| refused.note(&format!("{client:09}{long}{client}"), now).is_some());
            told.count()
        };
        assert_eq!(told(0..MOST, 0), MOST);
        assert_eq!(told(MOST..10 * MOST, 1), 1, "all others are one");
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
        assert_eq!(told(MOST..MOST + 5, 60), 5, "those from before are forgotten");
        assert_eq!(known(), 5);
    }
}
