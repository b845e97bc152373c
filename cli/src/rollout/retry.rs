//! `nodewise rollout retry`: deletes the pods that hold up the rollout. Their controller creates them anew.

use anyhow::Context as _;
use nodewise_proto::v1;

use super::proposal::{PodName, Proposal, Proposed};
use crate::{
    input::{Cluster, Served},
    text::{PLAIN, Page, REMOVE},
    view,
};

/// The deletes of the pods that hold up the rollout. `cluster` was read with facts.
pub(super) fn retry(
    cluster: &Cluster,
    workload: &Served,
    status: &v1::WorkloadStatus,
) -> anyhow::Result<Proposed> {
    let blocking: Vec<&v1::PodStatus> = view::pods(status).filter(|pod| is_blocking(pod)).collect();
    if blocking.is_empty() {
        return Ok(Proposed::Nothing(nothing(workload, status)));
    }
    let facts = cluster
        .facts
        .as_ref()
        .context("the cluster was read without facts")?;
    let mut page = Page::new(None);
    let mut pods = Vec::with_capacity(blocking.len());
    for pod in blocking {
        let problem = pod.problem.as_ref().map_or("", |problem| &problem.message);
        page.marked(2, "-", REMOVE, PLAIN, &format!("pod {}: {problem}", pod.pod_name));
        let uid = facts
            .uid_of_pod(&workload.namespace, &pod.pod_name)
            .with_context(|| format!("pod {}: metadata.uid is empty", pod.pod_name))?;
        pods.push(PodName {
            name: pod.pod_name.clone(),
            uid: uid.to_owned(),
        });
    }
    Ok(Proposed::Change(Proposal::delete(workload, page, pods)))
}

/// Why there is nothing to delete.
fn nothing(workload: &Served, status: &v1::WorkloadStatus) -> String {
    let title = workload.title();
    let stuck = status
        .causes
        .iter()
        .filter(|cause| cause.reason == nodewise_status::DELETION_STUCK);
    let units: Vec<&String> = stuck.flat_map(|cause| &cause.units).collect();
    let mut held = view::pods(status).filter(|pod| {
        pod.deleted_at.is_some()
            && units
                .iter()
                .any(|unit| [&pod.pod_name, &pod.node_name].contains(unit))
    });
    match (held.next(), status.causes.first()) {
        (Some(pod), _) => format!(
            "{title}: pod {} holds up the rollout and is being deleted already. Another delete does not help. {}",
            pod.pod_name,
            finalizers(pod)
        ),
        (None, Some(cause)) => format!("{title}: no pod can be deleted to help. {}", cause.message),
        (None, None) => format!("{title}: no pod holds up the rollout."),
    }
}

fn finalizers(pod: &v1::PodStatus) -> String {
    match pod.finalizers.as_slice() {
        [] => "The kubelet of its node has not ended it.".to_owned(),
        finalizers => format!("It has the finalizers {}.", finalizers.join(", ")),
    }
}

/// Whether a pod of the current revision cannot become ready until someone acts.
fn is_blocking(pod: &v1::PodStatus) -> bool {
    let is_failing = pod.problem.as_ref().is_some_and(|problem| problem.is_failing);
    pod.updated && is_failing && pod.deleted_at.is_none()
}
