//! What the answer repeats for every pod.

use std::sync::Arc;

use nodewise_planner::snapshot::{DaemonSet, Pod};

use super::problems::Path;
use crate::refusal::{Refusal, Violation};

/// Bytes that may be repeated however little the pods say.
const LEAST: usize = 96 << 10;
/// Bytes that may be repeated for each of a pod. A real pod's uid and labels are longer than a third of any name and uid of
/// its workload.
const TIMES: usize = 3;

/// Refuses orphans with next to nothing in them, each of which would be adopted with a patch that names the workload, when
/// that name is long. Pods that have an owner name it themselves.
pub(super) fn check(workload: &DaemonSet, pods: &[Arc<[Pod]>], at: &Path<'_>) -> Result<(), Refusal> {
    let identity = workload.name.len() + workload.namespace.len() + workload.uid.len();
    let (mut repeated, mut said) = (0, LEAST);
    for pod in pods
        .iter()
        .flat_map(|bucket| bucket.iter())
        .filter(|pod| pod.controller.is_none())
    {
        let labels = pod.labels.iter().map(|(key, value)| key.len() + value.len());
        said += TIMES * (pod.name.len() + pod.uid.len() + labels.sum::<usize>());
        repeated += identity;
    }
    if repeated <= said {
        return Ok(());
    }
    let description = format!(
        "with pods that say so little, metadata.name, metadata.namespace and metadata.uid of {identity} bytes are too long: the \
         answer may repeat them for each of {} pods without an owner, more than those are themselves",
        repeated / identity.max(1)
    );
    Err(Refusal::TooLarge(Violation {
        field: at.to_string(),
        description,
    }))
}
