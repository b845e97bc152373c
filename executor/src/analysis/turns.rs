//! How many calls are under way at once: few altogether, fewer for one namespace, and one for a check of a policy. And how many may
//! wait for that: whoever owns a namespace chooses how many checks its policies have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nodewise_proto::v1;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls at once.
const MOST: usize = 16;
/// The most calls at once for one namespace: whoever owns it cannot keep those of all others waiting.
const MOST_OF_NAMESPACE: usize = 4;
/// The most calls of a namespace that wait or are under way. Each of them holds what it will send.
pub(super) const MOST_WAITING: usize = 100;

/// Gives turns to calls, in the order in which they came.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    namespaces: Keyed<String>,
    checks: Keyed<(String, String)>,
    waiting: Keyed<String>,
}

/// The right to wait for a turn, and to use it. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _waiting: OwnedSemaphorePermit,
}

/// The right to make a call. It ends when this is dropped. The parts are given back in this order.
#[derive(Debug)]
pub(super) struct Turn {
    _all: Option<OwnedSemaphorePermit>,
    _namespace: Option<OwnedSemaphorePermit>,
    _check: Option<OwnedSemaphorePermit>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST)),
            namespaces: Keyed::default(),
            checks: Keyed::default(),
            waiting: Keyed::default(),
        }
    }
}

impl Turns {
    /// Takes a place among those of a namespace that wait.
    pub(super) fn wait(&self, namespace: &str) -> Result<Place, String> {
        let waiting = self.waiting.of(namespace.to_owned(), MOST_WAITING);
        let permit = waiting.try_acquire_owned().map_err(|_| {
            format!(
                "{MOST_WAITING} measurements of the namespace wait already, and it may have no more at once"
            )
        })?;
        Ok(Place { _waiting: permit })
    }

    /// Waits for the turn of a measurement. Whoever waits holds only what cannot keep others waiting: first the check, then the
    /// namespace, and one of the turns of all last.
    pub(super) async fn take(&self, namespace: &str, id: Option<&v1::MeasurementId>) -> Turn {
        let (policy, check) = id.map_or(("", ""), |id| (&*id.policy_uid, &*id.check));
        let check = self.checks.of((policy.to_owned(), check.to_owned()), 1);
        let check = check.acquire_owned().await.ok();
        let namespace = self.namespaces.of(namespace.to_owned(), MOST_OF_NAMESPACE);
        let namespace = namespace.acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Turn {
            _all: all,
            _namespace: namespace,
            _check: check,
        }
    }
}

/// A semaphore for each key that is in use.
#[derive(Debug)]
struct Keyed<K>(Mutex<HashMap<K, Weak<Semaphore>>>);

impl<K> Default for Keyed<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: std::hash::Hash + Eq> Keyed<K> {
    fn of(&self, key: K, permits: usize) -> Arc<Semaphore> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = known.get(&key).and_then(Weak::upgrade) {
            return semaphore;
        }
        known.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(permits));
        known.insert(key, Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn take(turns: &Turns, namespace: &str, policy: usize, check: &str) -> Option<Turn> {
        let id = v1::MeasurementId {
            policy_uid: policy.to_string(),
            check: check.to_owned(),
            ..v1::MeasurementId::default()
        };
        turns.take(namespace, Some(&id)).now_or_never()
    }

    #[test]
    fn a_check_has_one_call_and_a_namespace_few() {
        let turns = Turns::default();
        let first = take(&turns, "a", 0, "errors").expect("a turn");
        assert!(take(&turns, "a", 0, "errors").is_none(), "the same check");
        let others: Vec<_> = (1..MOST_OF_NAMESPACE)
            .map(|policy| take(&turns, "a", policy, "errors").expect("another check"))
            .collect();
        assert!(take(&turns, "a", 99, "errors").is_none(), "the same namespace");
        assert!(take(&turns, "b", 99, "errors").is_some(), "another namespace");
        drop(first);
        assert!(take(&turns, "a", 0, "errors").is_some());
        drop(others);
        assert_eq!(turns.all.available_permits(), MOST, "all are given back");
    }

    #[test]
    fn few_of_a_namespace_wait() {
        let turns = Turns::default();
        let mut waiting: Vec<_> = (0..MOST_WAITING)
            .map(|_| turns.wait("a").expect("a place"))
            .collect();
        let error = turns.wait("a").expect_err("all places are taken");
        assert!(
            error.contains("100 measurements of the namespace wait already"),
            "{error}"
        );
        assert!(turns.wait("b").is_ok(), "another namespace");
        waiting.pop();
        assert!(turns.wait("a").is_ok());
    }

    #[test]
    fn all_together_have_few() {
        let turns = Turns::default();
        let mut taken: Vec<_> = (0..MOST)
            .map(|index| take(&turns, &index.to_string(), index, "errors").expect("a turn"))
            .collect();
        assert!(take(&turns, "z", 99, "errors").is_none());
        taken.pop();
        assert!(take(&turns, "z", 99, "errors").is_some());
        drop(taken);
        drop(take(&turns, "y", 100, "errors"));
        let known = turns.namespaces.0.lock().expect("no panic").len();
        assert!(known <= 2, "{known} namespaces are remembered");
    }
}
