//! The pods of one namespace: by name, and in the buckets of whoever controls them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nodewise_proto::{bucket, v1};
use prost::Message as _;

use super::parts::Parts;
use super::target_node;
use crate::buckets::{Buckets, Stored};

#[derive(Debug, Default)]
pub(super) struct Pods {
    /// A table, not a map: the names are in the pods already.
    names: HashTable<Arc<Stored>>,
    hasher: RandomState,
    /// Pods by the uid of the DaemonSet that controls them.
    owned: HashMap<Arc<str>, Buckets>,
    orphans: Option<Buckets>,
}

impl Pods {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|pod| pod.name())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Stored>> {
        self.names
            .find(self.hasher.hash_one(name), |pod| pod.name() == name)
    }

    pub(super) fn owned(&self, uid: &str) -> Option<&Buckets> {
        self.owned.get(uid)
    }

    pub(super) fn orphans(&self) -> Option<&Buckets> {
        self.orphans.as_ref()
    }

    /// The pods that this uid controls, and the orphans.
    pub(super) fn sets(&mut self, uid: &str) -> (Option<&mut Buckets>, Option<&mut Buckets>) {
        (self.owned.get_mut(uid), self.orphans.as_mut())
    }

    /// Keeps a pod; answers with the one of that name that was kept before.
    pub(super) fn put(&mut self, pod: Stored, bucket_count: u32) -> Option<Arc<Stored>> {
        let pod = Arc::new(pod);
        let hash = |pod: &Stored| self.hasher.hash_one(pod.name());
        let entry = self
            .names
            .entry(hash(&pod), |kept| kept.name() == pod.name(), |kept| hash(kept));
        let old = match entry {
            Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), Arc::clone(&pod))),
            Entry::Vacant(entry) => {
                entry.insert(Arc::clone(&pod));
                None
            }
        };
        let stays = |old: &Stored| (old.owner(), old.bucket()) == (pod.owner(), pod.bucket());
        if let Some(old) = old.as_ref().filter(|old| !stays(old)) {
            self.take_out(old);
        }
        self.buckets_of(pod.owner(), bucket_count).put(pod);
        old
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<Stored>> {
        let hash = self.hasher.hash_one(name);
        let found = self.names.find_entry(hash, |pod| pod.name() == name).ok()?;
        let (pod, _) = found.remove();
        self.take_out(&pod);
        Some(pod)
    }

    fn buckets_of(&mut self, owner: Option<&str>, bucket_count: u32) -> &mut Buckets {
        let Some(uid) = owner else {
            return self.orphans.get_or_insert_with(|| Buckets::new(bucket_count));
        };
        let known = self.owned.get_key_value(uid).map(|(uid, _)| Arc::clone(uid));
        let uid = known.unwrap_or_else(|| uid.into());
        self.owned
            .entry(uid)
            .or_insert_with(|| Buckets::new(bucket_count))
    }

    /// Takes a pod out of its bucket.
    fn take_out(&mut self, pod: &Stored) {
        let Some(uid) = pod.owner() else {
            if let Some(orphans) = &mut self.orphans {
                orphans.remove(pod.bucket(), pod.name());
            }
            self.orphans.take_if(|orphans| orphans.len() == 0);
            return;
        };
        if let Some(owned) = self.owned.get_mut(uid) {
            owned.remove(pod.bucket(), pod.name());
            if owned.len() == 0 {
                self.owned.remove(uid);
            }
        }
    }
}

/// A pod in the form in which it is kept. The labels and the controller of a workload's pods are all but equal.
pub(super) fn encode(pod: &mut v1::Pod, version: &str, parts: &mut Parts, bucket_count: u32) -> Stored {
    let bucket = bucket::of(target_node(pod), bucket_count);
    let shared = v1::SharedMetadata {
        labels: std::mem::take(&mut pod.labels),
        controller: pod.controller.take(),
    };
    let owner = shared.controller.as_ref().map(|controller| &*controller.uid);
    let part = parts.intern(&shared.encode_to_vec(), owner);
    let stored = Stored::new(pod, Some(part), version, bucket);
    pod.labels = shared.labels;
    pod.controller = shared.controller;
    stored
}
