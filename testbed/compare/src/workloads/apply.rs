//! Applies a plan as an executor does: phases, batches, conditions, failures and events.

use anyhow::{Context as _, Result};
use nodewise_planner::plan::{
    Action, ActionKind, EventType, ObjectClaim, ObjectRef, Phase, PhaseKind, Plan, Resource, Subresource,
    When, WriteEvents,
};
use serde_json::Value;

use super::api::{Api, Patch, Refusal, noun, subjects};
use super::read::{is_deleting, text};
use crate::case::Kind;

/// What became of a plan.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The error of the failed action with the lowest id, if an action failed whose failure counts.
    pub(super) failure: Option<String>,
    /// Orphans that an adoption did not find: a resource and a name. The next plan follows at once, without them.
    pub(super) vanished: Vec<(String, String)>,
    /// The objects that a write changed, as they are now.
    pub(super) written: Vec<(String, Value)>,
    /// The live object whose name a create found taken. The next plan follows at once, with it.
    pub(super) colliding: Option<Value>,
    /// Creates of pods that failed or were not tried.
    pub(super) creates_left: usize,
    /// Creates that were refused because the namespace is terminating.
    pub(super) creates_in_terminating_namespace: usize,
    /// Uids of pods whose deletion failed, was not tried, or found nothing.
    pub(super) deletes_left: Vec<String>,
}

/// How an action ended.
enum Done {
    Succeeded,
    /// With an error that says so.
    Failed(String),
    /// The plan ends, without or with an error. Nothing is said about the object.
    EndsPlan(Option<String>),
}

/// The workload that a plan is for.
pub(super) struct Workload<'a> {
    pub(super) kind: Kind,
    pub(super) object: &'a Value,
}

/// Applies `plan`.
pub(super) fn apply(plan: &Plan, api: &mut Api, workload: &Workload<'_>) -> Result<Applied> {
    let mut run = Run {
        plan,
        api,
        workload,
        applied: Applied::default(),
        any_failure: false,
        is_over: false,
    };
    for phase in &plan.phases {
        run.phase(phase)?;
    }
    Ok(run.applied)
}

struct Run<'a> {
    plan: &'a Plan,
    api: &'a mut Api,
    workload: &'a Workload<'a>,
    applied: Applied,
    any_failure: bool,
    /// No phase runs any more.
    is_over: bool,
}

impl Run<'_> {
    fn phase(&mut self, phase: &Phase) -> Result<()> {
        let mut stopped = self.is_over
            || match phase.when {
                When::Always => false,
                When::AfterSuccess => self.any_failure,
                When::AfterFailure => !self.any_failure,
            };
        let counts = phase.kind != PhaseKind::Events && !phase.ignores_failure;
        let (mut failed, mut ends) = (false, false);
        for batch in &phase.batches {
            if stopped {
                batch.actions.iter().for_each(|action| self.skip(action));
                continue;
            }
            let before = self.applied.failure.clone();
            let confirmed = if batch.confirm_workload {
                self.confirm()
            } else {
                Ok(())
            };
            for action in &batch.actions {
                let done = match &confirmed {
                    Err(error) if is_adoption(action) => Done::Failed(error.clone()),
                    Err(error) if is_create(action) => {
                        self.skip(action);
                        Done::EndsPlan(Some(error.clone()))
                    }
                    _ => self.act(action, before.as_deref())?,
                };
                let error = match done {
                    Done::Succeeded => continue,
                    Done::Failed(error) => Some(error),
                    Done::EndsPlan(error) => {
                        ends = true;
                        error
                    }
                };
                if let Some(error) = error {
                    failed = true;
                    if counts {
                        self.applied.failure.get_or_insert(error);
                    }
                }
            }
            stopped = failed || ends || !self.applied.vanished.is_empty();
        }
        ends |= !self.applied.vanished.is_empty();
        self.any_failure |= failed && counts;
        self.is_over |= failed && counts && phase.kind.aborts_on_failure() || ends;
        Ok(())
    }

    /// Reads the workload before adoptions and creates.
    fn confirm(&mut self) -> Result<(), String> {
        let resource = subjects(self.workload.kind);
        let name = text(self.workload.object, "/metadata/name");
        let live = self
            .api
            .get(&format!("get-{}", noun(resource)), resource, name)
            .map_err(|refusal| refusal.message())?;
        if live["metadata"]["uid"] != self.workload.object["metadata"]["uid"] {
            return Err("the workload was replaced".to_owned());
        }
        if is_deleting(&live) {
            return Err("the workload is being deleted".to_owned());
        }
        Ok(())
    }

    fn skip(&mut self, action: &Action) {
        match &action.kind {
            ActionKind::CreatePod { .. } => self.applied.creates_left += 1,
            ActionKind::DeletePod { pod, .. } => self.applied.deletes_left.push(pod.uid.clone()),
            _ => {}
        }
    }

    fn act(&mut self, action: &Action, failure: Option<&str>) -> Result<Done> {
        match &action.kind {
            ActionKind::AdoptPod { pod, patch } => self.claim(&CLAIMED_PODS, pod, patch, ObjectClaim::Adopt),
            ActionKind::ReleasePod { pod, patch } => {
                self.claim(&CLAIMED_PODS, pod, patch, ObjectClaim::Release)
            }
            ActionKind::CreatePod { pod_name, .. } => self.create_pod(pod_name),
            ActionKind::DeletePod {
                pod,
                uid_precondition,
                ..
            } => Ok(self.delete_pod(pod, *uid_precondition)),
            ActionKind::EmitEvent {
                event_type,
                reason,
                message,
            } => {
                self.api.emit(*event_type, reason, message.clone());
                Ok(Done::Succeeded)
            }
            ActionKind::CreateObject {
                name,
                manifest,
                events,
                ..
            } => self.create_object(name, manifest, events),
            ActionKind::PatchObject {
                object,
                patch,
                claim: Some(claim),
                ..
            } => self.claim(&CLAIMED_SETS, object, patch, *claim),
            ActionKind::PatchObject { .. } => self.patch(action, failure),
            ActionKind::DeleteObject {
                object,
                resource_version,
                ..
            } => {
                let deleted =
                    self.api
                        .delete("replicasets", &object.name, Some(&object.uid), resource_version);
                Ok(match deleted {
                    Ok(()) => Done::Succeeded,
                    Err(refusal) if refusal.code == 404 => Done::Succeeded,
                    Err(refusal) => Done::Failed(refusal.message()),
                })
            }
            other => anyhow::bail!("a plan for a {:?} has the action {other:?}", self.workload.kind),
        }
    }

    fn claim(
        &mut self,
        claimed: &Claimed,
        object: &ObjectRef,
        patch: &[u8],
        claim: ObjectClaim,
    ) -> Result<Done> {
        let patch = Patch {
            body: serde_json::from_slice(patch).context("the patch of a claim")?,
            is_strategic: true,
            is_status: false,
        };
        let op = match claim {
            ObjectClaim::Adopt => format!("adopt-{}", claimed.noun),
            ObjectClaim::Release => format!("release-{}", claimed.noun),
        };
        let patched = self.api.patch(&op, claimed.resource, &object.name, &patch);
        Ok(match (patched, claim) {
            (Ok(now), _) => {
                self.applied.written.push((claimed.resource.to_owned(), now));
                Done::Succeeded
            }
            (Err(refusal), ObjectClaim::Adopt) if refusal.code == 404 => {
                let key = (claimed.resource.to_owned(), object.name.clone());
                self.applied.vanished.push(key);
                Done::Succeeded
            }
            (Err(refusal), ObjectClaim::Release) if [404, 422].contains(&refusal.code) => Done::Succeeded,
            (Err(refusal), _) => Done::Failed(refusal.message()),
        })
    }

    fn create_pod(&mut self, pod_name: &str) -> Result<Done> {
        let manifest = self
            .plan
            .pod_manifest
            .as_ref()
            .context("a plan without a manifest")?;
        let mut pod: Value = serde_json::from_slice(&manifest.json).context("the manifest of pods")?;
        if !pod_name.is_empty() {
            pod["metadata"]["name"] = pod_name.into();
        }
        Ok(match self.api.create_pod(pod) {
            Ok(name) => {
                let message = format!("Created pod: {name}");
                self.api.emit(EventType::Normal, "SuccessfulCreate", message);
                Done::Succeeded
            }
            Err(refusal) if refusal.is_namespace_terminating() => {
                self.applied.creates_in_terminating_namespace += 1;
                Done::Succeeded
            }
            Err(refusal) => {
                self.applied.creates_left += 1;
                let message = format!("Error creating: {}", refusal.message());
                self.api.emit(EventType::Warning, "FailedCreate", message);
                Done::Failed(refusal.message())
            }
        })
    }

    fn delete_pod(&mut self, pod: &ObjectRef, with_uid: bool) -> Done {
        let uid = with_uid.then_some(pod.uid.as_str());
        match self.api.delete("pods", &pod.name, uid, "") {
            Ok(()) => {
                let message = format!("Deleted pod: {}", pod.name);
                self.api.emit(EventType::Normal, "SuccessfulDelete", message);
                Done::Succeeded
            }
            Err(refusal) => {
                self.applied.deletes_left.push(pod.uid.clone());
                if refusal.code == 404 {
                    return Done::Succeeded;
                }
                let message = format!("Error deleting: {}", refusal.message());
                self.api.emit(EventType::Warning, "FailedDelete", message);
                Done::Failed(refusal.message())
            }
        }
    }

    fn create_object(&mut self, name: &str, manifest: &[u8], events: &WriteEvents) -> Result<Done> {
        let manifest = serde_json::from_slice(manifest).context("the manifest of an object")?;
        let refusal = match self.api.create_set(name, manifest) {
            Ok(()) => {
                self.emit_success(events);
                return Ok(Done::Succeeded);
            }
            Err(refusal) => refusal,
        };
        if refusal.is_already_exists() {
            return Ok(match self.api.get("get-replicaset", "replicasets", name) {
                Ok(live) => {
                    self.applied.colliding = Some(live);
                    Done::EndsPlan(None)
                }
                Err(_) => Done::EndsPlan(Some(refusal.message())),
            });
        }
        // The key is not retried: every create in that namespace will fail.
        if refusal.is_namespace_terminating() {
            return Ok(Done::EndsPlan(None));
        }
        Ok(self.fail(events, &refusal))
    }

    fn patch(&mut self, action: &Action, failure: Option<&str>) -> Result<Done> {
        let ActionKind::PatchObject {
            resource,
            object,
            subresource,
            patch,
            failure_pointer,
            events,
            ..
        } = &action.kind
        else {
            return Ok(Done::Succeeded);
        };
        let mut body: Value = serde_json::from_slice(patch).context("a patch")?;
        if let Some(Value::String(message)) = Some(&**failure_pointer)
            .filter(|pointer| !pointer.is_empty())
            .and_then(|pointer| body.pointer_mut(pointer))
        {
            message.push_str(failure.unwrap_or_default());
        }
        let patch = Patch {
            body,
            is_strategic: false,
            is_status: *subresource == Subresource::Status,
        };
        let (resource, op) = match (resource, subresource) {
            (Resource::ReplicaSets, Subresource::Status) => ("replicasets", "update-status"),
            (Resource::ReplicaSets, Subresource::None) => ("replicasets", "update-replicaset"),
            (Resource::Deployments, Subresource::Status) => ("deployments", "update-status"),
            (Resource::Deployments, Subresource::None) => ("deployments", "update-deployment"),
            (Resource::RolloutPolicies, _) => anyhow::bail!("upstream knows no RolloutPolicies"),
        };
        Ok(match self.api.patch(op, resource, &object.name, &patch) {
            Ok(now) => {
                self.applied.written.push((resource.to_owned(), now));
                self.emit_success(events);
                Done::Succeeded
            }
            Err(refusal) => self.fail(events, &refusal),
        })
    }

    fn emit_success(&mut self, events: &WriteEvents) {
        for event in &events.success {
            self.api.emit_event(event, "");
        }
    }

    fn fail(&mut self, events: &WriteEvents, refusal: &Refusal) -> Done {
        if let Some(event) = &events.failure {
            self.api.emit_event(event, &format!(": {}", refusal.message()));
        }
        Done::Failed(refusal.message())
    }
}

/// The objects that a kind of workload claims.
struct Claimed {
    resource: &'static str,
    noun: &'static str,
}

const CLAIMED_PODS: Claimed = Claimed {
    resource: "pods",
    noun: "pod",
};
const CLAIMED_SETS: Claimed = Claimed {
    resource: "replicasets",
    noun: "replicaset",
};

fn is_create(action: &Action) -> bool {
    matches!(
        action.kind,
        ActionKind::CreatePod { .. } | ActionKind::CreateObject { .. }
    )
}

fn is_adoption(action: &Action) -> bool {
    matches!(
        action.kind,
        ActionKind::AdoptPod { .. }
            | ActionKind::PatchObject {
                claim: Some(ObjectClaim::Adopt),
                ..
            }
    )
}
