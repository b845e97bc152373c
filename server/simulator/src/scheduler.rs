//! The scheduler: binds pods.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Cluster, ObjectKey, Resource,
    pod::{self, DUE},
};

impl Cluster {
    /// Binds every pod that is on no node to the node that its affinity names, if that node exists. Pods of ReplicaSets go to
    /// the nodes in turn.
    pub fn bind_pods(&mut self) {
        let is_unbound = |pod: &Value| pod["spec"]["nodeName"].is_null() && !pod::is_deleting(pod);
        for (key, pod) in self.pods_where(is_unbound) {
            self.bind(&key, Arc::unwrap_or_clone(pod));
        }
    }

    /// Binds a pod as [`Self::bind_pods`] does. One that does not exist, or is bound, stays as it is.
    pub fn bind_pod(&mut self, key: &ObjectKey) {
        if let Some(pod) = self.get(key).filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let pod = pod.clone();
            self.bind(key, pod);
        }
    }

    /// Binds a pod to the node that its affinity names, if that node exists; a pod of a ReplicaSet to the next node.
    pub(crate) fn bind(&mut self, key: &ObjectKey, mut pod: Value) {
        let meant_for = pod::node(&pod)
            .filter(|node| self.node(node).is_some())
            .map(str::to_owned);
        let Some(node) = meant_for.or_else(|| self.next_node(&pod)) else {
            return;
        };
        pod["spec"]["nodeName"] = json!(node);
        pod["status"][DUE] = json!(self.tick + self.config.start_ticks);
        self.put_pod(key, pod);
    }

    /// The node for a pod of a ReplicaSet: all nodes without a taint, one after the other.
    fn next_node(&mut self, pod: &Value) -> Option<String> {
        if pod::owner_kind(pod) != Some("ReplicaSet") {
            return None;
        }
        let is_tainted = |node: &Value| {
            node["spec"]["taints"]
                .as_array()
                .is_some_and(|taints| !taints.is_empty())
        };
        let nodes = || self.list(Resource::Nodes).filter(|node| !is_tainted(node));
        let count = nodes().count().max(1);
        let node = nodes().nth(self.placed % count)?;
        let name = node["metadata"]["name"].as_str()?.to_owned();
        self.placed += 1;
        Some(name)
    }
}
