//! Carries out one action: makes the API call and interprets each error of that call.

use std::sync::PoisonError;

use crate::{
    Resource,
    actuator::{Actuator, ActuatorError, Eviction, ObjectKey, Preconditions, Refusal},
    measurements::Subject,
};
use bytes::Bytes;
use nodewise_projection::{Key, Pod};
use nodewise_proto::v1::{self, action::Kind};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    Colliding,
    context::Context,
    done::Done,
    manifest,
    patching::{Part, Patching, Seal},
    status,
};

/// The state of an object, as a live read shows it after its delete was refused or got no answer.
enum DeletionState {
    /// The object does not exist, or another object has its name.
    Gone,
    /// It is being deleted.
    Deleting,
    /// The object is as before, or it cannot be read.
    Unchanged,
}

impl<A: Actuator> Context<'_, A> {
    /// Carries out one action, and emits the Events that follow it. `failure` is the first error of the plan so far.
    pub(super) async fn run(&self, action: &v1::Action, failure: Option<&str>) -> Done {
        if let Some(why) = self.not_kept(action) {
            let message =
                format!("The RolloutPolicy holds the rollout, and its status is not written: {why}");
            self.emit("Warning", "RolloutPolicyNotKept", message);
            return Done::succeeded(action);
        }
        let done = self.carry_out(action, failure).await;
        match done.outcome.result() {
            v1::Result::Succeeded => {
                let policy = self.patched_policy(action);
                for event in &action.success_events {
                    let objects = std::iter::once(self.workload.clone()).chain(policy.clone());
                    for object in objects {
                        self.emit_about(object, &event.r#type, &event.reason, event.message.clone());
                    }
                }
            }
            // An action that ends the plan says nothing about the object, and the next plan decides anew.
            v1::Result::Failed if !done.ends_plan => {
                if let Some(event) = &action.failure_event {
                    let message = format!("{}: {}", event.message, done.outcome.message);
                    self.emit(&event.r#type, &event.reason, message);
                }
            }
            _ => {}
        }
        done
    }

    /// The patch with which the plan writes the status of a RolloutPolicy. Empty if it does not.
    fn status_patch(&self, policy_uid: &str) -> Bytes {
        let mut patches = self.plan.actions().filter_map(|action| {
            let Some(Kind::PatchObject(patch)) = &action.kind else {
                return None;
            };
            let object = patch.object.as_ref()?;
            (object.uid == policy_uid).then(|| patch.patch.clone())
        });
        patches.next().unwrap_or_default()
    }

    /// Why the RolloutPolicy that an action patches is not kept, if its status is not either: a write would undo what others have
    /// decided, and the next plan would write it again.
    fn not_kept(&self, action: &v1::Action) -> Option<&str> {
        let patched = self.patched_policy(action)?;
        let policy = self.policies.iter().find(|policy| policy.uid == patched.uid)?;
        let reduced = policy.reduced.as_ref().filter(|reduced| !reduced.has_status)?;
        Some(&reduced.why)
    }

    /// The RolloutPolicy that an action patches.
    fn patched_policy(&self, action: &v1::Action) -> Option<v1::WorkloadReference> {
        let Some(Kind::PatchObject(patch)) = &action.kind else {
            return None;
        };
        let is_policy = self.resource_of(patch.resource.as_ref()) == Ok(Resource::ROLLOUT_POLICIES);
        let policy = patch.object.as_ref().filter(|_| is_policy)?;
        Some(v1::WorkloadReference {
            kind: Resource::ROLLOUT_POLICIES.kind.to_owned(),
            namespace: self.workload.namespace.clone(),
            name: policy.name.clone(),
            uid: policy.uid.clone(),
            resource_version: String::new(),
        })
    }

    async fn carry_out(&self, action: &v1::Action, failure: Option<&str>) -> Done {
        match &action.kind {
            Some(Kind::CreateRevision(create)) => self.create_revision(action, create).await,
            Some(Kind::DeleteRevision(delete)) => {
                let uid = Preconditions::uid;
                let done = self
                    .delete(action, Resource::REVISIONS, delete.revision.as_ref(), uid)
                    .await;
                done.failed_if_not_found()
            }
            Some(Kind::CreatePod(create)) => self.create_pod(action, create).await,
            Some(Kind::DeletePod(delete)) => self.delete_pod(action, delete).await,
            Some(Kind::EvictPod(evict)) => self.evict_pod(action, evict).await,
            Some(Kind::Measure(measure)) => {
                // An observer starts nothing.
                if self.actuator.writes() {
                    let v1::WorkloadReference {
                        namespace, name, uid, ..
                    } = &self.workload;
                    let key = Key::new(self.resource.kind, namespace, name);
                    let policy_uid = measure.id.as_ref().map_or("", |id| &id.policy_uid);
                    let mut policies = self.policies.iter();
                    let subject = Subject {
                        policy: policies.find(|policy| policy.uid == policy_uid).cloned(),
                        status_patch: self.status_patch(policy_uid),
                        ..Subject::new(key, uid)
                    };
                    self.measurements.start(&subject, measure);
                }
                Done::succeeded(action)
            }
            Some(Kind::UpdateStatus(update)) => self.update_status(action, update).await,
            Some(Kind::EmitEvent(event)) => {
                self.emit(&event.r#type, &event.reason, event.message.clone());
                Done::succeeded(action)
            }
            Some(Kind::CreateObject(create)) => self.create_object(action, create).await,
            Some(Kind::PatchObject(patch)) => self.patch_object(action, patch, failure).await,
            Some(Kind::DeleteObject(delete)) => self.delete_object(action, delete).await,
            other => {
                if let Some(patching) = other.as_ref().and_then(Patching::of) {
                    self.patch(action, patching).await
                } else {
                    let error = ActuatorError::unclear("this executor does not know this kind of action");
                    Done::failed(action, &error)
                }
            }
        }
    }

    async fn update_status(&self, action: &v1::Action, update: &v1::UpdateStatus) -> Done {
        match status::write(self, update).await {
            // The gate does not wait for the write of a collision count (D-109).
            Ok(_) if update.collision_count.is_some() => Done::succeeded(action),
            Ok(written) => Done::recorded(action, self.resource, written),
            Err(error) => Done::failed(action, &error),
        }
    }

    async fn create_revision(&self, action: &v1::Action, create: &v1::CreateRevision) -> Done {
        let created = self
            .actuator
            .create(
                Resource::REVISIONS,
                &self.workload.namespace,
                create.manifest.clone(),
            )
            .await;
        match created {
            Ok(_) => Done::succeeded(action),
            Err(error) if error.refusal == Refusal::AlreadyExists => {
                // The next plan needs the object that has the name. If this read fails, the next reconcile finds the name
                // taken again.
                Done {
                    colliding: self.colliding(Resource::REVISIONS, &create.name).await,
                    ..Done::failed(action, &error)
                }
            }
            Err(error) => Done::failed(action, &error),
        }
    }

    /// The live object that has the name of one to create; `None` if it cannot be read.
    pub(super) async fn colliding(&self, resource: Resource, name: &str) -> Option<Colliding> {
        let object = self.actuator.read(&self.key(resource, name)).await.ok()?;
        Some(Colliding { resource, object })
    }

    pub(super) async fn patch(&self, action: &v1::Action, patching: Patching<'_>) -> Done {
        let Patching {
            resource,
            object: Some(object),
            part,
            patch,
            gone,
            is_recorded,
        } = patching
        else {
            return Done::failed(action, &ActuatorError::unclear("the action names no object"));
        };
        let key = self.key(resource, &object.name);
        let written = match part {
            Part::Object => self.actuator.patch(&key, patch).await,
            Part::Status => self.actuator.patch_status(&key, patch).await,
        };
        match written {
            Ok(written) if is_recorded => Done::recorded(action, resource, written),
            Ok(_) => Done::succeeded(action),
            Err(error) => {
                // Updates of a sealed revision are also refused as invalid. The revision still exists.
                if let Some(seal) = Seal::of(resource, action.kind.as_ref(), &error) {
                    let message = seal.message(&key, &error);
                    tracing::warn!("{message}");
                    self.emit("Warning", seal.reason(), message);
                    Done {
                        sealed: seal.ends_plan().then_some(key),
                        ..Done::refused(action, v1::Result::NotFound, &error)
                    }
                } else if gone.contains(&error.refusal) {
                    Done {
                        vanished: action.is_adoption().then_some(key),
                        ..Done::refused(action, v1::Result::NotFound, &error)
                    }
                } else {
                    Done::failed(action, &error)
                }
            }
        }
    }

    /// Deletes an object. `preconditions` of its uid are sent.
    pub(super) async fn delete<'u>(
        &self,
        action: &v1::Action,
        resource: Resource,
        reference: Option<&'u v1::ObjectReference>,
        preconditions: impl FnOnce(&'u str) -> Preconditions<'u>,
    ) -> Done {
        let Some(reference) = reference else {
            return Done::failed(action, &ActuatorError::unclear("the action names no object"));
        };
        let key = self.key(resource, &reference.name);
        let preconditions = preconditions(&reference.uid);
        match self.actuator.delete(&key, preconditions).await {
            Ok(()) => Done::succeeded(action),
            Err(error) => self.not_deleted(action, &key, preconditions.uid, &error).await,
        }
    }

    /// Interprets the error of a delete of an object with this uid.
    async fn not_deleted(
        &self,
        action: &v1::Action,
        key: &ObjectKey,
        uid: Option<&str>,
        error: &ActuatorError,
    ) -> Done {
        match error.refusal {
            Refusal::NotFound => Done::refused(action, v1::Result::NotFound, error),
            refusal if refusal == Refusal::Conflict || error.is_unclear() => {
                match self.deletion_state(key, uid).await {
                    DeletionState::Gone => Done::refused(action, v1::Result::NotFound, error),
                    // The delete happened although the call failed. If it were reported as failed, no expectation would wait
                    // for the deletion, and the next plan could delete another pod as well.
                    DeletionState::Deleting => Done::succeeded(action),
                    DeletionState::Unchanged => Done::failed(action, error),
                }
            }
            _ => Done::failed(action, error),
        }
    }

    /// Reads the object of this name and compares its uid.
    async fn deletion_state(&self, key: &ObjectKey, uid: Option<&str>) -> DeletionState {
        let live = match self.actuator.read(key).await {
            Ok(live) => live,
            Err(error) if error.refusal == Refusal::NotFound => return DeletionState::Gone,
            Err(_) => return DeletionState::Unchanged,
        };
        let Ok(Served { metadata }) = nodewise_projection::parse_text(&String::from_utf8_lossy(&live)) else {
            return DeletionState::Unchanged;
        };
        if !metadata.uid.is_empty() && uid.is_some_and(|uid| metadata.uid != uid) {
            DeletionState::Gone
        } else if metadata.deletion_timestamp.is_some() {
            DeletionState::Deleting
        } else {
            DeletionState::Unchanged
        }
    }

    async fn create_pod(&self, action: &v1::Action, create: &v1::CreatePod) -> Done {
        let body = match &self.manifest {
            Ok(manifest) => manifest
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .render(create),
            Err(error) => return Done::failed(action, &ActuatorError::unclear(error)),
        };
        match self
            .actuator
            .create(Resource::PODS, &self.workload.namespace, body)
            .await
        {
            Ok(written) => {
                self.emit(
                    "Normal",
                    "SuccessfulCreate",
                    format!("Created pod: {}", written.name),
                );
                Done::recorded(action, Resource::PODS, written)
            }
            Err(error) if error.refusal == Refusal::NamespaceTerminating => {
                Done::refused(action, v1::Result::NamespaceTerminating, &error)
            }
            Err(error) => {
                if error.refusal == Refusal::AlreadyExists
                    && !create.pod_name.is_empty()
                    && let Some(is_ours) = self.is_ours(create).await
                {
                    let result = if is_ours {
                        v1::Result::AlreadyExists
                    } else {
                        // No Event: the next plan uses another name.
                        tracing::info!(
                            pod = create.pod_name,
                            node = create.node_name,
                            "another pod has the name; another name is tried"
                        );
                        v1::Result::NameTaken
                    };
                    return Done::refused(action, result, &error);
                }
                self.emit("Warning", "FailedCreate", format!("Error creating: {error}"));
                Done::failed(action, &error)
            }
        }
    }

    /// Whether the pod that already has the name is the one that this create would have made. `None` if the pod cannot
    /// be read: a create with another name could then make a second pod.
    async fn is_ours(&self, create: &v1::CreatePod) -> Option<bool> {
        let key = self.key(Resource::PODS, &create.pod_name);
        let manifest = self.manifest.as_ref().ok()?;
        let live = self.actuator.read(&key).await.ok()?;
        let live = Pod::from_text(&String::from_utf8_lossy(&live)).ok()?;
        let manifest = manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = manifest.revision_hash();
        Some(manifest::is_same_pod(
            live,
            &self.workload,
            &create.node_name,
            hash,
        ))
    }

    async fn delete_pod(&self, action: &v1::Action, delete: &v1::DeletePod) -> Done {
        let preconditions = |uid| {
            if delete.uid_precondition {
                Preconditions::uid(uid)
            } else {
                Preconditions::NONE
            }
        };
        let done = self
            .delete(action, Resource::PODS, delete.pod.as_ref(), preconditions)
            .await;
        let name = delete.pod.as_ref().map_or("", |pod| &pod.name);
        self.tell(&done, ("Deleted pod", name), "Error deleting");
        done
    }

    /// Evicts a pod with its uid as a precondition. A pod that a PodDisruptionBudget protects stays.
    async fn evict_pod(&self, action: &v1::Action, evict: &v1::EvictPod) -> Done {
        let Some(pod) = &evict.pod else {
            return Done::failed(action, &ActuatorError::unclear("the action names no object"));
        };
        let key = self.key(Resource::PODS, &pod.name);
        let done = match self.actuator.evict(&key, &pod.uid).await {
            Ok(Eviction::Evicted) => Done::succeeded(action),
            Ok(Eviction::Blocked { message, retry_after }) => {
                tracing::info!(
                    pod = pod.name,
                    node = evict.node_name,
                    "not evicted now: {message}"
                );
                Done::blocked(action, &pod.uid, &message, retry_after)
            }
            Err(error) => self.not_deleted(action, &key, Some(&pod.uid), &error).await,
        };
        self.tell(&done, ("Evicted pod", &pod.name), "Error evicting");
        done
    }

    /// Emits the Event about a pod that was deleted, or that could not be deleted.
    fn tell(&self, done: &Done, (deleted, name): (&str, &str), failed: &str) {
        match done.outcome.result() {
            v1::Result::Succeeded => self.emit("Normal", "SuccessfulDelete", format!("{deleted}: {name}")),
            v1::Result::Failed => {
                let message = format!("{failed}: {}", done.outcome.message);
                self.emit("Warning", "FailedDelete", message);
            }
            _ => {}
        }
    }
}

/// The fields that are read of an object of any kind. The other fields are not parsed: anyone who may change the object
/// may have written something that the parser rejects.
#[derive(Deserialize)]
struct Served {
    metadata: ServedMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServedMeta {
    uid: String,
    deletion_timestamp: Option<IgnoredAny>,
}
