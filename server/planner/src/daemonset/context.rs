//! The inputs of all decisions about pods, computed first in every plan.

use std::borrow::Cow;

use crate::{
    core::{cancellation::Cancellation, snapshot::Snapshot},
    daemonset::{
        bucket_summary::Detail,
        cluster_view::ClusterView,
        companion,
        eligibility::Eligibility,
        plan_cache::PlanCache,
        pod_classifier::PodClassifier,
        policy::{Governed, Preparation},
        revisions::{self, Resolution},
        workload::{DaemonSet, UpdateStrategy},
    },
    rollout::selection::Stages,
};

/// The inputs of all decisions about pods.
#[derive(Debug)]
pub(crate) struct PlanContext<'a> {
    /// The current revision, and the writes of revisions.
    pub(crate) resolution: Resolution<'a>,
    /// The strategy by which Nodewise replaces old pods.
    pub(crate) strategy: Cow<'a, UpdateStrategy>,
    /// The template's scheduling constraints.
    pub(crate) eligibility: Eligibility,
    /// The workload's pods, by node.
    pub(crate) view: ClusterView<'a>,
    /// The policy, if there is one.
    pub(crate) governed: Option<Governed<'a>>,
}

impl<'a> PlanContext<'a> {
    /// Computes the inputs from a snapshot, and reuses the valid results of `cache`. `None` if cancelled.
    pub(crate) fn of(
        snapshot: &'a Snapshot<DaemonSet>,
        cache: &mut PlanCache,
        detail: Detail,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let resolution = revisions::resolve(snapshot);
        cancellation.check()?;
        let scheduling = &snapshot.workload.scheduling;
        let eligibility = Eligibility::compile(scheduling, snapshot.options.toleration_comparison_operators);
        let preparation = Preparation::of(snapshot, &resolution);
        let detail = match &preparation {
            Some(policy) if policy.needs_all_nodes() => Detail::Everything,
            _ => detail,
        };
        let stages = preparation
            .as_ref()
            .map_or_else(Stages::default, Preparation::stages);
        let goal = preparation.as_ref().map(Preparation::goal_hash);
        let classifier = PodClassifier::new(snapshot, &resolution, goal);
        let mut view = ClusterView::default();
        cache.summaries(
            snapshot,
            (&resolution, &eligibility, &classifier),
            (detail, stages),
            cancellation,
            |bucket, summary, selected| view.add(bucket, summary, selected, &classifier),
        )?;
        view.sort();
        cancellation.check()?;
        let governed = preparation.map(|policy| policy.decide(snapshot, &view));
        let strategy = companion::strategy(&snapshot.workload, &snapshot.options);
        Some(Self {
            strategy: match &governed {
                Some(governed) => governed.strategy(strategy),
                None => strategy,
            },
            governed,
            resolution,
            eligibility,
            view,
        })
    }
}
