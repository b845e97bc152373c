//! Plans that are wrong by what is known of an object now. They were perhaps right by the snapshot: labels and owners change.

use std::collections::{HashMap, HashSet};

use super::Violation;
use crate::event::Key;

/// How many plans in a row the executor may drop for this reason without telling anybody. A wrong service could name another object in
/// each plan.
const MOST: usize = 3;

/// The objects and nodes for whose sake the last plans for each workload were not applied, since the last one that was.
#[derive(Debug, Default)]
pub(crate) struct Contradicted(HashMap<Key, HashSet<(String, String)>>);

impl Contradicted {
    /// Whether this violation may be of the snapshot's age only. The next snapshot shows the object as it is: a plan that is wrong
    /// for the same object and the same reason again was not made from it.
    pub(crate) fn is_first(&mut self, key: &Key, violation: &Violation) -> bool {
        let Some(object) = &violation.contradicts else {
            return false;
        };
        let seen = self.0.entry(key.clone()).or_default();
        seen.len() < MOST && seen.insert((object.clone(), violation.what.clone()))
    }

    /// A plan for the workload was right, or the workload is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}
