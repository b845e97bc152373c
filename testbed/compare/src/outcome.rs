//! The outcome of one sync, not normalized. Both programs use the same format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Backoff;

/// The outcome of one sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// The message of a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic: Option<String>,
    /// The error of the sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All writes to the API, sorted.
    pub calls: Vec<Call>,
    /// The order of the kinds of writes; see [`sequence`].
    pub sequence: Vec<String>,
    /// All events, sorted.
    pub events: Vec<Event>,
    /// The requeue delays in seconds, sorted.
    pub requeue: Vec<f64>,
    /// What became of the key in the queue, besides delays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<String>,
    /// What changed of each workload that was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<Stored>,
    /// The creates and deletes that are expected after the sync.
    #[serde(default)]
    pub expectations: Option<Outstanding>,
    /// The back-off of failed pods after the sync.
    pub backoff: Vec<Backoff>,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The kind, as in [`crate::case::Fault::op`].
    pub op: String,
    /// The object, or the node for `create-pod`.
    pub name: String,
    /// The body of the request.
    pub body: String,
    /// The HTTP status of the response.
    pub code: u16,
}

/// What a sync changed of a workload that it wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The resource, for example `replicasets`.
    pub resource: String,
    /// The object.
    pub name: String,
    /// A JSON merge patch from the object before the sync to the object after it. `null` if it was deleted.
    pub changes: Value,
}

/// The order of the kinds of calls, with one word for consecutive calls of one kind. Creates and deletes of pods run
/// concurrently, so they count as one kind.
#[must_use]
pub fn sequence(calls: &[Call]) -> Vec<String> {
    let words = calls.iter().map(|call| match call.op.as_str() {
        "create-pod" | "delete-pod" => "pods".to_owned(),
        op => op.to_owned(),
    });
    let mut words: Vec<_> = words.collect();
    words.dedup();
    words
}

/// A Kubernetes Event about the DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// Outstanding creates and deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outstanding {
    /// Creates. Upstream's counter may be negative.
    pub adds: i64,
    /// Deletes. Upstream's counter may be negative.
    pub dels: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_calls_of_one_kind_are_one_word() {
        let ops = [
            "adopt-pod",
            "adopt-pod",
            "delete-pod",
            "create-pod",
            "delete-pod",
            "adopt-pod",
        ];
        let calls = ops.map(|op| Call {
            op: op.to_owned(),
            name: String::new(),
            body: String::new(),
            code: 200,
        });
        assert_eq!(sequence(&calls), ["adopt-pod", "pods", "adopt-pod"]);
    }
}
