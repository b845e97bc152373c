//! Numbers the changes of the caches.
//!
//! Each change has a number, and each object stores the number of its last change. If a plan is wrong about an object
//! that has changed since the plan's snapshot, the plan may have been right when it was made. If the object has not
//! changed, the plan was not made from that snapshot.

use std::collections::HashMap;

use crate::Resource;
use nodewise_projection::{Key, buckets::EncodedPod};

use super::{Namespace, Store};

/// The numbers of cache changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The number of the last change.
    pub(super) last: u64,
    /// By resource: the number of the last change that removed an object.
    removals: HashMap<Resource, u64>,
    /// By kind: the number of the last change that removed a workload.
    removed_workloads: HashMap<&'static str, u64>,
}

impl Changes {
    /// Begins a change. All its effects have the same number.
    pub(super) fn begin(&mut self) {
        self.last += 1;
    }

    /// Records that an object of the resource is removed.
    pub(super) fn remove(&mut self, resource: Resource) {
        self.removals.insert(resource, self.last);
    }

    /// Records that a workload of this kind is removed.
    pub(super) fn remove_of(&mut self, kind: &'static str) {
        self.removed_workloads.insert(kind, self.last);
    }
}

impl Store {
    /// The number of the last change.
    #[must_use]
    pub fn last_change(&self) -> u64 {
        self.changes.last
    }

    /// The number of the last change of a pod, revision or workload. For nodes, and for objects that are not cached: the
    /// number of the last change that removed any object of the resource.
    #[must_use]
    pub fn changed(&self, resource: Resource, namespace: &str, name: &str) -> u64 {
        let kept = self.namespaces.get(namespace);
        let changed = match resource {
            Resource::PODS => kept.and_then(|kept| kept.pods.get(name).map(EncodedPod::changed)),
            Resource::REVISIONS => kept.and_then(|kept| kept.revision_changes.get(name).copied()),
            _ => self.workloads.changed(&Key::new(resource.kind, namespace, name)),
        };
        changed.unwrap_or_else(|| self.removed(resource))
    }

    /// The number of the last change of any revision of a namespace, or of the last one that removed any revision.
    pub fn revisions_changed(&self, namespace: &str) -> u64 {
        let kept = self.namespaces.get(namespace).map(|kept| &kept.revision_changes);
        let changes = kept.into_iter().flat_map(HashMap::values).copied();
        changes.fold(self.removed(Resource::REVISIONS), u64::max)
    }

    fn removed(&self, resource: Resource) -> u64 {
        let removals = &self.changes.removals;
        let removed = removals
            .get(&resource)
            .or_else(|| self.changes.removed_workloads.get(resource.kind));
        removed.copied().unwrap_or_default()
    }
}

impl Namespace {
    /// Removes the marks and the change number of a revision.
    pub(super) fn forget_revision(&mut self, name: &str) {
        self.sealed.remove(name);
        self.revision_changes.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delta;
    use crate::event::ClusterEvent;
    use crate::testing::DAEMON_SETS;
    use crate::testing::{current_revision, first_lists, listed, node, pod};

    /// The numbers of the last changes of a pod, a revision and a node.
    fn changed(store: &Store) -> [u64; 3] {
        [
            store.changed(Resource::PODS, "ns", "a"),
            store.changed(Resource::REVISIONS, "ns", "foo-current"),
            store.changed(Resource::NODES, "", "n9"),
        ]
    }

    // An object that is shown again unchanged has not changed. A removal counts as a change of all objects that are not
    // cached.
    #[test]
    fn each_change_has_a_number() {
        let mut store = Store::new(&[DAEMON_SETS], 2);
        for event in first_lists() {
            store.apply(event);
        }
        store.apply(ClusterEvent::Pods(Delta::Applied(pod("a", "11"))));
        assert_eq!(changed(&store), [6, 4, 0]);
        let newer = nodewise_projection::Revision {
            resource_version: "12".into(),
            ..current_revision()
        };
        // (event, whether the pod, the revision, and the node that is not cached have changed)
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
