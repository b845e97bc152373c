//! What a controller did in one sync, raw: the same shape from both halves.

use serde::{Deserialize, Serialize};

use crate::case::Backoff;

/// What one sync did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// The text of a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic: Option<String>,
    /// The text of the error that the sync ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Every call to the API but the reads, sorted.
    pub calls: Vec<Call>,
    /// In which order the kinds of these calls came; see [`sequence`].
    pub sequence: Vec<String>,
    /// Every event, sorted.
    pub events: Vec<Event>,
    /// When the controller wants to look again, in seconds; sorted.
    pub requeue: Vec<f64>,
    /// Creates and deletes that are awaited after the sync.
    #[serde(default)]
    pub expectations: Option<Outstanding>,
    /// Back-off of failed pods after the sync.
    pub backoff: Vec<Backoff>,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Which kind, as in [`crate::case::Fault::op`].
    pub op: String,
    /// The object; for `create-pod` the node.
    pub name: String,
    /// The body of the request.
    pub body: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// In which order kinds of calls came: one word for calls of one kind in a row. Pods are created and deleted many at a time,
/// so that these are one kind.
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
    /// For machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outstanding {
    /// Creates; upstream's counter may be negative.
    pub adds: i64,
    /// Deletes; likewise.
    pub dels: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_calls_is_one_word_and_pods_are_of_one_kind() {
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
