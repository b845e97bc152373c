//! Projection of an apps/v1 Deployment.

use nodewise_proto::workload::DEPLOYMENT;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ProjectError;
use crate::workload::{Read, StatusCounts, Strategy, Workload};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeploymentStatus {
    observed_generation: i64,
    replicas: i64,
    updated_replicas: i64,
    available_replicas: i64,
}

impl Workload {
    /// Reads the JSON of a Deployment.
    pub fn deployment_from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::deployment_from_text(&object.to_string())
    }

    /// Reads the JSON of a Deployment from text. A Deployment whose spec cannot be read is kept, with an empty spec. Its plans
    /// read no labels of pods or nodes.
    pub fn deployment_from_text(object: &str) -> Result<Self, ProjectError> {
        let Read {
            workload,
            spec,
            status,
        } = Self::read::<DeploymentStatus>(DEPLOYMENT, object)?;
        let replicas = spec.replicas();
        Ok(Self {
            replicas: Some(replicas),
            strategy: if spec.strategy["type"] == "Recreate" {
                Strategy::Recreate
            } else {
                Strategy::RollingUpdate
            },
            is_paused: spec.paused,
            status: StatusCounts {
                observed_generation: status.observed_generation,
                desired: replicas.into(),
                current: status.replicas,
                updated: status.updated_replicas,
                available: status.available_replicas,
            },
            ..workload
        })
    }
}
