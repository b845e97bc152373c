//! One action: the call that it is, and what each refusal of that call means.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use nodewise_proto::v1::{self, action::Kind, outcome::Subject};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Options, OwnWrite, manifest,
    manifest::PodManifest,
    patching::{Patching, Seal},
    status,
};
use crate::{
    actuator::{Actuator, ActuatorError, ObjectKey, Refusal, WorkloadEvent, Written},
    event::{Pod, Resource},
    project::{self, Meta},
};

/// What the actions of one plan have in common.
pub(super) struct Context<'a, A> {
    pub(super) actuator: &'a A,
    pub(super) workload: v1::WorkloadReference,
    /// The workload as the snapshot had it, JSON.
    pub(super) object: &'a Bytes,
    /// As [`Options::status_with_uid`].
    pub(super) status_with_uid: bool,
    /// What the plan's pods have in common, or why it cannot be read.
    manifest: Result<Mutex<PodManifest>, String>,
}

/// What a live read shows of an object whose deletion was not plainly accepted.
enum Fate {
    /// It is not there, or another one is in its place.
    Gone,
    /// It is being deleted.
    Going,
    /// It is there as before, or cannot be read.
    Unchanged,
}

/// What became of one action.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) outcome: v1::Outcome,
    pub(super) write: Option<OwnWrite>,
    pub(super) colliding_revision: Option<Bytes>,
    /// What an adoption did not find.
    pub(super) vanished: Option<ObjectKey>,
    /// The revision, or the pod to adopt, that nothing can change.
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

    /// An action that is not tried, for this reason.
    pub(super) fn left_out(action: &v1::Action, why: &str) -> Self {
        let mut done = Self::skipped(action);
        why.clone_into(&mut done.outcome.message);
        done
    }

    pub(super) fn failed(action: &v1::Action, error: &ActuatorError) -> Self {
        Self::refused(action, v1::Result::Failed, error)
    }

    fn refused(action: &v1::Action, result: v1::Result, error: &ActuatorError) -> Self {
        let mut done = Self::new(action, result);
        done.outcome.message = error.to_string();
        done.outcome.http_status = error.http_status.into();
        done
    }

    /// A revision that is gone already shows that the cache is behind, which may change what is to be done: the plan fails,
    /// as upstream's sync does (D-56, D-63).
    fn failed_if_not_found(mut self) -> Self {
        if self.outcome.result() == v1::Result::NotFound {
            self.outcome.result = v1::Result::Failed.into();
        }
        self
    }

    fn succeeded(action: &v1::Action) -> Self {
        Self::new(action, v1::Result::Succeeded)
    }

    /// A success that the caches have to show before the next plan.
    fn recorded(action: &v1::Action, resource: Resource, written: Written) -> Self {
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

/// Whether an action makes the workload the controller of an object, which only a workload that lives may become (D-27).
pub(crate) fn is_adoption(action: &v1::Action) -> bool {
    matches!(action.kind, Some(Kind::AdoptPod(_) | Kind::AdoptRevision(_)))
}

/// Whether an action creates a pod whose name is known before.
fn is_named_create(action: &v1::Action) -> bool {
    matches!(&action.kind, Some(Kind::CreatePod(create)) if !create.pod_name.is_empty())
}

/// Which expectation an action's outcome settles or leaves.
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

impl<'a, A: Actuator> Context<'a, A> {
    pub(super) fn new(actuator: &'a A, plan: &'a v1::Plan, object: &'a Bytes, options: &Options) -> Self {
        let manifest = PodManifest::parse(plan).map(|manifest| manifest.annotated(options.trace_annotations));
        Self {
            actuator,
            workload: plan.workload.clone().unwrap_or_default(),
            object,
            status_with_uid: options.status_with_uid,
            manifest: manifest.map(Mutex::new),
        }
    }

    fn key(&self, resource: Resource, name: &str) -> ObjectKey {
        ObjectKey::new(resource, &self.workload.namespace, name)
    }

    /// The workload itself.
    pub(super) fn workload_key(&self) -> Result<ObjectKey, ActuatorError> {
        (self.workload.kind == "DaemonSet")
            .then(|| self.key(Resource::DaemonSets, &self.workload.name))
            .ok_or_else(|| {
                ActuatorError::unclear(format!(
                    "this executor knows no workload kind {:?}",
                    self.workload.kind
                ))
            })
    }

    /// Reads the workload live, whatever its version; with `same_uid` it must be the object that was planned for.
    pub(super) async fn read_workload(&self, same_uid: bool) -> Result<Value, ActuatorError> {
        let key = self.workload_key()?;
        let live = parse(&key, &self.actuator.read(&key).await?)?;
        if same_uid && live["metadata"]["uid"] != self.workload.uid.as_str() {
            return Err(ActuatorError::unclear(format!(
                "{key} is another object now: planned for uid {}, found {}",
                self.workload.uid, live["metadata"]["uid"]
            )));
        }
        Ok(live)
    }

    /// Makes sure before an adoption that the workload still lives (D-27).
    pub(super) async fn confirm_workload(&self) -> Result<(), ActuatorError> {
        let live = self.read_workload(true).await?;
        match live["metadata"]["deletionTimestamp"].as_str() {
            Some(since) => Err(ActuatorError::unclear(format!(
                "{} {}/{} is being deleted since {since}",
                self.workload.kind, self.workload.namespace, self.workload.name
            ))),
            None => Ok(()),
        }
    }

    /// Carries out one action.
    pub(super) async fn run(&self, action: &v1::Action) -> Done {
        match &action.kind {
            Some(Kind::CreateRevision(create)) => self.create_revision(action, create).await,
            Some(Kind::DeleteRevision(delete)) => {
                let done = self
                    .delete(action, Resource::Revisions, delete.revision.as_ref(), true)
                    .await;
                done.failed_if_not_found()
            }
            Some(Kind::CreatePod(create)) => self.create_pod(action, create).await,
            Some(Kind::DeletePod(delete)) => self.delete_pod(action, delete).await,
            Some(Kind::UpdateStatus(update)) => self.update_status(action, update).await,
            Some(Kind::EmitEvent(event)) => {
                self.emit(&event.r#type, &event.reason, event.message.clone());
                Done::succeeded(action)
            }
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
            // The write of a collision count is not remembered (D-109).
            Ok(_) if update.collision_count.is_some() => Done::succeeded(action),
            Ok(written) => Done::recorded(action, Resource::DaemonSets, written),
            Err(error) => Done::failed(action, &error),
        }
    }

    async fn create_revision(&self, action: &v1::Action, create: &v1::CreateRevision) -> Done {
        let created = self
            .actuator
            .create(
                Resource::Revisions,
                &self.workload.namespace,
                create.manifest.clone(),
            )
            .await;
        match created {
            Ok(_) => Done::succeeded(action),
            Err(error) if error.refusal == Refusal::AlreadyExists => {
                // The next plan needs the object in the way; without it the next try finds it again.
                let live = self
                    .actuator
                    .read(&self.key(Resource::Revisions, &create.name))
                    .await;
                Done {
                    colliding_revision: live.ok(),
                    ..Done::failed(action, &error)
                }
            }
            Err(error) => Done::failed(action, &error),
        }
    }

    async fn patch(&self, action: &v1::Action, patching: Patching<'_>) -> Done {
        let Patching {
            resource,
            object: Some(object),
            patch,
            gone,
        } = patching
        else {
            return Done::failed(action, &ActuatorError::unclear("the action names no object"));
        };
        let key = self.key(resource, &object.name);
        match self.actuator.patch(&key, patch).await {
            Ok(written) if matches!(action.kind, Some(Kind::AdoptPod(_))) => {
                Done::recorded(action, resource, written)
            }
            Ok(_) => Done::succeeded(action),
            Err(error) => {
                // A sealed revision is refused as invalid, too, and is not gone.
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
                        vanished: is_adoption(action).then_some(key),
                        ..Done::refused(action, v1::Result::NotFound, &error)
                    }
                } else {
                    Done::failed(action, &error)
                }
            }
        }
    }

    async fn delete(
        &self,
        action: &v1::Action,
        resource: Resource,
        reference: Option<&v1::ObjectReference>,
        with_uid: bool,
    ) -> Done {
        let Some(reference) = reference else {
            return Done::failed(action, &ActuatorError::unclear("the action names no object"));
        };
        let key = self.key(resource, &reference.name);
        let uid = with_uid.then_some(reference.uid.as_str());
        match self.actuator.delete(&key, uid).await {
            Ok(()) => Done::succeeded(action),
            Err(error) if error.refusal == Refusal::NotFound => {
                Done::refused(action, v1::Result::NotFound, &error)
            }
            Err(error) if error.refusal == Refusal::Conflict || error.is_unclear() => {
                match self.fate(&key, uid).await {
                    Fate::Gone => Done::refused(action, v1::Result::NotFound, &error),
                    // Done after all. Were it told as failed, nobody would wait for the watch to show it, and
                    // the next plan could take down another pod besides.
                    Fate::Going => Done::succeeded(action),
                    Fate::Unchanged => Done::failed(action, &error),
                }
            }
            Err(error) => Done::failed(action, &error),
        }
    }

    /// What became of an object with that name and uid.
    async fn fate(&self, key: &ObjectKey, uid: Option<&str>) -> Fate {
        let live = match self.actuator.read(key).await {
            Ok(live) => live,
            Err(error) if error.refusal == Refusal::NotFound => return Fate::Gone,
            Err(_) => return Fate::Unchanged,
        };
        let Ok(Served { metadata }) = project::parse_text(&String::from_utf8_lossy(&live)) else {
            return Fate::Unchanged;
        };
        if !metadata.uid.is_empty() && uid.is_some_and(|uid| metadata.uid != uid) {
            Fate::Gone
        } else if metadata.deletion_timestamp.is_some() {
            Fate::Going
        } else {
            Fate::Unchanged
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
            .create(Resource::Pods, &self.workload.namespace, body)
            .await
        {
            Ok(written) => {
                self.emit(
                    "Normal",
                    "SuccessfulCreate",
                    format!("Created pod: {}", written.name),
                );
                Done::recorded(action, Resource::Pods, written)
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
                        // No event: the next plan gives another name, and nothing is lost.
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

    /// Whether the pod that has the name already is the one that the create would have made. `None` when it cannot be read: it may
    /// be, and another name would make a second pod.
    async fn is_ours(&self, create: &v1::CreatePod) -> Option<bool> {
        let key = self.key(Resource::Pods, &create.pod_name);
        let manifest = self.manifest.as_ref().ok()?;
        let live = self.actuator.read(&key).await.ok()?;
        let live = Pod::from_text(&String::from_utf8_lossy(&live)).ok()?;
        let manifest = manifest.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = manifest.revision_hash();
        Some(manifest::is_same_pod(
            live,
            &self.workload.uid,
            &create.node_name,
            hash,
        ))
    }

    async fn delete_pod(&self, action: &v1::Action, delete: &v1::DeletePod) -> Done {
        let done = self
            .delete(
                action,
                Resource::Pods,
                delete.pod.as_ref(),
                delete.uid_precondition,
            )
            .await;
        let name = delete.pod.as_ref().map_or("", |pod| &pod.name);
        match done.outcome.result() {
            v1::Result::Succeeded => self.emit("Normal", "SuccessfulDelete", format!("Deleted pod: {name}")),
            v1::Result::Failed => {
                self.emit(
                    "Warning",
                    "FailedDelete",
                    format!("Error deleting: {}", done.outcome.message),
                );
            }
            _ => {}
        }
        done
    }

    fn emit(&self, kind: &str, reason: &str, message: String) {
        let (kind, reason) = (kind.to_owned(), reason.to_owned());
        self.actuator.emit(WorkloadEvent {
            workload: self.workload.clone(),
            kind,
            reason,
            message,
        });
    }
}

/// What is read of an object of any kind. Anyone who may change it may have written more than can be read as a whole.
#[derive(Deserialize)]
struct Served {
    metadata: Meta,
}

/// Reads what the apiserver sent as an object, without its managed fields: these may be nested deeper than can be read.
pub(super) fn parse(key: &ObjectKey, json: &[u8]) -> Result<Value, ActuatorError> {
    let text = String::from_utf8_lossy(json);
    serde_json::from_str(&project::without_managed_fields(&text))
        .map_err(|error| ActuatorError::unclear(format!("reading {key}: {error}")))
}
