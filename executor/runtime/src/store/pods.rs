//! The cached pods of one namespace: by name, and in the buckets of their controllers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nodewise_projection::{
    Key, KeySet, Selector, Workload,
    buckets::{EncodedPod, Placement, PodBuckets},
};
use nodewise_proto::v1;
use prost::Message as _;

use super::layout::Layout;
use super::parts::Parts;

#[derive(Debug, Default)]
pub(super) struct Pods {
    /// A hash table instead of a map, because the pods contain their names.
    names: HashTable<EncodedPod>,
    hasher: RandomState,
    /// Pods by the uid of the workload that controls them, and by the kind of its buckets: anyone may name the uid of a
    /// workload of another kind.
    owned: Owned,
    /// By node. The selections of the workloads have their own buckets.
    orphans: Option<PodBuckets>,
    /// The selected orphans, by workload. Filled at the first request for a workload while there are orphans.
    selected: HashMap<Key, Selected>,
    /// Names of orphans that cannot be adopted as they are. They are in no selection.
    left_out: HashSet<Box<str>>,
    /// Names of pods of which not all labels are cached.
    cut: HashSet<Box<str>>,
    /// Names of pods whose labels are newer than their other fields: the labels were read live.
    ahead: HashSet<Box<str>>,
}

/// Pods by the uid of the workload that controls them.
#[derive(Debug, Default)]
struct Owned {
    by_node: HashMap<Arc<str>, PodBuckets>,
    by_name: HashMap<Arc<str>, PodBuckets>,
}

impl Owned {
    fn by(&self, placement: Placement) -> &HashMap<Arc<str>, PodBuckets> {
        match placement {
            Placement::Node => &self.by_node,
            Placement::Name => &self.by_name,
        }
    }

    fn by_mut(&mut self, placement: Placement) -> &mut HashMap<Arc<str>, PodBuckets> {
        match placement {
            Placement::Node => &mut self.by_node,
            Placement::Name => &mut self.by_name,
        }
    }
}

/// The orphans that a selector matches.
#[derive(Debug)]
struct Selected {
    selector: Selector,
    orphans: PodBuckets,
}

impl Selected {
    fn new(selector: &Selector, placement: Placement, count: u32) -> Self {
        Self {
            selector: selector.clone(),
            orphans: PodBuckets::of_pods(placement, count),
        }
    }

    /// Updates the selection for an orphan with these labels that came or changed.
    fn put(&mut self, orphan: &EncodedPod, labels: &[v1::Label]) {
        if orphan.has_labels_of(&self.selector) && self.selector.selects(labels) {
            self.orphans.put(orphan.clone());
        } else {
            self.orphans.take_out(orphan);
        }
    }
}

fn labels_of(orphan: &EncodedPod) -> Vec<v1::Label> {
    orphan.shared().labels()
}

impl Pods {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EncodedPod> {
        self.names.iter()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(EncodedPod::name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&EncodedPod> {
        self.names
            .find(self.hasher.hash_one(name), |pod| pod.name() == name)
    }

    /// The pods that name a workload of this uid as their controller, whatever its kind.
    pub(super) fn owned(&self, uid: &str) -> impl Iterator<Item = &EncodedPod> {
        let sets = [Placement::Node, Placement::Name].map(|placement| self.owned_in(placement, uid));
        sets.into_iter().flatten().flat_map(PodBuckets::iter)
    }

    /// Those of them whose controller is of a kind with such buckets.
    pub(super) fn owned_in(&self, placement: Placement, uid: &str) -> Option<&PodBuckets> {
        self.owned.by(placement).get(uid)
    }

    pub(super) fn orphans(&self) -> Option<&PodBuckets> {
        self.orphans.as_ref()
    }

    /// The pods that a workload controls, and the orphans that its selector matches; and the number of their buckets.
    pub(super) fn sets(
        &mut self,
        workload: &Workload,
        layout: &Layout,
    ) -> (u32, Option<&mut PodBuckets>, Option<&mut PodBuckets>) {
        let placement = layout.placement(workload.key.kind);
        let count = match self.owned_in(placement, &workload.uid) {
            Some(owned) => owned.count(),
            None => layout.fewest_buckets(workload.key.kind),
        };
        self.select(workload, placement, count);
        let selected = self.selected.get_mut(&workload.key);
        (
            count,
            self.owned.by_mut(placement).get_mut(&workload.uid),
            selected.map(|selected| &mut selected.orphans),
        )
    }

    /// Selects the orphans for a workload, unless that was done for the same selector and number of buckets.
    fn select(&mut self, workload: &Workload, placement: Placement, count: u32) {
        let (key, selector) = (&workload.key, &workload.selector);
        let Some(orphans) = &self.orphans else {
            self.selected.remove(key);
            return;
        };
        let is_done =
            |selected: &Selected| selected.selector == *selector && selected.orphans.count() == count;
        if self.selected.get(key).is_some_and(is_done) {
            return;
        }
        let mut selected = Selected::new(selector, placement, count);
        let orphans = orphans.iter().filter(|orphan| !self.is_left_out(orphan.name()));
        orphans.for_each(|orphan| selected.put(orphan, &labels_of(orphan)));
        self.selected.insert(key.clone(), selected);
    }

    /// Removes an orphan from all selections until it changes.
    pub(super) fn leave_out(&mut self, name: &str) {
        let Some(orphan) = self.get(name).filter(|pod| pod.owner().is_none()).cloned() else {
            return;
        };
        for selected in self.selected.values_mut() {
            selected.orphans.take_out(&orphan);
        }
        self.left_out.insert(name.into());
    }

    pub(super) fn is_left_out(&self, name: &str) -> bool {
        self.left_out.contains(name)
    }

    /// The pods for which it is not known whether a workload selects them, because not all of their labels are cached.
    pub(super) fn undecided(&self, workload: &Workload) -> impl Iterator<Item = &EncodedPod> {
        let cut = self.cut.iter().filter_map(|name| self.get(name));
        cut.filter(|pod| match pod.owner() {
            Some(uid) => *uid == *workload.uid,
            None => !self.is_left_out(pod.name()),
        })
        .filter(|pod| !pod.has_labels_of(&workload.selector))
    }

    /// The pods of which not all labels are cached, and whose cached labels are not those of these keys.
    pub(super) fn cut_otherwise(&self, keys: &Arc<KeySet>) -> impl Iterator<Item = &EncodedPod> {
        let cut = self.cut.iter().filter_map(|name| self.get(name));
        cut.filter(|pod| pod.known().is_some_and(|known| !Arc::ptr_eq(known, keys)))
    }

    /// Whether the labels of a pod are newer than its other fields.
    pub(super) fn is_ahead(&self, name: &str) -> bool {
        self.ahead.contains(name)
    }

    /// Caches a pod whose labels were read live. `is_newer`: the live version is newer than the one that the watch has
    /// shown.
    pub(super) fn put_labels(
        &mut self,
        pod: EncodedPod,
        is_newer: bool,
        layout: &Layout,
    ) -> Option<EncodedPod> {
        let name: Box<str> = pod.name().into();
        let is_left_out = self.is_left_out(&name);
        let is_ahead = is_newer || self.is_ahead(&name);
        let old = self.put(pod, layout);
        if is_left_out {
            self.leave_out(&name);
        }
        if is_ahead {
            self.ahead.insert(name);
        }
        old
    }

    /// Forgets the selection of a workload that is gone.
    pub(super) fn forget_selected(&mut self, key: &Key) {
        self.selected.remove(key);
    }

    /// Caches a pod. Returns the pod of the same name that was cached before.
    pub(super) fn put(&mut self, pod: EncodedPod, layout: &Layout) -> Option<EncodedPod> {
        self.left_out.remove(pod.name());
        self.ahead.remove(pod.name());
        if pod.known().is_some() {
            self.cut.insert(pod.name().into());
        } else {
            self.cut.remove(pod.name());
        }
        let hash = |pod: &EncodedPod| self.hasher.hash_one(pod.name());
        let entry = self
            .names
            .entry(hash(&pod), |kept| kept.name() == pod.name(), |kept| hash(kept));
        let old = match entry {
            Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), pod.clone())),
            Entry::Vacant(entry) => {
                entry.insert(pod.clone());
                None
            }
        };
        // The pods of a bucket are ordered by node.
        let stays = |old: &EncodedPod| {
            (old.owner(), old.placement(), old.target_node())
                == (pod.owner(), pod.placement(), pod.target_node())
        };
        if let Some(old) = old.as_ref().filter(|old| !stays(old)) {
            self.take_out(old);
        }
        if pod.owner().is_none() {
            let labels = labels_of(&pod);
            self.selected
                .values_mut()
                .for_each(|selected| selected.put(&pod, &labels));
        }
        self.buckets_of(&pod, layout).put(pod);
        old
    }

    /// Prepares for the first list, which has at least this many pods. A table that grows takes half as much again for a moment.
    pub(super) fn make_room(&mut self, count: usize) {
        if self.names.is_empty() {
            let hash = |pod: &EncodedPod| self.hasher.hash_one(pod.name());
            self.names.reserve(count, hash);
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<EncodedPod> {
        let hash = self.hasher.hash_one(name);
        let found = self.names.find_entry(hash, |pod| pod.name() == name).ok()?;
        let (pod, _) = found.remove();
        for names in [&mut self.left_out, &mut self.cut, &mut self.ahead] {
            names.remove(name);
        }
        self.take_out(&pod);
        Some(pod)
    }

    fn buckets_of(&mut self, pod: &EncodedPod, layout: &Layout) -> &mut PodBuckets {
        let Some(uid) = pod.owner() else {
            let empty = || layout.empty(Placement::Node);
            return self.orphans.get_or_insert_with(empty);
        };
        let owned = self.owned.by_mut(pod.placement());
        let known = owned.get_key_value(uid).map(|(uid, _)| Arc::clone(uid));
        let uid = known.unwrap_or_else(|| uid.into());
        owned.entry(uid).or_insert_with(|| layout.empty(pod.placement()))
    }

    /// Removes a pod from its bucket.
    fn take_out(&mut self, pod: &EncodedPod) {
        let Some(uid) = pod.owner() else {
            let selected = self.selected.values_mut().map(|selected| &mut selected.orphans);
            for orphans in self.orphans.iter_mut().chain(selected) {
                orphans.take_out(pod);
            }
            self.orphans.take_if(|orphans| orphans.is_empty());
            return;
        };
        let all = self.owned.by_mut(pod.placement());
        if let Some(owned) = all.get_mut(uid) {
            owned.take_out(pod);
            if owned.is_empty() {
                all.remove(uid);
            }
        }
    }
}

/// Encodes a pod for the cache. The labels and the controller of a workload's pods are almost equal, so they are
/// interned. If there are very many labels, only those of these keys are kept, and the others are removed from `pod` as
/// well.
pub(super) fn encode(
    pod: &mut v1::Pod,
    version: &str,
    keys: &Arc<KeySet>,
    parts: &mut Parts,
    layout: &Layout,
) -> EncodedPod {
    let is_cut = keys.cut(&mut pod.labels);
    let shared = v1::SharedMetadata {
        labels: std::mem::take(&mut pod.labels),
        controller: pod.controller.take(),
    };
    let controller = shared.controller.as_ref();
    let owner = controller.map(|controller| &*controller.uid);
    let placement = controller.map_or_else(Placement::default, |owner| layout.placement(&owner.kind));
    let part = parts.intern(&shared.encode_to_vec(), owner, is_cut.then_some(keys), placement);
    let stored = EncodedPod::of_pod(pod, part, version);
    pod.labels = shared.labels;
    pod.controller = shared.controller;
    stored
}
