//! The results of a plan's actions, as an executor reports them.

use crate::core::snapshot::ExpectedCreate;

/// The result of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The action's id: its position in the plan, from 1.
    pub action_id: u32,
    /// The result.
    pub result: OutcomeResult,
    /// The error, for people; empty after success.
    pub message: String,
    /// The HTTP status of the response; 0 if there was none.
    pub http_status: u32,
    /// For creates and deletes of pods: the expectation that the action set.
    pub subject: Option<Subject>,
    /// The result is no reason to retry.
    pub ignored: bool,
}

impl Outcome {
    /// Another pod has the name: its owner, node or hash differs. The next plan uses another name.
    pub(crate) fn is_pod_name_taken(&self) -> bool {
        self.result == OutcomeResult::NameTaken && matches!(self.subject, Some(Subject::CreatedPod(_)))
    }

    /// Whether the create of an object other than a pod failed because the namespace is being deleted.
    pub(crate) fn is_object_in_terminating_namespace(&self) -> bool {
        self.result == OutcomeResult::NamespaceTerminating && self.subject.is_none()
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
    /// The write succeeded.
    Succeeded,
    /// Create: the workload already has a pod of that name, on the same node and of the same revision.
    AlreadyExists,
    /// Create: another pod has the name.
    NameTaken,
    /// Delete, adopt, release: the object is gone.
    NotFound,
    /// Create: rejected because the namespace is terminating.
    NamespaceTerminating,
    /// The write failed.
    Failed,
    /// The executor did not try the action.
    Skipped,
    /// Evict: a PodDisruptionBudget does not allow it now.
    Blocked,
}

/// The expectation that an action set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A create.
    CreatedPod(ExpectedCreate),
    /// A delete: the uid of the pod.
    DeletedPodUid(String),
}
