//! The response of GetCapabilities.

use nodewise_planner::snapshot::Deviation;
use nodewise_proto::{
    v1,
    workload::{KINDS, ROLLOUT_POLICIES_FEATURE, SHARED_LABELS_FEATURE},
};

use crate::{config::Config, methods, parse::options};

/// The Kubernetes version whose behaviour is reproduced.
const KUBERNETES_VERSION: &str = "v1.36";

/// The capabilities of a server with this configuration.
pub(crate) fn of(config: &Config) -> v1::GetCapabilitiesResponse {
    v1::GetCapabilitiesResponse {
        engine_version: env!("CARGO_PKG_VERSION").to_owned(),
        kubernetes_version: KUBERNETES_VERSION.to_owned(),
        limits: Some(v1::Limits {
            max_message_bytes: config.max_message_size.0,
            max_concurrent_plans: u32::try_from(config.max_concurrent_plans).unwrap_or(u32::MAX),
            max_nodes: config.limits.nodes,
            max_pods: config.limits.pods,
            max_bucket_count: config.limits.buckets,
            max_revisions: config.limits.revisions,
        }),
        digest_functions: vec![v1::DigestFunction::Sha256.into()],
        workload_kinds: KINDS.map(str::to_owned).into(),
        deviations: Deviation::ALL.into_iter().map(deviation).collect(),
        methods: methods::names().map(str::to_owned).collect(),
        features: [ROLLOUT_POLICIES_FEATURE, SHARED_LABELS_FEATURE]
            .map(str::to_owned)
            .into(),
    }
}

fn deviation(deviation: Deviation) -> v1::DeviationInfo {
    v1::DeviationInfo {
        deviation: options::to_message(deviation).into(),
        on_by_default: deviation.on_by_default(),
        description: description(deviation).to_owned(),
    }
}

fn description(deviation: Deviation) -> &'static str {
    match deviation {
        Deviation::IdempotentCreates => {
            "Pod names are derived from the workload and a number, and of a DaemonSet also from node and revision, so that \
             a repeated create collides instead of making a second pod."
        }
        Deviation::ClearReplacedOwnWrites => {
            "When a workload is replaced under its name, the executor clears the own-write record of the old uid (Q-2)."
        }
        Deviation::RelabelDuplicatesOnly => {
            "De-duplicating revisions relabels only the pods of the duplicates (Q-4)."
        }
        Deviation::DeletionsByUid => {
            "The executor tracks expected deletions by uid instead of counting them (Q-5)."
        }
        Deviation::SkipDeletingOnMissingNodes => {
            "Pods of missing nodes that are already being deleted are not deleted again (Q-6)."
        }
        Deviation::SurgeIgnoresMissingNodes => {
            "An old pod bound to a missing node does not fail a rollout with surge (Q-7)."
        }
        Deviation::SurgeHonoursBackoff => {
            "With surge, a node whose failed pod waits in back-off gets no further pod (Q-9)."
        }
        Deviation::DecideAfterCut => {
            "Back-off advances and events are emitted only for finished pods whose delete is in the plan (Q-12)."
        }
        Deviation::ShortenRevisionNames => "Names of revisions are shortened to fit an object name (Q-14).",
        Deviation::DeleteWithUid => "Deletes carry the pod's uid as a precondition (Q-16).",
        Deviation::EmptySelectorByMeaning => {
            "Any selector without requirements counts as the empty selector (Q-17)."
        }
        Deviation::EarliestRequeue => {
            "Come back at the earliest moment when something changes, not after whole periods (Q-18)."
        }
        Deviation::WakeOnNodeDelete => "A deleted node wakes the executor's workloads (Q-19).",
        Deviation::LowerOnNamespaceTerminating => {
            "Creates refused because the namespace is terminating are no longer expected (Q-20)."
        }
        Deviation::SkipEqualStatusWrites => {
            "No status write when nothing would change, also while expectations are pending (Q-21)."
        }
        Deviation::StatusWithUid => "A status is written only to the workload that was planned for.",
        Deviation::SlowStartAcrossPlans => {
            "The slow start of creates goes on from plan to plan, and creates are planned while earlier ones are not seen yet."
        }
        Deviation::RefreshDesiredReplicas => {
            "Annotations with the desired replicas are refreshed when no ReplicaSet changes its size; upstream's rollout never starts."
        }
        Deviation::ReleasedSetIsCollision => {
            "A ReplicaSet that a plan releases is not used as the Deployment's new ReplicaSet in the same plan."
        }
        Deviation::WideProportions => "The shares of proportional scaling do not overflow.",
        Deviation::NoHotRequeue => {
            "A Deployment without progress after its deadline is not planned again every few milliseconds."
        }
        Deviation::ConfirmBeforeCreates => {
            "Before the executor replaces deleted pods or a deleted ReplicaSet, it checks that the owner still exists."
        }
        Deviation::RetryOldSetScaling => "A failed scale-down of an old ReplicaSet is retried with back-off.",
    }
}
