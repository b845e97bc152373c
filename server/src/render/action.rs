//! Actions of a plan as messages.

use nodewise_planner::plan::{
    Action, ActionKind, Event, EventType, ObjectClaim, ObjectRef, PatchType, Reason, Resource, Subresource,
    WriteEvents,
};
use nodewise_planner::rollout::measurement::{MeasurementRequest, Provider};
use nodewise_proto::v1::{self, action::Kind};

use super::status::daemon_set;

/// The action as a message with this id.
pub(super) fn action(action: Action, id: u32) -> v1::Action {
    let (kind, events) = kind(action.kind);
    v1::Action {
        id,
        reason: reason(action.reason).into(),
        message: action.message,
        kind: Some(kind),
        success_events: events.success.into_iter().map(event).collect(),
        failure_event: events.failure.map(|failure| Box::new(event(failure))),
    }
}

fn event(event: Event) -> v1::EmitEvent {
    v1::EmitEvent {
        r#type: match event.event_type {
            EventType::Normal => "Normal".to_owned(),
            EventType::Warning => "Warning".to_owned(),
        },
        reason: event.reason.to_owned(),
        message: event.message,
    }
}

fn resource(resource: Resource) -> v1::GroupVersionResource {
    let (group, version, resource) = match resource {
        Resource::ReplicaSets => ("apps", "v1", "replicasets"),
        Resource::Deployments => ("apps", "v1", "deployments"),
        Resource::RolloutPolicies => ("nodewise.dev", "v1alpha1", "rolloutpolicies"),
    };
    v1::GroupVersionResource {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
    }
}

fn object(object: ObjectRef) -> v1::ObjectReference {
    v1::ObjectReference {
        name: object.name,
        uid: object.uid,
    }
}

/// The write, and the Events that follow it.
#[allow(clippy::too_many_lines, reason = "one arm for each kind of action")]
fn kind(kind: ActionKind) -> (Kind, WriteEvents) {
    let kind = match kind {
        ActionKind::CreateObject {
            resource: of,
            name,
            manifest,
            events,
        } => {
            let create = v1::CreateObject {
                resource: Some(resource(of)),
                name,
                manifest: manifest.into(),
            };
            return (Kind::CreateObject(Box::new(create)), *events);
        }
        ActionKind::PatchObject {
            resource: of,
            object: reference,
            subresource,
            patch_type,
            patch,
            failure_pointer,
            claim,
            events,
        } => {
            let patch = v1::PatchObject {
                resource: Some(resource(of)),
                object: Some(object(reference)),
                subresource: match subresource {
                    Subresource::None => String::new(),
                    Subresource::Status => "status".to_owned(),
                },
                patch_type: match patch_type {
                    PatchType::Merge => v1::PatchType::Merge.into(),
                    PatchType::StrategicMerge => v1::PatchType::StrategicMerge.into(),
                },
                patch: patch.into(),
                failure_pointer,
                claim: match claim {
                    None => v1::Claim::Unspecified.into(),
                    Some(ObjectClaim::Adopt) => v1::Claim::Adopt.into(),
                    Some(ObjectClaim::Release) => v1::Claim::Release.into(),
                },
            };
            return (Kind::PatchObject(Box::new(patch)), *events);
        }
        ActionKind::DeleteObject {
            resource: of,
            object: reference,
            resource_version,
        } => Kind::DeleteObject(Box::new(v1::DeleteObject {
            resource: Some(resource(of)),
            object: Some(object(reference)),
            resource_version,
        })),
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
        ActionKind::EvictPod { pod, node_name } => Kind::EvictPod(v1::EvictPod {
            pod: Some(object(pod)),
            node_name,
        }),
        ActionKind::Measure(request) => Kind::Measure(Box::new(measure(*request))),
        ActionKind::UpdateStatus {
            status,
            collision,
            uid_precondition,
        } => Kind::UpdateStatus(v1::UpdateStatus {
            uid_precondition,
            // When the collision count is raised, only that field of the live status is written.
            status: collision.is_none().then(|| daemon_set(status)),
            collision_count: collision.map(|collision| collision.count),
            expected_collision_count: collision.and_then(|collision| collision.expected),
        }),
        ActionKind::EmitEvent {
            event_type,
            reason,
            message,
        } => Kind::EmitEvent(event(Event {
            event_type,
            reason,
            message,
        })),
    };
    (kind, WriteEvents::default())
}

fn measure(request: MeasurementRequest) -> v1::Measure {
    let id = request.id;
    v1::Measure {
        id: Some(v1::MeasurementId {
            policy_uid: id.policy_uid,
            revision_hash: id.revision_hash,
            stage: id.stage,
            check: id.check,
            number: id.number,
        }),
        policy_name: request.policy_name,
        credential: request.credential,
        provider: Some(match request.provider {
            Provider::Prometheus { address, query } => {
                v1::measure::Provider::Prometheus(v1::PrometheusQuery { address, query })
            }
            Provider::Webhook { url } => v1::measure::Provider::Webhook(v1::WebhookCall { url }),
            Provider::Grpc { address, tls } => {
                v1::measure::Provider::VerdictService(v1::VerdictCall { address, tls })
            }
        }),
    }
}

pub(super) fn reason(reason: Reason) -> v1::Reason {
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
        Reason::TooFewPods => v1::Reason::TooFewPods,
        Reason::TooManyPods => v1::Reason::TooManyPods,
        Reason::ReplicasChanged => v1::Reason::ReplicasChanged,
        Reason::ScaleUpNew => v1::Reason::ScaleUpNew,
        Reason::ScaleDownNew => v1::Reason::ScaleDownNew,
        Reason::ScaleDownUnhealthy => v1::Reason::ScaleDownUnhealthy,
        Reason::ScaleDownOld => v1::Reason::ScaleDownOld,
        Reason::Recreate => v1::Reason::Recreate,
        Reason::MetadataChanged => v1::Reason::MetadataChanged,
        Reason::ConditionChanged => v1::Reason::ConditionChanged,
        Reason::WritesFailed => v1::Reason::WritesFailed,
        Reason::RollbackRequested => v1::Reason::RollbackRequested,
        Reason::PolicyStatusChanged => v1::Reason::PolicyStatusChanged,
        Reason::AnalysisDue => v1::Reason::AnalysisDue,
        Reason::RevisionRejected => v1::Reason::RevisionRejected,
    }
}
