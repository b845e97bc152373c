//! Parses the workload: an object of one of the kinds, as the apiserver served it.
//!
//! Fields that a decision depends on are read with the types of the Kubernetes API. `spec.template` stays JSON, since a typed round
//! trip could lose parts of it (D-59). Other fields are not read. The parser does not rely on the apiserver's validation (D-120).

mod daemon_set;
mod deployment;
mod measurement;
mod object;
mod replica_set;
mod rollout_policy;
mod status;

pub(super) use daemon_set::read_template;
pub(crate) use measurement::MOST_BYTES as MOST_VALUE_BYTES;
use nodewise_planner::{
    daemonset::DaemonSet, deployment::Deployment, replicaset::ReplicaSet, snapshot::Options,
};
use nodewise_proto::{
    v1::{self, workload::Kind},
    workload::REPLICA_SET,
};

use super::{Context, problems::Path};
use crate::refusal::Refusal;

/// A workload.
pub(super) enum Workload {
    DaemonSet(DaemonSet),
    ReplicaSet(ReplicaSet),
    Deployment(Deployment),
}

/// Reads the workload. `None` if it has errors, which are noted.
pub(super) fn read(
    workload: Option<v1::Workload>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Option<Workload>, Refusal> {
    Ok(match workload.and_then(|workload| workload.kind) {
        Some(Kind::DaemonSet(message)) => {
            daemon_set::read(&message, &at.field("daemon_set"), context)?.map(Workload::DaemonSet)
        }
        Some(Kind::ReplicaSet(message)) => {
            replica_set::read(message, &at.field("replica_set"), &mut context.problems)
                .map(Workload::ReplicaSet)
        }
        Some(Kind::Deployment(message)) => {
            deployment::read(&message, &at.field("deployment"), context)?.map(Workload::Deployment)
        }
        None => {
            context
                .problems
                .add(at, "is required: no workload of a kind that this server knows");
            None
        }
    })
}

/// Upstream's burst for a kind.
pub(super) fn burst_of(kind: Option<&str>) -> usize {
    match kind {
        Some(REPLICA_SET) => Options::REPLICA_SET_BURST,
        _ => Options::DEFAULT_BURST,
    }
}
