//! How many calls are under way at once: few altogether, fewer for one namespace, and one for a check of a policy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nodewise_proto::v1;
use nodewise_runtime::measurements::Subject;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most calls at once.
const MOST: usize = 16;
/// The most calls at once for one namespace: whoever owns it cannot keep those of all others waiting.
const MOST_OF_NAMESPACE: usize = 4;

/// Gives turns to calls, in the order in which they came.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    namespaces: Keyed<String>,
    checks: Keyed<(String, String)>,
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
        }
    }
}

impl Turns {
    /// Waits for the turn of a measurement. Whoever waits holds only what cannot keep others waiting: first the check, then the
    /// namespace, and one of the turns of all last.
    pub(super) async fn take(&self, subject: &Subject, id: Option<&v1::MeasurementId>) -> Turn {
        let (policy, check) = id.map_or(("", ""), |id| (&*id.policy_uid, &*id.check));
        let check = self.checks.of((policy.to_owned(), check.to_owned()), 1);
        let check = check.acquire_owned().await.ok();
        let namespace = self
            .namespaces
            .of(subject.workload.namespace.to_string(), MOST_OF_NAMESPACE);
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
    use nodewise_projection::Key;
    use nodewise_proto::workload::DAEMON_SET;

    use super::*;

    fn take(turns: &Turns, namespace: &str, policy: usize, check: &str) -> Option<Turn> {
        let subject = Subject::new(Key::new(DAEMON_SET, namespace, "agent"), "u1");
        let id = v1::MeasurementId {
            policy_uid: policy.to_string(),
            check: check.to_owned(),
            ..v1::MeasurementId::default()
        };
        turns.take(&subject, Some(&id)).now_or_never()
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
