//! What became of the actions of a plan.

use crate::core::snapshot::ExpectedCreate;

/// What became of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The action's id: its place in the plan, from 1.
    pub action_id: u32,
    /// How it ended.
    pub result: OutcomeResult,
    /// The error, for people; empty after success.
    pub message: String,
    /// The HTTP status of the answer; 0 when there was none.
    pub http_status: u32,
    /// For creates and deletes of pods, which expectation it is about.
    pub subject: Option<Subject>,
}

impl Outcome {
    /// Another pod has the name (of another owner, node or hash): the next plan gives another one.
    pub(crate) fn is_pod_name_taken(&self) -> bool {
        self.result == OutcomeResult::NameTaken && matches!(self.subject, Some(Subject::CreatedPod(_)))
    }

    pub(crate) fn has_failed(&self) -> bool {
        match self.result {
            OutcomeResult::Failed => true,
            OutcomeResult::NameTaken => !self.is_pod_name_taken(),
            _ => false,
        }
    }
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeResult {
    /// Done.
    Succeeded,
    /// Create: a pod of that name is ours, on the same node and of the same revision.
    AlreadyExists,
    /// Create: another pod has the name.
    NameTaken,
    /// Delete, adopt, release: the object is gone.
    NotFound,
    /// Create: refused because the namespace is terminating.
    NamespaceTerminating,
    /// Failed.
    Failed,
    /// Not attempted.
    Skipped,
}

/// The expectation that an outcome is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The create.
    CreatedPod(ExpectedCreate),
    /// The uid of the pod to delete.
    DeletedPodUid(String),
}
