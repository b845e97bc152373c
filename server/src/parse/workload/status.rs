//! Parses the parts of a status that ReplicaSets and Deployments have in common.

use jiff::Timestamp;
use nodewise_planner::{
    json::Json,
    plan::{Condition, ReplicaSetStatus},
};
use serde::Deserialize;

/// The status of a ReplicaSet.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SetStatus {
    replicas: Option<i32>,
    fully_labeled_replicas: Option<i32>,
    ready_replicas: Option<i32>,
    available_replicas: Option<i32>,
    terminating_replicas: Option<i32>,
    observed_generation: Option<i64>,
    conditions: Option<Vec<Json>>,
}

impl From<SetStatus> for ReplicaSetStatus {
    fn from(status: SetStatus) -> Self {
        Self {
            replicas: status.replicas.unwrap_or_default(),
            fully_labeled_replicas: status.fully_labeled_replicas.unwrap_or_default(),
            ready_replicas: status.ready_replicas.unwrap_or_default(),
            available_replicas: status.available_replicas.unwrap_or_default(),
            terminating_replicas: status.terminating_replicas,
            observed_generation: status.observed_generation.unwrap_or_default(),
            conditions: conditions(status.conditions),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    r#type: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    last_transition_time: Option<String>,
    last_update_time: Option<String>,
}

/// The conditions of a status. An entry that cannot be read is kept as served, without a type.
pub(super) fn conditions(served: Option<Vec<Json>>) -> Vec<Condition> {
    served.unwrap_or_default().into_iter().map(condition).collect()
}

fn condition(served: Json) -> Condition {
    let fields: Fields = serde_json::from_str(served.as_str()).unwrap_or_default();
    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    Condition {
        r#type: fields.r#type.unwrap_or_default(),
        status: fields.status.unwrap_or_default(),
        reason: fields.reason.unwrap_or_default(),
        message: fields.message.unwrap_or_default(),
        last_transition_time: time(fields.last_transition_time),
        last_update_time: time(fields.last_update_time),
        served: Some(served),
    }
}
