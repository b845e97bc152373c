//! What answers the questions of the page.

use std::sync::Arc;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::board::{Board, Key};

/// A view of a cluster with the rights of one caller.
pub trait Source: Send + Sync + 'static {
    /// What is shown.
    fn board(&self) -> &Board;

    /// The difference of the templates of two revisions. Without `from` it is the newest revision that is not the present one; without
    /// `to` it is the present template.
    fn compare(
        &self,
        key: Key,
        from: Option<i64>,
        to: Option<i64>,
    ) -> BoxFuture<'_, Result<Comparison, Problem>>;

    /// Plays a changed workload. Each message that is sent is one step; the first one says what is played, and the last one how it ends.
    fn what_if(&self, change: Change, steps: mpsc::Sender<Value>) -> BoxFuture<'_, Result<(), Problem>>;
}

/// Finds the source of a caller by the bearer token.
pub trait Callers: Send + Sync + 'static {
    /// The source of this caller with the objects of these namespaces; if there are none, of all. The names are valid, sorted, and
    /// there is none twice.
    fn source(&self, token: &str, namespaces: Vec<String>)
    -> BoxFuture<'_, Result<Arc<dyn Source>, Problem>>;
}

/// The revisions of a workload, and the difference of two templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// All revisions, from the newest to the oldest.
    pub revisions: Vec<Revision>,
    /// The number of the older one. `None` if there is only one revision.
    pub from: Option<i64>,
    /// The number of the newer one. `None`: the present template.
    pub to: Option<i64>,
    /// The lines that differ, with some around them. Empty if both are equal.
    pub lines: Vec<Line>,
}

/// One revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// The revision number.
    pub number: i64,
    /// metadata.name of the ControllerRevision or ReplicaSet.
    pub name: String,
    /// Whether the workload has this template now.
    pub current: bool,
    /// Each as `CONTAINER=IMAGE`.
    pub images: Vec<String>,
    /// The annotation `kubernetes.io/change-cause`.
    pub cause: String,
    /// The time of its creation, as RFC 3339.
    pub created: Option<String>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// `+`, `-`, a space, or `…` for lines that are left out.
    pub sign: char,
    /// The line.
    pub text: String,
}

/// A change to be played.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    /// The manifest of the changed workload, as for kubectl apply.
    pub yaml: String,
    /// The time from a pod's creation until it is ready, in seconds. Without it: as the ready pods did.
    #[serde(default)]
    pub ready_after_seconds: Option<f64>,
    /// The share of the new pods that never become ready, from 0 to 1.
    #[serde(default)]
    pub failing_share: f64,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub reason: Reason,
    /// One sentence for people.
    pub message: String,
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The caller is not known.
    Unauthorized,
    /// The caller has no right, or the request is from another site.
    Forbidden,
    /// There is no such object or page.
    NotFound,
    /// The question cannot be understood.
    Invalid,
    /// The cluster does not answer, or too much is being done already.
    Unavailable,
}

impl Problem {
    /// A problem.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = match self.reason {
            Reason::Unauthorized => StatusCode::UNAUTHORIZED,
            Reason::Forbidden => StatusCode::FORBIDDEN,
            Reason::NotFound => StatusCode::NOT_FOUND,
            Reason::Invalid => StatusCode::BAD_REQUEST,
            Reason::Unavailable => StatusCode::BAD_GATEWAY,
        };
        (status, Json(serde_json::json!({ "error": self.message }))).into_response()
    }
}
