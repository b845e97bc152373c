//! The actions of a plan without its phases and batches, and the name of an action's kind.

use crate::v1::{self, action::Kind};

impl v1::Plan {
    /// All actions, in the order in which they are applied.
    pub fn actions(&self) -> impl Iterator<Item = &v1::Action> {
        let batches = self.phases.iter().flat_map(|phase| &phase.batches);
        batches.flat_map(|batch| &batch.actions)
    }
}

impl v1::Action {
    /// The name of the action's kind, such as `CreatePod`, for logs and metrics. `unknown` for a kind of a newer version.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Some(Kind::CreateRevision(_)) => "CreateRevision",
            Some(Kind::UpdateRevision(_)) => "UpdateRevision",
            Some(Kind::DeleteRevision(_)) => "DeleteRevision",
            Some(Kind::AdoptRevision(_)) => "AdoptRevision",
            Some(Kind::ReleaseRevision(_)) => "ReleaseRevision",
            Some(Kind::AdoptPod(_)) => "AdoptPod",
            Some(Kind::ReleasePod(_)) => "ReleasePod",
            Some(Kind::RelabelPod(_)) => "RelabelPod",
            Some(Kind::CreatePod(_)) => "CreatePod",
            Some(Kind::DeletePod(_)) => "DeletePod",
            Some(Kind::UpdateStatus(_)) => "UpdateStatus",
            Some(Kind::EmitEvent(_)) => "EmitEvent",
            Some(Kind::CreateObject(_)) => "CreateObject",
            Some(Kind::PatchObject(_)) => "PatchObject",
            Some(Kind::DeleteObject(_)) => "DeleteObject",
            Some(Kind::EvictPod(_)) => "EvictPod",
            Some(Kind::Measure(_)) => "Measure",
            None => "unknown",
        }
    }

    /// Whether the action creates an object.
    #[must_use]
    pub fn is_create(&self) -> bool {
        matches!(
            self.kind,
            Some(Kind::CreatePod(_) | Kind::CreateRevision(_) | Kind::CreateObject(_))
        )
    }

    /// Whether the action makes the workload the controller of an object.
    #[must_use]
    pub fn is_adoption(&self) -> bool {
        match &self.kind {
            Some(Kind::AdoptPod(_) | Kind::AdoptRevision(_)) => true,
            Some(Kind::PatchObject(patch)) => patch.claim() == v1::Claim::Adopt,
            _ => false,
        }
    }
}
