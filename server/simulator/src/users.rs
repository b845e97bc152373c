//! What people and cloud providers do: workloads and nodes come, change and go.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{Cluster, ObjectKey, Resource, objects::metadata, pod, refusal::Refusal};

/// The annotation that counts changes of the template (D-118).
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// The taint of a node that is not ready. It keeps new pods away and does not evict daemon pods.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Cluster {
    /// Adds a node that is ready. A node of the same name is replaced.
    pub fn add_node(&mut self, name: &str, labels: &[(&str, &str)]) {
        let labels: Map<String, Value> = labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        self.objects.take_out(&ObjectKey::new(Resource::Nodes, "", name));
        // This manifest is always valid.
        let _ = self.create(Resource::Nodes, "", node);
        self.counter.add_node(name);
    }

    /// Removes a node. Its pods stay until someone deletes them.
    pub fn remove_node(&mut self, name: &str) {
        self.objects.remove(&ObjectKey::new(Resource::Nodes, "", name));
        self.counter.remove_node(name);
    }

    /// Removes the pods on or for nodes that do not exist, as the garbage collector of pods does.
    pub fn remove_pods_of_missing_nodes(&mut self) {
        let is_lost = |pod: &Value| pod::node(pod).is_some_and(|node| self.node(node).is_none());
        for (key, _) in self.pods_where(is_lost) {
            self.remove_pod(&key);
        }
    }

    /// Replaces the taints of a node.
    ///
    /// Fails if the node does not exist.
    pub fn set_taints(&mut self, name: &str, taints: Value) -> Result<(), Refusal> {
        let key = ObjectKey::new(Resource::Nodes, "", name);
        let mut node = self.objects.find(&key)?.clone();
        node["spec"]["taints"] = taints;
        self.validated(Resource::Nodes, &node)?;
        self.objects.put(&key, node);
        Ok(())
    }

    /// Makes a node not ready, with the matching taint. Its pods become not ready and stay.
    ///
    /// Fails if the node does not exist.
    pub fn break_node(&mut self, name: &str) -> Result<(), Refusal> {
        let taint = json!([{"key": NOT_READY, "effect": "NoSchedule"}]);
        self.set_node(name, taint, "False")?;
        for (key, pod) in self.pods_where(|pod| pod["spec"]["nodeName"] == name && pod::is_ready(pod)) {
            self.write_ready(&key, Arc::unwrap_or_clone(pod), false);
        }
        Ok(())
    }

    /// Makes a node ready again. Its pods become ready as if they had just been started.
    ///
    /// Fails if the node does not exist.
    pub fn recover_node(&mut self, name: &str) -> Result<(), Refusal> {
        self.set_node(name, json!([]), "True")?;
        self.restart_pods(name);
        Ok(())
    }

    fn set_node(&mut self, name: &str, taints: Value, ready: &str) -> Result<(), Refusal> {
        let key = ObjectKey::new(Resource::Nodes, "", name);
        let mut node = self.objects.find(&key)?.clone();
        node["spec"]["taints"] = taints;
        node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        self.objects.put(&key, node);
        Ok(())
    }

    /// Creates a DaemonSet from its manifest and sets the defaults that plans rely on (D-114).
    pub fn create_daemon_set(&mut self, mut manifest: Value) -> Result<ObjectKey, Refusal> {
        let namespace = manifest["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default")
            .to_owned();
        let metadata = metadata(&mut manifest)?;
        metadata["generation"] = json!(1);
        set_template_generation(metadata, 1);
        default_daemon_set(&mut manifest);
        let key = self.create(Resource::DaemonSets, &namespace, manifest)?;
        self.counter.read_strategy(self.objects.find(&key)?);
        Ok(key)
    }

    /// Changes a DaemonSet's spec. Its generation increases if anything changed, its template generation if the template did
    /// (D-118).
    pub fn update_daemon_set(
        &mut self,
        key: &ObjectKey,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Refusal> {
        self.update_spec(key, change, default_daemon_set, |before, after| {
            if after["spec"]["template"] == before["spec"]["template"] {
                return Ok(());
            }
            let metadata = metadata(after)?;
            let generation = metadata["annotations"][TEMPLATE_GENERATION]
                .as_str()
                .and_then(|text| text.parse().ok());
            set_template_generation(metadata, generation.unwrap_or(0) + 1);
            Ok(())
        })?;
        self.counter.read_strategy(self.objects.find(key)?);
        Ok(())
    }
}

impl Cluster {
    /// Creates a Deployment from its manifest and sets the defaults that plans rely on.
    pub fn create_deployment(&mut self, mut manifest: Value) -> Result<ObjectKey, Refusal> {
        let namespace = manifest["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default")
            .to_owned();
        metadata(&mut manifest)?["generation"] = json!(1);
        default_deployment(&mut manifest);
        let key = self.create(Resource::Deployments, &namespace, manifest)?;
        self.counter.replicas.read_replicas(self.objects.find(&key)?);
        Ok(key)
    }

    /// Changes a Deployment's spec. Its generation increases if anything changed.
    pub fn update_deployment(
        &mut self,
        key: &ObjectKey,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Refusal> {
        self.update_spec(key, change, default_deployment, |_, _| Ok(()))?;
        self.counter.replicas.read_replicas(self.objects.find(key)?);
        Ok(())
    }

    /// Changes the spec of an object and sets its defaults. If anything changed, the generation increases, and `changed` gets the
    /// object before and after.
    fn update_spec(
        &mut self,
        key: &ObjectKey,
        change: impl FnOnce(&mut Value),
        set_defaults: fn(&mut Value),
        changed: impl FnOnce(&Value, &mut Value) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let before = self.objects.find(key)?;
        let mut after = before.clone();
        change(&mut after["spec"]);
        set_defaults(&mut after);
        if after["spec"] == before["spec"] {
            return Ok(());
        }
        let metadata = metadata(&mut after)?;
        metadata["generation"] = json!(metadata["generation"].as_i64().unwrap_or(0) + 1);
        changed(before, &mut after)?;
        self.validated(key.resource, &after)?;
        self.objects.put(key, after);
        Ok(())
    }
}

fn set_template_generation(metadata: &mut Value, generation: i64) {
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][TEMPLATE_GENERATION] = json!(generation.to_string());
}

/// The defaults that plans rely on (D-114).
fn default_daemon_set(object: &mut Value) {
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("DaemonSet");
    let spec = &mut object["spec"];
    if spec["revisionHistoryLimit"].is_null() {
        spec["revisionHistoryLimit"] = json!(10);
    }
    let strategy = &mut spec["updateStrategy"];
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        for (field, default) in [("maxUnavailable", 1), ("maxSurge", 0)] {
            if rolling[field].is_null() {
                rolling[field] = json!(default);
            }
        }
    }
}

/// The defaults of the API that plans rely on.
fn default_deployment(object: &mut Value) {
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("Deployment");
    let spec = &mut object["spec"];
    for (field, default) in [
        ("replicas", 1),
        ("revisionHistoryLimit", 10),
        ("progressDeadlineSeconds", 600),
    ] {
        if spec[field].is_null() {
            spec[field] = json!(default);
        }
    }
    let strategy = &mut spec["strategy"];
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        for field in ["maxUnavailable", "maxSurge"] {
            if rolling[field].is_null() {
                rolling[field] = json!("25%");
            }
        }
    }
}
