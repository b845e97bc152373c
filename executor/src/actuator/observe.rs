//! Shadow mode: says what would be written, and writes nothing.

use bytes::Bytes;

use super::{Actuator, ActuatorError, ObjectKey, Patch, WorkloadEvent, Written};
use crate::event::Resource;

/// Logs every write that it is asked for, at level debug, and lets it succeed without effect. Reads go to the actuator within. What is
/// told at level info is what the other controller has not done for a while: see [`crate::divergence`].
#[derive(Clone, Debug)]
pub struct ObserveActuator<A> {
    reader: A,
}

impl<A> ObserveActuator<A> {
    /// Reads through `reader`, of which no other verb is ever used.
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
        tracing::debug!(resource = resource.plural(), namespace, name, "would create");
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

    async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), ActuatorError> {
        tracing::debug!(object = %key, uid, "would delete");
        Ok(())
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
