//! What people want to know about pods, nodes and workloads, which no plan needs.

use std::collections::{HashMap, HashSet};

use nodewise_status::{NodeFacts, PodFacts, WorkloadFacts};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::kind::Kind;

/// The facts of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// By uid.
    pods: HashMap<String, PodFacts>,
    /// The uids of the pods that have a container that was restarted.
    restarted: HashSet<String>,
    /// By name.
    nodes: HashMap<String, NodeFacts>,
    /// By kind, namespace and name.
    workloads: HashMap<(Kind, String, String), WorkloadFacts>,
}

impl Facts {
    /// Reads an object.
    pub(super) fn add(&mut self, kind: Kind, json: &RawValue) {
        match kind {
            Kind::Pod => {
                let facts = PodFacts::of(json.get());
                if has_restarted(json) {
                    self.restarted.insert(facts.uid.clone());
                } else {
                    self.restarted.remove(&facts.uid);
                }
                self.pods.insert(facts.uid.clone(), facts);
            }
            Kind::Node => {
                let facts = NodeFacts::of(json.get());
                self.nodes.insert(facts.name.clone(), facts);
            }
            Kind::DaemonSet | Kind::ReplicaSet | Kind::Deployment => {
                let facts = WorkloadFacts::of(kind.name(), json.get());
                let key = (kind, facts.namespace.clone(), facts.name.clone());
                self.workloads.insert(key, facts);
            }
            Kind::ControllerRevision | Kind::RolloutPolicy => {}
        }
    }

    pub(super) fn forget_pod(&mut self, uid: &str) {
        self.pods.remove(uid);
        self.restarted.remove(uid);
    }

    /// A pod by its uid.
    pub(crate) fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
    }

    /// Whether a container of a pod was restarted.
    pub(crate) fn has_restarted(&self, uid: &str) -> bool {
        self.restarted.contains(uid)
    }

    /// The uid of a pod.
    pub(crate) fn uid_of_pod(&self, namespace: &str, name: &str) -> Option<&str> {
        let mut pods = self.pods.values();
        let found = pods.find(|pod| (&*pod.namespace, &*pod.name) == (namespace, name));
        found.map(|pod| &*pod.uid)
    }

    /// A node by its name.
    pub(crate) fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    /// A workload.
    pub(crate) fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<&WorkloadFacts> {
        self.workloads.get(&(kind, namespace.to_owned(), name.to_owned()))
    }
}

/// The part of a pod that counts restarts. The protocol's projection has them for pods of ReplicaSets only.
#[derive(Default, Deserialize)]
struct Pod {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    container_statuses: Option<Vec<Container>>,
    init_container_statuses: Option<Vec<Container>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    restart_count: Option<u64>,
}

/// Whether a container of a pod was restarted. A status that cannot be read says nothing.
fn has_restarted(pod: &RawValue) -> bool {
    let pod: Pod = serde_json::from_str(pod.get()).unwrap_or_default();
    let Some(status) = pod.status else {
        return false;
    };
    let lists = [status.container_statuses, status.init_container_statuses];
    let mut containers = lists.into_iter().flatten().flatten();
    containers.any(|container| container.restart_count.is_some_and(|count| count > 0))
}
