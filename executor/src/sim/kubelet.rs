//! The simulated scheduler and kubelets: bind, start and stop pods, and break nodes.

use jiff::Timestamp;
use nodewise_runtime::{
    Resource,
    actuator::{ActuatorError, ObjectKey},
};
use serde_json::{Value, json};

use super::{State, objects::seconds};

/// The taint of a node that is not ready. It keeps new pods away and does not evict daemon pods.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The status field in which the simulated kubelet stores the tick at which a pod becomes ready or goes. Not part of
/// the API.
const DUE: &str = "dueTick";

/// Whether a pod has a Ready condition that is true.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

impl State {
    /// Runs one step of the scheduler and of every kubelet.
    pub(super) fn step(&mut self, now: Timestamp) {
        self.tick += 1;
        self.now = now;
        let due: Vec<Value> = self
            .objects
            .all(Resource::PODS)
            .filter(|pod| self.has_work(pod))
            .cloned()
            .collect();
        for pod in due {
            let key = pod_key(&pod);
            if pod["metadata"]["deletionTimestamp"].is_string() {
                self.remove_pod(&key);
            } else if pod["spec"]["nodeName"].is_string() {
                self.set_ready(&key, pod, true);
            } else {
                self.bind(&key, pod);
            }
        }
    }

    /// Whether this tick changes a pod.
    fn has_work(&self, pod: &Value) -> bool {
        let due = pod["status"][DUE].as_u64().is_none_or(|due| due <= self.tick);
        match (
            pod["metadata"]["deletionTimestamp"].is_string(),
            pod["spec"]["nodeName"].as_str(),
        ) {
            (true, node) => due && node.is_none_or(|node| !self.is_broken(node)),
            (false, Some(node)) => {
                due && !is_ready(pod) && !self.is_broken(node) && self.node(node).is_some()
            }
            (false, None) => true,
        }
    }

    fn node(&self, name: &str) -> Option<&Value> {
        self.objects.get(&ObjectKey::new(Resource::NODES, "", name))
    }

    fn is_broken(&self, node: &str) -> bool {
        let taints = self.node(node).and_then(|node| node["spec"]["taints"].as_array());
        taints
            .into_iter()
            .flatten()
            .any(|taint| taint["key"] == NOT_READY)
    }

    /// Binds a pod to the node that its affinity names, if that node exists.
    fn bind(&mut self, key: &ObjectKey, mut pod: Value) {
        let Some(node) = nodewise_projection::pod(&pod)
            .ok()
            .map(|pod| pod.target_node_name)
            .filter(|node| self.node(node).is_some())
        else {
            return;
        };
        pod["spec"]["nodeName"] = json!(node);
        pod["status"][DUE] = json!(self.tick + self.config.start_ticks);
        self.put_pod(key, pod);
    }

    fn set_ready(&mut self, key: &ObjectKey, mut pod: Value, ready: bool) {
        let status = if ready { "True" } else { "False" };
        pod["status"]["phase"] = json!("Running");
        pod["status"]["conditions"] =
            json!([{"type": "Ready", "status": status, "lastTransitionTime": seconds(self.now)}]);
        self.put_pod(key, pod);
    }

    /// Starts a pod's graceful deletion, or removes the pod at once if no kubelet runs it.
    pub(super) fn delete_pod(&mut self, key: &ObjectKey, mut pod: Value) {
        if pod["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        if let Some(owner) = owner(&pod) {
            self.tally.deleting(owner);
        }
        if pod["spec"]["nodeName"].is_null() {
            self.remove_pod(key);
            return;
        }
        pod["metadata"]["deletionTimestamp"] = json!(seconds(self.now));
        pod["status"][DUE] = json!(self.tick + self.config.stop_ticks);
        self.put_pod(key, pod);
    }

    /// Stores a pod and updates the counts. Only pods that were stored before are passed, so each can be parsed.
    pub(super) fn put_pod(&mut self, key: &ObjectKey, pod: Value) {
        self.count_pod(key, &pod, true);
        let _ = self.objects.put(key, pod);
    }

    fn remove_pod(&mut self, key: &ObjectKey) {
        if let Some(pod) = self.objects.remove(key) {
            self.count_pod(key, &pod, false);
        }
    }

    /// Updates the counts for a pod that exists or was removed.
    pub(super) fn count_pod(&mut self, key: &ObjectKey, pod: &Value, present: bool) {
        if let (Some(owner), Some(node)) = (owner(pod), node_of(pod)) {
            self.tally
                .pod_changed(owner, &node, &key.name, present.then_some(pod));
        }
    }

    pub(super) fn break_node(&mut self, name: &str) -> Result<(), ActuatorError> {
        let taint = json!([{"key": NOT_READY, "effect": "NoSchedule"}]);
        self.set_node(name, taint, "False")?;
        for pod in self.pods_on(name) {
            if is_ready(&pod) {
                self.set_ready(&pod_key(&pod), pod, false);
            }
        }
        Ok(())
    }

    pub(super) fn recover_node(&mut self, name: &str) -> Result<(), ActuatorError> {
        self.set_node(name, json!([]), "True")?;
        for mut pod in self.pods_on(name) {
            pod["status"][DUE] = json!(self.tick + self.config.start_ticks);
            self.put_pod(&pod_key(&pod), pod);
        }
        Ok(())
    }

    fn set_node(&mut self, name: &str, taints: Value, ready: &str) -> Result<(), ActuatorError> {
        let key = ObjectKey::new(Resource::NODES, "", name);
        let mut node = self.objects.find(&key)?.clone();
        node["spec"]["taints"] = taints;
        node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        self.objects.put(&key, node)
    }

    fn pods_on(&self, node: &str) -> Vec<Value> {
        self.objects
            .all(Resource::PODS)
            .filter(|pod| pod["spec"]["nodeName"] == node)
            .cloned()
            .collect()
    }
}

/// The uid of a pod's controller.
pub(super) fn owner(pod: &Value) -> Option<&str> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// The node that a pod is on or is meant for.
pub(super) fn node_of(pod: &Value) -> Option<String> {
    let pod = nodewise_projection::pod(pod).ok()?;
    Some(if pod.node_name.is_empty() {
        pod.target_node_name
    } else {
        pod.node_name
    })
}

fn pod_key(pod: &Value) -> ObjectKey {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectKey {
        resource: Resource::PODS,
        namespace: text("namespace"),
        name: text("name"),
    }
}
