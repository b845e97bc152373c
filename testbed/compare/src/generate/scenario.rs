//! The scenario of a case.

use super::rng::CaseRng;

/// What recently happened in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// The DaemonSet was just created.
    Fresh,
    /// Every node has its pod.
    Settled,
    /// The template was just changed.
    Changed,
    /// Some pods have the new template.
    Rollout,
    /// The template was changed back.
    RolledBack,
    /// Pods fail.
    Failing,
    /// Any mixture.
    Chaos,
}

impl Scenario {
    pub(super) fn draw(rng: &mut CaseRng) -> Self {
        rng.weighted(&[
            (8, Self::Fresh),
            (20, Self::Settled),
            (15, Self::Changed),
            (32, Self::Rollout),
            (7, Self::RolledBack),
            (10, Self::Failing),
            (8, Self::Chaos),
        ])
    }
}
