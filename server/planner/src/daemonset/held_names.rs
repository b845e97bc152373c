//! Decides which used and taken pod names stay in the state (D-82).

use std::collections::BTreeSet;

use crate::{
    core::{
        cancellation::Cancellation,
        claims::Claim,
        pod_claims,
        snapshot::{Bucket, Deviation, Snapshot, State},
    },
    daemonset::{cluster_view::ClusterView, pod_classifier::OwnPod, workload::DaemonSet},
};

/// The most nodes without a right to a pod for which names are kept. Otherwise a DaemonSet that was removed from all nodes of a
/// large cluster would keep a large state.
const MOST_IDLE_NODES: usize = 1_000;

/// Keeps names for nodes without a live pod of the current revision, and drops the others: no create is outstanding there. Nodes
/// that may not run a pod now may get one later, so names are kept for them, too. `None` if cancelled.
pub(crate) fn keep_needed(
    state: &mut State,
    snapshot: &Snapshot<DaemonSet>,
    view: &ClusterView<'_>,
    cancellation: Cancellation<'_>,
) -> Option<()> {
    if !snapshot.options.deviates(Deviation::IdempotentCreates) {
        state.used_pod_names.clear();
    }
    let collisions = state.pod_name_collisions.iter();
    let named = collisions.map(|collision| collision.node_name.as_str());
    let named = named.chain(state.used_pod_names.iter().map(|used| used.node_name.as_str()));
    let lacking = lacking_pod(named.collect(), snapshot, view, cancellation)?;
    let lacking: BTreeSet<String> = lacking.into_iter().map(str::to_owned).collect();
    state
        .pod_name_collisions
        .retain(|collision| lacking.contains(&collision.node_name));
    state
        .used_pod_names
        .retain(|used| lacking.contains(&used.node_name));
    Some(())
}

/// The nodes among `named` that have no live pod of the current revision.
fn lacking_pod<'n>(
    named: BTreeSet<&'n str>,
    snapshot: &Snapshot<DaemonSet>,
    view: &ClusterView<'_>,
    cancellation: Cancellation<'_>,
) -> Option<BTreeSet<&'n str>> {
    let is_new = |pod: &OwnPod<'_>| pod.updated() && pod.is_live();
    let (mut lacking, mut idle, mut settled) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, name) in named.into_iter().enumerate() {
        cancellation.tick(index)?;
        let entry = view.entries.binary_search_by(|entry| entry.name.cmp(name));
        let Ok(entry) = entry.map(|index| &view.entries[index]) else {
            settled.insert(name);
            continue;
        };
        if entry.node.is_some() && !view.pods(entry).iter().any(is_new) {
            let nodes = if entry.fit.run { &mut lacking } else { &mut idle };
            nodes.insert(name);
        }
    }
    idle.append(&mut empty_nodes(settled, snapshot, cancellation)?);
    lacking.extend(idle.into_iter().take(MOST_IDLE_NODES));
    Some(lacking)
}

/// The nodes among `settled` that exist and have no pod. All other settled nodes have their pod.
fn empty_nodes<'n>(
    mut settled: BTreeSet<&'n str>,
    snapshot: &Snapshot<DaemonSet>,
    cancellation: Cancellation<'_>,
) -> Option<BTreeSet<&'n str>> {
    let nodes: usize = snapshot.buckets.iter().map(|bucket| bucket.nodes.len()).sum();
    let mut empty = BTreeSet::new();
    // Look up few names in each bucket. For many names, visit each node once.
    if settled.len() * snapshot.buckets.len() <= nodes {
        let has_node = |bucket: &&Bucket, name| bucket.nodes.find(name).is_some();
        for (index, name) in settled.into_iter().enumerate() {
            cancellation.tick(index)?;
            let bucket = snapshot.buckets.iter().find(|bucket| has_node(bucket, name));
            if let Some(bucket) = bucket
                && !has_pod(name, bucket, snapshot, cancellation)?
            {
                empty.insert(name);
            }
        }
    } else {
        for bucket in &snapshot.buckets {
            for (index, node) in bucket.nodes.iter().enumerate() {
                cancellation.tick(index)?;
                if let Some(name) = settled.take(node.name())
                    && !has_pod(name, bucket, snapshot, cancellation)?
                {
                    empty.insert(name);
                }
            }
        }
    }
    Some(empty)
}

/// Whether a node of this bucket has a pod of the workload. The node may also have any number of other pods.
fn has_pod(
    node: &str,
    bucket: &Bucket,
    snapshot: &Snapshot<DaemonSet>,
    cancellation: Cancellation<'_>,
) -> Option<bool> {
    for (index, pod) in bucket.pods.on_node(node).enumerate() {
        cancellation.tick(index)?;
        if matches!(
            pod_claims::claim(snapshot.workload.owner(), pod),
            Claim::Owned | Claim::Adopt
        ) {
            return Some(true);
        }
    }
    Some(false)
}
