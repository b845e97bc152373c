//! The caches: workloads by key and controller, pods by their controller, nodes, revisions, and the resourceVersion that
//! each watch has reached.
//!
//! Applying an event returns the transitions that it caused; [`Kind::effects`](crate::kind::Kind::effects) derives from these which workloads to
//! enqueue. Pods controlled by another kind are not cached: no plan reads them (D-3), and most pods of a cluster are of
//! that kind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{Delta, Resource, log_limiter::LogLimiter};
use nodewise_projection::{
    Key, KeySet, Node, Revision, RolloutPolicy, Selector, Workload,
    buckets::{EncodedNode, NodeBuckets, Placement},
};
use nodewise_proto::v1;

use crate::event::ClusterEvent;

mod cached;
mod changes;
mod cuts;
mod keys;
mod kinds;
mod labels;
mod layout;
mod live;
mod own_pods;
mod parts;
mod pods;
mod policies;
mod related;
mod revisions;
mod sealed;
mod sent;
mod staged;
mod stalled;
mod unready;
mod workloads;

use cached::Cached;
use changes::Changes;
use cuts::Cuts;
use keys::Keys;
pub use kinds::{CachedKind, is_cached};
use labels::Labels;
use layout::Layout;
pub use own_pods::{LivePods, is_finished, is_live};
use parts::Parts;
use pods::Pods;
use policies::Policies;
pub(crate) use policies::bound;
pub(crate) use revisions::REVISION_BYTES;
use revisions::Revisions;
use staged::Pages;
pub use stalled::Stalled;
use unready::UnreadyPods;
use workloads::Workloads;

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
    Node(Box<Change<v1::Node>>),
    /// A revision.
    Revision(Change<Arc<Revision>>),
    /// A RolloutPolicy.
    Policy(Change<Arc<RolloutPolicy>>),
}

/// Called with each change, and with the caches after that change.
pub type Visit<'a> = &'a mut dyn FnMut(&Store, Transition);

/// The caches.
#[derive(Debug)]
pub struct Store {
    /// The kinds of workload that are cached.
    kinds: Vec<Resource>,
    /// Those of them whose plans are made from revisions.
    with_revisions: Vec<&'static str>,
    /// The other resources that are cached, of [`Resource::INPUTS`].
    inputs: Vec<Resource>,
    layout: Arc<Layout>,
    workloads: Workloads,
    policies: Policies,
    nodes: NodeBuckets,
    namespaces: HashMap<Arc<str>, Namespace>,
    /// Orphaned workloads that cannot be changed: the resourceVersion at which that was seen.
    sealed_workloads: HashMap<Key, String>,
    /// Metadata that several pods share.
    parts: Parts,
    /// The labels of nodes.
    labels: Labels,
    /// The label keys that are sent.
    keys: Keys,
    /// Objects of which not all labels are sent.
    cuts: Cuts,
    pages: Pages,
    /// Pages of a list of nodes that is not complete yet.
    node_pages: Vec<Vec<EncodedNode>>,
    /// Pages of a list of revisions that is not complete yet, by namespace.
    revision_pages: HashMap<String, Revisions>,
    changes: Changes,
    /// The uids of controllers of which [`Namespace::unready`] has changed.
    unready_changes: HashSet<Arc<str>>,
    /// Rate limit of the warning that a workload has too many revisions.
    pub too_many: LogLimiter<Key>,
    /// Rate limit of the warning that policies of a namespace are not kept.
    not_kept: LogLimiter<String>,
    /// By resource: the version that its watch has reached; `None` until the first list is complete.
    reached: HashMap<Resource, String>,
    /// The resourceVersions have restarted, and not every resource was listed since.
    is_relisting: bool,
    /// Resources that were not listed since it became unknown which objects there are.
    lost: HashSet<Resource>,
}

#[derive(Debug, Default)]
struct Namespace {
    pods: Pods,
    unready: UnreadyPods,
    revisions: Revisions,
    /// Revisions that cannot be changed: by name, the resourceVersion at which that was seen.
    sealed: HashMap<String, String>,
    /// The number of the last change of each revision, by name.
    revision_changes: HashMap<String, u64>,
}

impl Store {
    /// Creates empty caches for these kinds of workload, with pods in the buckets of their nodes, and for all that their plans
    /// may be made from. Nodes and pods are divided into this many buckets (at least 1).
    #[must_use]
    pub fn new(kinds: &[Resource], bucket_count: u32) -> Self {
        let bucket_count = bucket_count.max(1);
        let mut store = Self {
            kinds: Vec::new(),
            with_revisions: Vec::new(),
            inputs: Vec::new(),
            layout: Arc::new(Layout {
                bucket_count,
                by_name: Vec::new(),
            }),
            workloads: Workloads::default(),
            policies: Policies::default(),
            nodes: NodeBuckets::of_nodes(bucket_count),
            namespaces: HashMap::new(),
            sealed_workloads: HashMap::new(),
            parts: Parts::default(),
            labels: Labels::default(),
            keys: Keys::default(),
            cuts: Cuts::default(),
            pages: Pages::default(),
            node_pages: Vec::new(),
            revision_pages: HashMap::new(),
            changes: Changes::default(),
            unready_changes: HashSet::new(),
            too_many: LogLimiter::default(),
            not_kept: LogLimiter::default(),
            reached: HashMap::new(),
            is_relisting: false,
            lost: HashSet::new(),
        };
        for resource in kinds {
            store.add_kind(CachedKind {
                resource: *resource,
                reads: &Resource::INPUTS,
                pods: Some(Placement::Node),
            });
        }
        store
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
            ClusterEvent::Policies(delta) => self.apply_delta(Resource::ROLLOUT_POLICIES, delta, visit),
            ClusterEvent::PodPage { pods, is_first } => {
                if is_first {
                    self.pages.discard(&mut self.parts);
                }
                let pods = pods
                    .into_iter()
                    .filter(|pod| is_cached(&self.kinds, pod.projection.controller.as_ref()));
                self.pages
                    .add(pods, &mut self.keys, &mut self.parts, &self.layout);
            }
            ClusterEvent::NodePage { nodes, is_first } => {
                if is_first {
                    self.discard_node_pages();
                }
                // Not collected in place, which would keep the room of the decoded nodes.
                let mut page = Vec::with_capacity(nodes.len());
                page.extend(nodes.into_iter().map(|node| self.encode_node(node)));
                self.node_pages.push(page);
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
            ClusterEvent::Lost(resource) => {
                self.reached.remove(&resource);
                self.lost.insert(resource);
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
                self.lost.remove(&resource);
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
        self.sealed_workloads.clear();
        for namespace in self.namespaces.values_mut() {
            namespace.sealed.clear();
        }
    }

    /// A resource that was not listed since the resourceVersions have restarted, if there is one.
    #[must_use]
    pub fn relisting(&self) -> Option<Resource> {
        self.is_relisting.then(|| self.unsynced().next()).flatten()
    }

    /// One of these resources, if it is not known any more which objects of it there are.
    #[must_use]
    pub fn lost(&self, mut resources: impl Iterator<Item = Resource>) -> Option<Resource> {
        resources.find(|resource| self.lost.contains(resource))
    }

    /// Whether it is not known of some resource any more which objects there are.
    #[must_use]
    pub fn has_lost_any(&self) -> bool {
        !self.lost.is_empty()
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

    /// Whether all of these resources were listed.
    #[must_use]
    pub fn are_listed(&self, mut resources: impl Iterator<Item = Resource>) -> bool {
        resources.all(|resource| self.reached.contains_key(&resource))
    }

    /// The resourceVersion that the watch of a resource has reached; empty before its first list.
    #[must_use]
    pub fn reached(&self, resource: Resource) -> &str {
        self.reached.get(&resource).map_or("", String::as_str)
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
        kind: &'static str,
        namespace: &str,
        labels: &[v1::Label],
        known: Option<&KeySet>,
    ) -> Vec<&Arc<Workload>> {
        let matches = |selector: &Selector| match known {
            None => selector.matches(labels),
            Some(known) => !known.has(selector.keys()) || selector.matches_with_other_labels(labels),
        };
        let all = self.workloads.in_namespace(kind, namespace);
        all.filter(|workload| matches(&workload.selector)).collect()
    }

    /// Whether there is a node of this name.
    #[must_use]
    pub fn has_node(&self, name: &str) -> bool {
        self.nodes.get(name).is_some()
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

    /// The cached revision of this name: one that a workload controls, or an orphan.
    #[must_use]
    pub fn revision(&self, namespace: &str, name: &str) -> Option<&Arc<Revision>> {
        self.namespaces.get(namespace)?.revisions.get(name)
    }

    /// The number of buckets of nodes and pods.
    #[must_use]
    pub fn bucket_count(&self) -> u32 {
        self.layout.bucket_count
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
            Resource::ROLLOUT_POLICIES => self.policies.len(),
            kind => self.workloads.of_kind(kind.kind).count(),
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
        let kept = self.namespaces.get_mut(namespace)?;
        let pod = kept.pods.remove(name)?;
        if kept.unready.remove(&pod) {
            self.unready_changes.extend(pod.owner().map(Arc::from));
        }
        self.drop_if_empty(namespace);
        self.parts.release(&pod);
        self.changes.remove(Resource::PODS);
        Some(pod.pod())
    }

    fn remove_node(&mut self, name: &str) -> Option<v1::Node> {
        let node = self.nodes.remove(name)?;
        self.labels.release(&node);
        self.changes.remove(Resource::NODES);
        Some(node.node())
    }

    /// Encodes a node for the cache.
    fn encode_node(&mut self, node: Node) -> EncodedNode {
        let Node {
            resource_version,
            mut projection,
        } = node;
        let labels = std::mem::take(&mut projection.labels);
        let labels = self.labels.intern(labels, &projection.name);
        EncodedNode::of_node(projection, labels, &resource_version)
    }

    /// Discards the pages of a list of nodes that was given up.
    fn discard_node_pages(&mut self) {
        for node in std::mem::take(&mut self.node_pages).into_iter().flatten() {
            self.labels.release(&node);
        }
    }

    fn remove_workload(&mut self, key: &Key) -> Option<Arc<Workload>> {
        let old = self.workloads.remove(key)?;
        self.sealed_workloads.remove(key);
        self.keys.replace(Some(&old), None);
        if let Some(kept) = self.namespaces.get_mut(&key.namespace) {
            kept.pods.forget_selected(key);
        }
        if self.with_revisions.contains(&key.kind) {
            self.drop_unneeded(&key.namespace);
        }
        self.changes.remove_of(key.kind);
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

#[cfg(test)]
mod tests;
