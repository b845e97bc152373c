//! Parses the options of a plan.

use std::collections::BTreeSet;

use nodewise_planner::snapshot::{Deviation, Options, Scope};
use nodewise_proto::v1;

use super::problems::{Path, Problems};

/// Reads the options for a workload of a kind whose default burst is `burst`. Absent options have their defaults.
pub(super) fn options(
    message: Option<v1::PlanOptions>,
    burst: usize,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Options {
    let message = message.unwrap_or_default();
    let mut options = match v1::Profile::try_from(message.profile) {
        Ok(v1::Profile::Unspecified | v1::Profile::Default) => Options::default(),
        Ok(v1::Profile::UpstreamStrict) => Options::upstream_strict(),
        Err(_) => {
            unknown(&at.field("profile"), message.profile, "Profile", problems);
            Options::default()
        }
    };
    let enabled = deviations(
        &message.enabled_deviations,
        &at.field("enabled_deviations"),
        problems,
    );
    let at_disabled = at.field("disabled_deviations");
    let disabled = deviations(&message.disabled_deviations, &at_disabled, problems);
    for deviation in enabled.intersection(&disabled) {
        problems.add(
            &at_disabled,
            format!("{} is also enabled", to_message(*deviation).as_str_name()),
        );
    }
    options.deviations.extend(&enabled);
    options
        .deviations
        .retain(|deviation| !disabled.contains(deviation));
    let at_disabled = at.field("disabled_feature_gates");
    for (gates, at, on) in [
        (&message.feature_gates, &at.field("feature_gates"), true),
        (&message.disabled_feature_gates, &at_disabled, false),
    ] {
        for (index, gate) in gates.iter().enumerate() {
            match feature_gate(*gate, &mut options) {
                Some(setting) => *setting = on,
                None => unknown(&at.index(index), *gate, "FeatureGate", problems),
            }
        }
    }
    for (index, gate) in message.disabled_feature_gates.iter().enumerate() {
        if message.feature_gates.contains(gate) {
            problems.add(&at_disabled.index(index), "is also in feature_gates");
        }
    }
    match v1::Scope::try_from(message.scope) {
        Ok(v1::Scope::Unspecified | v1::Scope::Workload) => options.scope = Scope::Workload,
        Ok(v1::Scope::Rollouts) => options.scope = Scope::Rollouts,
        Err(_) => unknown(&at.field("scope"), message.scope, "Scope", problems),
    }
    match message.burst {
        None => options.burst = burst,
        Some(0) => problems.add(&at.field("burst"), "must not be 0"),
        Some(burst) => options.burst = usize::try_from(burst).unwrap_or(usize::MAX),
    }
    options
}

/// Reads feature gates, all of which are on, for a request without other options.
pub(super) fn feature_gates(gates: &[i32], at: &Path<'_>, problems: &mut Problems) -> Options {
    let mut options = Options::default();
    for (index, gate) in gates.iter().enumerate() {
        match feature_gate(*gate, &mut options) {
            Some(setting) => *setting = true,
            None => unknown(&at.index(index), *gate, "FeatureGate", problems),
        }
    }
    options
}

/// The option that a feature gate sets; `None` for an unknown gate.
fn feature_gate(gate: i32, options: &mut Options) -> Option<&mut bool> {
    match v1::FeatureGate::try_from(gate) {
        Ok(v1::FeatureGate::TaintTolerationComparisonOperators) => {
            Some(&mut options.toleration_comparison_operators)
        }
        Ok(v1::FeatureGate::PodDeletionCost) => Some(&mut options.pod_deletion_cost),
        Ok(v1::FeatureGate::DeploymentReplicaSetTerminatingReplicas) => {
            Some(&mut options.terminating_replicas)
        }
        Ok(v1::FeatureGate::Unspecified) | Err(_) => None,
    }
}

fn deviations(values: &[i32], at: &Path<'_>, problems: &mut Problems) -> BTreeSet<Deviation> {
    let mut deviations = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        match Deviation::ALL
            .into_iter()
            .find(|deviation| to_message(*deviation) as i32 == *value)
        {
            Some(deviation) => {
                deviations.insert(deviation);
            }
            None => unknown(&at.index(index), *value, "Deviation", problems),
        }
    }
    deviations
}

fn unknown(at: &Path<'_>, value: i32, name: &str, problems: &mut Problems) {
    problems.add(at, format!("{value} is no {name} that this server knows"));
}

/// The deviation as a message.
pub(crate) fn to_message(deviation: Deviation) -> v1::Deviation {
    match deviation {
        Deviation::IdempotentCreates => v1::Deviation::IdempotentCreates,
        Deviation::ClearReplacedOwnWrites => v1::Deviation::ClearReplacedOwnWrites,
        Deviation::RelabelDuplicatesOnly => v1::Deviation::RelabelDuplicatesOnly,
        Deviation::DeletionsByUid => v1::Deviation::DeletionsByUid,
        Deviation::SkipDeletingOnMissingNodes => v1::Deviation::SkipDeletingOnMissingNodes,
        Deviation::SurgeIgnoresMissingNodes => v1::Deviation::SurgeIgnoresMissingNodes,
        Deviation::SurgeHonoursBackoff => v1::Deviation::SurgeHonoursBackoff,
        Deviation::DecideAfterCut => v1::Deviation::DecideAfterCut,
        Deviation::ShortenRevisionNames => v1::Deviation::ShortenRevisionNames,
        Deviation::DeleteWithUid => v1::Deviation::DeleteWithUid,
        Deviation::EmptySelectorByMeaning => v1::Deviation::EmptySelectorByMeaning,
        Deviation::EarliestRequeue => v1::Deviation::EarliestRequeue,
        Deviation::WakeOnNodeDelete => v1::Deviation::WakeOnNodeDelete,
        Deviation::LowerOnNamespaceTerminating => v1::Deviation::LowerOnNamespaceTerminating,
        Deviation::SkipEqualStatusWrites => v1::Deviation::SkipEqualStatusWrites,
        Deviation::StatusWithUid => v1::Deviation::StatusWithUid,
        Deviation::SlowStartAcrossPlans => v1::Deviation::SlowStartAcrossPlans,
        Deviation::RefreshDesiredReplicas => v1::Deviation::RefreshDesiredReplicas,
        Deviation::ReleasedSetIsCollision => v1::Deviation::ReleasedSetIsCollision,
        Deviation::WideProportions => v1::Deviation::WideProportions,
        Deviation::NoHotRequeue => v1::Deviation::NoHotRequeue,
        Deviation::RetryOldSetScaling => v1::Deviation::RetryOldSetScaling,
        Deviation::ConfirmBeforeCreates => v1::Deviation::ConfirmBeforeCreates,
    }
}
