//! Writes to the simulated cluster.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use nodewise_runtime::{
    Resource,
    actuator::{
        Actuator, ActuatorError, Eviction, ObjectKey, Patch, Preconditions, Refusal, WorkloadEvent, Written,
    },
};
use nodewise_simulator as simulator;
use serde_json::Value;

use super::SimCluster;

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

    /// Writes to an object, and returns what the apiserver returns of it.
    fn write(
        &self,
        key: &ObjectKey,
        write: impl FnOnce(&mut simulator::Cluster, &simulator::ObjectKey) -> Result<(), simulator::Refusal>,
    ) -> Result<Written, ActuatorError> {
        let key = known(key)?;
        self.cluster
            .change(|cluster| {
                write(cluster, &key)?;
                written(cluster, &key)
            })
            .map_err(error)
    }
}

impl Actuator for SimActuator {
    async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> Result<Written, ActuatorError> {
        let (resource, object) = (known_resource(resource)?, parse(&manifest)?);
        self.cluster
            .change(|cluster| {
                let key = cluster.create(resource, namespace, object)?;
                written(cluster, &key)
            })
            .map_err(error)
    }

    async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let patch = read_patch(patch)?;
        self.write(key, |cluster, key| cluster.patch(key, &patch))
    }

    async fn patch_status(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ActuatorError> {
        let patch = read_patch(patch)?;
        self.write(key, |cluster, key| cluster.patch_status(key, &patch))
    }

    async fn delete(&self, key: &ObjectKey, preconditions: Preconditions<'_>) -> Result<(), ActuatorError> {
        let key = known(key)?;
        self.cluster
            .change(|cluster| {
                let version = &cluster.read(&key)?["metadata"]["resourceVersion"];
                if preconditions
                    .resource_version
                    .is_some_and(|expected| version != expected)
                {
                    return Err(simulator::Refusal {
                        reason: simulator::Reason::Conflict,
                        message: format!("{key} has been modified"),
                    });
                }
                cluster.delete(&key, preconditions.uid)
            })
            .map_err(error)
    }

    /// The simulated cluster has no PodDisruptionBudgets.
    async fn evict(&self, key: &ObjectKey, uid: &str) -> Result<Eviction, ActuatorError> {
        self.delete(key, Preconditions::uid(uid)).await?;
        Ok(Eviction::Evicted)
    }

    async fn replace_status(&self, key: &ObjectKey, object: Bytes) -> Result<Written, ActuatorError> {
        let object = parse(&object)?;
        self.write(key, |cluster, key| cluster.replace_status(key, &object))
    }

    async fn read(&self, key: &ObjectKey) -> Result<Bytes, ActuatorError> {
        let key = known(key)?;
        let state = self.cluster.state();
        let object = state.cluster.read(&key).map_err(error)?;
        Ok(object.to_string().into())
    }

    async fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), ActuatorError> {
        let resource = known_resource(resource)?;
        let state = self.cluster.state();
        let all = state.cluster.list(resource);
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

/// A refusal of the simulated apiserver as the executor's client reports it.
pub(super) fn error(refusal: simulator::Refusal) -> ActuatorError {
    ActuatorError {
        refusal: match refusal.reason {
            simulator::Reason::AlreadyExists => Refusal::AlreadyExists,
            simulator::Reason::Conflict => Refusal::Conflict,
            simulator::Reason::Invalid => Refusal::Invalid,
            simulator::Reason::NotFound => Refusal::NotFound,
        },
        http_status: refusal.reason.http_status(),
        message: refusal.message,
    }
}

fn known_resource(resource: Resource) -> Result<simulator::Resource, ActuatorError> {
    let mut all = simulator::Resource::ALL.into_iter();
    all.find(|known| known.plural() == resource.plural)
        .ok_or_else(|| ActuatorError {
            refusal: Refusal::NotFound,
            http_status: 404,
            message: format!("no such resource: {resource}"),
        })
}

fn known(key: &ObjectKey) -> Result<simulator::ObjectKey, ActuatorError> {
    let resource = known_resource(key.resource)?;
    Ok(simulator::ObjectKey::new(resource, &key.namespace, &key.name))
}

fn written(cluster: &simulator::Cluster, key: &simulator::ObjectKey) -> Result<Written, simulator::Refusal> {
    let metadata = &cluster.read(key)?["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    Ok(Written {
        name: text("name"),
        resource_version: text("resourceVersion"),
    })
}

fn read_patch(patch: Patch) -> Result<simulator::Patch, ActuatorError> {
    Ok(match patch {
        Patch::Merge(body) => simulator::Patch::Merge(parse(&body)?),
        Patch::Strategic(body) => simulator::Patch::Strategic(parse(&body)?),
    })
}

fn parse(json: &[u8]) -> Result<Value, ActuatorError> {
    serde_json::from_slice(json).map_err(|error| ActuatorError {
        refusal: Refusal::Other,
        http_status: 400,
        message: format!("not JSON: {error}"),
    })
}
