//! How many pods to create or to delete.

use crate::core::snapshot::Options;

/// The most pods that one plan creates, whatever the burst. A client may ask for any burst and any number of replicas, but a plan
/// must stay small.
const MOST_CREATES: usize = 10_000;

/// The difference between the pods that a ReplicaSet has and those that it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// There are as many as wanted.
    Enough,
    /// So many are missing.
    Missing(usize),
    /// There are so many too many.
    Excess(usize),
}

impl Scale {
    /// Compares. `pods` are the active pods, and those whose create is outstanding.
    pub(crate) fn of(replicas: i32, pods: usize) -> Self {
        // A negative number counts as 0: there are no more pods to delete.
        let replicas = usize::try_from(replicas).unwrap_or(0);
        match replicas.checked_sub(pods) {
            Some(0) => Self::Enough,
            Some(missing) => Self::Missing(missing),
            None => Self::Excess(pods - replicas),
        }
    }
}

/// The most creates of one plan.
pub(crate) fn most_creates(options: &Options) -> usize {
    options.burst.min(MOST_CREATES)
}
