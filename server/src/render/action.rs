//! Actions of a plan as messages.

use nodewise_planner::plan::{Action, ActionKind, EventType, ObjectRef, Reason};
use nodewise_proto::v1::{self, action::Kind};

use super::status::status as render_status;

/// The action as a message with this id.
pub(super) fn action(action: Action, id: u32) -> v1::Action {
    v1::Action {
        id,
        reason: reason(action.reason).into(),
        message: action.message,
        kind: Some(kind(action.kind)),
    }
}

fn object(object: ObjectRef) -> v1::ObjectReference {
    v1::ObjectReference {
        name: object.name,
        uid: object.uid,
    }
}

fn kind(kind: ActionKind) -> Kind {
    match kind {
        ActionKind::CreateRevision { name, manifest } => Kind::CreateRevision(v1::CreateRevision {
            name,
            manifest: manifest.into(),
        }),
        ActionKind::UpdateRevision {
            revision,
            patch,
            number,
        } => Kind::UpdateRevision(v1::UpdateRevision {
            revision: Some(object(revision)),
            patch: patch.into(),
            revision_number: number,
        }),
        ActionKind::DeleteRevision { revision, number } => Kind::DeleteRevision(v1::DeleteRevision {
            revision: Some(object(revision)),
            revision_number: number,
        }),
        ActionKind::AdoptRevision { revision, patch } => Kind::AdoptRevision(v1::AdoptRevision {
            revision: Some(object(revision)),
            patch: patch.into(),
        }),
        ActionKind::ReleaseRevision { revision, patch } => Kind::ReleaseRevision(v1::ReleaseRevision {
            revision: Some(object(revision)),
            patch: patch.into(),
        }),
        ActionKind::AdoptPod { pod, patch } => Kind::AdoptPod(v1::AdoptPod {
            pod: Some(object(pod)),
            patch: patch.into(),
        }),
        ActionKind::ReleasePod { pod, patch } => Kind::ReleasePod(v1::ReleasePod {
            pod: Some(object(pod)),
            patch: patch.into(),
        }),
        ActionKind::RelabelPod { pod, patch } => Kind::RelabelPod(v1::RelabelPod {
            pod: Some(object(pod)),
            patch: patch.into(),
        }),
        ActionKind::CreatePod { pod_name, node_name } => {
            Kind::CreatePod(v1::CreatePod { pod_name, node_name })
        }
        ActionKind::DeletePod {
            pod,
            node_name,
            uid_precondition,
        } => Kind::DeletePod(v1::DeletePod {
            pod: Some(object(pod)),
            node_name,
            uid_precondition,
        }),
        ActionKind::UpdateStatus {
            status,
            collision,
            uid_precondition,
        } => Kind::UpdateStatus(v1::UpdateStatus {
            uid_precondition,
            // When the collision count is raised, only that field of the live status is written.
            status: status
                .daemon_set()
                .filter(|_| collision.is_none())
                .map(render_status),
            collision_count: collision.map(|collision| collision.count),
            expected_collision_count: collision.and_then(|collision| collision.expected),
        }),
        ActionKind::EmitEvent {
            event_type,
            reason,
            message,
        } => Kind::EmitEvent(v1::EmitEvent {
            r#type: match event_type {
                EventType::Normal => "Normal".to_owned(),
                EventType::Warning => "Warning".to_owned(),
            },
            reason: reason.to_owned(),
            message,
        }),
    }
}

fn reason(reason: Reason) -> v1::Reason {
    match reason {
        Reason::NodeWithoutPod => v1::Reason::NodeWithoutPod,
        Reason::NodeWithoutLivePod => v1::Reason::NodeWithoutLivePod,
        Reason::SurgeOldUnavailable => v1::Reason::SurgeOldUnavailable,
        Reason::SurgeWithinBudget => v1::Reason::SurgeWithinBudget,
        Reason::NodeNotEligible => v1::Reason::NodeNotEligible,
        Reason::ExcessPod => v1::Reason::ExcessPod,
        Reason::PodFailed => v1::Reason::PodFailed,
        Reason::PodSucceeded => v1::Reason::PodSucceeded,
        Reason::SurgeOldNotReady => v1::Reason::SurgeOldNotReady,
        Reason::SurgeNewAvailable => v1::Reason::SurgeNewAvailable,
        Reason::NodeMissing => v1::Reason::NodeMissing,
        Reason::RolloutOldUnavailable => v1::Reason::RolloutOldUnavailable,
        Reason::RolloutWithinBudget => v1::Reason::RolloutWithinBudget,
        Reason::RolloutNodeSunset => v1::Reason::RolloutNodeSunset,
        Reason::SelectorMatches => v1::Reason::SelectorMatches,
        Reason::SelectorDoesNotMatch => v1::Reason::SelectorDoesNotMatch,
        Reason::NewTemplate => v1::Reason::NewTemplate,
        Reason::Rollback => v1::Reason::Rollback,
        Reason::HashLabelMissing => v1::Reason::HashLabelMissing,
        Reason::DuplicateRevision => v1::Reason::DuplicateRevision,
        Reason::HistoryLimit => v1::Reason::HistoryLimit,
        Reason::StatusChanged => v1::Reason::StatusChanged,
        Reason::GenerationObserved => v1::Reason::GenerationObserved,
        Reason::RevisionNameCollision => v1::Reason::RevisionNameCollision,
        Reason::SelectingAll => v1::Reason::SelectingAll,
        Reason::InvalidAnnotation => v1::Reason::InvalidAnnotation,
        Reason::StatusRewritten => v1::Reason::StatusRewritten,
    }
}
