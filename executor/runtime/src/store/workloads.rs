//! The cached workloads: by kind, namespace and name, and by the uid of their controller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nodewise_projection::{Key, Workload};

use super::Store;

#[derive(Debug, Default)]
pub(super) struct Workloads {
    by_key: BTreeMap<Key, Entry>,
    /// The keys of workloads that another workload controls, by its uid.
    controlled: HashMap<Arc<str>, BTreeSet<Key>>,
    /// The keys of workloads without a controller.
    orphans: BTreeSet<Key>,
}

#[derive(Debug)]
struct Entry {
    workload: Arc<Workload>,
    /// The number of the last change.
    changed: u64,
}

impl Workloads {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.by_key.get(key).map(|entry| &entry.workload)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.by_key.values().map(|entry| &entry.workload)
    }

    /// All workloads of a kind, ordered by namespace and name.
    pub(super) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &Arc<Workload>> {
        let from = self.by_key.range(Key::new(kind, "", "")..);
        from.map(|(_, entry)| &entry.workload)
            .take_while(move |workload| workload.key.kind == kind)
    }

    /// All workloads of a kind in a namespace, ordered by name.
    pub(super) fn in_namespace<'a, 'b>(
        &'a self,
        kind: &'static str,
        namespace: &'b str,
    ) -> impl Iterator<Item = &'a Arc<Workload>> + use<'a, 'b> {
        let from = self.by_key.range(Key::new(kind, namespace, "")..);
        from.map(|(_, entry)| &entry.workload)
            .take_while(move |workload| workload.key.kind == kind && *workload.key.namespace == *namespace)
    }

    /// Those of a kind in a namespace without a controller, ordered by name.
    fn orphans<'a, 'b>(
        &'a self,
        kind: &'static str,
        namespace: &'b str,
    ) -> impl Iterator<Item = &'a Arc<Workload>> + use<'a, 'b> {
        let from = self.orphans.range(Key::new(kind, namespace, "")..);
        let keys = from.take_while(move |key| key.kind == kind && *key.namespace == *namespace);
        keys.filter_map(|key| self.get(key))
    }

    /// The workloads that name this uid as their controller, ordered by key.
    pub(super) fn controlled(&self, uid: &str) -> impl Iterator<Item = &Arc<Workload>> {
        let keys = self.controlled.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.get(key))
    }

    /// The number of the last change of a workload.
    pub(super) fn changed(&self, key: &Key) -> Option<u64> {
        self.by_key.get(key).map(|entry| entry.changed)
    }

    /// Caches a workload, in the change of this number. The number of the workload does not change if its version does not,
    /// unless that says nothing (D-112).
    pub(super) fn insert(
        &mut self,
        workload: Arc<Workload>,
        change: u64,
        versions_tell: bool,
    ) -> Option<Arc<Workload>> {
        let key = &workload.key;
        let is_same = |old: &&Entry| {
            versions_tell
                && (&old.workload.uid, &old.workload.resource_version)
                    == (&workload.uid, &workload.resource_version)
        };
        let unchanged = self.by_key.get(key).filter(is_same);
        let changed = unchanged.map_or(change, |old| old.changed);
        let old = self.remove(key);
        let keys = match &workload.controller {
            Some(controller) => self.controlled.entry((*controller.uid).into()).or_default(),
            None => &mut self.orphans,
        };
        keys.insert(key.clone());
        self.by_key.insert(key.clone(), Entry { workload, changed });
        old
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Workload>> {
        let old = self.by_key.remove(key)?.workload;
        self.orphans.remove(key);
        if let Some(controller) = &old.controller
            && let Some(keys) = self.controlled.get_mut(&*controller.uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.controlled.remove(&*controller.uid);
            }
        }
        Some(old)
    }
}

impl Store {
    /// A workload.
    #[must_use]
    pub fn workload(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.workloads.get(key)
    }

    /// All workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.workloads.values()
    }

    /// All workloads of a kind, ordered by namespace and name.
    pub fn workloads_of(&self, kind: &'static str) -> impl Iterator<Item = &Arc<Workload>> {
        self.workloads.of_kind(kind)
    }

    /// The workloads of a kind that this workload controls, by uid, ordered by name.
    pub fn controlled<'a>(
        &'a self,
        kind: &'static str,
        workload: &'a Workload,
    ) -> impl Iterator<Item = &'a Arc<Workload>> {
        let controlled = self.workloads.controlled(&workload.uid);
        controlled
            .filter(move |other| other.key.kind == kind && other.key.namespace == workload.key.namespace)
    }

    /// The workloads of a kind without a controller that this workload's selector matches, ordered by name. Without those that
    /// cannot be changed.
    pub fn orphans<'a>(
        &'a self,
        kind: &'static str,
        workload: &'a Workload,
    ) -> impl Iterator<Item = &'a Arc<Workload>> {
        let orphans = self.workloads.orphans(kind, &workload.key.namespace);
        orphans.filter(|other| workload.selector.selects(&other.labels) && !self.is_sealed_workload(other))
    }

    /// The workloads of this workload's kind that have the same controller, this one included; none if it has no controller.
    pub fn siblings<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a Arc<Workload>> {
        let controller = workload.controller.iter();
        let all = controller.flat_map(|controller| self.workloads.controlled(&controller.uid));
        all.filter(|other| {
            other.key.kind == workload.key.kind && other.key.namespace == workload.key.namespace
        })
    }
}
