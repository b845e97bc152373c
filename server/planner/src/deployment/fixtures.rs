//! Builders of test objects for the unit tests of Deployments.

use jiff::Timestamp;
use serde_json::json;

use crate::{
    core::{
        snapshot::{IntOrString, Labels, Selector},
        status::{DeploymentStatus, ReplicaSetStatus},
    },
    deployment::workload::{Deployment, RollingUpdate, Set, Strategy},
};

/// Deployment `web` with a number of replicas, and limits of 25%.
pub(crate) fn deployment(replicas: i32) -> Deployment {
    Deployment {
        name: "web".to_owned(),
        namespace: "default".to_owned(),
        uid: "web-uid".to_owned(),
        resource_version: "7".to_owned(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(Selector {
            match_labels: Some(vec![("app".to_owned(), "web".to_owned())]),
            match_expressions: None,
        }),
        selector_json: json!({"matchLabels": {"app": "web"}}).into(),
        replicas,
        paused: false,
        strategy: Strategy::RollingUpdate(Some(RollingUpdate {
            max_unavailable: Some(IntOrString::String("25%".to_owned())),
            max_surge: Some(IntOrString::String("25%".to_owned())),
        })),
        min_ready_seconds: 0,
        progress_deadline_seconds: Some(600),
        revision_history_limit: Some(10),
        template: json!({"metadata": {"labels": {"app": "web"}}}).into(),
        status: DeploymentStatus::default(),
        sets: vec![],
    }
}

/// A ReplicaSet without pods that was created at a second.
pub(crate) fn set(name: &str, annotations: &[(&str, &str)], created: i64) -> Set {
    Set {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        labels: Labels::default(),
        annotations: annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        controller: None,
        created: Timestamp::from_second(created).ok(),
        replicas: 0,
        min_ready_seconds: 0,
        template: json!({}).into(),
        status: ReplicaSetStatus::default(),
        unfinished_pods: 0,
        read_after_name_collision: false,
    }
}
