//! What people want to know about pods, nodes and workloads, which no plan needs.

use std::collections::HashMap;

use nodewise_status::{NodeFacts, PodFacts, WorkloadFacts};
use serde_json::value::RawValue;

use crate::kind::Kind;

/// The facts of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// By uid.
    pods: HashMap<String, PodFacts>,
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
            Kind::ControllerRevision => {}
        }
    }

    pub(super) fn forget_pod(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// A pod by its uid.
    pub(crate) fn pod(&self, uid: &str) -> Option<&PodFacts> {
        self.pods.get(uid)
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
