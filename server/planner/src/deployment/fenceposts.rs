//! maxSurge and maxUnavailable as numbers of pods, and the size of the new ReplicaSet (P-29 to P-31).

use crate::{
    core::snapshot::IntOrString,
    deployment::{
        numbers::Numbers,
        workload::{Deployment, RollingUpdate, Strategy},
    },
};

/// The limits of a rollout as numbers of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fenceposts {
    /// How many pods more than spec.replicas there may be.
    pub(crate) surge: i32,
    /// How many pods of spec.replicas may be unavailable.
    pub(crate) unavailable: i32,
}

impl Fenceposts {
    /// The limits of a Deployment (P-30). Values that cannot be read count as 0.
    pub(crate) fn of(deployment: &Deployment, numbers: &Numbers) -> Self {
        let Strategy::RollingUpdate(limits) = &deployment.strategy else {
            return Self {
                surge: 0,
                unavailable: 0,
            };
        };
        let replicas = deployment.replicas;
        let (surge, unavailable) = resolve(limits.as_ref(), replicas, numbers).unwrap_or_default();
        Self {
            surge,
            unavailable: if replicas == 0 {
                0
            } else {
                unavailable.min(replicas)
            },
        }
    }

    /// How many pods must stay available in a rolling update.
    pub(crate) fn min_available(self, replicas: i32, numbers: &Numbers) -> i32 {
        numbers.int32(i64::from(replicas) - i64::from(self.unavailable))
    }

    /// The most pods of a rollout: the value of the annotation `max-replicas`.
    pub(crate) fn max_replicas(self, replicas: i32, numbers: &Numbers) -> i32 {
        numbers.sum([replicas, self.surge])
    }
}

/// Both limits, or the first that cannot be read (P-29). An absent one is 0. If both are 0, one pod may be unavailable; otherwise no
/// rollout could proceed.
fn resolve(limits: Option<&RollingUpdate>, replicas: i32, numbers: &Numbers) -> Result<(i32, i32), String> {
    let limit = |value: Option<&IntOrString>, field, rounding| {
        value.map_or(Ok(0), |value| scale(field, value, replicas, rounding, numbers))
    };
    let surge = limit(
        limits.and_then(|limits| limits.max_surge.as_ref()),
        "maxSurge",
        Rounding::Up,
    )?;
    let unavailable = limit(
        limits.and_then(|limits| limits.max_unavailable.as_ref()),
        "maxUnavailable",
        Rounding::Down,
    )?;
    Ok(match (surge, unavailable) {
        (0, 0) => (0, 1),
        limits => limits,
    })
}

#[derive(Debug, Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// A number, or a percentage of `replicas`.
fn scale(
    field: &str,
    value: &IntOrString,
    replicas: i32,
    rounding: Rounding,
    numbers: &Numbers,
) -> Result<i32, String> {
    let text = match value {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let percent = text
        .strip_suffix('%')
        .and_then(|digits| digits.parse::<i64>().ok())
        .ok_or_else(|| {
            format!("spec.strategy.rollingUpdate.{field} is {text:?}, neither a number nor a percentage")
        })?;
    // A saturated value is still far more than any number of replicas.
    let hundredths = percent.saturating_mul(replicas.into());
    Ok(numbers.int32(match rounding {
        // Negate, divide towards negative infinity, negate again: this rounds up.
        Rounding::Up => -hundredths.saturating_neg().div_euclid(100),
        Rounding::Down => hundredths.div_euclid(100),
    }))
}

/// The size that the new ReplicaSet should have now (P-31). `size` is its present size, and `total` the size of all ReplicaSets. The
/// error says which field of the strategy cannot be used.
pub(crate) fn new_set_size(
    deployment: &Deployment,
    size: i32,
    total: i32,
    numbers: &Numbers,
) -> Result<i32, String> {
    let replicas = deployment.replicas;
    let limits = match &deployment.strategy {
        Strategy::RollingUpdate(limits) => limits.as_ref(),
        Strategy::Recreate => return Ok(replicas),
        Strategy::Unknown(strategy) => return Err(format!("deployment type {strategy} isn't supported")),
    };
    let max_surge = limits
        .and_then(|limits| limits.max_surge.as_ref())
        .ok_or_else(|| "spec.strategy.rollingUpdate.maxSurge is missing".to_owned())?;
    let surge = scale("maxSurge", max_surge, replicas, Rounding::Up, numbers)?;
    let most = numbers.sum([replicas, surge]);
    if total >= most {
        return Ok(size);
    }
    let room = numbers.int32(i64::from(most) - i64::from(total));
    let missing = numbers.int32(i64::from(replicas) - i64::from(size));
    Ok(numbers.sum([size, room.min(missing)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Option<IntOrString> {
        match text.parse() {
            Ok(number) => Some(IntOrString::Int(number)),
            Err(_) if text == "-" => None,
            Err(_) => Some(IntOrString::String(text.to_owned())),
        }
    }

    #[test]
    fn p_29_limits_of_a_rolling_update() {
        // (scenario, replicas, maxSurge, maxUnavailable, surge, unavailable)
        let table = [
            ("PS-36", 0, "0%", "0%", 0, 1),
            ("PS-36", 10, "39%", "39%", 4, 3),
            ("PS-36", 10, "-", "39%", 0, 3),
            ("PS-36", 10, "39%", "-", 4, 0),
            ("PS-36", 10, "-", "-", 0, 1),
            ("maxSurge rounds up, maxUnavailable down", 1, "25%", "25%", 1, 0),
            ("numbers", 10, "3", "2", 3, 2),
            ("a number stays at 0 replicas", 0, "3", "2", 3, 2),
            ("negative", 10, "-15%", "-15%", -1, -2),
            ("a plus sign", 10, "+20%", "0", 2, 0),
            ("too large", i32::MAX, "100%", "0", i32::MAX, 0),
        ];
        let numbers = Numbers::new(true);
        for (what, replicas, max_surge, max_unavailable, surge, unavailable) in table {
            let limits = RollingUpdate {
                max_unavailable: limit(max_unavailable),
                max_surge: limit(max_surge),
            };
            let resolved = resolve(Some(&limits), replicas, &numbers);
            assert_eq!(resolved, Ok((surge, unavailable)), "{what}");
        }
        assert_eq!(resolve(None, 5, &numbers), Ok((0, 1)));
        // PS-37
        for (max_surge, max_unavailable) in [
            ("oops", "1"),
            ("1", "urg"),
            ("%", "1"),
            ("1.5%", "1"),
            ("x%", "1"),
        ] {
            let limits = RollingUpdate {
                max_unavailable: limit(max_unavailable),
                max_surge: limit(max_surge),
            };
            assert!(
                resolve(Some(&limits), 10, &numbers).is_err(),
                "{max_surge} {max_unavailable}"
            );
        }
    }
}
