//! The cached revisions of one namespace. Data is cached only for revisions that a workload needs.
//!
//! Anyone who may create ControllerRevisions may create any number of them, each of more than a megabyte. Only the
//! metadata is cached of a revision that no workload controls or selects, and of revisions beyond the size that is
//! sent for the workloads of the namespace. If such a revision is to be sent, it is read live: see
//! [`crate::snapshot::unread`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Namespace, Store};
use crate::{Resource, actuator::ObjectKey};
use nodewise_projection::{Revision, Workload};

/// Maximum bytes of the revisions of one snapshot. Anyone who may create revisions in the namespace may create orphans
/// that the selector matches, so the total is limited to leave space for the rest of the message.
pub(crate) const REVISION_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Revisions {
    by_name: BTreeMap<String, Arc<Revision>>,
    /// The bytes of all cached data.
    bytes: usize,
}

impl Revisions {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Revision>> {
        self.by_name.get(name)
    }

    /// All revisions, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Revision>> {
        self.by_name.values()
    }

    pub(super) fn put(&mut self, revision: Arc<Revision>) -> Option<Arc<Revision>> {
        self.bytes += bytes(&revision);
        let old = self.by_name.insert(revision.name.clone(), revision);
        self.bytes -= old.as_deref().map_or(0, bytes);
        old
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<Revision>> {
        let old = self.by_name.remove(name)?;
        self.bytes -= bytes(&old);
        Some(old)
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = Revision> {
        self.by_name.into_values().map(Arc::unwrap_or_clone)
    }

    /// The bytes without the revision of this name.
    fn bytes_besides(&self, name: &str) -> usize {
        self.bytes - self.get(name).map_or(0, |revision| bytes(revision))
    }
}

fn bytes(revision: &Revision) -> usize {
    revision.object.as_ref().map_or(0, bytes::Bytes::len)
}

/// Whether a revision is part of a workload's snapshot: the workload controls it, or nobody controls it and the
/// selector matches (D-4).
pub(super) fn concerns(revision: &Revision, workload: &Workload) -> bool {
    match &revision.controller {
        Some(controller) => *controller.uid == *workload.uid,
        None => revision.has_labels_of(workload) && workload.selector.selects(&revision.labels),
    }
}

impl Store {
    /// Keeps a page of a list until the list is complete.
    pub(super) fn add_page(&mut self, page: Vec<Revision>) {
        for mut revision in page {
            self.cut_labels(&mut revision);
            let kept = self.revision_pages.get(&revision.namespace);
            if !self.keeps_whole(&revision, kept) {
                revision.object = None;
            }
            let namespace = revision.namespace.clone();
            self.revision_pages
                .entry(namespace)
                .or_default()
                .put(revision.into());
        }
    }

    /// Whether the data of a revision is cached in addition to the data of `kept`.
    pub(super) fn keeps_whole(&self, revision: &Revision, kept: Option<&Revisions>) -> bool {
        let taken = kept.map_or(0, |kept| kept.bytes_besides(&revision.name));
        let workloads = self.workloads_with_revisions(&revision.namespace).count();
        let most = REVISION_BYTES.saturating_mul(workloads);
        taken.saturating_add(revision.size) <= most && self.is_needed(revision)
    }

    fn is_needed(&self, revision: &Revision) -> bool {
        let namespace = &*revision.namespace;
        let owner = self.owner(namespace, revision.controller.as_ref());
        let mut all = self.workloads_with_revisions(namespace);
        owner.is_some() || all.any(|workload| concerns(revision, workload))
    }

    /// The workloads of a namespace whose plans are made from revisions.
    fn workloads_with_revisions<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Workload>> {
        let kinds = self.with_revisions.iter();
        kinds.flat_map(move |kind| self.workloads.in_namespace(kind, namespace))
    }

    /// If there are very many labels, removes those that no workload of the namespace names.
    pub(super) fn cut_labels(&mut self, revision: &mut Revision) {
        let keys = self.keys.of_pods(&revision.namespace);
        if keys.cut(&mut revision.labels) {
            revision.known = Some(keys);
        }
    }

    /// Caches the data of a revision that was read live for a workload, and those of its labels that are named now.
    /// Ignored if the live version is not the cached one.
    pub fn keep_whole(&mut self, workload: &Workload, mut read: Revision) {
        let Some(kept) = self.revision(&read.namespace, &read.name) else {
            return;
        };
        if (&kept.uid, &kept.resource_version) != (&read.uid, &read.resource_version) {
            return;
        }
        let was_concerned = concerns(kept, workload);
        self.know(workload);
        self.cut_labels(&mut read);
        let Some(Namespace { revisions, .. }) = self.namespaces.get(read.namespace.as_str()) else {
            return;
        };
        // Only the live labels show that the workload selects the revision, so its data may exceed the limit.
        if !was_concerned && !self.keeps_whole(&read, Some(revisions)) {
            read.object = None;
        }
        if let Some(Namespace { revisions, .. }) = self.namespaces.get_mut(read.namespace.as_str()) {
            revisions.put(read.into());
        }
    }

    /// Drops the data of revisions that no workload of a namespace needs any more.
    pub(super) fn drop_unneeded(&mut self, namespace: &str) {
        let Some(kept) = self.namespaces.get(namespace) else {
            return;
        };
        let whole = kept.revisions.iter().filter(|revision| revision.object.is_some());
        let unneeded: Vec<_> = whole
            .filter(|revision| !self.is_needed(revision))
            .map(|revision| ObjectKey::new(Resource::REVISIONS, namespace, &*revision.name))
            .collect();
        for key in &unneeded {
            self.drop_data(key);
        }
    }

    /// Drops the data of a revision and keeps its metadata.
    pub(crate) fn drop_data(&mut self, key: &ObjectKey) {
        debug_assert_eq!(key.resource, Resource::REVISIONS);
        let Some(Namespace { revisions, .. }) = self.namespaces.get_mut(key.namespace.as_str()) else {
            return;
        };
        if let Some(kept) = revisions.get(&key.name) {
            let without_data = Revision {
                object: None,
                ..(**kept).clone()
            };
            revisions.put(without_data.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Delta;
    use crate::event::ClusterEvent;
    use crate::snapshot;
    use crate::testing::{DAEMON_SETS, DaemonSets};
    use nodewise_projection::Key;
    use nodewise_proto::workload::DAEMON_SET;

    fn revision(name: &str, app: &str, owner: Option<&str>, bytes: usize) -> Revision {
        let owners: Vec<Value> = owner
            .iter()
            .map(|uid| json!({"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": true}))
            .collect();
        let object = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "11",
                "labels": {"app": app}, "ownerReferences": owners},
            "data": {"a": "x".repeat(bytes)},
        });
        Revision::from_json(&object).expect("a revision")
    }

    fn with_workload() -> (Store, Workload) {
        let (mut store, workload) = (
            Store::new(&[DAEMON_SETS], 1),
            crate::testing::daemon_set("u1", "10"),
        );
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(workload.clone()),
        ));
        (store, workload)
    }

    /// Shows revisions in pages and a list, or one by one.
    fn show(store: &mut Store, revisions: Vec<Revision>, in_pages: bool) {
        let mut is_first = true;
        for revision in revisions {
            if in_pages {
                store.apply(ClusterEvent::RevisionPage {
                    revisions: vec![revision],
                    is_first,
                });
                is_first = false;
            } else {
                store.apply(ClusterEvent::Revisions(Delta::Applied(revision)));
            }
            let most = REVISION_BYTES + (1 << 20);
            assert!(
                store.revision_bytes() <= most,
                "also while a list is not complete"
            );
        }
        if in_pages {
            store.apply(ClusterEvent::Revisions(crate::testing::listed(Vec::new())));
        }
    }

    #[test]
    fn the_data_is_kept_of_what_a_daemon_set_needs() {
        const SIZE: usize = 100_000;
        // (label, owner, whether its data is cached)
        for (app, owner, expected) in [
            ("foo", None, true),
            ("bar", None, false),
            ("bar", Some("u1"), true),
            ("foo", Some("u2"), false),
        ] {
            for in_pages in [false, true] {
                let (mut store, _) = with_workload();
                show(&mut store, vec![revision("a", app, owner, SIZE)], in_pages);
                assert_eq!(store.count(Resource::REVISIONS), 1);
                let bytes = store.revision_bytes();
                assert_eq!(bytes > SIZE, expected, "{app} {owner:?} {in_pages}");
                assert_eq!(bytes > 0, expected, "{app} {owner:?} {in_pages}");
            }
        }
        let mut store = Store::new(&[DAEMON_SETS], 1);
        let orphan = |index: usize| revision(&index.to_string(), "foo", None, SIZE);
        show(&mut store, (0..350).map(orphan).collect(), true);
        assert_eq!(
            (store.count(Resource::REVISIONS), store.revision_bytes()),
            (350, 0)
        );
    }

    // The data of a revision that no selector matches any more is dropped.
    #[test]
    fn unneeded_data_is_dropped() {
        let (mut store, _) = with_workload();
        show(&mut store, vec![revision("a", "foo", None, 100)], false);
        assert_ne!(store.revision_bytes(), 0);
        show(&mut store, vec![revision("a", "bar", None, 100)], false);
        assert_eq!(store.revision_bytes(), 0);
        show(&mut store, vec![revision("a", "foo", None, 100)], false);
        store.apply(ClusterEvent::Revisions(Delta::Deleted(revision(
            "a", "foo", None, 100,
        ))));
        assert_eq!((store.count(Resource::REVISIONS), store.revision_bytes()), (0, 0));
    }

    // So is the data of a revision whose DaemonSet is gone, unless another DaemonSet selects it.
    #[test]
    fn data_is_dropped_with_its_daemon_set() {
        let (mut store, workload) = with_workload();
        let other = Workload {
            key: Key::new(DAEMON_SET, "ns", "other"),
            uid: "u2".into(),
            ..workload.clone()
        };
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(other.clone()),
        ));
        show(&mut store, vec![revision("a", "foo", None, 100)], false);
        store.apply(ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(workload)));
        assert_ne!(store.revision_bytes(), 0);
        store.apply(ClusterEvent::Workloads(DAEMON_SETS, Delta::Deleted(other)));
        assert_eq!((store.count(Resource::REVISIONS), store.revision_bytes()), (1, 0));
    }

    // Anyone may create any number of large revisions with matching labels. No more data is cached than is sent, and
    // the newest revisions are sent, in whatever order they came.
    #[test]
    fn no_more_data_is_kept_than_is_sent() {
        let of = |number: u32| {
            let object = json!({
                "metadata": {"namespace": "ns", "name": format!("r{number:02}"), "uid": "u", "resourceVersion": "11",
                    "labels": {"app": "foo"}},
                "revision": number, "data": {"a": "x".repeat(1 << 20)},
            });
            Revision::from_json(&object).expect("a revision")
        };
        for in_pages in [false, true] {
            let (mut store, workload) = with_workload();
            show(&mut store, (0..40).map(of).collect(), in_pages);
            assert!(store.revision_bytes() > REVISION_BYTES / 2);
            let unread = snapshot::unread::<DaemonSets>(&mut store, &workload, &[]);
            let names: Vec<_> = unread.iter().map(|key| key.name.clone()).collect();
            let newest: Vec<_> = (25..40).map(|number| format!("r{number}")).collect();
            assert_eq!(names, newest);
            for number in 25..40 {
                store.keep_whole(&workload, of(number));
            }
            assert_eq!(snapshot::unread::<DaemonSets>(&mut store, &workload, &[]), []);
            assert!(store.revision_bytes() <= REVISION_BYTES);
        }
    }

    // Data that was read live is cached only if the cached version is the same.
    #[test]
    fn another_version_is_not_kept() {
        let (mut store, workload) = with_workload();
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Deleted(workload.clone()),
        ));
        let orphan = revision("a", "foo", None, 100);
        show(&mut store, vec![orphan.clone()], false);
        store.apply(ClusterEvent::Workloads(
            DAEMON_SETS,
            Delta::Applied(workload.clone()),
        ));
        let unread = |store: &mut Store| snapshot::unread::<DaemonSets>(store, &workload, &[]).len();
        assert_eq!(unread(&mut store), 1);
        for other in [
            Revision {
                uid: "other".into(),
                ..orphan.clone()
            },
            Revision {
                resource_version: "12".into(),
                ..orphan.clone()
            },
            Revision {
                name: "other".into(),
                ..orphan.clone()
            },
        ] {
            store.keep_whole(&workload, other);
            assert_eq!(unread(&mut store), 1);
        }
        store.keep_whole(&workload, orphan);
        assert_eq!(unread(&mut store), 0);
    }
}
