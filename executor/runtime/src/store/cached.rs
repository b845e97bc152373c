//! How objects of each kind enter and leave the caches, and which changes count as transitions.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use crate::Resource;
use nodewise_projection::{
    Key, KeySet, Node, Pod, Revision, Unready, Workload,
    buckets::{EncodedNode, EncodedPod},
    reduce_node,
};
use nodewise_proto::v1;

use super::{Change, Revisions, Store, Transition, is_cached, pods, staged::Staged};

/// An object that is cached.
pub(super) trait Cached: Sized {
    /// Identifies an object among those of its kind.
    type Id;

    fn resource_version(&self) -> &str;
    /// The cached objects that are neither in `listed` nor in the earlier pages of the list.
    fn missing(store: &Store, resource: Resource, listed: &[Self]) -> Vec<Self::Id>;
    /// Caches the object. No transition if nothing changed that matters.
    fn put(self, store: &mut Store) -> Option<Transition>;
    /// Caches the objects of the pages.
    fn put_pages(_: &mut Store, _: &mut dyn FnMut(&Store, Option<Transition>)) {}
    /// Removes a deleted object; `self` is its last state.
    fn remove(self, store: &mut Store) -> Option<Transition>;
    /// Removes an object that is not in a new list.
    fn forget(store: &mut Store, id: &Self::Id) -> Option<Transition>;
}

/// The cached names that are not listed. Most lists are first lists, for which nothing is cached.
pub(super) fn missing<N: Eq + Hash>(
    kept: impl Iterator<Item = N>,
    listed: impl Iterator<Item = N>,
) -> Vec<N> {
    let mut kept = kept.peekable();
    if kept.peek().is_none() {
        return Vec::new();
    }
    let listed: HashSet<N> = listed.collect();
    kept.filter(|name| !listed.contains(name)).collect()
}

impl Cached for Workload {
    type Id = Key;

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn missing(store: &Store, resource: Resource, listed: &[Self]) -> Vec<Key> {
        let kept = store.workloads.of_kind(resource.kind).map(|kept| &kept.key);
        missing(kept, listed.iter().map(|workload| &workload.key))
            .into_iter()
            .cloned()
            .collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let new = Arc::new(self);
        let versions_tell = !store.is_relisting;
        let mut old = store
            .workloads
            .insert(Arc::clone(&new), store.changes.last, versions_tell);
        store.keys.replace(old.as_deref(), Some(&new));
        store.check_cuts(&new.key.namespace);
        // An orphan that could not be changed can be tried again. This counts as if it came just now.
        if new.controller.is_none() && !store.is_sealed_workload(&new) {
            old = old.filter(|old| !store.is_sealed_workload(old));
        }
        Some(Transition::Workload(Change { old, new: Some(new) }))
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        store.remove_workload(&self.key);
        Some(Transition::Workload(Change {
            old: Some(Arc::new(self)),
            new: None,
        }))
    }

    fn forget(store: &mut Store, id: &Key) -> Option<Transition> {
        let old = store.remove_workload(id);
        old.is_some()
            .then_some(Transition::Workload(Change { old, new: None }))
    }
}

impl Cached for Node {
    type Id = String;

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn missing(store: &Store, _: Resource, listed: &[Self]) -> Vec<String> {
        let listed = listed.iter().map(|node| &*node.projection.name);
        let staged = store.node_pages.iter().flatten().map(EncodedNode::name);
        missing(store.nodes.iter().map(EncodedNode::name), staged.chain(listed))
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    fn put(self, store: &mut Store) -> Option<Transition> {
        let node = store.encode_node(self);
        keep_node(store, &node)
    }

    fn put_pages(store: &mut Store, notify: &mut dyn FnMut(&Store, Option<Transition>)) {
        for node in std::mem::take(&mut store.node_pages).into_iter().flatten() {
            let transition = keep_node(store, &node);
            notify(store, transition);
        }
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        store.remove_node(&self.projection.name);
        Some(changed_node(Some(self.projection), None))
    }

    fn forget(store: &mut Store, id: &String) -> Option<Transition> {
        let old = store.remove_node(id)?;
        Some(changed_node(Some(old), None))
    }
}

/// Caches a node.
fn keep_node(store: &mut Store, new: &EncodedNode) -> Option<Transition> {
    let old = store.nodes.put(new.clone());
    if let Some(old) = &old {
        store.labels.release(old);
    }
    let keys = store.keys.of_nodes();
    // Heartbeats change nodes all the time, but not the part that is sent.
    let is_same = |old: &EncodedNode| old.is_sent_as_same_bytes(new, keys);
    if old.as_ref().is_some_and(is_same) {
        return None;
    }
    store.cuts.check(Resource::NODES, "", new, keys);
    Some(changed_node(
        old.map(|old| sent(old.node(), keys)),
        Some(sent(new.node(), keys)),
    ))
}

fn changed_node(old: Option<v1::Node>, new: Option<v1::Node>) -> Transition {
    Transition::Node(Change { old, new }.into())
}

/// The part of a node that is sent.
fn sent(mut node: v1::Node, keys: &KeySet) -> v1::Node {
    reduce_node(&mut node, keys);
    node
}

impl Cached for Pod {
    type Id = (Arc<str>, String);

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn missing(store: &Store, _: Resource, listed: &[Self]) -> Vec<Self::Id> {
        let namespaces = store.namespaces.iter();
        let kept =
            namespaces.flat_map(|(namespace, content)| content.pods.names().map(|name| (&**namespace, name)));
        let listed = listed.iter().map(|pod| (&*pod.namespace, &*pod.projection.name));
        let staged = store.pages.iter().map(|(namespace, pod)| (namespace, pod.name()));
        missing(kept, staged.chain(listed))
            .into_iter()
            .map(|(namespace, name)| (namespace.into(), name.to_owned()))
            .collect()
    }

    fn put(mut self, store: &mut Store) -> Option<Transition> {
        if !is_cached(&store.kinds, self.projection.controller.as_ref()) {
            let old = store.remove_pod(&self.namespace, &self.projection.name)?;
            return Some(changed(&self.namespace, Some(old), Some(self.projection)));
        }
        let keys = store.keys.of_pods(&self.namespace);
        let pod = pods::encode(
            &mut self.projection,
            &self.resource_version,
            &keys,
            &mut store.parts,
            &store.layout,
        );
        keep(store, &self.namespace, pod, self.unready, Some(self.projection))
    }

    fn put_pages(store: &mut Store, notify: &mut dyn FnMut(&Store, Option<Transition>)) {
        for (namespace, count) in store.pages.counts() {
            let (_, namespace) = store.namespace(&namespace);
            namespace.pods.make_room(count);
        }
        for Staged {
            namespace,
            pod,
            unready,
        } in std::mem::take(&mut store.pages).into_pods()
        {
            let transition = keep(store, &namespace, pod, unready, None);
            notify(store, transition);
        }
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        store.remove_pod(&self.namespace, &self.projection.name);
        Some(changed(&self.namespace, Some(self.projection), None))
    }

    fn forget(store: &mut Store, (namespace, name): &Self::Id) -> Option<Transition> {
        let old = store.remove_pod(namespace, name)?;
        Some(changed(namespace, Some(old), None))
    }
}

/// Caches a pod. `projection` is the decoded pod, if the caller has it.
fn keep(
    store: &mut Store,
    namespace: &str,
    mut pod: EncodedPod,
    unready: Option<Box<Unready>>,
    projection: Option<v1::Pod>,
) -> Option<Transition> {
    let kept = store.namespaces.get(namespace);
    let kept = kept.and_then(|namespace| namespace.pods.get(pod.name()));
    // After a restart of the resourceVersions, the same version may belong to another state (D-112).
    if !store.is_relisting && kept.is_some_and(|kept| kept.version() == pod.version()) {
        // The same object again, from a list after a gap in the watch.
        store.parts.release(&pod);
        return None;
    }
    // Most pod events change fields that are not projected, such as container states or annotations.
    let keys = store.keys.of_pods(namespace);
    // Two cases count as if the pod came just now: an orphan that was left out can be tried again, and labels that were
    // read live have caused no transition yet.
    let is_ahead = store.namespaces.get(namespace);
    let is_ahead = is_ahead.is_some_and(|namespace| namespace.pods.is_ahead(pod.name()));
    let is_back = pod.owner().is_none() && (is_ahead || store.is_left_out(namespace, pod.name()));
    let is_news = is_back || is_ahead || kept.is_none_or(|kept| !kept.is_sent_as_same_bytes(&pod, &keys));
    if is_news {
        store.cuts.check(Resource::PODS, namespace, &pod, &keys);
    }
    let projection = projection.unwrap_or_else(|| pod.pod());
    pod.change(store.changes.last);
    let layout = Arc::clone(&store.layout);
    let (name, namespace) = store.namespace(namespace);
    let former = namespace.pods.get(pod.name());
    let former = former.filter(|former| former.owner() != pod.owner() && namespace.unready.remove(former));
    let mut unready_changes: Vec<Arc<str>> = former
        .and_then(|pod| pod.owner())
        .map(Arc::from)
        .into_iter()
        .collect();
    if namespace.unready.put(&pod, unready) {
        unready_changes.extend(pod.owner().map(Arc::from));
    }
    let old = namespace.pods.put(pod, &layout);
    store.unready_changes.extend(unready_changes);
    if let Some(old) = &old {
        store.parts.release(old);
    }
    // Upstream counts each event of a pod that is being deleted.
    (is_news || projection.deletion_time.is_some()).then(|| {
        let old = old.filter(|_| !is_back).map(|old| old.pod());
        let new = Some(projection);
        Transition::Pod(name, Change { old, new }.into())
    })
}

fn changed(namespace: &str, old: Option<v1::Pod>, new: Option<v1::Pod>) -> Transition {
    Transition::Pod(namespace.into(), Change { old, new }.into())
}

impl Cached for Revision {
    type Id = (String, String);

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn missing(store: &Store, _: Resource, listed: &[Self]) -> Vec<Self::Id> {
        let namespaces = store.namespaces.iter();
        let kept = namespaces.flat_map(|(namespace, content)| {
            let names = content.revisions.iter().map(|revision| revision.name.as_str());
            names.map(|name| (&**namespace, name))
        });
        let staged = store.revision_pages.values().flat_map(Revisions::iter);
        let listed = staged
            .map(|revision| &**revision)
            .chain(listed)
            .map(|revision| (revision.namespace.as_str(), revision.name.as_str()));
        missing(kept, listed)
            .into_iter()
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
            .collect()
    }

    fn put(mut self, store: &mut Store) -> Option<Transition> {
        store.cut_labels(&mut self);
        let kept = store.namespaces.get(self.namespace.as_str());
        if !store.keeps_whole(&self, kept.map(|namespace| &namespace.revisions)) {
            self.object = None;
        }
        let (change, is_relisting) = (store.changes.last, store.is_relisting);
        let foreign = !is_cached(&store.kinds, self.controller.as_ref());
        let (name, namespace) = store.namespace(&self.namespace);
        let version = self.resource_version.clone();
        let new = Arc::new(self);
        let mut old = if foreign {
            namespace.revision_changes.remove(&new.name);
            namespace.revisions.remove(&new.name)
        } else {
            namespace.revisions.put(Arc::clone(&new))
        };
        let is_same = old.as_ref().is_some_and(|old| old.resource_version == version);
        if !foreign && (!is_same || is_relisting) {
            namespace.revision_changes.insert(new.name.clone(), change);
        }
        store.drop_if_empty(&name);
        if foreign && old.is_some() {
            store.changes.remove(Resource::REVISIONS);
        }
        if is_same || (foreign && old.is_none()) {
            return None;
        }
        // An orphan that could not be changed can be tried again. This counts as if it came just now.
        if new.controller.is_none() {
            old = old.filter(|old| !store.is_sealed(old));
        }
        Some(Transition::Revision(Change { old, new: Some(new) }))
    }

    fn put_pages(store: &mut Store, notify: &mut dyn FnMut(&Store, Option<Transition>)) {
        for page in std::mem::take(&mut store.revision_pages).into_values() {
            for revision in page.into_all() {
                let transition = revision.put(store);
                notify(store, transition);
            }
        }
    }

    fn remove(self, store: &mut Store) -> Option<Transition> {
        let (name, namespace) = store.namespace(&self.namespace);
        namespace.revisions.remove(&self.name);
        namespace.forget_revision(&self.name);
        store.drop_if_empty(&name);
        store.changes.remove(Resource::REVISIONS);
        Some(Transition::Revision(Change {
            old: Some(Arc::new(self)),
            new: None,
        }))
    }

    fn forget(store: &mut Store, (namespace, name): &Self::Id) -> Option<Transition> {
        let kept = store.namespaces.get_mut(namespace.as_str())?;
        let old = kept.revisions.remove(name);
        kept.forget_revision(name);
        store.drop_if_empty(namespace);
        store.changes.remove(Resource::REVISIONS);
        old.is_some()
            .then_some(Transition::Revision(Change { old, new: None }))
    }
}
