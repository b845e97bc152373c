//! The caches: workloads by key, pods by their controller, nodes, revisions, and the resourceVersion that each watch
//! has reached.
//!
//! Applying an event returns the transitions that it caused; [`Kind::effects`](crate::kind::Kind::effects) derives from these which workloads to
//! enqueue. Pods controlled by another kind are not cached: no plan reads them (D-3), and most pods of a cluster are of
//! that kind.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::{Delta, Resource, expectations::CachedPods, log_limiter::LogLimiter};
use nodewise_projection::{Key, KeySet, Pod, Revision, Selector, Workload, buckets::Buckets};
use nodewise_proto::{bucket, v1};

use crate::event::ClusterEvent;

mod cached;
mod changes;
mod cuts;
mod keys;
mod labels;
mod live;
mod parts;
mod pods;
mod revisions;
mod sent;
mod staged;
mod stalled;

use cached::Cached;
use changes::Changes;
use cuts::Cuts;
use keys::Keys;
use labels::Labels;
use parts::Parts;
use pods::Pods;
pub(crate) use revisions::REVISION_BYTES;
use revisions::Revisions;
use staged::Pages;
pub use stalled::Stalled;

/// The change of one object. At least one side is set.
#[derive(Clone, Debug)]
pub struct Change<T> {
    /// The object before; `None` if it was not cached.
    pub old: Option<T>,
    /// The object after; `None` if it is gone.
    pub new: Option<T>,
}

/// A change that an event caused.
#[derive(Clone, Debug)]
pub enum Transition {
    /// A workload.
    Workload(Change<Arc<Workload>>),
    /// A pod of this namespace.
    Pod(Arc<str>, Box<Change<v1::Pod>>),
    /// A node.
    Node(Change<v1::Node>),
    /// A revision.
    Revision(Change<Arc<Revision>>),
}

/// Called with each change, and with the caches after that change.
pub type Visit<'a> = &'a mut dyn FnMut(&Store, Transition);

/// The caches.
#[derive(Debug)]
pub struct Store {
    /// The kinds of workload that are cached.
    kinds: Vec<Resource>,
    /// The other resources that are cached, of [`Resource::INPUTS`].
    inputs: Vec<Resource>,
    bucket_count: u32,
    workloads: HashMap<Key, Arc<Workload>>,
    nodes: Buckets,
    namespaces: HashMap<Arc<str>, Namespace>,
    /// Metadata that several pods share.
    parts: Parts,
    /// The labels of nodes.
    labels: Labels,
    /// The label keys that are sent.
    keys: Keys,
    /// Objects of which not all labels are sent.
    cuts: Cuts,
    pages: Pages,
    /// Pages of a list of revisions that is not complete yet, by namespace.
    revision_pages: HashMap<String, Revisions>,
    changes: Changes,
    /// Rate limit of the warning that a workload has too many revisions.
    pub too_many: LogLimiter<Key>,
    /// By resource: the version that its watch has reached; `None` until the first list is complete.
    reached: HashMap<Resource, String>,
    /// The resourceVersions have restarted, and not every resource was listed since.
    is_relisting: bool,
}

#[derive(Debug, Default)]
struct Namespace {
    pods: Pods,
    revisions: Revisions,
    /// Revisions that cannot be changed: by name, the resourceVersion at which that was seen.
    sealed: HashMap<String, String>,
    /// The number of the last change of each revision, by name.
    revision_changes: HashMap<String, u64>,
}

impl Store {
    /// Creates empty caches for these kinds of workload, and for all that their plans may be made from. Nodes and pods are divided into this many buckets (at least 1).
    #[must_use]
    pub fn new(kinds: &[Resource], bucket_count: u32) -> Self {
        let bucket_count = bucket_count.max(1);
        Self {
            kinds: kinds.to_vec(),
            inputs: if kinds.is_empty() {
                Vec::new()
            } else {
                Resource::INPUTS.to_vec()
            },
            bucket_count,
            workloads: HashMap::new(),
            nodes: Buckets::new(bucket_count),
            namespaces: HashMap::new(),
            parts: Parts::default(),
            labels: Labels::default(),
            keys: Keys::default(),
            cuts: Cuts::default(),
            pages: Pages::default(),
            revision_pages: HashMap::new(),
            changes: Changes::default(),
            too_many: LogLimiter::default(),
            reached: HashMap::new(),
            is_relisting: false,
        }
    }

    /// Adds a kind of workload whose plans are made from these resources. Call this before the first event.
    pub fn add_kind(&mut self, kind: Resource, reads: &[Resource]) {
        self.kinds.push(kind);
        let is_read = |input: &Resource| self.inputs.contains(input) || reads.contains(input);
        self.inputs = Resource::INPUTS.into_iter().filter(is_read).collect();
    }

    /// The kinds of workload that are cached.
    #[must_use]
    pub fn kinds(&self) -> &[Resource] {
        &self.kinds
    }

    /// The other resources that are cached.
    #[must_use]
    pub fn inputs(&self) -> &[Resource] {
        &self.inputs
    }

    /// Applies an event. Returns the changes that it caused.
    pub fn apply(&mut self, event: ClusterEvent) -> Vec<Transition> {
        let mut transitions = Vec::new();
        self.apply_each(event, &mut |_, transition| transitions.push(transition));
        transitions
    }

    /// Applies an event and calls `visit` for each change as it happens. The changes of a long list together would take
    /// several times as much memory as the cached objects.
    pub fn apply_each(&mut self, event: ClusterEvent, visit: Visit<'_>) {
        self.changes.begin();
        match event {
            ClusterEvent::Workloads(resource, delta) => self.apply_delta(resource, delta, visit),
            ClusterEvent::Pods(delta) => self.apply_delta(Resource::PODS, delta, visit),
            ClusterEvent::Nodes(delta) => self.apply_delta(Resource::NODES, delta, visit),
            ClusterEvent::Revisions(delta) => self.apply_delta(Resource::REVISIONS, delta, visit),
            ClusterEvent::PodPage { pods, is_first } => {
                if is_first {
                    self.pages.discard(&mut self.parts);
                }
                let pods = pods
                    .into_iter()
                    .filter(|pod| is_cached(&self.kinds, pod.projection.controller.as_ref()));
                self.pages
                    .add(pods, &mut self.keys, &mut self.parts, self.bucket_count);
            }
            ClusterEvent::RevisionPage { revisions, is_first } => {
                if is_first {
                    self.revision_pages.clear();
                }
                self.add_page(revisions);
            }
            ClusterEvent::RevisionRead(revision) => {
                let transition = revision.put(self);
                if let Some(transition) = transition {
                    visit(self, transition);
                }
            }
            ClusterEvent::RevisionGone { namespace, name } => {
                let transition = Revision::forget(self, &(namespace, name));
                if let Some(transition) = transition {
                    visit(self, transition);
                }
            }
            ClusterEvent::Bookmark(resource, version) => self.advance(resource, &version),
        }
    }

    fn apply_delta<T: Cached>(&mut self, resource: Resource, delta: Delta<T>, visit: Visit<'_>) {
        let mut notify = |store: &Self, transition: Option<Transition>| {
            if let Some(transition) = transition {
                visit(store, transition);
            }
        };
        match delta {
            Delta::Applied(object) => {
                self.advance(resource, object.resource_version());
                let transition = object.put(self);
                notify(self, transition);
            }
            Delta::Deleted(object) => {
                self.advance(resource, object.resource_version());
                let transition = object.remove(self);
                notify(self, transition);
            }
            Delta::Listed {
                objects,
                resource_version,
            } => {
                self.reached.insert(resource, resource_version);
                for id in T::missing(self, resource, &objects) {
                    let transition = T::forget(self, &id);
                    notify(self, transition);
                }
                T::put_pages(self, &mut notify);
                for object in objects {
                    let transition = object.put(self);
                    notify(self, transition);
                }
                self.is_relisting = self.relisting().is_some();
            }
        }
    }

    /// The resourceVersions have restarted (D-112): an object may have other content at a version that was seen before.
    /// Cached objects stay until a list has replaced them. Until all resources are listed, the caches are inconsistent.
    pub fn handle_version_restart(&mut self) {
        self.is_relisting = true;
        self.reached.clear();
        for namespace in self.namespaces.values_mut() {
            namespace.sealed.clear();
        }
    }

    /// A resource that was not listed since the resourceVersions have restarted, if there is one.
    #[must_use]
    pub fn relisting(&self) -> Option<Resource> {
        self.is_relisting.then(|| self.unsynced().next()).flatten()
    }

    /// Records that the watch of a resource has reached a version. Before the first list the cache is incomplete, so
    /// nothing is recorded.
    fn advance(&mut self, resource: Resource, version: &str) {
        if let Some(reached) = self.reached.get_mut(&resource) {
            version.clone_into(reached);
        }
    }

    /// Resources whose first list is not complete yet.
    pub fn unsynced(&self) -> impl Iterator<Item = Resource> {
        let watched = self.kinds.iter().chain(&self.inputs).copied();
        watched.filter(|resource| !self.reached.contains_key(resource))
    }

    /// Whether every resource was listed.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.unsynced().next().is_none()
    }

    /// The resourceVersion that the watch of a resource has reached; empty before its first list.
    #[must_use]
    pub fn reached(&self, resource: Resource) -> &str {
        self.reached.get(&resource).map_or("", String::as_str)
    }

    /// A workload.
    #[must_use]
    pub fn workload(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.workloads.get(key)
    }

    /// All workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        self.workloads.values()
    }

    /// The workload of this kind that an object's controller reference points at: of that name in the object's
    /// namespace, with that uid (D-103).
    #[must_use]
    pub fn resolve(
        &self,
        kind: &'static str,
        namespace: &str,
        controller: Option<&v1::ControllerReference>,
    ) -> Option<&Arc<Workload>> {
        let controller = controller.filter(|controller| controller.kind == kind)?;
        self.workloads
            .get(&Key::new(kind, namespace, &controller.name))
            .filter(|workload| *workload.uid == *controller.uid)
    }

    /// The workload that an object's controller reference points at, of any kind.
    #[must_use]
    pub fn owner(
        &self,
        namespace: &str,
        controller: Option<&v1::ControllerReference>,
    ) -> Option<&Arc<Workload>> {
        let mut kinds = self.kinds.iter();
        kinds.find_map(|resource| self.resolve(resource.kind, namespace, controller))
    }

    /// Every workload of a kind in a namespace whose selector matches an orphan's labels, ordered by name (D-104). If
    /// only labels of the `known` keys are cached, workloads whose selectors may match are included.
    #[must_use]
    pub fn matching(
        &self,
        kind: &str,
        namespace: &str,
        labels: &[v1::Label],
        known: Option<&KeySet>,
    ) -> Vec<&Arc<Workload>> {
        let matches = |selector: &Selector| match known {
            None => selector.matches(labels),
            Some(known) => !known.has(selector.keys()) || selector.matches_with_other_labels(labels),
        };
        let mut matching: Vec<_> = self
            .workloads
            .values()
            .filter(|workload| {
                workload.key.kind == kind
                    && *workload.key.namespace == *namespace
                    && matches(&workload.selector)
            })
            .collect();
        matching.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        matching
    }

    /// Whether there is a node of this name.
    #[must_use]
    pub fn has_node(&self, name: &str) -> bool {
        self.nodes.contains(bucket::of(name, self.bucket_count), name)
    }

    /// The cached pod of this name: one that a workload controls, or an orphan.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<v1::Pod> {
        let pod = self.namespaces.get(namespace)?.pods.get(name)?;
        Some(pod.pod())
    }

    /// The keys of the labels that are cached of a pod; `None` if all labels are.
    #[must_use]
    pub fn known(&self, namespace: &str, name: &str) -> Option<&KeySet> {
        let pod = self.namespaces.get(namespace)?.pods.get(name)?;
        pod.known().map(|known| &**known)
    }

    /// For each of these nodes that exists: the live pods of a workload that are on it or meant for it. These are pods
    /// that the workload controls and selects and that are neither finished nor being deleted.
    #[must_use]
    pub fn live_pods<'n>(&self, workload: &Workload, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods> {
        let there = nodes.iter().copied().filter(|node| self.has_node(node));
        let mut live: HashMap<&str, LivePods> = there.map(|node| (node, LivePods::default())).collect();
        let namespace = self.namespaces.get(&workload.key.namespace);
        let Some(owned) = namespace.and_then(|namespace| namespace.pods.owned(&workload.uid)) else {
            return live;
        };
        let buckets: BTreeSet<_> = (live.keys())
            .map(|node| bucket::of(node, self.bucket_count))
            .collect();
        for stored in buckets.iter().flat_map(|bucket| owned.members(*bucket)) {
            let Some(on_node) = live.get_mut(&*stored.target_node()) else {
                continue;
            };
            let pod = stored.pod();
            let is_own = |controller: &v1::ControllerReference| {
                controller.kind == workload.key.kind && *controller.name == *workload.key.name
            };
            let is_own = pod.controller.as_ref().is_some_and(is_own);
            if is_own && workload.selector.selects(&pod.labels) && is_live(&pod) {
                on_node.count += 1;
                on_node.changed = on_node.changed.max(stored.changed());
            }
        }
        live
    }

    /// The cached revision of this name: one that a workload controls, or an orphan.
    #[must_use]
    pub fn revision(&self, namespace: &str, name: &str) -> Option<&Arc<Revision>> {
        self.namespaces.get(namespace)?.revisions.get(name)
    }

    /// Removes an orphan that the API does not find, before its watch shows the deletion. No expectation waits for the
    /// deletion of orphans.
    pub fn forget_orphan(&mut self, resource: Resource, namespace: &str, name: &str) {
        let Some(kept) = self.namespaces.get(namespace) else {
            return;
        };
        // Another object may have this name by now.
        let is_orphan = match resource {
            Resource::PODS => kept.pods.get(name).is_some_and(|pod| pod.owner().is_none()),
            Resource::REVISIONS => kept
                .revisions
                .get(name)
                .is_some_and(|revision| revision.controller.is_none()),
            _ => false,
        };
        self.changes.begin();
        if is_orphan && resource == Resource::PODS {
            Pod::forget(self, &(namespace.into(), name.into()));
        } else if is_orphan {
            Revision::forget(self, &(namespace.into(), name.into()));
        }
    }

    /// Marks a revision or an orphaned pod as sealed: it cannot be changed until it has another resourceVersion. A
    /// sealed revision is sent with that mark. A sealed pod is not sent.
    pub fn seal(&mut self, resource: Resource, namespace: &str, name: &str) {
        let Some(namespace) = self.namespaces.get_mut(namespace) else {
            return;
        };
        if resource == Resource::PODS {
            namespace.pods.leave_out(name);
        } else if let Some(revision) = namespace.revisions.get(name) {
            let version = revision.resource_version.clone();
            namespace.sealed.insert(name.to_owned(), version);
        }
    }

    /// Whether a revision is sealed.
    #[must_use]
    pub fn is_sealed(&self, revision: &Revision) -> bool {
        self.namespaces
            .get(revision.namespace.as_str())
            .and_then(|namespace| namespace.sealed.get(&revision.name))
            == Some(&revision.resource_version)
    }

    /// Whether an orphaned pod is sealed.
    fn is_left_out(&self, namespace: &str, name: &str) -> bool {
        let namespace = self.namespaces.get(namespace);
        namespace.is_some_and(|namespace| namespace.pods.is_left_out(name))
    }

    /// The number of buckets of nodes and pods.
    #[must_use]
    pub fn bucket_count(&self) -> u32 {
        self.bucket_count
    }

    /// The cached pods of a workload, as the expectations need them.
    #[must_use]
    pub fn own_pods<'a>(&'a self, namespace: &str, uid: &'a str) -> impl CachedPods + use<'a> {
        OwnPods {
            namespace: self.namespaces.get(namespace),
            uid,
        }
    }

    /// The number of cached objects of a resource.
    #[must_use]
    pub fn count(&self, resource: Resource) -> usize {
        match resource {
            Resource::PODS => self
                .namespaces
                .values()
                .map(|namespace| namespace.pods.len())
                .sum(),
            Resource::NODES => self.nodes.len(),
            Resource::REVISIONS => self
                .namespaces
                .values()
                .map(|namespace| namespace.revisions.len())
                .sum(),
            kind => {
                let of_kind = self.workloads.keys().filter(|key| key.kind == kind.kind);
                of_kind.count()
            }
        }
    }

    /// The bytes of the cached data of revisions.
    #[must_use]
    pub fn revision_bytes(&self) -> usize {
        let kept = self.namespaces.values().map(|namespace| &namespace.revisions);
        kept.chain(self.revision_pages.values())
            .map(Revisions::bytes)
            .sum()
    }

    fn namespace(&mut self, name: &str) -> (Arc<str>, &mut Namespace) {
        let name = self
            .namespaces
            .get_key_value(name)
            .map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name));
        (Arc::clone(&name), self.namespaces.entry(name).or_default())
    }

    fn remove_pod(&mut self, namespace: &str, name: &str) -> Option<v1::Pod> {
        let pod = self.namespaces.get_mut(namespace)?.pods.remove(name)?;
        self.drop_if_empty(namespace);
        self.parts.release(&pod);
        self.changes.remove(Resource::PODS);
        Some(pod.pod())
    }

    fn remove_node(&mut self, name: &str) -> Option<v1::Node> {
        let node = self.nodes.remove(bucket::of(name, self.bucket_count), name)?;
        self.labels.release(&node);
        self.changes.remove(Resource::NODES);
        Some(node.node())
    }

    fn remove_workload(&mut self, key: &Key) -> Option<Arc<Workload>> {
        let old = self.workloads.remove(key)?;
        self.keys.replace(Some(&old), None);
        if let Some(kept) = self.namespaces.get_mut(&key.namespace) {
            kept.pods.forget_selected(key);
        }
        self.drop_unneeded(&key.namespace);
        Some(old)
    }

    fn drop_if_empty(&mut self, name: &str) {
        if self.namespaces.get(name).is_some_and(Namespace::is_empty) {
            self.namespaces.remove(name);
        }
    }
}

impl Namespace {
    fn is_empty(&self) -> bool {
        self.pods.len() == 0 && self.revisions.len() == 0
    }
}

pub use nodewise_proto::pods::target_node;

/// Whether objects with this controller are cached, if these kinds of workload are: those of these kinds, and orphans.
#[must_use]
pub fn is_cached(kinds: &[Resource], controller: Option<&v1::ControllerReference>) -> bool {
    controller.is_none_or(|controller| kinds.iter().any(|resource| resource.kind == controller.kind))
}

/// Whether a pod is neither finished nor being deleted.
#[must_use]
pub fn is_live(pod: &v1::Pod) -> bool {
    let is_finished = matches!(pod.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed);
    pod.deletion_time.is_none() && !is_finished
}

/// The live pods of a workload on one node.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivePods {
    /// How many there are.
    pub count: usize,
    /// The number of the last cache change of any of them.
    pub changed: u64,
}

/// See [`Store::own_pods`].
struct OwnPods<'a> {
    namespace: Option<&'a Namespace>,
    uid: &'a str,
}

impl CachedPods for OwnPods<'_> {
    fn exists(&self, pod_name: &str) -> bool {
        self.namespace
            .and_then(|namespace| namespace.pods.get(pod_name))
            .is_some_and(|pod| pod.owner() == Some(self.uid))
    }

    fn deleting(&self) -> HashMap<String, bool> {
        let pods = self.namespace.map(|namespace| &namespace.pods);
        let owned = pods.and_then(|pods| pods.owned(self.uid));
        let orphans = pods.and_then(Pods::orphans);
        owned
            .into_iter()
            .chain(orphans)
            .flat_map(Buckets::iter)
            .map(|stored| stored.decode_own::<v1::Pod>())
            .map(|pod| (pod.uid, pod.deletion_time.is_some()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
