//! How objects of each kind enter and leave the store, and which of it is news.

use std::sync::Arc;

use prost::Message as _;

use super::{Change, KIND, Store, Transition, decode_node, decode_pod};
use crate::buckets::Stored;
use crate::event::{DaemonSet, Key, Node, Pod, Revision};

/// An object that the store keeps.
pub(super) trait Cached: Sized {
    /// What identifies it among its kind.
    type Id: Eq + std::hash::Hash;

    fn id(&self) -> Self::Id;
    fn resource_version(&self) -> &str;
    /// All that are kept.
    fn ids(store: &Store) -> Vec<Self::Id>;
    /// Keeps it. No transition when it is not new.
    fn put(self, store: &mut Store) -> Option<Transition>;
    /// It was deleted, this being its last state.
    fn remove(self, store: &mut Store) -> Option<Transition>;
    /// It vanished without a last state.
    fn forget(store: &mut Store, id: &Self::Id) -> Option<Transition>;
}

impl Cached for DaemonSet {
    type Id = Key;

    fn id(&self) -> Key {
        self.key.clone()
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn ids(store: &Store) -> Vec<Key> {
        store.daemon_sets.keys().cloned().collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let new = Arc::new(self);
        let old = store.daemon_sets.insert(new.key.clone(), Arc::clone(&new));
        Some(Transition::DaemonSet(Change { old, new: Some(new) }))
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        store.daemon_sets.remove(&self.key);
        Some(Transition::DaemonSet(Change {
            old: Some(Arc::new(self)),
            new: None,
        }))
    }

    fn forget(store: &mut Store, id: &Key) -> Option<Transition> {
        let old = store.daemon_sets.remove(id);
        old.is_some()
            .then_some(Transition::DaemonSet(Change { old, new: None }))
    }
}

impl Cached for Node {
    type Id = String;

    fn id(&self) -> String {
        self.projection.name.clone()
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn ids(store: &Store) -> Vec<String> {
        store
            .nodes
            .iter_named()
            .map(|(name, _)| name.to_string())
            .collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let name = self.projection.name.as_str();
        let bucket = nodewise_proto::bucket::of(name, store.bucket_count);
        let encoded = self.projection.encode_to_vec();
        let old = store.nodes.get(bucket, name).map(decode_node);
        // Heartbeats change nodes all the time without changing what is kept: the bucket then stays as it is.
        if old.as_ref() == Some(&self.projection) {
            return None;
        }
        store
            .nodes
            .insert(bucket, name.into(), Stored::new(&self.resource_version, encoded));
        Some(Transition::Node(Change {
            old,
            new: Some(self.projection),
        }))
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        let name = self.projection.name.as_str();
        let bucket = nodewise_proto::bucket::of(name, store.bucket_count);
        store.nodes.remove(bucket, name);
        Some(Transition::Node(Change {
            old: Some(self.projection),
            new: None,
        }))
    }

    fn forget(store: &mut Store, id: &String) -> Option<Transition> {
        let bucket = nodewise_proto::bucket::of(id, store.bucket_count);
        let old = store.nodes.remove(bucket, id).as_ref().map(decode_node);
        old.is_some()
            .then_some(Transition::Node(Change { old, new: None }))
    }
}

impl Cached for Pod {
    type Id = (Arc<str>, Arc<str>);

    fn id(&self) -> Self::Id {
        (
            self.namespace.as_str().into(),
            self.projection.name.as_str().into(),
        )
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn ids(store: &Store) -> Vec<Self::Id> {
        let namespaces = store.namespaces.iter();
        let ids = namespaces.flat_map(|(namespace, content)| {
            content
                .places
                .keys()
                .map(|name| (Arc::clone(namespace), Arc::clone(name)))
        });
        ids.collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let bucket_count = store.bucket_count;
        let (name, namespace) = store.namespace(&self.namespace);
        let old = match namespace.pod(&self.projection.name) {
            // The same object again, by a resync or a list after a gap.
            Some((_, stored)) if stored.version() == self.resource_version => return None,
            Some((_, stored)) => Some(decode_pod(stored)),
            None => None,
        };
        namespace.take_pod(&self.projection.name);
        namespace.put_pod(&self, bucket_count);
        store.drop_if_empty(&name);
        let foreign = self
            .projection
            .controller
            .as_ref()
            .is_some_and(|controller| controller.kind != KIND);
        (old.is_some() || !foreign).then(|| {
            let new = Some(self.projection);
            Transition::Pod(name, Change { old, new }.into())
        })
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        let (name, namespace) = store.namespace(&self.namespace);
        namespace.take_pod(&self.projection.name);
        store.drop_if_empty(&name);
        let old = Some(self.projection);
        Some(Transition::Pod(name, Change { old, new: None }.into()))
    }

    fn forget(store: &mut Store, (namespace, name): &Self::Id) -> Option<Transition> {
        let stored = store.namespaces.get_mut(namespace)?.take_pod(name)?;
        store.drop_if_empty(namespace);
        let old = Some(decode_pod(&stored));
        Some(Transition::Pod(
            Arc::clone(namespace),
            Change { old, new: None }.into(),
        ))
    }
}

impl Cached for Revision {
    type Id = (String, String);

    fn id(&self) -> Self::Id {
        (self.namespace.clone(), self.name.clone())
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn ids(store: &Store) -> Vec<Self::Id> {
        let namespaces = store.namespaces.iter();
        let ids = namespaces.flat_map(|(namespace, content)| {
            content
                .revisions
                .keys()
                .map(|name| (namespace.to_string(), name.clone()))
        });
        ids.collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let (name, namespace) = store.namespace(&self.namespace);
        let version = self.resource_version.clone();
        let foreign = self
            .controller
            .as_ref()
            .is_some_and(|controller| controller.kind != KIND);
        let new = Arc::new(self);
        let old = if foreign {
            namespace.revisions.remove(&new.name)
        } else {
            namespace.revisions.insert(new.name.clone(), Arc::clone(&new))
        };
        store.drop_if_empty(&name);
        if old.as_ref().is_some_and(|old| old.resource_version == version) || (foreign && old.is_none()) {
            return None;
        }
        Some(Transition::Revision(Change { old, new: Some(new) }))
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        let (name, namespace) = store.namespace(&self.namespace);
        namespace.revisions.remove(&self.name);
        namespace.sealed.remove(&self.name);
        store.drop_if_empty(&name);
        Some(Transition::Revision(Change {
            old: Some(Arc::new(self)),
            new: None,
        }))
    }

    fn forget(store: &mut Store, (namespace, name): &Self::Id) -> Option<Transition> {
        let kept = store.namespaces.get_mut(namespace.as_str())?;
        let old = kept.revisions.remove(name);
        kept.sealed.remove(name);
        store.drop_if_empty(namespace);
        old.is_some()
            .then_some(Transition::Revision(Change { old, new: None }))
    }
}
