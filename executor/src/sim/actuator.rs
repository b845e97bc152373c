//! Writes to the simulated cluster. They are refused for the same reasons as by an apiserver.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use nodewise_runtime::{
    Resource,
    actuator::{Actuator, ActuatorError, ObjectKey, Patch, Refusal, WorkloadEvent, Written},
};
use serde_json::{Value, json};

use super::{SimCluster, State, kubelet, objects::refuse, patch};

/// An actuator that writes to a [`SimCluster`]. Clones share its counters.
#[derive(Clone, Debug)]
pub struct SimActuator {
    cluster: SimCluster,
    events: Arc<AtomicU64>,
}

impl SimActuator {
    pub(super) fn new(cluster: SimCluster) -> Self {
        Self {
            cluster,
            events: Arc::default(),
        }
    }

    /// Number of Events emitted so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

impl Actuator for SimActuator {
    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        self.cluster
            .state()
            .create(resource, namespace, parse(&manifest)?)
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        self.cluster.state().patch(key, &patch)
    }

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        self.cluster.state().delete(key, uid)
    }

    async fn replace_status(&self, key: &ObjectKey, object: Bytes) -> Result<Written, ActuatorError> {
        self.cluster.state().replace_status(key, &parse(&object)?)
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        Ok(self.cluster.state().objects.find(key)?.to_string().into())
    }

    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        let state = self.cluster.state();
        let all = state.objects.all(resource);
        for object in all.filter(|object| object["metadata"]["namespace"] == namespace) {
            take(&object.to_string());
        }
        Ok(())
    }

    fn emit(&self, event: WorkloadEvent) {
        tracing::debug!(reason = event.reason, message = event.message, "event");
        self.events.fetch_add(1, Ordering::Relaxed);
    }
}

fn parse(json: &[u8]) -> Result<Value, ActuatorError> {
    serde_json::from_slice(json).map_err(|error| refuse(Refusal::Other, 400, format!("not JSON: {error}")))
}

impl State {
    fn create(
        &mut self,
        resource: Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Written, ActuatorError> {
        let key = self.objects.create(resource, namespace, object, self.now)?;
        if resource == Resource::PODS {
            let mut pod = self.objects.find(&key)?.clone();
            if let (Some(owner), Some(node)) = (kubelet::owner(&pod), kubelet::node_of(&pod)) {
                self.tally.creating(owner, &node);
            }
            pod["status"]["phase"] = json!("Pending");
            self.put_pod(&key, pod);
        }
        self.written(&key)
    }

    fn patch(&mut self, key: &ObjectKey, patch: &Patch) -> Result<Written, ActuatorError> {
        let before = self.objects.find(key)?.clone();
        let mut after = before.clone();
        match patch {
            Patch::Merge(body) => patch::merge(&mut after, &parse(body)?),
            Patch::Strategic(body) => patch::strategic(&mut after, &parse(body)?),
        }
        if after["metadata"]["uid"] != before["metadata"]["uid"] {
            return Err(refuse(
                Refusal::Invalid,
                422,
                format!("{key}: metadata.uid: field is immutable"),
            ));
        }
        if key.resource == Resource::PODS {
            // The patch may change the pod's controller.
            self.count_pod(key, &before, false);
            self.put_pod(key, after);
        } else {
            self.objects.put(key, after)?;
        }
        self.written(key)
    }

    fn delete(&mut self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        let object = self.objects.find(key)?.clone();
        if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
            return Err(refuse(Refusal::Conflict, 409, format!("{key} has another uid")));
        }
        if key.resource == Resource::PODS {
            self.delete_pod(key, object);
        } else {
            self.objects.remove(key);
        }
        Ok(())
    }

    fn replace_status(&mut self, key: &ObjectKey, object: &Value) -> Result<Written, ActuatorError> {
        let mut stored = self.objects.find(key)?.clone();
        if object["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
            return Err(refuse(Refusal::Conflict, 409, format!("{key} has been modified")));
        }
        stored["status"] = object["status"].clone();
        self.objects.put(key, stored)?;
        self.written(key)
    }

    fn written(&self, key: &ObjectKey) -> Result<Written, ActuatorError> {
        let metadata = &self.objects.find(key)?["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Ok(Written {
            name: text("name"),
            resource_version: text("resourceVersion"),
        })
    }
}
