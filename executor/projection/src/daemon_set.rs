//! Projection of an apps/v1 DaemonSet.

use nodewise_proto::workload::DAEMON_SET;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ProjectError;
use crate::label_keys::LabelKeysRead;
use crate::workload::{Read, StatusCounts, Strategy, Workload};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonSetStatus {
    observed_generation: i64,
    desired_number_scheduled: i64,
    current_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
}

impl From<DaemonSetStatus> for StatusCounts {
    fn from(status: DaemonSetStatus) -> Self {
        Self {
            observed_generation: status.observed_generation,
            desired: status.desired_number_scheduled,
            current: status.current_number_scheduled,
            updated: status.updated_number_scheduled,
            available: status.number_available,
        }
    }
}

impl Workload {
    /// Reads the JSON of a DaemonSet.
    pub fn daemon_set_from_json(object: &Value) -> Result<Self, ProjectError> {
        Self::daemon_set_from_text(&object.to_string())
    }

    /// Reads the JSON of a DaemonSet from text. A DaemonSet whose spec cannot be read is kept, with an empty spec.
    pub fn daemon_set_from_text(object: &str) -> Result<Self, ProjectError> {
        let Read {
            workload,
            spec,
            status,
        } = Self::read::<DaemonSetStatus>(DAEMON_SET, object)?;
        // With the annotation for a managed rollout, a companion controller deletes old pods.
        let is_on_delete = spec.update_strategy["type"] == "OnDelete" && !spec.has_managed_rollout;
        let strategy = if is_on_delete {
            Strategy::OnDelete
        } else {
            Strategy::RollingUpdate
        };
        Ok(Self {
            reads: LabelKeysRead::new(&workload.selector, spec.template()),
            strategy,
            status: status.into(),
            ..workload
        })
    }
}
