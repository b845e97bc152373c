//! The planner's options for a case.

use anyhow::{Result, bail};
use nodewise_planner::plan::Plan;
use nodewise_planner::snapshot::{Deviation, Options};
use nodewise_proto::v1;

use crate::case::Case;
use crate::profile::Deviations;

/// The options of a sync.
pub(super) fn options(case: &Case, deviations: &Deviations) -> Result<Options> {
    let mut options = match deviations.profile {
        v1::Profile::UpstreamStrict => Options::upstream_strict(),
        _ => Options::default(),
    };
    options.burst = usize::try_from(case.burst)?;
    for deviation in Deviation::ALL {
        let message = message(deviation);
        if deviations.with.contains(&message) {
            options.deviations.insert(deviation);
        }
        if deviations.without.contains(&message) {
            options.deviations.remove(&deviation);
        }
    }
    for gate in &case.feature_gates_off {
        match gate.as_str() {
            "PodDeletionCost" => options.pod_deletion_cost = false,
            "DeploymentReplicaSetTerminatingReplicas" => options.terminating_replicas = false,
            other => bail!("featureGatesOff: {other:?} changes no plan"),
        }
    }
    Ok(options)
}

/// The deviations that a plan names.
pub(super) fn named(plan: &Plan) -> Vec<v1::Deviation> {
    plan.deviations.iter().copied().map(message).collect()
}

/// A deviation in the protocol, which has them in the same order, from 1.
fn message(deviation: Deviation) -> v1::Deviation {
    let at = Deviation::ALL.iter().position(|other| *other == deviation);
    let number = at.and_then(|at| i32::try_from(at + 1).ok());
    number
        .and_then(|number| v1::Deviation::try_from(number).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_have_the_same_names_in_the_protocol() {
        for deviation in Deviation::ALL {
            let name = message(deviation)
                .as_str_name()
                .trim_start_matches("DEVIATION_")
                .replace('_', "");
            assert_eq!(name, format!("{deviation:?}").to_uppercase());
        }
    }
}
