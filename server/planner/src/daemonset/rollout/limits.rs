//! The limits of a rollout: maxUnavailable and maxSurge.

use crate::{
    core::snapshot::IntOrString,
    daemonset::workload::{DaemonSet, RollingUpdate, UpdateStrategy},
};

/// The limits of a rollout, scaled to the number of nodes that should run a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    /// maxUnavailable.
    pub(crate) max_unavailable: i64,
    /// maxSurge.
    pub(crate) max_surge: i64,
}

/// Whether a node may have an old and a new pod for a while (D-37).
pub(crate) fn allows_surge(ds: &DaemonSet) -> bool {
    match &ds.strategy {
        UpdateStrategy::RollingUpdate(Some(RollingUpdate {
            max_surge: Some(max_surge),
            ..
        })) => scale("maxSurge", max_surge, 1).is_ok_and(|scaled| scaled > 0),
        _ => false,
    }
}

/// Scales both limits (D-40). The error says which field is missing or invalid.
pub(crate) fn limits(rolling_update: Option<&RollingUpdate>, desired: usize) -> Result<Limits, String> {
    let Some(rolling_update) = rolling_update else {
        return Ok(at_least_one(Limits::default(), desired));
    };
    let max_unavailable = rolling_update
        .max_unavailable
        .as_ref()
        .ok_or_else(|| "spec.updateStrategy.rollingUpdate.maxUnavailable is missing".to_owned())?;
    let max_unavailable = scale("maxUnavailable", max_unavailable, desired)?;
    let max_surge = rolling_update
        .max_surge
        .as_ref()
        .map_or(Ok(0), |value| scale("maxSurge", value, desired))?;
    Ok(at_least_one(
        Limits {
            max_unavailable,
            max_surge,
        },
        desired,
    ))
}

/// If both limits are zero, maxUnavailable is 1. Otherwise no rollout could proceed.
fn at_least_one(limits: Limits, desired: usize) -> Limits {
    match limits {
        Limits {
            max_unavailable: 0,
            max_surge: 0,
        } if desired > 0 => Limits {
            max_unavailable: 1,
            ..limits
        },
        limits => limits,
    }
}

/// A number, or a percentage of `total`, rounded up.
pub(crate) fn scale(field: &str, value: &IntOrString, total: usize) -> Result<i64, String> {
    let text = match value {
        IntOrString::Int(number) => return Ok((*number).into()),
        IntOrString::String(text) => text,
    };
    let percent = text
        .strip_suffix('%')
        .and_then(|digits| digits.parse::<i64>().ok())
        .ok_or_else(|| {
            format!(
                "spec.updateStrategy.rollingUpdate.{field} is {text:?}, neither a number nor a percentage"
            )
        })?;
    // A saturated value is still far more than the number of nodes.
    let hundredths = percent.saturating_mul(i64::try_from(total).unwrap_or(i64::MAX));
    // Negate, divide towards negative infinity, negate again: this rounds up.
    Ok(-hundredths.saturating_neg().div_euclid(100))
}
