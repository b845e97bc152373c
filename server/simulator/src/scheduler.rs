//! The scheduler: binds pods.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Cluster, ObjectKey, kubelet::DUE, pod};

impl Cluster {
    /// Binds every pod that is on no node to the node that its affinity names, if that node exists.
    pub fn bind_pods(&mut self) {
        let is_unbound = |pod: &Value| pod["spec"]["nodeName"].is_null() && !pod::is_deleting(pod);
        for (key, pod) in self.pods_where(is_unbound) {
            self.bind(&key, Arc::unwrap_or_clone(pod));
        }
    }

    /// Binds a pod to the node that its affinity names, if that node exists.
    pub(crate) fn bind(&mut self, key: &ObjectKey, mut pod: Value) {
        let Some(node) = pod::node(&pod)
            .filter(|node| self.node(node).is_some())
            .map(str::to_owned)
        else {
            return;
        };
        pod["spec"]["nodeName"] = json!(node);
        pod["status"][DUE] = json!(self.tick + self.config.start_ticks);
        self.put_pod(key, pod);
    }
}
