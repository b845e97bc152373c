//! Observe mode: logs writes instead of sending them.

use bytes::Bytes;

use super::{Actuator, ActuatorError, Eviction, ObjectKey, Patch, Preconditions, WorkloadEvent, Written};
use crate::resource::Resource;

/// Logs every write at level debug and returns success without writing. Reads go to the wrapped actuator.
#[derive(Clone, Debug)]
pub struct ObserveActuator<A> {
    reader: A,
}

impl<A> ObserveActuator<A> {
    /// Creates an actuator that reads through `reader` and uses no other verb of it.
    pub fn new(reader: A) -> Self {
        Self { reader }
    }
}

impl<A: Actuator> Actuator for ObserveActuator<A> {
    fn writes(&self) -> bool {
        false
    }

    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let name = name_in(&manifest);
        tracing::debug!(resource = resource.plural, namespace, name, "would create");
        Ok(Written {
            name,
            resource_version: String::new(),
        })
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (Patch::Merge(body) | Patch::Strategic(body)) = patch;
        tracing::debug!(object = %key, patch = %String::from_utf8_lossy(&body), "would patch");
        Ok(unchanged(key))
    }

    async fn patch_status(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let (Patch::Merge(body) | Patch::Strategic(body)) = patch;
        tracing::debug!(object = %key, patch = %String::from_utf8_lossy(&body), "would patch the status");
        Ok(unchanged(key))
    }

    async fn delete(&self, key: &ObjectKey, preconditions: Preconditions<'_>) -> Result<(), ActuatorError> {
        tracing::debug!(object = %key, uid = preconditions.uid, "would delete");
        Ok(())
    }

    async fn evict(&self, key: &ObjectKey, uid: &str) -> Result<Eviction, ActuatorError> {
        tracing::debug!(object = %key, uid, "would evict");
        Ok(Eviction::Evicted)
    }

    async fn replace_status(&self, key: &ObjectKey, _object: Bytes) -> Result<Written, ActuatorError> {
        tracing::debug!(object = %key, "would write the status");
        Ok(unchanged(key))
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        self.reader.read(key).await
    }

    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        self.reader.list(resource, namespace, take).await
    }

    fn emit(&self, event: WorkloadEvent) {
        tracing::debug!(
            workload = event.workload.name,
            kind = event.kind,
            reason = event.reason,
            message = event.message,
            "would emit an event"
        );
    }
}

fn unchanged(key: &ObjectKey) -> Written {
    Written {
        name: key.name.clone(),
        resource_version: String::new(),
    }
}

/// The name in a manifest, or its generateName.
fn name_in(manifest: &[u8]) -> String {
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap_or_default();
    let metadata = &manifest["metadata"];
    metadata["name"]
        .as_str()
        .or(metadata["generateName"].as_str())
        .unwrap_or_default()
        .to_owned()
}
