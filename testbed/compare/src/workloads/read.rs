//! Reads served objects for a snapshot, as an executor and the server do together.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use nodewise_planner::plan::{Condition, ReplicaSetStatus};
use nodewise_planner::snapshot::{
    ControllerRef, Labels, Pod, PodPhase, Selector, SelectorOperator, SelectorRequirement, Target,
};
use serde_json::Value;

/// A string, or the empty one.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A number, or 0.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// A number of 32 bits, or `None` if it is absent.
pub(super) fn optional(object: &Value, pointer: &str) -> Option<i32> {
    let number = object.pointer(pointer).and_then(Value::as_i64)?;
    i32::try_from(number).ok()
}

/// A number of 32 bits, or 0.
pub(super) fn count(object: &Value, pointer: &str) -> i32 {
    optional(object, pointer).unwrap_or_default()
}

/// A time.
pub(super) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// The members of a map of strings, sorted.
pub(super) fn entries(object: &Value, pointer: &str) -> Vec<(String, String)> {
    let members = object.pointer(pointer).and_then(Value::as_object);
    let members = members.into_iter().flatten();
    members
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// A map of labels.
pub(super) fn labels(object: &Value, pointer: &str) -> Labels {
    Labels::new(entries(object, pointer))
}

/// Whether the object is being deleted.
pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The owner reference with `controller: true`.
pub(super) fn controller(object: &Value) -> Option<ControllerRef> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(ControllerRef {
        kind: text(controller, "/kind").to_owned(),
        name: text(controller, "/name").to_owned(),
        uid: text(controller, "/uid").to_owned(),
    })
}

/// spec.selector.
pub(super) fn selector(object: &Value) -> Option<Selector> {
    let selector = object
        .pointer("/spec/selector")
        .filter(|selector| selector.is_object())?;
    let expressions = selector["matchExpressions"].as_array();
    Some(Selector {
        match_labels: selector["matchLabels"]
            .is_object()
            .then(|| entries(selector, "/matchLabels")),
        match_expressions: expressions.map(|all| all.iter().map(requirement).collect()),
    })
}

fn requirement(expression: &Value) -> SelectorRequirement {
    let values = || -> BTreeSet<String> {
        let values = expression["values"].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    SelectorRequirement {
        key: text(expression, "/key").to_owned(),
        operator: match text(expression, "/operator") {
            "In" => SelectorOperator::In(values()),
            "NotIn" => SelectorOperator::NotIn(values()),
            "Exists" => SelectorOperator::Exists,
            _ => SelectorOperator::DoesNotExist,
        },
    }
}

/// A pod.
pub(super) fn pod(object: &Value) -> Pod {
    let ready = condition(object, "Ready");
    let node = text(object, "/spec/nodeName");
    Pod {
        name: text(object, "/metadata/name").to_owned(),
        uid: text(object, "/metadata/uid").to_owned(),
        labels: labels(object, "/metadata/labels"),
        controller: controller(object).map(Arc::new),
        target: if node.is_empty() {
            Target::Nowhere
        } else {
            Target::Bound(node.to_owned())
        },
        phase: match text(object, "/status/phase") {
            "Pending" => PodPhase::Pending,
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Unknown,
        },
        ready: ready.is_some_and(|ready| ready["status"] == "True"),
        ready_since: ready.and_then(|ready| time(ready, "/lastTransitionTime")),
        created: time(object, "/metadata/creationTimestamp"),
        deleting: is_deleting(object),
        has_finalizers: object["metadata"]["finalizers"].is_array(),
        deletion_cost: Pod::deletion_cost_of(
            object["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"]
                .as_str()
                .unwrap_or_default(),
        ),
        restarts: most_restarts(object, "/status/containerStatuses", &|_| true),
        sidecar_restarts: most_restarts(object, "/status/initContainerStatuses", &|name| {
            let init = object["spec"]["initContainers"].as_array();
            init.into_iter()
                .flatten()
                .any(|container| container["name"] == name && container["restartPolicy"] == "Always")
        }),
    }
}

fn most_restarts(object: &Value, statuses: &str, counts: &dyn Fn(&str) -> bool) -> u32 {
    let statuses = object.pointer(statuses).and_then(Value::as_array);
    let counted = statuses
        .into_iter()
        .flatten()
        .filter(|status| counts(text(status, "/name")));
    let restarts = counted.filter_map(|status| u32::try_from(number(status, "/restartCount")).ok());
    restarts.max().unwrap_or_default()
}

/// The first condition of a type.
fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}

/// Whether a pod has ended.
pub(super) fn is_terminal(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// status.conditions.
pub(super) fn conditions(object: &Value) -> Vec<Condition> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let read = conditions.into_iter().flatten().map(|served| Condition {
        r#type: text(served, "/type").to_owned(),
        status: text(served, "/status").to_owned(),
        reason: text(served, "/reason").to_owned(),
        message: text(served, "/message").to_owned(),
        last_transition_time: time(served, "/lastTransitionTime"),
        last_update_time: time(served, "/lastUpdateTime"),
        served: Some(served.into()),
    });
    read.collect()
}

/// The status of a ReplicaSet.
pub(super) fn replica_set_status(object: &Value) -> ReplicaSetStatus {
    ReplicaSetStatus {
        replicas: count(object, "/status/replicas"),
        fully_labeled_replicas: count(object, "/status/fullyLabeledReplicas"),
        ready_replicas: count(object, "/status/readyReplicas"),
        available_replicas: count(object, "/status/availableReplicas"),
        terminating_replicas: optional(object, "/status/terminatingReplicas"),
        observed_generation: number(object, "/status/observedGeneration"),
        conditions: conditions(object),
    }
}
