//! The caches of an executor in a very large cluster, filled as its watches fill them. The objects are made one by one: what is in
//! memory at the same time is what the executor has in memory, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nodewise_executor::daemon_set::DaemonSets;
use nodewise_executor::deployment::Deployments;
use nodewise_executor::replica_set::{REPLICA_SETS, ReplicaSets};
use nodewise_projection::{Node, Pod, Revision, Workload};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::cached_kinds;
use nodewise_runtime::store::{CachedKind, Store};

use super::manifests::{CREATED, REPLICA_SET_UID, node, replica_set};
use super::replica_set::{NAME, template};
use super::{BUCKETS, Caches, Cluster, DAEMON_SETS, PodOnNode, listed};

/// The pods of a ReplicaSet.
const REPLICAS: usize = 50;
/// The pods, or the nodes, that a watch passes on at a time: about 1 MiB of pods.
const PAGE: usize = 150;

/// The size of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct LargeSize {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods. Those that are not of a DaemonSet are of ReplicaSets with 50 pods each.
    pub pods: usize,
    /// The number of DaemonSets. Each has a pod on every node.
    pub daemon_sets: usize,
}

/// The time that a list of objects took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// From the text of an object to its projection.
    pub reading: Duration,
    /// From the projections to the caches.
    pub caching: Duration,
}

impl Spent {
    fn reading<T>(&mut self, read: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let read = read();
        self.reading += begun.elapsed();
        read
    }

    fn caching(&mut self, cache: impl FnOnce()) {
        let begun = Instant::now();
        cache();
        self.caching += begun.elapsed();
    }
}

/// Caches that are being filled.
#[derive(Debug)]
pub struct Filling {
    caches: Caches,
    size: LargeSize,
    /// The text of a pod of a ReplicaSet, with placeholders.
    template: String,
}

impl Filling {
    /// Caches with all DaemonSets, revisions and ReplicaSets, without nodes and pods.
    ///
    /// # Errors
    /// The pods do not suffice for the DaemonSets, or Nodewise's first plans do not create their pods.
    pub fn new(size: LargeSize) -> Result<Self> {
        ensure!(size.daemon_sets > 0, "there is no DaemonSet to plan for");
        ensure!(size.nodes >= REPLICAS, "there must be {REPLICAS} nodes");
        let cluster = Arc::new(Cluster::settled(size.nodes, size.daemon_sets)?);
        let daemon_sets = cluster
            .workloads
            .iter()
            .map(|workload| Workload::daemon_set_from_json(&workload.daemon_set));
        let workloads: Vec<_> = daemon_sets.collect::<Result<_, _>>().context("a DaemonSet")?;
        let revisions = cluster.workloads.iter().map(|workload| -> Result<_> {
            Ok(Revision::from_text(&serde_json::to_string(&workload.revision)?)?)
        });
        let mut store = Store::new(&[], BUCKETS);
        let kinds = [
            cached_kinds::<DaemonSets>(),
            cached_kinds::<ReplicaSets>(),
            cached_kinds::<Deployments>(),
        ]
        .concat();
        for kind in &kinds {
            store.add_kind(*kind);
        }
        let others = kinds.iter().map(|CachedKind { resource, .. }| *resource);
        let others = others.filter(|resource| ![DAEMON_SETS, REPLICA_SETS].contains(resource));
        let empty = others.map(|resource| ClusterEvent::Workloads(resource, listed(Vec::new())));
        let events = [
            ClusterEvent::Workloads(DAEMON_SETS, listed(workloads.clone())),
            ClusterEvent::Workloads(REPLICA_SETS, listed(replica_sets(size)?)),
            ClusterEvent::Revisions(listed(revisions.collect::<Result<_>>().context("a revision")?)),
            ClusterEvent::Policies(listed(Vec::new())),
        ];
        for event in events.into_iter().chain(empty) {
            store.apply_each(event, &mut |_, _| ());
        }
        let caches = Caches {
            cluster,
            store,
            workloads,
            events: 0,
            replaced: None,
            governing: None,
        };
        Ok(Self {
            caches,
            size,
            template: template()?,
        })
    }

    /// Lists all nodes, a few at a time.
    ///
    /// # Errors
    /// A node is not one that an apiserver would serve.
    pub fn add_nodes(&mut self) -> Result<Spent> {
        let texts = (0..self.size.nodes).map(|number| node(number).to_string());
        let read = |text: &str| Node::from_text(text).context("a node");
        let page = |nodes, is_first| ClusterEvent::NodePage { nodes, is_first };
        self.list(texts, read, page, |last| ClusterEvent::Nodes(listed(last)))
    }

    /// Lists all pods, a few at a time.
    ///
    /// # Errors
    /// A pod is not one that an apiserver would serve.
    pub fn add_pods(&mut self) -> Result<Spent> {
        let cluster = Arc::clone(&self.caches.cluster);
        let template = std::mem::take(&mut self.template);
        let of_daemon_sets = cluster.pods(|workload, node| workload.pod(node, true, CREATED));
        let texts = of_daemon_sets.chain(other_pods(self.size, &template));
        let read = |text: &str| Pod::from_text(text).context("a pod");
        let page = |pods, is_first| ClusterEvent::PodPage { pods, is_first };
        self.list(texts, read, page, |last| ClusterEvent::Pods(listed(last)))
    }

    /// Reads the objects with these texts, and applies an event for each page and one for the last objects.
    fn list<T>(
        &mut self,
        texts: impl Iterator<Item = String>,
        read: impl Fn(&str) -> Result<T>,
        page_event: impl Fn(Vec<T>, bool) -> ClusterEvent,
        last_event: impl Fn(Vec<T>) -> ClusterEvent,
    ) -> Result<Spent> {
        let mut spent = Spent::default();
        let (mut page, mut is_first) = (Vec::with_capacity(PAGE), true);
        for text in texts {
            page.push(spent.reading(|| read(&text))?);
            if page.len() == PAGE {
                let objects = std::mem::replace(&mut page, Vec::with_capacity(PAGE));
                spent.caching(|| self.apply(page_event(objects, is_first)));
                is_first = false;
            }
        }
        spent.caching(|| self.apply(last_event(page)));
        Ok(spent)
    }

    fn apply(&mut self, event: ClusterEvent) {
        self.caches.store.apply_each(event, &mut |_, _| ());
    }

    /// The caches. They plan for the first DaemonSet.
    #[must_use]
    pub fn caches(self) -> Caches {
        self.caches
    }
}

impl LargeSize {
    /// The number of pods that are not of a DaemonSet.
    fn others(self) -> Result<usize> {
        let of_daemon_sets = self.nodes * self.daemon_sets;
        self.pods
            .checked_sub(of_daemon_sets)
            .with_context(|| format!("{of_daemon_sets} pods are of DaemonSets"))
    }
}

/// The name and the uid of a ReplicaSet.
fn names(number: usize) -> [String; 2] {
    [
        format!("web-{number:05}-5d8c7f9b6d"),
        format!("{number:08x}-{}", &REPLICA_SET_UID[9..]),
    ]
}

fn replica_sets(size: LargeSize) -> Result<Vec<Workload>> {
    let others = size.others()?;
    let all = (0..others.div_ceil(REPLICAS)).map(|number| {
        let pods = REPLICAS.min(others - number * REPLICAS);
        let [name, uid] = names(number);
        let mut object = replica_set(&name, pods, pods);
        object["metadata"]["uid"] = uid.into();
        Ok(Workload::replica_set_from_text(&object.to_string())?)
    });
    all.collect::<Result<_>>().context("a ReplicaSet")
}

/// The texts of the pods that are not of a DaemonSet.
fn other_pods(size: LargeSize, template: &str) -> impl Iterator<Item = String> {
    let others = size.others().unwrap_or_default();
    (0..others.div_ceil(REPLICAS)).flat_map(move |number| {
        let [name, uid] = names(number);
        let template = template.replace(NAME, &name).replace(REPLICA_SET_UID, &uid);
        let first = number * REPLICAS;
        (first..others.min(first + REPLICAS)).map(move |pod| {
            let pod = PodOnNode {
                workload: size.daemon_sets + number,
                name: &name,
                node: pod % size.nodes,
            };
            pod.text(&template, true, CREATED)
        })
    })
}

#[cfg(test)]
mod tests {
    use nodewise_proto::bucket::Receiver;
    use nodewise_proto::v1;

    use super::super::planned;
    use super::*;

    const SIZE: LargeSize = LargeSize {
        nodes: 60,
        pods: 250,
        daemon_sets: 2,
    };

    #[test]
    fn caches_have_all_pods_of_all_kinds() -> Result<()> {
        let mut filling = Filling::new(SIZE)?;
        filling.add_nodes()?;
        filling.add_pods()?;
        let mut caches = filling.caches();
        let store = &caches.store;
        assert_eq!(store.unsynced().count(), 0);
        let pods = |kind: &'static str| -> Vec<usize> {
            let workloads = store.workloads_of(kind);
            let mut pods: Vec<_> = workloads
                .map(|workload| store.controlled_pods(workload).count())
                .collect();
            pods.sort_unstable();
            pods
        };
        assert_eq!(pods("DaemonSet"), [60, 60]);
        assert_eq!(pods("ReplicaSet"), [30, 50, 50]);
        assert_eq!(
            planned(caches.request(0, &Receiver::EMPTY))?.verdict(),
            v1::Verdict::Noop
        );
        caches.set_ready(0, 59, false)?;
        assert_eq!(
            planned(caches.request(0, &Receiver::EMPTY))?.verdict(),
            v1::Verdict::Apply
        );
        Ok(())
    }

    #[test]
    fn too_few_pods_are_an_error() {
        let size = LargeSize { pods: 119, ..SIZE };
        let error = Filling::new(size).expect_err("too few").to_string();
        assert!(error.contains("120 pods are of DaemonSets"), "{error}");
    }
}
