//! Workloads for tests, as the JSON that a user would apply.

use serde_json::{Value, json};

/// Builds the JSON of a workload.
#[derive(Debug, Clone)]
pub struct WorkloadBuilder(Value);

/// A DaemonSet named `name`. Its pods have the label `app: name`, run version 1 of the image, and have no tolerations.
#[must_use]
pub fn daemon_set(name: &str) -> WorkloadBuilder {
    workload("DaemonSet", name)
}

/// A ReplicaSet of the same form. It has the label `app: name` too.
#[must_use]
pub fn replica_set(name: &str, replicas: i32) -> WorkloadBuilder {
    workload("ReplicaSet", name)
        .set("/metadata", "labels", json!({ "app": name }))
        .replicas(replicas)
}

/// A Deployment of the same form.
#[must_use]
pub fn deployment(name: &str, replicas: i32) -> WorkloadBuilder {
    workload("Deployment", name).replicas(replicas)
}

fn workload(kind: &str, name: &str) -> WorkloadBuilder {
    WorkloadBuilder(json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "registry.example/agent:1" }] },
            },
        },
    }))
}

impl WorkloadBuilder {
    /// Sets spec.replicas.
    #[must_use]
    pub fn replicas(self, replicas: i32) -> Self {
        self.set("/spec", "replicas", json!(replicas))
    }

    /// Sets the strategy Recreate of a Deployment.
    #[must_use]
    pub fn recreate(self) -> Self {
        self.strategy(json!({ "type": "Recreate" }))
    }

    /// RollingUpdate with this maxSurge and this maxUnavailable.
    #[must_use]
    pub fn rolling(self, surge: impl Into<Value>, unavailable: impl Into<Value>) -> Self {
        let rolling = json!({ "maxSurge": surge.into(), "maxUnavailable": unavailable.into() });
        self.strategy(json!({ "type": "RollingUpdate", "rollingUpdate": rolling }))
    }

    /// Sets spec.updateStrategy of a DaemonSet, or spec.strategy of a Deployment.
    #[must_use]
    pub fn strategy(self, strategy: Value) -> Self {
        let key = if self.0["kind"] == "Deployment" {
            "strategy"
        } else {
            "updateStrategy"
        };
        self.set("/spec", key, strategy)
    }

    /// RollingUpdate with this maxUnavailable.
    #[must_use]
    pub fn max_unavailable(self, value: impl Into<Value>) -> Self {
        self.strategy(json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": value.into() } }))
    }

    /// RollingUpdate with this maxSurge and maxUnavailable 0.
    #[must_use]
    pub fn max_surge(self, value: impl Into<Value>) -> Self {
        self.rolling(value, 0)
    }

    /// Sets the strategy OnDelete.
    #[must_use]
    pub fn on_delete(self) -> Self {
        self.strategy(json!({ "type": "OnDelete" }))
    }

    /// Sets any field: adds `key: value` to the object at `pointer`.
    ///
    /// # Panics
    /// If there is no object at `pointer`.
    #[must_use]
    pub fn set(mut self, pointer: &str, key: &str, value: Value) -> Self {
        let object = self.0.pointer_mut(pointer).and_then(Value::as_object_mut);
        object
            .unwrap_or_else(|| panic!("no object at {pointer}"))
            .insert(key.to_owned(), value);
        self
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        self.0
    }
}

/// A strategic merge patch that changes the version of the template's image.
#[must_use]
pub fn image_patch(version: u32) -> Value {
    let container = json!({ "name": "main", "image": format!("registry.example/agent:{version}") });
    json!({ "spec": { "template": { "spec": { "containers": [container] } } } })
}
