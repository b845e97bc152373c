//! Which parts a control plane shall have.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::ControlPlane;
use crate::ports::free_ports;
use crate::tools::Tool;

/// One program of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The store.
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
    /// The program that it is.
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

    /// The user as whom it talks to the apiserver, as the audit log names it.
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

/// Somebody who may talk to the apiserver, with a bearer token that is made at start.
#[derive(Clone, Debug)]
pub struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
    pub(super) cluster_roles: Vec<String>,
}

impl User {
    /// A user with this name and no rights but everybody's.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: Vec::new(),
            cluster_roles: Vec::new(),
        }
    }

    /// Puts the user into a group. `system:masters` may do everything.
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

/// Describes a control plane; [`Builder::start`] starts it.
///
/// Without further words it is etcd and kube-apiserver, with the admission plugins `ServiceAccount` and
/// `TaintNodesByCondition` off: the first refuses every pod until a controller has made the namespace's service
/// account, the second taints every new node as not ready until a controller takes that back.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) components: BTreeSet<Component>,
    pub(super) controllers: String,
    pub(super) audit: bool,
    pub(super) users: Vec<User>,
    pub(super) admission_off: BTreeSet<String>,
    pub(super) args: BTreeMap<Component, Vec<String>>,
    /// Where the apiserver and etcd send their spans.
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
    /// Whether kube-controller-manager runs, without its DaemonSet controller unless [`Builder::controllers`]
    /// says otherwise: garbage collection, quotas, namespaces, node lifecycle and all the others.
    #[must_use]
    pub fn controller_manager(self, on: bool) -> Self {
        self.component(Component::ControllerManager, on)
    }

    /// Whether kube-scheduler runs, so that pods get onto nodes.
    #[must_use]
    pub fn scheduler(self, on: bool) -> Self {
        self.component(Component::Scheduler, on)
    }

    /// Whether kwok plays the kubelets, so that nodes and pods become ready and deleted pods go.
    ///
    /// Without it, [`ControlPlane::create_nodes`] makes nodes that are ready from the first moment, and pods
    /// stay what the test makes them.
    #[must_use]
    pub fn kwok(self, on: bool) -> Self {
        self.component(Component::Kwok, on)
    }

    /// Everything that a DaemonSet meets in a cluster but its controller: kube-controller-manager without it,
    /// kube-scheduler and kwok, and the audit log.
    #[must_use]
    pub fn whole_cluster(self) -> Self {
        self.controller_manager(true)
            .scheduler(true)
            .kwok(true)
            .audit_log(true)
    }

    /// Whether every request is written down, for [`ControlPlane::audit_events`].
    #[must_use]
    pub fn audit_log(mut self, on: bool) -> Self {
        self.audit = on;
        self
    }

    /// Which controllers of kube-controller-manager run, in the words of its flag: `*,-daemonset-controller`
    /// by default, `daemonset-controller` to measure against it, `*` to compare with all of Kubernetes.
    #[must_use]
    pub fn controllers(mut self, list: impl Into<String>) -> Self {
        self.controllers = list.into();
        self.controller_manager(true)
    }

    /// Lets one more user in: see [`ControlPlane::kubeconfig_for`].
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Turns on an admission plugin that the testbed turns off: `ServiceAccount` or `TaintNodesByCondition`.
    /// Both need [`Builder::controller_manager`], the second [`Builder::kwok`] too.
    #[must_use]
    pub fn admission(mut self, plugin: &str) -> Self {
        self.admission_off.remove(plugin);
        self
    }

    /// Lets the apiserver and etcd send their spans to a Collector ([`crate::Collector::endpoint`]): OTLP over gRPC in plain
    /// text, to an `http` URL.
    ///
    /// They go on with a trace that a client has begun and sampled, by the header `traceparent`, and begin none themselves.
    /// The apiserver trusts only members of the groups `system:masters` and `system:monitoring` with that; of what
    /// others ask for there are no spans, unless [`Builder::traces_per_million`] says otherwise.
    #[must_use]
    pub fn tracing(mut self, endpoint: impl Into<String>) -> Self {
        self.tracing = Some(endpoint.into());
        self
    }

    /// Of how many requests in a million the apiserver begins a trace by itself, with [`Builder::tracing`]; none by default. A request with a `traceparent` by somebody whom it does not trust with one (see
    /// [`Builder::tracing`]) counts as one without, and the span of its trace has a link to that.
    #[must_use]
    pub fn traces_per_million(mut self, requests: u32) -> Self {
        self.traces_per_million = requests;
        self
    }

    /// Adds a command line argument, after the testbed's own ones: `--node-monitor-grace-period=5s`.
    #[must_use]
    pub fn arg(mut self, component: Component, arg: impl Into<String>) -> Self {
        self.args.entry(component).or_default().push(arg.into());
        self
    }

    /// Starts it all and waits until the apiserver is ready, some four seconds on an idle machine.
    ///
    /// # Errors
    /// A program cannot be built or started, or it does not become ready; the error shows the end of its log.
    pub async fn start(self) -> Result<ControlPlane> {
        ControlPlane::start_from(self, free_ports).await
    }

    /// Whether the control plane has this part.
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
