//! Writes to a cluster: one trait, with implementations for an apiserver, for observe mode, and for the simulated cluster.
//!
//! The trait has the verbs of the apiserver and works on raw JSON, so that fields of newer API versions are kept. It does not
//! decide what a rejected write means for a plan; the executor's `apply` module does.

use std::{fmt, future::Future, time::Duration};

use bytes::Bytes;
use nodewise_proto::v1;
use nodewise_telemetry::in_short;

use crate::resource::Resource;

mod api;
mod call;
mod observe;
#[cfg(test)]
mod tests;

pub use api::{KubeActuator, LeaseCheck};
pub use observe::ObserveActuator;

/// The identity of an object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// The resource of the object.
    pub resource: Resource,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key.
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
        write!(f, "{} {}/{}", self.resource.plural, self.namespace, self.name)
    }
}

/// A patch, by its content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// application/merge-patch+json.
    Merge(Bytes),
    /// application/strategic-merge-patch+json.
    Strategic(Bytes),
}

/// What must be true of an object for its delete to be accepted. The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preconditions<'a> {
    /// metadata.uid.
    pub uid: Option<&'a str>,
    /// metadata.resourceVersion.
    pub resource_version: Option<&'a str>,
}

impl<'a> Preconditions<'a> {
    /// The delete is for any object of the name.
    pub const NONE: Self = Self {
        uid: None,
        resource_version: None,
    };

    /// The object has this uid.
    #[must_use]
    pub fn uid(uid: &'a str) -> Self {
        Self {
            uid: Some(uid),
            ..Self::NONE
        }
    }
}

/// The result of a successful write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// metadata.name, which the apiserver may have generated.
    pub name: String,
    /// metadata.resourceVersion after the write. Empty when nothing was written (observe mode).
    pub resource_version: String,
}

/// How the apiserver answered the eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The pod is evicted, as if it were deleted.
    Evicted,
    /// A PodDisruptionBudget does not allow it now (429). The pod stays.
    Blocked {
        /// The message of the apiserver. It names the budget.
        message: String,
        /// When to ask again, if the apiserver says so.
        retry_after: Option<Duration>,
    },
}

/// A Kubernetes Event about a workload, or about a RolloutPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadEvent {
    /// The object that the Event is about. Its kind determines the apiVersion.
    pub workload: v1::WorkloadReference,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The reason in CamelCase, for programs.
    pub reason: String,
    /// The message for users.
    pub message: String,
    /// The end of the name of the Event, if it is to be created only once although other processes send it as well. Otherwise the
    /// name has the time.
    pub once: Option<String>,
}

/// Why the apiserver rejected a call, as far as plans distinguish it.
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
    /// Any other failure, including timeouts and broken connections: the write may have happened.
    Other,
}

/// A failed call. The displayed text is truncated, because the apiserver may quote the whole object that it rejects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", in_short(message))]
pub struct ActuatorError {
    /// The kind of failure.
    pub refusal: Refusal,
    /// The HTTP status of the response; 0 if there was none.
    pub http_status: u16,
    /// The full message of the apiserver, or of the error that broke the call.
    pub message: String,
}

impl ActuatorError {
    /// Whether the write may have happened: there was no response, or a status of 500 or above.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.http_status == 0 || self.http_status >= 500
    }

    /// Creates an error for a call without a response.
    pub fn unclear(message: impl Into<String>) -> Self {
        Self {
            refusal: Refusal::Other,
            http_status: 0,
            message: message.into(),
        }
    }
}

/// The verbs that are needed to apply a plan.
///
/// Implementations do not retry, and each call has a timeout. If a future is dropped, the write may or may not happen.
pub trait Actuator: Send + Sync + 'static {
    /// False if writes have no effect (observe mode). Then no watch will ever show what a plan expects.
    fn writes(&self) -> bool {
        true
    }

    /// POST: creates an object from a JSON manifest.
    fn create(
        &self,
        resource: Resource,
        namespace: &str,
        manifest: Bytes,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// PATCH: patches an object.
    fn patch(
        &self,
        key: &ObjectKey,
        patch: Patch,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// PATCH of the status subresource. The apiserver also takes annotations from such a patch.
    fn patch_status(
        &self,
        key: &ObjectKey,
        patch: Patch,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// DELETE, with the default grace period. Fails with [`Refusal::Conflict`] if a precondition does not hold.
    fn delete(
        &self,
        key: &ObjectKey,
        preconditions: Preconditions<'_>,
    ) -> impl Future<Output = Result<(), ActuatorError>> + Send;

    /// POST of an Eviction: deletes a pod of this uid, if no PodDisruptionBudget forbids it. Fails like [`Actuator::delete`]. The
    /// default is an error: an actuator that deletes instead would ignore the budgets.
    fn evict(
        &self,
        key: &ObjectKey,
        uid: &str,
    ) -> impl Future<Output = Result<Eviction, ActuatorError>> + Send {
        let _ = uid;
        let error = ActuatorError::unclear(format!("this executor cannot evict {key}"));
        std::future::ready(Err(error))
    }

    /// PUT of the status subresource. The object includes its resourceVersion, so the apiserver rejects a stale one.
    fn replace_status(
        &self,
        key: &ObjectKey,
        object: Bytes,
    ) -> impl Future<Output = Result<Written, ActuatorError>> + Send;

    /// GET: returns the current object as JSON.
    fn read(&self, key: &ObjectKey) -> impl Future<Output = Result<Bytes, ActuatorError>> + Send;

    /// GET of a collection: calls `take` with the JSON of each object of a resource in a namespace, in the form that
    /// [`Actuator::read`] returns. Pages have a bounded size, and at most one page is in memory.
    fn list(
        &self,
        resource: Resource,
        namespace: &str,
        take: &mut (dyn FnMut(&str) + Send),
    ) -> impl Future<Output = Result<(), ActuatorError>> + Send;

    /// Emits a Kubernetes Event. Never blocks and never fails; the Event may be dropped.
    fn emit(&self, event: WorkloadEvent);
}
