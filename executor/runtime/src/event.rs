//! Events of the watches.

use crate::delta::Delta;
use crate::resource::Resource;
use nodewise_projection::{Node, Pod, Revision, RolloutPolicy, Workload};

/// A change that a watch showed. The events of one resource come in the order of its watch. There is no order across
/// resources.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A change of the workloads of a kind, whose resource this is.
    Workloads(Resource, Delta<Workload>),
    /// A change of pods.
    Pods(Delta<Pod>),
    /// A change of nodes.
    Nodes(Delta<Node>),
    /// A change of ControllerRevisions.
    Revisions(Delta<Revision>),
    /// A change of RolloutPolicies. An empty list without a resourceVersion says that the resource is not installed.
    Policies(Delta<RolloutPolicy>),
    /// A page of a list of revisions that is not complete yet: see [`Self::PodPage`].
    RevisionPage {
        /// Some of the list's revisions.
        revisions: Vec<Revision>,
        /// Whether this is the first page of a list.
        is_first: bool,
    },
    /// A page of a list of pods that is not complete yet. Its pods count only when [`Self::Pods`] brings the rest of
    /// the list; the old pods stay in the cache until then.
    PodPage {
        /// Some of the list's pods.
        pods: Vec<Pod>,
        /// Whether this is the first page of a list. Pages of an earlier list that was given up are then discarded.
        is_first: bool,
    },
    /// A page of a list of nodes that is not complete yet: see [`Self::PodPage`].
    NodePage {
        /// Some of the list's nodes.
        nodes: Vec<Node>,
        /// Whether this is the first page of a list.
        is_first: bool,
    },
    /// A revision that was read live, in a version that its watch has not shown yet. The version that the watch has
    /// reached does not change.
    RevisionRead(Revision),
    /// A live read did not find this revision.
    RevisionGone {
        /// metadata.namespace.
        namespace: String,
        /// metadata.name.
        name: String,
    },
    /// The objects of this resource are not known any more, until its next list: the apiserver serves them in a version only that the
    /// executor cannot read.
    Lost(Resource),
    /// Nothing changed, but the watch of this resource has reached this resourceVersion.
    Bookmark(Resource, String),
}

impl ClusterEvent {
    /// The resource that the event is about.
    #[must_use]
    pub fn resource(&self) -> Resource {
        match self {
            Self::Workloads(resource, _) | Self::Lost(resource) | Self::Bookmark(resource, _) => *resource,
            Self::Pods(_) | Self::PodPage { .. } => Resource::PODS,
            Self::Nodes(_) | Self::NodePage { .. } => Resource::NODES,
            Self::Policies(_) => Resource::ROLLOUT_POLICIES,
            Self::Revisions(_)
            | Self::RevisionPage { .. }
            | Self::RevisionRead(_)
            | Self::RevisionGone { .. } => Resource::REVISIONS,
        }
    }

    /// The resourceVersion of the list that this event completes, if it completes one.
    #[must_use]
    pub fn listed(&self) -> Option<&str> {
        match self {
            Self::Workloads(_, delta) => delta.listed(),
            Self::Pods(delta) => delta.listed(),
            Self::Nodes(delta) => delta.listed(),
            Self::Revisions(delta) => delta.listed(),
            Self::Policies(delta) => delta.listed(),
            Self::PodPage { .. }
            | Self::NodePage { .. }
            | Self::RevisionPage { .. }
            | Self::RevisionRead(_)
            | Self::RevisionGone { .. }
            | Self::Lost(_)
            | Self::Bookmark(..) => None,
        }
    }
}
