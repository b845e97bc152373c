//! The outcome of one action, and what follows from it.

use crate::{
    Resource,
    actuator::{ActuatorError, ObjectKey, Written},
};
use bytes::Bytes;
use nodewise_proto::v1::{self, action::Kind, outcome::Subject};

use super::OwnWrite;

/// The outcome of one action, and what follows from it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) outcome: v1::Outcome,
    pub(super) write: Option<OwnWrite>,
    pub(super) colliding_revision: Option<Bytes>,
    /// The object that an adoption did not find.
    pub(super) vanished: Option<ObjectKey>,
    /// The revision, or the pod to adopt, that the apiserver does not let anyone change.
    pub(super) sealed: Option<ObjectKey>,
}

impl Done {
    fn new(action: &v1::Action, result: v1::Result) -> Self {
        let outcome = v1::Outcome {
            action_id: action.id,
            result: result.into(),
            message: String::new(),
            http_status: 0,
            subject: subject(action),
        };
        Self {
            outcome,
            write: None,
            colliding_revision: None,
            vanished: None,
            sealed: None,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome.result() == v1::Result::Failed
    }

    pub(super) fn skipped(action: &v1::Action) -> Self {
        Self::new(action, v1::Result::Skipped)
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

    /// A success that the caches have to show before the next plan is made.
    pub(super) fn recorded(action: &v1::Action, resource: Resource, written: Written) -> Self {
        let write = (!written.resource_version.is_empty()).then_some(OwnWrite {
            resource,
            resource_version: written.resource_version,
            is_expected_by_name: is_named_create(action),
        });
        Self {
            write,
            ..Self::succeeded(action)
        }
    }
}

/// Whether an action creates a pod whose name is in the plan.
fn is_named_create(action: &v1::Action) -> bool {
    matches!(&action.kind, Some(Kind::CreatePod(create)) if !create.pod_name.is_empty())
}

/// The expectation that an action's outcome settles or leaves open.
fn subject(action: &v1::Action) -> Option<Subject> {
    match &action.kind {
        Some(Kind::CreatePod(create)) => Some(Subject::CreatedPod(v1::ExpectedCreate {
            pod_name: create.pod_name.clone(),
            node_name: create.node_name.clone(),
        })),
        Some(Kind::DeletePod(delete)) => delete
            .pod
            .as_ref()
            .map(|pod| Subject::DeletedPodUid(pod.uid.clone())),
        _ => None,
    }
}
