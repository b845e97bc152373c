//! What a rolling update sees of a node: pods of the current template, of another, or both.

use crate::daemonset::pod_classifier::OwnPod;

/// What the pods of an entry that are not being deleted amount to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'p, 'a> {
    /// None.
    Nothing,
    /// One of the current template.
    New(&'p OwnPod<'a>),
    /// One of another template.
    Old(&'p OwnPod<'a>),
    /// One of each.
    Both {
        /// Of the current template.
        new: &'p OwnPod<'a>,
        /// Of another.
        old: &'p OwnPod<'a>,
    },
    /// Several of a kind: placement's business.
    Crowd,
}

impl<'p, 'a> Content<'p, 'a> {
    /// Looks at an entry.
    pub(crate) fn of(pods: &'p [OwnPod<'a>]) -> Self {
        let mut content = Self::Nothing;
        for pod in pods.iter().filter(|pod| !pod.pod.deleting) {
            content = match (content, pod.updated()) {
                (Self::Nothing, true) => Self::New(pod),
                (Self::Nothing, false) => Self::Old(pod),
                (Self::Old(old), true) => Self::Both { new: pod, old },
                (Self::New(new), false) => Self::Both { new, old: pod },
                _ => return Self::Crowd,
            };
        }
        content
    }
}

impl Content<'_, '_> {
    /// Whether the entry uses maxUnavailable (D-41).
    pub(crate) fn is_unavailable(&self) -> bool {
        match self {
            Self::Nothing | Self::Both { .. } | Self::Crowd => true,
            Self::New(pod) | Self::Old(pod) => !pod.available,
        }
    }

    /// Whether the entry uses maxSurge (D-45).
    pub(crate) fn is_surging(&self) -> bool {
        match self {
            Self::Crowd => true,
            Self::Both { new, .. } => !new.available,
            Self::Nothing | Self::New(_) | Self::Old(_) => false,
        }
    }
}
