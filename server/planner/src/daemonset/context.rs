//! What is found out first in every plan, and what all decisions about pods are made from.

use std::borrow::Cow;

use crate::{
    core::{
        cancellation::Cancellation,
        snapshot::{Snapshot, UpdateStrategy},
    },
    daemonset::{
        bucket_summary::Detail,
        cluster_view::ClusterView,
        companion,
        eligibility::Eligibility,
        memory::Memory,
        pod_classifier::PodClassifier,
        revisions::{self, Resolution},
    },
};

/// Everything that decisions about pods rest on.
#[derive(Debug)]
pub(crate) struct PlanContext<'a> {
    /// Which revision is current.
    pub(crate) resolution: Resolution<'a>,
    /// How pods of an older template are replaced, as far as that is decided here.
    pub(crate) strategy: Cow<'a, UpdateStrategy>,
    /// The template's constraints.
    pub(crate) eligibility: Eligibility,
    /// Which pods are where.
    pub(crate) view: ClusterView<'a>,
}

impl<'a> PlanContext<'a> {
    /// Looks at the whole snapshot, at what is remembered of it only as far as that still holds.
    pub(crate) fn of(
        snapshot: &'a Snapshot,
        memory: &mut Memory,
        detail: Detail,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let resolution = revisions::resolve(snapshot);
        cancellation.check()?;
        let scheduling = &snapshot.daemon_set.scheduling;
        let eligibility = Eligibility::compile(scheduling, snapshot.options.toleration_comparison_operators);
        let classifier = PodClassifier::new(snapshot, &resolution);
        let mut view = ClusterView::default();
        memory.summaries(
            snapshot,
            (&resolution, &eligibility, &classifier),
            detail,
            cancellation,
            |bucket, summary| view.add(bucket, summary, &classifier),
        )?;
        view.sort();
        cancellation.check()?;
        Some(Self {
            resolution,
            strategy: companion::strategy(&snapshot.daemon_set, &snapshot.options),
            eligibility,
            view,
        })
    }
}
