//! What the checks read: objects of the cluster, and what the apiserver says about rights and time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::{DaemonSet, Deployment},
    coordination::v1::Lease,
    core::v1::{Namespace, Pod, ResourceQuota, Secret},
    discovery::v1::EndpointSlice,
};
use kube::core::{DynamicObject, PartialObjectMeta};

use super::{install::Plan, needs::Right};

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    /// The caller has no right to.
    #[error("{0}")]
    Forbidden(String),
    /// Another error.
    #[error("{0}")]
    Failed(String),
}

/// Something that was asked for.
pub(crate) type Seen<T> = Result<T, Unread>;

/// Who needs a right, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The ServiceAccount of an executor, `namespace/name`.
    Executor(String),
    /// The caller, to install.
    Installer,
    /// The caller: to give executors a right, one must have it, or be allowed to `escalate`.
    Giver,
    /// The caller may give rights that it does not have.
    Escalation,
}

/// Whether somebody has a right.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) subject: Subject,
    pub(crate) right: Right,
    pub(crate) is_allowed: Seen<bool>,
}

/// Everything that the checks read.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Whether Nodewise is yet to be installed.
    pub(crate) pre: bool,
    /// The namespace of Nodewise.
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    /// `gitVersion` of the apiserver, such as `v1.36.1`.
    pub(crate) apiserver: String,
    /// The Deployments of executors, in all namespaces.
    pub(crate) executors: Seen<Vec<Deployment>>,
    /// The Deployments of the service in Nodewise's namespace.
    pub(crate) servers: Seen<Vec<Deployment>>,
    /// What each executor does, or what is to be installed.
    pub(crate) plans: Vec<Plan>,
    /// Pods of kube-controller-manager that the apiserver knows.
    pub(crate) controller_managers: Seen<Vec<Pod>>,
    /// Its Lease.
    pub(crate) controller_manager_lease: Seen<Option<Lease>>,
    /// The rights that were asked about.
    pub(crate) access: Vec<Access>,
    /// The Secrets with certificates, by name, that the Deployments mount. `None`: there is no such Secret.
    pub(crate) secrets: BTreeMap<String, Seen<Option<Secret>>>,
    /// The Lease of the executors, by namespace.
    pub(crate) leases: BTreeMap<String, Seen<Option<Lease>>>,
    /// The namespace of Nodewise.
    pub(crate) namespace_object: Seen<Option<Namespace>>,
    /// The RolloutPolicies of all namespaces. Empty before installing, and if the cluster does not have the kind.
    pub(crate) policies: Seen<Vec<DynamicObject>>,
    /// The DaemonSets of all namespaces, if there are policies.
    pub(crate) daemon_sets: Seen<Vec<PartialObjectMeta<DaemonSet>>>,
    pub(crate) validating: Seen<Vec<ValidatingWebhookConfiguration>>,
    pub(crate) mutating: Seen<Vec<MutatingWebhookConfiguration>>,
    /// The endpoints of the Services of webhooks, by namespace and name.
    pub(crate) endpoints: BTreeMap<(String, String), Seen<Vec<EndpointSlice>>>,
    /// The quotas of Nodewise's namespace.
    pub(crate) quotas: Seen<Vec<ResourceQuota>>,
    /// Whether the PriorityClasses of the Deployments exist, by name.
    pub(crate) priority_classes: BTreeMap<String, Seen<bool>>,
}

/// The time here and at the apiserver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Before the request was sent.
    pub(crate) before: Timestamp,
    /// After the response came.
    pub(crate) after: Timestamp,
    /// The header `Date` of the response, which has whole seconds.
    pub(crate) apiserver: Option<Timestamp>,
}

impl Clock {
    /// The time at the apiserver, as well as it is known.
    pub(crate) fn now(&self) -> Timestamp {
        self.apiserver.unwrap_or(self.after)
    }
}
