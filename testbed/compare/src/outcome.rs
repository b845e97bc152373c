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
