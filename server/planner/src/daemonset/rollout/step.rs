//! One step of a rollout.

use std::collections::BTreeSet;

use crate::{
    core::snapshot::Deviation,
    daemonset::{pod_changes::PodChanges, rollout::limits::Limits},
};

/// One step of a rollout: what it would do now, and how it stands.
#[derive(Debug, Default)]
pub(crate) struct Step<'a> {
    /// The limits; zero where there are none or they cannot be read.
    pub(crate) limits: Limits,
    /// Entries that use maxUnavailable; counted without surge only.
    pub(crate) unavailable: i64,
    /// Entries that use maxSurge; counted with surge only.
    pub(crate) surging: i64,
    /// What it asks for. Not cut yet.
    pub(crate) changes: PodChanges<'a>,
    /// Why it cannot do anything.
    pub(crate) error: Option<String>,
    /// The deviations that made a difference.
    pub(crate) deviations: BTreeSet<Deviation>,
}
