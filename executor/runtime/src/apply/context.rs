//! The context that the actions of one plan share: the actuator, the workload, and the manifest of its pods.

use std::sync::{Arc, Mutex};

use crate::{
    Resource,
    actuator::{Actuator, ActuatorError, ObjectKey, WorkloadEvent},
    measurements::Measurements,
};
use bytes::Bytes;
use nodewise_projection::RolloutPolicy;
use nodewise_proto::v1;
use serde_json::Value;

use super::{Options, manifest::PodManifest};

/// The context that all actions of one plan share.
pub(super) struct Context<'a, A> {
    pub(super) actuator: &'a A,
    pub(super) workload: v1::WorkloadReference,
    /// The resource of the workload.
    pub(super) resource: Resource,
    /// The workload's JSON, as it was when the snapshot was taken.
    pub(super) object: &'a Bytes,
    /// As [`Options::controlled`].
    pub(super) controlled: Option<Resource>,
    /// As [`Options::status_with_uid`].
    pub(super) status_with_uid: bool,
    /// As [`Options::measurements`].
    pub(super) measurements: &'a Measurements,
    /// As [`Options::policies`].
    pub(super) policies: &'a [Arc<RolloutPolicy>],
    pub(super) plan: &'a v1::Plan,
    /// The manifest of the plan's pods, or the reason why it cannot be read.
    pub(super) manifest: Result<Mutex<PodManifest>, String>,
}

impl<'a, A: Actuator> Context<'a, A> {
    pub(super) fn new(
        actuator: &'a A,
        plan: &'a v1::Plan,
        (resource, object): (Resource, &'a Bytes),
        options: &'a Options,
    ) -> Self {
        let manifest = PodManifest::parse(plan).map(|manifest| manifest.annotated(options.trace_annotations));
        Self {
            actuator,
            workload: plan.workload.clone().unwrap_or_default(),
            resource,
            object,
            controlled: options.controlled,
            status_with_uid: options.status_with_uid,
            measurements: &options.measurements,
            policies: &options.policies,
            plan,
            manifest: manifest.map(Mutex::new),
        }
    }

    pub(super) fn key(&self, resource: Resource, name: &str) -> ObjectKey {
        ObjectKey::new(resource, &self.workload.namespace, name)
    }

    /// The resource that an action on an object names.
    pub(super) fn resource_of(
        &self,
        name: Option<&v1::GroupVersionResource>,
    ) -> Result<Resource, ActuatorError> {
        let name = name.ok_or_else(|| ActuatorError::unclear("the action names no resource"))?;
        // Which plans may write a policy is checked before.
        let known = [self.resource, Resource::ROLLOUT_POLICIES];
        let known = known.into_iter().chain(self.controlled);
        Resource::find(known, name).ok_or_else(|| {
            ActuatorError::unclear(format!(
                "this executor does not write the resource {:?} of {}/{}",
                name.resource, name.group, name.version
            ))
        })
    }

    /// The key of the workload.
    pub(super) fn workload_key(&self) -> Result<ObjectKey, ActuatorError> {
        (self.workload.kind == self.resource.kind)
            .then(|| self.key(self.resource, &self.workload.name))
            .ok_or_else(|| {
                ActuatorError::unclear(format!(
                    "this executor knows no workload kind {:?}",
                    self.workload.kind
                ))
            })
    }

    /// Reads the workload live, at any resourceVersion. With `same_uid`, another uid is an error.
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

    /// Checks before adoptions (D-27) and creates that the workload exists and is not being deleted.
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

    /// Emits an Event about the workload.
    pub(super) fn emit(&self, kind: &str, reason: &str, message: String) {
        self.emit_about(self.workload.clone(), kind, reason, message);
    }

    /// Emits an Event about an object.
    pub(super) fn emit_about(
        &self,
        object: v1::WorkloadReference,
        kind: &str,
        reason: &str,
        message: String,
    ) {
        self.actuator.emit(WorkloadEvent {
            workload: object,
            kind: kind.to_owned(),
            reason: reason.to_owned(),
            message,
            once: None,
        });
    }
}

/// Parses an object from the apiserver without its managed fields, which may be nested too deeply for the parser.
pub(super) fn parse(key: &ObjectKey, json: &[u8]) -> Result<Value, ActuatorError> {
    let text = String::from_utf8_lossy(json);
    serde_json::from_str(&nodewise_projection::without_managed_fields(&text))
        .map_err(|error| ActuatorError::unclear(format!("reading {key}: {error}")))
}
