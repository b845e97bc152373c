//! The configuration of a control plane.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::ControlPlane;
use crate::ports::free_ports;
use crate::tools::Tool;

/// A component of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// etcd.
    Etcd,
    /// kube-apiserver.
    Apiserver,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// The fake kubelets of all nodes.
    Kwok,
}

impl Component {
    /// The program of the component.
    #[must_use]
    pub fn tool(self) -> Tool {
        match self {
            Self::Etcd => Tool::Etcd,
            Self::Apiserver => Tool::KubeApiserver,
            Self::ControllerManager => Tool::KubeControllerManager,
            Self::Scheduler => Tool::KubeScheduler,
            Self::Kwok => Tool::Kwok,
        }
    }

    /// The component's user name at the apiserver, as in the audit log.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::Etcd | Self::Apiserver => "admin",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// A user of the apiserver. The user's bearer token is made when the control plane starts.
#[derive(Clone, Debug)]
pub struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
    pub(super) cluster_roles: Vec<String>,
}

impl User {
    /// A user with this name and no rights beyond those of all users.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: Vec::new(),
            cluster_roles: Vec::new(),
        }
    }

    /// Adds the user to a group. `system:masters` has all rights.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Binds the user to a ClusterRole, which may also be created later.
    #[must_use]
    pub fn cluster_role(mut self, role: impl Into<String>) -> Self {
        self.cluster_roles.push(role.into());
        self
    }
}

/// The configuration of a control plane; [`Builder::start`] starts it.
///
/// By default only etcd and kube-apiserver run, without the admission plugins `ServiceAccount` and
/// `TaintNodesByCondition`. The first rejects pods until a controller has created the namespace's service account; the
/// second taints new nodes as not ready until a controller removes the taint.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) components: BTreeSet<Component>,
    pub(super) controllers: String,
    pub(super) audit: bool,
    pub(super) users: Vec<User>,
    pub(super) admission_off: BTreeSet<String>,
    pub(super) args: BTreeMap<Component, Vec<String>>,
    /// Where the apiserver and etcd export their spans.
    pub(super) tracing: Option<String>,
    pub(super) traces_per_million: u32,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            components: BTreeSet::from([Component::Etcd, Component::Apiserver]),
            controllers: "*,-daemonset-controller".to_owned(),
            audit: false,
            users: Vec::new(),
            admission_off: ["ServiceAccount", "TaintNodesByCondition"]
                .map(str::to_owned)
                .into(),
            args: BTreeMap::new(),
            tracing: None,
            traces_per_million: 0,
        }
    }
}

impl Builder {
    /// Whether kube-controller-manager runs. Its DaemonSet controller is off by default, see [`Builder::controllers`].
    #[must_use]
    pub fn controller_manager(self, on: bool) -> Self {
        self.component(Component::ControllerManager, on)
    }

    /// Whether kube-scheduler runs.
    #[must_use]
    pub fn scheduler(self, on: bool) -> Self {
        self.component(Component::Scheduler, on)
    }

    /// Whether kwok runs. It acts as the kubelets: nodes and pods become ready, and deleted pods go away.
    ///
    /// Without kwok, [`ControlPlane::create_nodes`] creates nodes that are ready at once, and the status of pods is up
    /// to the test.
    #[must_use]
    pub fn kwok(self, on: bool) -> Self {
        self.component(Component::Kwok, on)
    }

    /// All components and the audit log: etcd, kube-apiserver, kube-scheduler, kwok, and kube-controller-manager
    /// without its DaemonSet controller.
    #[must_use]
    pub fn whole_cluster(self) -> Self {
        self.controller_manager(true)
            .scheduler(true)
            .kwok(true)
            .audit_log(true)
    }

    /// Whether the apiserver writes an audit log, for [`ControlPlane::audit_events`].
    #[must_use]
    pub fn audit_log(mut self, on: bool) -> Self {
        self.audit = on;
        self
    }

    /// Sets `--controllers` of kube-controller-manager: `*,-daemonset-controller` by default, `daemonset-controller` to
    /// measure that controller, `*` for all.
    #[must_use]
    pub fn controllers(mut self, list: impl Into<String>) -> Self {
        self.controllers = list.into();
        self.controller_manager(true)
    }

    /// Adds a user: see [`ControlPlane::kubeconfig_for`].
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Turns on an admission plugin that the testbed turns off: `ServiceAccount` or `TaintNodesByCondition`. Both need
    /// [`Builder::controller_manager`], the second also needs [`Builder::kwok`].
    #[must_use]
    pub fn admission(mut self, plugin: &str) -> Self {
        self.admission_off.remove(plugin);
        self
    }

    /// Makes the apiserver and etcd export their spans to a Collector ([`crate::Collector::endpoint`]): OTLP over gRPC
    /// without TLS, to an `http` URL.
    ///
    /// They only continue a trace that a client has started and sampled, by the `traceparent` header. The apiserver
    /// accepts that header only from members of the groups `system:masters` and `system:monitoring`. Requests of other
    /// users have no spans, except as [`Builder::traces_per_million`] says.
    #[must_use]
    pub fn tracing(mut self, endpoint: impl Into<String>) -> Self {
        self.tracing = Some(endpoint.into());
        self
    }

    /// Of a million requests without an accepted `traceparent`, for how many the apiserver starts a trace of its own; 0
    /// by default. If the request had a `traceparent` from another user (see [`Builder::tracing`]), the span has a link
    /// to it.
    #[must_use]
    pub fn traces_per_million(mut self, requests: u32) -> Self {
        self.traces_per_million = requests;
        self
    }

    /// Adds a command line argument after the testbed's arguments, for example `--node-monitor-grace-period=5s`.
    #[must_use]
    pub fn arg(mut self, component: Component, arg: impl Into<String>) -> Self {
        self.args.entry(component).or_default().push(arg.into());
        self
    }

    /// Starts the control plane and waits until the apiserver is ready: about four seconds on an idle machine.
    ///
    /// # Errors
    /// A program cannot be built or started, or does not become ready; the error has the end of its log.
    pub async fn start(self) -> Result<ControlPlane> {
        ControlPlane::start_from(self, free_ports).await
    }

    /// Whether the control plane has this component.
    pub(super) fn has(&self, component: Component) -> bool {
        self.components.contains(&component)
    }

    fn component(mut self, component: Component, on: bool) -> Self {
        if on {
            self.components.insert(component);
        } else {
            self.components.remove(&component);
        }
        self
    }
}
