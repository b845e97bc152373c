//! What a RolloutPolicy takes away from a step of a rollout: nodes that are not admitted, and changes beyond its pace.

use std::collections::BTreeSet;

use crate::{
    core::{plan::Reason, snapshot::Snapshot},
    daemonset::{
        cluster_view::NodeEntry, context::PlanContext, pod_classifier::OwnPod, policy::Governed,
        revisions::Resolution, rollout::limits::Limits, workload::DaemonSet,
    },
};

/// The restriction of a step. Without a policy it takes nothing away.
pub(crate) struct Restriction<'d, 'a> {
    governed: Option<&'d Governed<'a>>,
    resolution: &'d Resolution<'a>,
    /// The uids of pods that a PodDisruptionBudget protects, and that are not asked for again yet.
    blocked: BTreeSet<&'d str>,
}

impl<'d, 'a> Restriction<'d, 'a> {
    /// The restriction by the policy of a workload.
    pub(crate) fn of(snapshot: &'d Snapshot<DaemonSet>, context: &'d PlanContext<'a>) -> Self {
        let evictions = snapshot.state.blocked_evictions.iter();
        let waiting = evictions.filter(|eviction| eviction.retry_at > snapshot.now);
        Self {
            governed: context.governed.as_ref(),
            resolution: &context.resolution,
            blocked: waiting.map(|eviction| eviction.pod_uid.as_str()).collect(),
        }
    }

    /// The limits of the present stage, within those of the workload.
    pub(crate) fn limits(&self, own: Limits, desired: usize) -> Limits {
        self.governed
            .map_or(own, |governed| governed.limits(own, desired))
    }

    /// Whether a node uses the budget, if its pods say so.
    pub(crate) fn counts(&self, index: usize) -> bool {
        self.governed.is_none_or(|governed| !governed.node(index).is_free)
    }

    /// Whether an old pod may be replaced now.
    pub(crate) fn allows(&self, index: usize, entry: &NodeEntry<'_>, old: &OwnPod<'_>) -> bool {
        self.governed
            .is_none_or(|governed| governed.may_replace(index, entry, old, self.resolution))
            && !self.blocked.contains(old.pod.uid())
    }

    /// Sorts old pods in the order in which they are replaced. Without a policy that is the order of the nodes' names, in which they
    /// are already.
    pub(crate) fn sort<T>(&self, olds: &mut [T], of: impl Fn(&T) -> (usize, &'a str, &OwnPod<'a>)) {
        if let Some(governed) = self.governed {
            olds.sort_by_key(|old| {
                let (index, name, pod) = of(old);
                governed.rank(index, name, pod.pod)
            });
        }
    }

    /// The reason of a change: during a rollback that the pod has a rejected revision.
    pub(crate) fn reason(&self, reason: Reason) -> Reason {
        match self.governed {
            Some(governed) if governed.rolls_back() => Reason::RevisionRejected,
            _ => reason,
        }
    }

    /// How many nodes may be begun, of so many that the budget allows.
    pub(crate) fn pace(&self) -> usize {
        let left = self.governed.and_then(|governed| governed.decision.pace_left);
        left.unwrap_or(usize::MAX)
    }
}
