//! What is held of the names of pods that are gone, and of names that were found taken.

use std::collections::BTreeSet;

use crate::{
    claims::Claim,
    patience::Patience,
    picture::Picture,
    pods::{self, OwnPod},
    snapshot::{Bucket, Deviation, Snapshot, State},
};

/// Nodes for which names are held although none of the workload's pods may run there. A DaemonSet that leaves every node of a large
/// cluster must not have a state of that size from then on.
const MOST_IDLE_NODES: usize = 1_000;

/// Holds what is known of names for nodes that lack a pod of the current revision, and drops the rest: no create is under way on the
/// other nodes. A node where no pod may run just now may get one later. `None` when patience ends.
pub(crate) fn keep_needed(
    state: &mut State,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
    patience: Patience<'_>,
) -> Option<()> {
    if !snapshot.options.deviates(Deviation::IdempotentCreates) {
        state.used_pod_names.clear();
    }
    let collisions = state.pod_name_collisions.iter();
    let named = collisions.map(|collision| collision.node_name.as_str());
    let named = named.chain(state.used_pod_names.iter().map(|used| used.node_name.as_str()));
    let lacking = lacking_pod(named.collect(), snapshot, picture, patience)?;
    let lacking: BTreeSet<String> = lacking.into_iter().map(str::to_owned).collect();
    state
        .pod_name_collisions
        .retain(|collision| lacking.contains(&collision.node_name));
    state
        .used_pod_names
        .retain(|used| lacking.contains(&used.node_name));
    Some(())
}

/// Those of some nodes that have no live pod of the current revision.
fn lacking_pod<'n>(
    named: BTreeSet<&'n str>,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
    patience: Patience<'_>,
) -> Option<BTreeSet<&'n str>> {
    let is_new = |pod: &OwnPod<'_>| pod.updated() && pod.is_live();
    let (mut lacking, mut idle, mut quiet) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, name) in named.into_iter().enumerate() {
        patience.tick(index)?;
        let place = picture.places.binary_search_by(|place| place.name.cmp(name));
        let Ok(place) = place.map(|index| &picture.places[index]) else {
            quiet.insert(name);
            continue;
        };
        if place.node.is_some() && !picture.pods(place).iter().any(is_new) {
            let nodes = if place.fit.run { &mut lacking } else { &mut idle };
            nodes.insert(name);
        }
    }
    idle.append(&mut empty_nodes(quiet, snapshot, patience)?);
    lacking.extend(idle.into_iter().take(MOST_IDLE_NODES));
    Some(lacking)
}

/// Those of some quiet places that are nodes without a pod. The other quiet places have the one pod that they should have.
fn empty_nodes<'n>(
    mut quiet: BTreeSet<&'n str>,
    snapshot: &Snapshot,
    patience: Patience<'_>,
) -> Option<BTreeSet<&'n str>> {
    let nodes: usize = snapshot.buckets.iter().map(|bucket| bucket.nodes.len()).sum();
    let mut empty = BTreeSet::new();
    // Few names are looked up in each bucket; for many, each node is looked at once.
    if quiet.len() * snapshot.buckets.len() <= nodes {
        let has_node = |bucket: &&Bucket, name| {
            bucket
                .nodes
                .binary_search_by(|node| (*node.name).cmp(name))
                .is_ok()
        };
        for (index, name) in quiet.into_iter().enumerate() {
            patience.tick(index)?;
            let bucket = snapshot.buckets.iter().find(|bucket| has_node(bucket, name));
            if let Some(bucket) = bucket
                && !has_pod(name, bucket, snapshot, patience)?
            {
                empty.insert(name);
            }
        }
    } else {
        for bucket in &snapshot.buckets {
            for (index, node) in bucket.nodes.iter().enumerate() {
                patience.tick(index)?;
                if let Some(name) = quiet.take(&*node.name)
                    && !has_pod(name, bucket, snapshot, patience)?
                {
                    empty.insert(name);
                }
            }
        }
    }
    Some(empty)
}

/// Whether a node of this bucket has one of the workload's pods. A node may have any number of other pods.
fn has_pod(node: &str, bucket: &Bucket, snapshot: &Snapshot, patience: Patience<'_>) -> Option<bool> {
    let from = bucket.pods.partition_point(|pod| pod.target.node() < Some(node));
    let on_node = bucket.pods[from..]
        .iter()
        .take_while(|pod| pod.target.node() == Some(node));
    for (index, pod) in on_node.enumerate() {
        patience.tick(index)?;
        if matches!(
            pods::claim(&snapshot.daemon_set, pod),
            Claim::Owned | Claim::Adopt
        ) {
            return Some(true);
        }
    }
    Some(false)
}
