//! The outcome of one action, and what follows from it.

use std::time::Duration;

use crate::{
    Resource,
    actuator::{ActuatorError, ObjectKey, Written},
};
use nodewise_proto::v1::{self, action::Kind, outcome::Subject};

use super::{Blocked, Colliding, OwnWrite, removed_pod};

/// The outcome of one action, and what follows from it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) outcome: v1::Outcome,
    pub(super) write: Option<OwnWrite>,
    pub(super) colliding: Option<Colliding>,
    /// The object that an adoption did not find.
    pub(super) vanished: Option<ObjectKey>,
    /// The revision, or the pod to adopt, that the apiserver does not let anyone change.
    pub(super) sealed: Option<ObjectKey>,
    /// The eviction that a PodDisruptionBudget did not allow.
    pub(super) blocked: Option<Blocked>,
    /// The rest of the plan must not be carried out, whether or not the action failed.
    pub(super) ends_plan: bool,
}

impl Done {
    fn new(action: &v1::Action, result: v1::Result) -> Self {
        let outcome = v1::Outcome {
            action_id: action.id,
            result: result.into(),
            message: String::new(),
            http_status: 0,
            ignored: false,
            subject: subject(action),
        };
        Self {
            outcome,
            write: None,
            colliding: None,
            vanished: None,
            sealed: None,
            blocked: None,
            ends_plan: false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome.result() == v1::Result::Failed
    }

    pub(super) fn skipped(action: &v1::Action) -> Self {
        Self::new(action, v1::Result::Skipped)
    }

    /// The same outcome, which is no reason to retry if `is_ignored`.
    pub(super) fn ignored_if(mut self, is_ignored: bool) -> Self {
        self.outcome.ignored = is_ignored;
        self
    }

    /// An action that is not carried out, with the reason.
    pub(super) fn left_out(action: &v1::Action, why: &str) -> Self {
        let mut done = Self::skipped(action);
        why.clone_into(&mut done.outcome.message);
        done
    }

    pub(super) fn failed(action: &v1::Action, error: &ActuatorError) -> Self {
        Self::refused(action, v1::Result::Failed, error)
    }

    pub(super) fn refused(action: &v1::Action, result: v1::Result, error: &ActuatorError) -> Self {
        let mut done = Self::new(action, result);
        done.outcome.message = error.to_string();
        done.outcome.http_status = error.http_status.into();
        done
    }

    /// An eviction that a PodDisruptionBudget does not allow now.
    pub(super) fn blocked(
        action: &v1::Action,
        pod_uid: &str,
        message: &str,
        retry_after: Option<Duration>,
    ) -> Self {
        let mut done = Self::new(action, v1::Result::Blocked);
        message.clone_into(&mut done.outcome.message);
        done.outcome.http_status = 429;
        done.blocked = Some(Blocked {
            pod_uid: pod_uid.to_owned(),
            message: message.to_owned(),
            retry_after,
        });
        done
    }

    /// A revision that does not exist shows that the cache is behind, and a newer cache may lead to another plan. So
    /// the plan fails, as upstream's sync does (D-56, D-63).
    pub(super) fn failed_if_not_found(mut self) -> Self {
        if self.outcome.result() == v1::Result::NotFound {
            self.outcome.result = v1::Result::Failed.into();
        }
        self
    }

    pub(super) fn succeeded(action: &v1::Action) -> Self {
        Self::new(action, v1::Result::Succeeded)
    }

    /// Ends the plan after this action.
    pub(super) fn ending_plan(self) -> Self {
        Self {
            ends_plan: true,
            ..self
        }
    }

    /// A success that the caches have to show before the next plan is made.
    pub(super) fn recorded(action: &v1::Action, resource: Resource, written: Written) -> Self {
        let write = (!written.resource_version.is_empty()).then_some(OwnWrite {
            resource,
            resource_version: written.resource_version,
            created_pod: named_create(action),
        });
        Self {
            write,
            ..Self::succeeded(action)
        }
    }
}

/// The name of the pod that an action creates, if it is in the plan.
fn named_create(action: &v1::Action) -> Option<String> {
    match &action.kind {
        Some(Kind::CreatePod(create)) if !create.pod_name.is_empty() => Some(create.pod_name.clone()),
        _ => None,
    }
}

/// The expectation that an action's outcome settles or leaves open.
fn subject(action: &v1::Action) -> Option<Subject> {
    match &action.kind {
        Some(Kind::CreatePod(create)) => Some(Subject::CreatedPod(v1::ExpectedCreate {
            pod_name: create.pod_name.clone(),
            node_name: create.node_name.clone(),
        })),
        _ => removed_pod(action).map(|(pod, _)| Subject::DeletedPodUid(pod.uid.clone())),
    }
}
