//! Projection of an apps/v1 ReplicaSet.

use nodewise_proto::workload::REPLICA_SET;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ProjectError;
use crate::label_keys::LabelKeysRead;
use crate::workload::{Read, StatusCounts, Workload};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaSetStatus {
    observed_generation: i64,
    replicas: i64,
    available_replicas: i64,
}

impl Workload {
    /// Reads the JSON of a ReplicaSet.
    pub fn replica_set_from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::replica_set_from_text(&object.to_string())
    }

    /// Reads the JSON of a ReplicaSet from text. A ReplicaSet whose spec cannot be read is kept, with an empty spec.
    pub fn replica_set_from_text(object: &str) -> Result<Self, ProjectError> {
        let Read {
            workload,
            spec,
            status,
        } = Self::read::<ReplicaSetStatus>(REPLICA_SET, object)?;
        let replicas = spec.replicas();
        Ok(Self {
            reads: LabelKeysRead::of_pods(&workload.selector, spec.template()),
            replicas: Some(replicas),
            status: StatusCounts {
                observed_generation: status.observed_generation,
                desired: replicas.into(),
                current: status.replicas,
                // A new template does not replace pods.
                updated: status.replicas,
                available: status.available_replicas,
            },
            ..workload
        })
    }
}
