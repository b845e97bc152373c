//! The next step of a rollout, for each update strategy.

pub(crate) mod in_place;
pub(crate) mod limits;
pub(crate) mod node_content;
pub(crate) mod restriction;
pub(crate) mod step;
pub(crate) mod surge;

use crate::{
    core::{plan::NodeCounts, snapshot::Snapshot},
    daemonset::{
        cluster_view::ClusterView,
        context::PlanContext,
        pod_classifier::OwnPod,
        rollout::{restriction::Restriction, step::Step},
        workload::{DaemonSet, UpdateStrategy},
    },
};

/// The next step of the rollout. With OnDelete it is empty (D-50).
pub(crate) fn step<'a>(snapshot: &Snapshot<DaemonSet>, context: &PlanContext<'a>) -> Step<'a> {
    let (view, options) = (&context.view, &snapshot.options);
    let UpdateStrategy::RollingUpdate(rolling_update) = &*context.strategy else {
        return Step::default();
    };
    let restriction = Restriction::of(snapshot, context);
    let limits = limits::limits(rolling_update.as_ref(), view.desired);
    match limits.map(|own| restriction.limits(own, view.desired)) {
        Err(error) => Step {
            error: Some(error),
            ..Step::default()
        },
        Ok(limits) if limits.max_surge == 0 => in_place::step(view, limits, &restriction),
        Ok(limits) => surge::step(view, limits, options, &restriction),
    }
}

/// Counts the nodes that should run a pod by the pods that they have, for progress reports.
pub(crate) fn count_nodes(view: &ClusterView<'_>) -> NodeCounts {
    let mut counts = NodeCounts {
        updated_available: u32::try_from(view.settled.running).unwrap_or(u32::MAX),
        ..NodeCounts::default()
    };
    for entry in view.entries.iter().filter(|entry| entry.fit.run) {
        let pods = view.pods(entry);
        let count = if pods.is_empty() {
            &mut counts.without_pod
        } else if !pods.iter().any(OwnPod::current) {
            &mut counts.outdated
        } else if pods.iter().any(is_updated_and_available) {
            &mut counts.updated_available
        } else {
            &mut counts.updated_unavailable
        };
        *count = count.saturating_add(1);
    }
    counts
}

fn is_updated_and_available(pod: &OwnPod<'_>) -> bool {
    pod.current() && pod.available && !pod.pod.deleting()
}
