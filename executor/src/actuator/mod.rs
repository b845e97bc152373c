//! How writes reach a cluster: one trait, implemented for a real apiserver, for shadow mode and for the simulated cluster.
//!
//! The trait speaks the apiserver's verbs over raw JSON, so that no field is lost to an older schema. It owns no policy:
//! what a refused write means for a plan is decided in [`crate::apply`].

use std::{fmt, future::Future};

use bytes::Bytes;
use nodewise_proto::v1;
use nodewise_telemetry::in_short;

use crate::event::Resource;

mod api;
mod call;
mod observe;
#[cfg(test)]
mod tests;

pub use api::{KubeActuator, LeaseCheck};
pub use observe::ObserveActuator;

/// The name under which the executor writes: field manager and user agent.
pub const WRITER: &str = "nodewise-executor";

/// The revision label of pods and ControllerRevisions.
pub const HASH_LABEL: &str = "controller-revision-hash";

/// One object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// What kind of object.
    pub resource: Resource,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
}

impl ObjectKey {
    /// Names an object.
    pub fn new(resource: Resource, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            resource,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.resource.plural(), self.namespace, self.name)
    }
}

/// A patch as the apiserver takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// application/merge-patch+json.
    Merge(Bytes),
    /// application/strategic-merge-patch+json.
    Strategic(Bytes),
}

/// What a successful write left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// metadata.name, which the apiserver may have generated.
    pub name: String,
    /// metadata.resourceVersion after the write. Empty when nothing was written (observe mode).
    pub resource_version: String,
}

/// A Kubernetes Event about a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadEvent {
    /// What it is about.
    pub workload: v1::WorkloadReference,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// CamelCase, for machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Why the apiserver refused, as far as it matters to a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// 409 with reason AlreadyExists.
    AlreadyExists,
    /// 409 with any other reason: a precondition does not hold.
    Conflict,
    /// 404.
    NotFound,
    /// 422.
    Invalid,
    /// Any status with the cause NamespaceTerminating.
    NamespaceTerminating,
    /// Anything else, timeouts and broken connections included: the write may have happened.
    Other,
}

/// A call that did not succeed. It is told in short: an apiserver may quote the whole object that it refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", in_short(message))]
pub struct ActuatorError {
    /// What kind of refusal.
    pub refusal: Refusal,
    /// The HTTP status of the answer; 0 when there was none.
    pub http_status: u16,
    /// The apiserver's message as a whole, or what broke the call.
    pub message: String,
}

impl ActuatorError {
    /// Whether the write may have been done all the same: there was no answer, or the apiserver gave up on it.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.http_status == 0 || self.http_status >= 500
    }

    /// An error without an answer from an apiserver.
    pub fn unclear(message: impl Into<String>) -> Self {
        Self {
            refusal: Refusal::Other,
            http_status: 0,
            message: message.into(),
        }
    }
}

/// The verbs that applying a plan needs.
///
/// Implementations do not retry and bound every call in time. Dropping a future may leave the write done or not done.
pub trait Actuator: Send + Sync + 'static {
    /// False when writes have no effect (observe mode). Then nothing that a plan expects will ever show up in a watch.
    fn writes(&self) -> bool {
        true
    }

    /// POST: creates an object from its manifest.
    fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// PATCH.
    fn patch(
        &self,
        key: &ObjectKey,
        patch: Patch,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// DELETE, gracefully; with a uid only that very object, or [`Refusal::Conflict`].
    fn delete(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
    ) -> impl Future<Output = Result<(), ActuatorError>> + Send;

    /// PUT of the status subresource. The object carries its resourceVersion, so that a stale one is refused.
    fn replace_status(
        &self,
        key: &ObjectKey,
        object: Bytes,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// GET: the object as it is now, as JSON.
    fn read(&self, key: &ObjectKey) -> impl Future<Output = Result<Bytes, ActuatorError>> + Send;

    /// GET of a collection: has each object of a kind in a namespace taken, as JSON that [`Actuator::read`] would answer with. They come in
    /// pages of bounded size, and no more than one page is in memory.
    fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), ActuatorError>> + Send;

    /// Emits a Kubernetes Event: never blocks, never fails, may be dropped.
    fn emit(&self, event: WorkloadEvent);
}
