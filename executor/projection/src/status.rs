//! The parts of the status of nodes and pods that are read.

use std::fmt;

use nodewise_proto::v1;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::time::Time;

/// The parts of a node's or pod's status that are read.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) phase: Option<String>,
    pub(crate) conditions: Option<Conditions>,
    #[serde(default)]
    pub(crate) container_statuses: Option<Vec<ContainerStatus>>,
    #[serde(default)]
    pub(crate) init_container_statuses: Option<Vec<ContainerStatus>>,
}

/// The parts of the status of a container that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    name: String,
    restart_count: Option<i64>,
}

/// The largest number of restarts of the containers for which `is_counted` is true.
pub(crate) fn most_restarts(
    statuses: Option<&Vec<ContainerStatus>>,
    is_counted: impl Fn(&str) -> bool,
) -> u32 {
    let counted = statuses
        .into_iter()
        .flatten()
        .filter(|status| is_counted(&status.name));
    let restarts = counted.filter_map(|status| status.restart_count?.try_into().ok());
    restarts.max().unwrap_or(0)
}

/// The first condition of each type that is read. The other conditions are dropped, so a long list takes no memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) ready: Option<Condition>,
    /// DisruptionTarget.
    pub(crate) disruption: Option<Condition>,
    /// MaintenanceInProgress.
    pub(crate) maintenance: Option<Condition>,
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ConditionsVisitor)
    }
}

struct ConditionsVisitor;

impl<'de> Visitor<'de> for ConditionsVisitor {
    type Value = Conditions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("conditions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Conditions, A::Error> {
        let mut conditions = Conditions::default();
        while let Some(condition) = list.next_element::<Condition>()? {
            let kept = match &*condition.kind {
                "Ready" => &mut conditions.ready,
                "DisruptionTarget" => &mut conditions.disruption,
                "MaintenanceInProgress" => &mut conditions.maintenance,
                _ => continue,
            };
            kept.get_or_insert(condition);
        }
        Ok(conditions)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    kind: String,
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
    last_transition_time: Option<Time>,
}

impl Status {
    /// Whether the first condition `MaintenanceInProgress` of a node is True.
    pub(crate) fn is_in_maintenance(&self) -> bool {
        let conditions = self.conditions.as_ref();
        let maintenance = conditions.and_then(|conditions| conditions.maintenance.as_ref());
        maintenance.is_some_and(|condition| condition.status == "True")
    }

    /// Returns the phase, and the status and transition time of the first Ready condition.
    pub(crate) fn read(status: Option<Self>) -> (v1::PodPhase, v1::ConditionStatus, Option<Time>) {
        let Some(status) = status else {
            return (v1::PodPhase::Unspecified, v1::ConditionStatus::Unspecified, None);
        };
        let phase = match status.phase.as_deref() {
            Some("Pending") => v1::PodPhase::Pending,
            Some("Running") => v1::PodPhase::Running,
            Some("Succeeded") => v1::PodPhase::Succeeded,
            Some("Failed") => v1::PodPhase::Failed,
            Some("Unknown") => v1::PodPhase::Unknown,
            _ => v1::PodPhase::Unspecified,
        };
        let ready = status.conditions.and_then(|conditions| conditions.ready);
        let Some(ready) = ready else {
            return (phase, v1::ConditionStatus::Unspecified, None);
        };
        let status = match ready.status.as_str() {
            "True" => v1::ConditionStatus::True,
            "False" => v1::ConditionStatus::False,
            _ => v1::ConditionStatus::Unknown,
        };
        (phase, status, ready.last_transition_time)
    }
}
