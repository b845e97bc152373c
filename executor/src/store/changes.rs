//! What has changed since a snapshot was taken.
//!
//! Each change of the caches has a number, and what it changed keeps that number. A plan that is wrong about something that has changed since
//! its snapshot was right when it was made; one that is wrong about anything else was not made from the snapshot.

use std::collections::HashMap;

use super::{Namespace, Store};
use crate::event::Resource;

/// The numbers of changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The last one.
    pub(super) last: u64,
    /// The last one that took an object of the resource out of the caches.
    removals: HashMap<Resource, u64>,
}

impl Changes {
    /// Another change begins; all that it does has the same number.
    pub(super) fn begin(&mut self) {
        self.last += 1;
    }

    /// An object of the resource goes.
    pub(super) fn remove(&mut self, resource: Resource) {
        self.removals.insert(resource, self.last);
    }
}

impl Store {
    /// The number of the last change.
    #[must_use]
    pub fn last_change(&self) -> u64 {
        self.changes.last
    }

    /// The number of the last change of a pod or revision. Of what the caches do not show, a node among them, that of the last change that
    /// took any object of the resource out.
    #[must_use]
    pub(crate) fn changed(&self, resource: Resource, namespace: &str, name: &str) -> u64 {
        let kept = self.namespaces.get(namespace);
        let changed = kept.and_then(|kept| match resource {
            Resource::Pods => kept.pods.get(name).map(|pod| pod.changed()),
            Resource::Revisions => kept.revision_changes.get(name).copied(),
            Resource::DaemonSets | Resource::Nodes => None,
        });
        changed.unwrap_or_else(|| self.removed(resource))
    }

    /// The number of the last change of any revision of a namespace, or that took any revision out.
    pub(crate) fn revisions_changed(&self, namespace: &str) -> u64 {
        let kept = self.namespaces.get(namespace).map(|kept| &kept.revision_changes);
        let changes = kept.into_iter().flat_map(HashMap::values).copied();
        changes.fold(self.removed(Resource::Revisions), u64::max)
    }

    fn removed(&self, resource: Resource) -> u64 {
        self.changes.removals.get(&resource).copied().unwrap_or_default()
    }
}

impl Namespace {
    /// A revision goes, and what is known of it besides.
    pub(super) fn forget_revision(&mut self, name: &str) {
        self.sealed.remove(name);
        self.revision_changes.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ClusterEvent, Delta};
    use crate::testing::{current_revision, first_lists, listed, node, pod};

    /// The numbers of the last changes of a pod, a revision and a node.
    fn changed(store: &Store) -> [u64; 3] {
        [
            store.changed(Resource::Pods, "ns", "a"),
            store.changed(Resource::Revisions, "ns", "foo-current"),
            store.changed(Resource::Nodes, "", "n9"),
        ]
    }

    // What is shown again as it was has not changed; what goes raises the number of all that are not there.
    #[test]
    fn each_change_has_a_number() {
        let mut store = Store::new(2);
        for event in first_lists() {
            store.apply(event);
        }
        store.apply(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
        assert_eq!(changed(&store), [5, 4, 0]);
        let newer = crate::event::Revision {
            resource_version: "12".into(),
            ..current_revision()
        };
        // (event, whether the pod, the revision and the node, which is not there, have changed by it)
        for (event, expected) in [
            (ClusterEvent::Pods(listed(vec![pod("a", "11")])), [false; 3]),
            (
                ClusterEvent::Revisions(listed(vec![current_revision()])),
                [false; 3],
            ),
            (ClusterEvent::Pods(Delta::Applied(pod("b", "11"))), [false; 3]),
            (
                ClusterEvent::Pods(Delta::Applied(pod("a", "12"))),
                [true, false, false],
            ),
            (
                ClusterEvent::Revisions(Delta::Applied(newer)),
                [false, true, false],
            ),
            (ClusterEvent::Nodes(Delta::Deleted(node("n4"))), [false; 3]),
            (
                ClusterEvent::Nodes(Delta::Deleted(node("n1"))),
                [false, false, true],
            ),
            (ClusterEvent::Pods(Delta::Deleted(pod("b", "12"))), [false; 3]),
            (
                ClusterEvent::Pods(Delta::Deleted(pod("a", "12"))),
                [true, false, false],
            ),
            (ClusterEvent::Revisions(listed(Vec::new())), [false, true, false]),
        ] {
            let (before, what) = (changed(&store), format!("{event:?}"));
            store.apply(event);
            let now = store.last_change();
            for ((before, after), is_changed) in before.into_iter().zip(changed(&store)).zip(expected) {
                assert_eq!(after, if is_changed { now } else { before }, "{what}");
            }
        }
    }
}
