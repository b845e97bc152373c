//! Classifies a node for a rolling update: it has a new pod, an old pod, both, or several of a kind.

use crate::daemonset::pod_classifier::OwnPod;

/// The pods of a node that are not being deleted. "New" means of the current template.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'p, 'a> {
    /// No pods.
    Nothing,
    /// One new pod.
    New(&'p OwnPod<'a>),
    /// One old pod.
    Old(&'p OwnPod<'a>),
    /// One new and one old pod.
    Both {
        /// The new pod.
        new: &'p OwnPod<'a>,
        /// The old pod.
        old: &'p OwnPod<'a>,
    },
    /// Several new or several old pods. Placement deletes the excess.
    Several,
}

impl<'p, 'a> Content<'p, 'a> {
    /// Classifies a node by its pods.
    pub(crate) fn of(pods: &'p [OwnPod<'a>]) -> Self {
        let mut content = Self::Nothing;
        for pod in pods.iter().filter(|pod| !pod.pod.deleting()) {
            content = match (content, pod.updated()) {
                (Self::Nothing, true) => Self::New(pod),
                (Self::Nothing, false) => Self::Old(pod),
                (Self::Old(old), true) => Self::Both { new: pod, old },
                (Self::New(new), false) => Self::Both { new, old: pod },
                _ => return Self::Several,
            };
        }
        content
    }
}

impl Content<'_, '_> {
    /// Whether the node counts against maxUnavailable (D-41).
    pub(crate) fn is_unavailable(&self) -> bool {
        match self {
            Self::Nothing | Self::Both { .. } | Self::Several => true,
            Self::New(pod) | Self::Old(pod) => !pod.available,
        }
    }

    /// Whether the node counts against maxSurge (D-45).
    pub(crate) fn is_surging(&self) -> bool {
        match self {
            Self::Several => true,
            Self::Both { new, .. } => !new.available,
            Self::Nothing | Self::New(_) | Self::Old(_) => false,
        }
    }
}
