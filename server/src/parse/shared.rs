//! What the pods of a bucket have in common, kept once: most of them belong to one workload, and so do their labels.

use std::sync::Arc;

use nodewise_planner::snapshot::{ControllerRef, Labels};

/// Different ones that are remembered: a workload has pods of few revisions at a time. What comes back later than that is kept
/// once more, which costs memory only.
const REMEMBERED: usize = 4;

/// What was seen in a bucket.
#[derive(Debug, Default)]
pub(super) struct Shared {
    labels: Vec<Labels>,
    controllers: Vec<Arc<ControllerRef>>,
}

impl Shared {
    /// Labels like [`Labels::of`].
    pub(super) fn labels(&mut self, entries: &mut [(&str, &str)]) -> Labels {
        entries.sort_by(|a, b| a.0.cmp(b.0));
        let same = |known: &&Labels| known.iter().eq(entries.iter().copied());
        if let Some(known) = self.labels.iter().find(same) {
            return known.clone();
        }
        remember(&mut self.labels, Labels::of(entries))
    }

    /// A controller.
    pub(super) fn controller(&mut self, controller: ControllerRef) -> Arc<ControllerRef> {
        if let Some(known) = self.controllers.iter().find(|known| ***known == controller) {
            return Arc::clone(known);
        }
        remember(&mut self.controllers, Arc::new(controller))
    }
}

fn remember<T: Clone>(all: &mut Vec<T>, new: T) -> T {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(new.clone());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_kept_once() {
        let mut shared = Shared::default();
        let first = shared.labels(&mut [("b", "2"), ("a", "1")]);
        assert_eq!(first, Labels::of(&mut [("a", "1"), ("b", "2")]));
        assert_eq!(shared.labels(&mut [("a", "1"), ("b", "2")]), first);
        assert_eq!(shared.labels.len(), 1);
        for value in ["1", "2", "3", "4"] {
            assert_eq!(shared.labels(&mut [("c", value)]).get("c"), Some(value));
        }
        assert_eq!(shared.labels.len(), REMEMBERED);
        // Of two values of one key the last one stays, as everywhere.
        assert_eq!(shared.labels(&mut [("c", "1"), ("c", "4")]).get("c"), Some("4"));
        let controller = |uid: &str| ControllerRef {
            kind: "DaemonSet".to_owned(),
            name: "agent".to_owned(),
            uid: uid.to_owned(),
        };
        let [one, other, same] = ["1", "2", "1"].map(|uid| shared.controller(controller(uid)));
        assert!(Arc::ptr_eq(&one, &same) && one != other);
    }
}
