//! With which deviations from upstream Nodewise runs, and what a sync returns.

use nodewise_proto::v1;

use crate::outcome::Outcome;

/// The deviations that are on.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    /// The profile.
    pub profile: v1::Profile,
    /// Deviations of the profile that are off.
    pub without: Vec<v1::Deviation>,
    /// Additional deviations that are on.
    pub with: Vec<v1::Deviation>,
}

impl Deviations {
    /// Upstream's behaviour, including its defects.
    #[must_use]
    pub fn strict() -> Self {
        Self {
            profile: v1::Profile::UpstreamStrict,
            ..Self::default()
        }
    }
}

/// The result of a sync.
#[derive(Clone, Debug)]
pub struct Synced {
    /// The outcome.
    pub outcome: Outcome,
    /// The deviations that the plans name.
    pub deviations: Vec<v1::Deviation>,
}
