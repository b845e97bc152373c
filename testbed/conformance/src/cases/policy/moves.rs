//! In which order, and when, nodes got a new version: the executor's deletes and evictions from the audit log, and when the new pods
//! became ready.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nodewise_testbed::AuditEvent;

use crate::{budget::node_of, fixture::Fixture};

/// Whether the executor removed a pod: by a delete, or by an eviction that was allowed.
pub(super) fn is_removal(event: &AuditEvent) -> bool {
    let is_eviction = event.verb == "create" && event.subresource == "eviction";
    event.resource == "pods"
        && (event.verb == "delete" || is_eviction)
        && (200..300).contains(&event.code)
        && event.complete
}

/// The same, or the executor was killed before the answer, so that the pod may be gone. A request whose client is gone may end with
/// 504, also if it was carried out.
pub(super) fn may_be_removal(event: &AuditEvent) -> bool {
    let is_unanswered = !event.complete || event.code >= 500;
    is_removal(event) || is_unanswered && is_removal(&answered(event))
}

/// The event as it would be if the apiserver's answer had reached the executor.
fn answered(event: &AuditEvent) -> AuditEvent {
    AuditEvent {
        code: 200,
        complete: true,
        ..event.clone()
    }
}

/// The nodes of the present pods, by the names of the pods.
pub(super) async fn nodes_of_pods(fixture: &Fixture) -> Result<BTreeMap<String, String>> {
    let pods = fixture.live_pods("agent").await?;
    Ok(pods.iter().map(|pod| (pod.name_any(), node_of(pod))).collect())
}

/// What happened on a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// When the executor removed the old pod.
    pub(super) removed: Timestamp,
    /// When the present pod became ready. Kubelets write whole seconds, so it may be almost a second too early.
    pub(super) ready: Timestamp,
}

/// What happened on each node since `before`, which has the nodes of the old pods. Fails if a node lost another pod than its old one.
pub(super) async fn moves(
    fixture: &Fixture,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Move>> {
    let mut removed: BTreeMap<&str, Timestamp> = BTreeMap::new();
    let writes = fixture.writes().await?;
    for event in writes.iter().filter(|event| may_be_removal(event)) {
        let node = before
            .get(&event.name)
            .with_context(|| format!("{} was removed, which is no old pod", event.name))?;
        // An executor that was killed may have asked before.
        let first = removed.entry(node).or_insert(event.received);
        *first = event.received.min(*first);
    }
    let mut moves = BTreeMap::new();
    for pod in fixture.live_pods("agent").await? {
        let node = node_of(&pod);
        if let (Some(removed), Some(ready)) = (removed.get(node.as_str()), ready_since(&pod)) {
            let removed = *removed;
            moves.insert(node, Move { removed, ready });
        }
    }
    Ok(moves)
}

/// Since when a pod is ready.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|one| one.type_ == "Ready" && one.status == "True")?;
    Some(ready.last_transition_time.as_ref()?.0)
}

/// Fails unless each of these groups of nodes was begun only when all pods of the one before it had been ready for `soak`.
pub(super) fn expect_in_order(
    moves: &BTreeMap<String, Move>,
    groups: &[Vec<String>],
    soak: SignedDuration,
) -> Result<()> {
    let of = |nodes: &Vec<String>| -> Result<Vec<Move>> {
        let found = nodes.iter().map(|node| {
            let found = moves.get(node).copied();
            found.with_context(|| format!("{node} never got another pod"))
        });
        found.collect()
    };
    for pair in groups.windows(2) {
        let ready = of(&pair[0])?
            .iter()
            .map(|it| it.ready)
            .max()
            .context("no nodes")?;
        let next = of(&pair[1])?
            .iter()
            .map(|it| it.removed)
            .min()
            .context("no nodes")?;
        ensure!(
            next >= ready + soak,
            "{:?} were begun at {next}, and {:?} were ready at {ready} and should have been so for {soak:#}",
            pair[1],
            pair[0]
        );
    }
    Ok(())
}
