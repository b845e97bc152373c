//! The kinds of objects that are read, and kubectl's names for them.

/// The kinds of objects that a plan or an explanation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    DaemonSet,
    ReplicaSet,
    Deployment,
    Node,
    Pod,
    ControllerRevision,
    RolloutPolicy,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::DaemonSet,
        Self::ReplicaSet,
        Self::Deployment,
        Self::Node,
        Self::Pod,
        Self::ControllerRevision,
        Self::RolloutPolicy,
    ];

    /// The kinds that are planned and explained.
    pub(crate) const WORKLOADS: [Self; 3] = [Self::DaemonSet, Self::ReplicaSet, Self::Deployment];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::ControllerRevision => "ControllerRevision",
            Self::RolloutPolicy => "RolloutPolicy",
        }
    }

    /// The name in paths of the API.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::DaemonSet => "daemonsets",
            Self::ReplicaSet => "replicasets",
            Self::Deployment => "deployments",
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::ControllerRevision => "controllerrevisions",
            Self::RolloutPolicy => "rolloutpolicies",
        }
    }

    /// kubectl's short name for a workload.
    fn short(self) -> &'static str {
        match self {
            Self::DaemonSet => "ds",
            Self::ReplicaSet => "rs",
            Self::Deployment => "deploy",
            Self::Node => "no",
            Self::Pod => "po",
            Self::ControllerRevision | Self::RolloutPolicy => "",
        }
    }

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Node | Self::Pod => "v1",
            Self::DaemonSet | Self::ReplicaSet | Self::Deployment | Self::ControllerRevision => "apps/v1",
            Self::RolloutPolicy => "nodewise.dev/v1alpha1",
        }
    }

    pub(crate) fn is_workload(self) -> bool {
        Self::WORKLOADS.contains(&self)
    }

    /// The kinds that a plan for a workload of this kind reads, this one first.
    pub(crate) fn needs(self) -> &'static [Self] {
        match self {
            Self::DaemonSet => &[
                Self::DaemonSet,
                Self::Node,
                Self::Pod,
                Self::ControllerRevision,
                Self::RolloutPolicy,
            ],
            Self::ReplicaSet => &[Self::ReplicaSet, Self::Pod],
            Self::Deployment => &[Self::Deployment, Self::ReplicaSet, Self::Pod],
            Self::Node | Self::Pod | Self::ControllerRevision | Self::RolloutPolicy => &[],
        }
    }

    /// Whether the resource may not be installed. Then there are no objects.
    pub(crate) fn is_optional(self) -> bool {
        self == Self::RolloutPolicy
    }

    /// Finds a kind by the name in an object. A kind of that name in another API group does not match.
    pub(crate) fn parse(kind: &str, api_version: Option<&str>) -> Option<Self> {
        Self::ALL.into_iter().find(|known| {
            known.name() == kind && api_version.is_none_or(|version| version == known.api_version())
        })
    }

    /// Finds a kind of workload by any of kubectl's names: `deployment`, `deployments`, `deploy`, `deployments.apps`,
    /// `deployments.v1.apps`.
    pub(crate) fn of_workload(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let (name, group) = name.split_once('.').unwrap_or((&name, "apps"));
        let names = |kind: &Self| {
            name == kind.short() || name == kind.plural() || name == kind.name().to_ascii_lowercase()
        };
        let is_apps = matches!(group, "apps" | "v1.apps");
        Self::WORKLOADS.into_iter().find(names).filter(|_| is_apps)
    }
}
