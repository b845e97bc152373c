//! The kubelets: start, stop and fail pods.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Cluster, ObjectKey,
    objects::seconds,
    pod::{self, DUE},
    refusal::Refusal,
    users::NOT_READY,
};

impl Cluster {
    /// Makes a pod ready or not ready. A finished pod does not change, nor does one that is so already.
    ///
    /// Fails if the pod does not exist.
    pub fn set_ready(&mut self, key: &ObjectKey, ready: bool) -> Result<(), Refusal> {
        let pod = self.objects.find(key)?;
        if !pod::is_finished(pod) && pod::is_ready(pod) != ready {
            let pod = pod.clone();
            self.write_ready(key, pod, ready);
        }
        Ok(())
    }

    /// Makes a pod fail. A finished pod does not change.
    ///
    /// Fails if the pod does not exist.
    pub fn fail_pod(&mut self, key: &ObjectKey) -> Result<(), Refusal> {
        let pod = self.objects.find(key)?;
        if !pod::is_finished(pod) {
            let pod = pod.clone();
            self.write_status(key, pod, "Failed", false);
        }
        Ok(())
    }

    /// Ends all graceful deletions: the pods that are being deleted are gone.
    pub fn finish_deletions(&mut self) {
        for (key, _) in self.pods_where(pod::is_deleting) {
            self.remove_pod(&key);
        }
    }

    /// The pods that a tick changes.
    pub(crate) fn pods_with_work(&self) -> Vec<(ObjectKey, Arc<Value>)> {
        self.pods_where(|pod| self.has_work(pod))
    }

    pub(crate) fn has_work(&self, pod: &Value) -> bool {
        let due = pod["status"][DUE].as_u64().is_none_or(|due| due <= self.tick);
        match (pod::is_deleting(pod), pod["spec"]["nodeName"].as_str()) {
            (true, node) => due && node.is_none_or(|node| !self.is_broken(node)),
            (false, Some(node)) => {
                let can_start = !pod::is_finished(pod) && !pod::is_ready(pod);
                due && can_start && !self.is_broken(node) && self.node(node).is_some()
            }
            (false, None) => true,
        }
    }

    pub(crate) fn is_broken(&self, node: &str) -> bool {
        let taints = self.node(node).and_then(|node| node["spec"]["taints"].as_array());
        taints
            .into_iter()
            .flatten()
            .any(|taint| taint["key"] == NOT_READY)
    }

    pub(crate) fn write_ready(&mut self, key: &ObjectKey, pod: Value, ready: bool) {
        self.write_status(key, pod, "Running", ready);
    }

    fn write_status(&mut self, key: &ObjectKey, mut pod: Value, phase: &str, ready: bool) {
        let status = if ready { "True" } else { "False" };
        pod["status"]["phase"] = json!(phase);
        pod["status"]["conditions"] =
            json!([{"type": "Ready", "status": status, "lastTransitionTime": seconds(self.now)}]);
        self.put_pod(key, pod);
    }

    /// Starts a pod's graceful deletion.
    pub(crate) fn begin_deletion(&mut self, key: &ObjectKey, mut pod: Value) {
        pod["metadata"]["deletionTimestamp"] = json!(seconds(self.now));
        pod["status"][DUE] = json!(self.tick + self.config.stop_ticks);
        self.put_pod(key, pod);
    }

    /// Lets the pods of a node start anew.
    pub(crate) fn restart_pods(&mut self, node: &str) {
        for (key, pod) in self.pods_where(|pod| pod["spec"]["nodeName"] == node) {
            let mut pod = Arc::unwrap_or_clone(pod);
            pod["status"][DUE] = json!(self.tick + self.config.start_ticks);
            self.put_pod(&key, pod);
        }
    }
}
