//! The workloads whose status may have changed with an object.

use std::collections::HashSet;

use kube::api::DynamicObject;

use super::{Cluster, Served};
use crate::kind::Kind;

/// What has changed.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The uids of workloads, and of their ReplicaSets.
    uids: HashSet<String>,
    /// The namespaces in which an object without controller has changed. Any workload there may adopt it.
    namespaces: HashSet<String>,
    /// Whether a node has changed in what plans or people see.
    nodes: bool,
}

impl Touched {
    /// Whether a node has changed.
    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes
    }

    /// Whether the status of a workload may have changed.
    pub(crate) fn has(&self, cluster: &Cluster, workload: &Served) -> bool {
        let has = |one: &Served| self.uids.contains(&one.uid);
        let is_own = |set: &&Served| set.controller.as_deref() == Some(&workload.uid);
        has(workload)
            || self.namespaces.contains(&workload.namespace)
            || match workload.kind {
                Kind::DaemonSet => self.nodes,
                Kind::Deployment => cluster
                    .workloads_in(Kind::ReplicaSet, &workload.namespace)
                    .filter(is_own)
                    .any(has),
                _ => false,
            }
    }

    /// An object has been added or replaced.
    pub(super) fn add(&mut self, kind: Kind, object: &DynamicObject) {
        let metadata = &object.metadata;
        let mut owners = metadata.owner_references.iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        if kind == Kind::Node {
            self.nodes = true;
        }
        if kind.is_workload() {
            self.uids.extend(metadata.uid.clone());
        }
        match controller {
            Some(controller) => {
                self.uids.insert(controller.uid.clone());
            }
            // A policy may rule any DaemonSet of its namespace, and before a change it may have ruled another one.
            None if matches!(
                kind,
                Kind::Pod | Kind::ReplicaSet | Kind::ControllerRevision | Kind::RolloutPolicy
            ) =>
            {
                self.namespaces.extend(metadata.namespace.clone());
            }
            None => {}
        }
    }

    /// An object is about to be removed or replaced: whoever controlled it must learn of it.
    pub(super) fn before_removal(&mut self, cluster: &Cluster, kind: Kind, namespace: &str, name: &str) {
        let controller = match kind {
            Kind::Pod => {
                let mut pods = cluster.pods_in(namespace).iter().map(|pod| &pod.object);
                let pod = pods.find(|pod| pod.name == name);
                pod.and_then(|pod| pod.controller.as_ref())
                    .map(|owner| owner.uid.clone())
            }
            Kind::ReplicaSet => {
                let mut sets = cluster.workloads_in(kind, namespace);
                sets.find(|set| set.name == name)
                    .and_then(|set| set.controller.clone())
            }
            Kind::ControllerRevision => {
                let mut revisions = cluster.revisions_in(namespace).iter();
                revisions
                    .find(|one| one.name == name)
                    .and_then(|one| one.controller.clone())
            }
            Kind::RolloutPolicy => {
                self.namespaces.insert(namespace.to_owned());
                None
            }
            Kind::DaemonSet | Kind::Deployment | Kind::Node => None,
        };
        self.uids.extend(controller);
    }

    /// A node is gone.
    pub(super) fn all_nodes(&mut self) {
        self.nodes = true;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_touches_the_workloads_of_its_namespace() {
        let dump = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "logging", "uid": "u"}},
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "other", "uid": "v"}},
        ]});
        let cluster = Cluster::read_text("dump", dump.to_string().into_bytes()).expect("a dump");
        let policy = json!({"apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "agents", "namespace": "logging"}});
        let policy: DynamicObject = serde_json::from_value(policy).expect("an object");
        let mut changed = Touched::default();
        changed.add(Kind::RolloutPolicy, &policy);
        let mut gone = Touched::default();
        gone.before_removal(&cluster, Kind::RolloutPolicy, "logging", "agents");
        for touched in [changed, gone] {
            let of = |namespace: &str| {
                let mut found = cluster.workloads_in(Kind::DaemonSet, namespace);
                touched.has(&cluster, found.next().expect("a DaemonSet"))
            };
            assert!(of("logging") && !of("other"), "{touched:?}");
        }
    }
}
