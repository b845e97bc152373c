//! What people want to know about a workload.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodewise_projection::{WRITER, timestamp};
use nodewise_proto::{
    v1::{self, WorkloadMode},
    workload::{DAEMON_SET, DEPLOYMENT},
};
use serde_json::Value;

use super::read;

/// The annotation with which a DaemonSet asks for rollouts beside another controller, and its only valid value.
const ROLLOUT_ANNOTATION: (&str, &str) = ("nodewise.dev/rollout", "managed");

/// Facts about a DaemonSet, a ReplicaSet or a Deployment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkloadFacts {
    /// The kind.
    pub kind: String,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.labels.
    pub labels: BTreeMap<String, String>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp is set.
    pub is_deleting: bool,
    /// spec.paused.
    pub is_paused: bool,
    /// spec.replicas; 1 if it is absent. 0 for a DaemonSet.
    pub replicas: i64,
    /// spec.minReadySeconds.
    pub min_ready_seconds: i64,
    /// `RollingUpdate`, `OnDelete` or `Recreate`. Empty for a ReplicaSet.
    pub strategy: String,
    /// maxUnavailable and maxSurge of a Deployment, as numbers of pods. 0 for other kinds, whose plan says them.
    pub budget: [u32; 2],
    /// The images of the template, each as `CONTAINER=IMAGE`.
    pub images: Vec<String>,
    /// Who writes the status, the last writer first.
    pub writers: Vec<v1::Writer>,
    /// How Nodewise works on it.
    pub mode: WorkloadMode,
    /// Why pods or ReplicaSets cannot be created, by the conditions of the status, and its time.
    pub failure: Option<(String, Option<Timestamp>)>,
}

impl WorkloadFacts {
    /// Reads a workload of this kind. `json` has metadata.managedFields, or there are no writers.
    #[must_use]
    pub fn of(kind: &str, json: &str) -> Self {
        let object = read::object(json);
        let strategy = match kind {
            DAEMON_SET => read::text(&object, "/spec/updateStrategy/type"),
            DEPLOYMENT => read::text(&object, "/spec/strategy/type"),
            _ => "",
        };
        let replicas = match object.pointer("/spec/replicas") {
            _ if kind == DAEMON_SET => 0,
            None => 1,
            Some(replicas) => replicas.as_i64().unwrap_or_default(),
        };
        let writers = writers(&object);
        let has_strategy = kind == DAEMON_SET || kind == DEPLOYMENT;
        Self {
            kind: kind.to_owned(),
            namespace: read::owned(&object, "/metadata/namespace"),
            name: read::owned(&object, "/metadata/name"),
            uid: read::owned(&object, "/metadata/uid"),
            labels: labels(&object),
            created: read::time(&object, "/metadata/creationTimestamp"),
            is_deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
            is_paused: read::flag(&object, "/spec/paused"),
            replicas,
            budget: if kind == DEPLOYMENT && strategy != "Recreate" {
                budget(&object, replicas)
            } else {
                [0, 0]
            },
            min_ready_seconds: read::number(&object, "/spec/minReadySeconds"),
            strategy: if has_strategy && strategy.is_empty() {
                "RollingUpdate".to_owned()
            } else {
                strategy.to_owned()
            },
            images: read::images(&object, "/spec/template/spec/containers"),
            mode: mode(&object, &writers, strategy),
            writers,
            failure: failure(&object),
        }
    }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// maxUnavailable and maxSurge of a Deployment, as upstream resolves them: percentages of surge are rounded up, of unavailable down, and
/// if both are 0, one pod may be unavailable.
fn budget(object: &Value, replicas: i64) -> [u32; 2] {
    let resolve = |field: &str, rounds_up: bool| {
        let value = object.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        let text = value.and_then(Value::as_str);
        let percent = match text.and_then(|text| text.strip_suffix('%')) {
            Some(percent) => percent.parse::<i64>().unwrap_or_default(),
            // The apiserver's default.
            None if value.is_none() => 25,
            None => return value.and_then(Value::as_i64).unwrap_or_default(),
        };
        let hundredths = replicas.saturating_mul(percent);
        if rounds_up {
            hundredths.saturating_add(99) / 100
        } else {
            hundredths / 100
        }
    };
    let count = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    match [
        count(resolve("maxUnavailable", false)),
        count(resolve("maxSurge", true)),
    ] {
        [0, 0] => [1, 0],
        budget => budget,
    }
}

/// The managers of the status, the last writer first.
fn writers(object: &Value) -> Vec<v1::Writer> {
    let fields = read::list(object, "/metadata/managedFields").iter();
    let mut writers: Vec<(Option<Timestamp>, String)> = fields
        .filter(|entry| read::text(entry, "/subresource") == "status")
        .map(|entry| (read::time(entry, "/time"), read::owned(entry, "/manager")))
        .collect();
    writers.sort_by(|a, b| b.cmp(a));
    let writer = |(at, manager): (Option<Timestamp>, String)| v1::Writer {
        manager,
        at: at.map(timestamp),
    };
    writers.into_iter().map(writer).collect()
}

/// How Nodewise works on a workload with this strategy.
fn mode(object: &Value, writers: &[v1::Writer], strategy: &str) -> WorkloadMode {
    let Some(last) = writers.first() else {
        return WorkloadMode::Unspecified;
    };
    if last.manager == WRITER {
        return WorkloadMode::Own;
    }
    let (annotation, managed) = ROLLOUT_ANNOTATION;
    let annotations = object.pointer("/metadata/annotations");
    let is_managed = annotations.is_some_and(|all| all[annotation] == managed);
    if is_managed && strategy == "OnDelete" {
        return WorkloadMode::Companion;
    }
    WorkloadMode::Observe
}

/// The condition that says why something cannot be created.
fn failure(object: &Value) -> Option<(String, Option<Timestamp>)> {
    let mut conditions = read::list(object, "/status/conditions").iter();
    let condition = conditions.find(|condition| {
        let of = |field| read::text(condition, field);
        (of("/type"), of("/status")) == ("ReplicaFailure", "True")
            || (of("/type"), of("/status"), of("/reason"))
                == ("Progressing", "False", "ReplicaSetCreateError")
    })?;
    let message = read::owned(condition, "/message");
    Some((message, read::time(condition, "/lastTransitionTime")))
}
