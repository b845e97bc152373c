//! The objects of a cluster: from watches, or from files.

use crate::input::{Change, Cluster, Follower, InputError, Touched};

/// Where the objects come from.
pub(super) enum Objects {
    /// Watches.
    Live(Box<Follower>),
    /// Files, which do not change.
    Dump(Box<Cluster>),
}

impl Objects {
    pub(super) fn cluster(&self) -> &Cluster {
        match self {
            Self::Live(follower) => &follower.cluster,
            Self::Dump(cluster) => cluster,
        }
    }

    /// Whether every kind was read once, but for those that [`Self::lacks_nodes`] names.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Live(follower) => follower.is_complete(),
            Self::Dump(_) => true,
        }
    }

    /// Whether there are no nodes because the user has no right to list them.
    pub(super) fn lacks_nodes(&self) -> bool {
        match self {
            Self::Live(follower) => follower.lacks_nodes(),
            Self::Dump(_) => false,
        }
    }

    /// What keeps the objects from being up to date. Empty if nothing does.
    pub(super) fn problem(&self) -> String {
        match self {
            Self::Live(follower) => follower
                .problem()
                .map_or_else(String::new, |problem| format!("{problem}; it is tried again")),
            Self::Dump(_) => String::new(),
        }
    }

    /// Waits for a change. Files never change.
    pub(super) async fn next(&mut self) -> Result<Change, InputError> {
        match self {
            Self::Live(follower) => follower.next().await,
            Self::Dump(_) => std::future::pending().await,
        }
    }

    pub(super) fn take_touched(&mut self) -> Touched {
        match self {
            Self::Live(follower) => follower.take_touched(),
            Self::Dump(_) => Touched::default(),
        }
    }
}
