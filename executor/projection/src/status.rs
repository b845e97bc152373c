//! The parts of the status of nodes and pods that are read.

use std::fmt;

use nodewise_proto::v1;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::protobuf::{object, text, text_if_any};
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
            if let Some(kept) = conditions.of_type(condition.kind.as_bytes()) {
                kept.get_or_insert(condition);
            }
        }
        Ok(conditions)
    }
}

impl Conditions {
    /// The place of the condition of this type, if it is read.
    fn of_type(&mut self, kind: &[u8]) -> Option<&mut Option<Condition>> {
        match kind {
            b"Ready" => Some(&mut self.ready),
            b"DisruptionTarget" => Some(&mut self.disruption),
            b"MaintenanceInProgress" => Some(&mut self.maintenance),
            _ => None,
        }
    }
}

impl FromIterator<object::Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = object::Condition>>(list: I) -> Self {
        let mut conditions = Self::default();
        for condition in list {
            if let Some(kept) = conditions.of_type(&condition.kind) {
                kept.get_or_insert_with(|| condition.into());
            }
        }
        conditions
    }
}

impl From<object::Condition> for Condition {
    fn from(condition: object::Condition) -> Self {
        Self {
            kind: text(&condition.kind),
            status: text(&condition.status),
            reason: text_if_any(&condition.reason),
            last_transition_time: Time::of(condition.last_transition_time),
        }
    }
}

impl From<object::PodStatus> for Status {
    fn from(status: object::PodStatus) -> Self {
        let containers = |list: Vec<object::ContainerStatus>| {
            let list = list.into_iter().map(|container| ContainerStatus {
                name: text(&container.name),
                restart_count: Some(container.restart_count.into()),
            });
            Some(list.collect())
        };
        Self {
            phase: text_if_any(&status.phase),
            conditions: Some(status.conditions.into_iter().collect()),
            container_statuses: containers(status.container_statuses),
            init_container_statuses: containers(status.init_container_statuses),
        }
    }
}

impl From<object::NodeStatus> for Status {
    fn from(status: object::NodeStatus) -> Self {
        Self {
            phase: None,
            conditions: Some(status.conditions.into_iter().collect()),
            container_statuses: None,
            init_container_statuses: None,
        }
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
