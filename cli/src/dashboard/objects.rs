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

    /// Whether every kind was read once.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Live(follower) => follower.is_complete(),
            Self::Dump(_) => true,
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
