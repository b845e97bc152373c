//! What is held of the names of pods that are gone, and of names that were found taken.

use std::collections::BTreeSet;

use crate::{
    claims::Claim,
    picture::Picture,
    pods::{self, OwnPod},
    snapshot::{Bucket, Deviation, Snapshot, State},
};

/// Nodes for which names are held although none of the workload's pods may run there. A DaemonSet that leaves every node of a large
/// cluster must not have a state of that size from then on.
const MOST_IDLE_NODES: usize = 1_000;

/// Holds what is known of names for nodes that lack a pod of the current revision, and drops the rest: no create is under way on the
/// other nodes. A node where no pod may run just now may get one later.
pub(crate) fn keep_needed(state: &mut State, snapshot: &Snapshot, picture: &Picture<'_>) {
    if !snapshot.options.deviates(Deviation::IdempotentCreates) {
        state.used_pod_names.clear();
    }
    let collisions = state.pod_name_collisions.iter();
    let named = collisions.map(|collision| collision.node_name.as_str());
    let named = named.chain(state.used_pod_names.iter().map(|used| used.node_name.as_str()));
    let lacking = lacking_pod(named.collect(), snapshot, picture);
    let lacking: BTreeSet<String> = lacking.into_iter().map(str::to_owned).collect();
    state
        .pod_name_collisions
        .retain(|collision| lacking.contains(&collision.node_name));
    state
        .used_pod_names
        .retain(|used| lacking.contains(&used.node_name));
}

/// Those of some nodes that have no live pod of the current revision.
fn lacking_pod<'n>(
    named: BTreeSet<&'n str>,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
) -> BTreeSet<&'n str> {
    let is_new = |pod: &OwnPod<'_>| pod.updated() && pod.is_live();
    let (mut lacking, mut idle, mut quiet) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for name in named {
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
    idle.append(&mut empty_nodes(quiet, snapshot));
    lacking.extend(idle.into_iter().take(MOST_IDLE_NODES));
    lacking
}

/// Those of some quiet places that are nodes without a pod. The other quiet places have the one pod that they should have.
fn empty_nodes<'n>(mut quiet: BTreeSet<&'n str>, snapshot: &Snapshot) -> BTreeSet<&'n str> {
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
        for name in quiet {
            let bucket = snapshot.buckets.iter().find(|bucket| has_node(bucket, name));
            empty.extend(
                bucket
                    .filter(|bucket| !has_pod(name, bucket, snapshot))
                    .map(|_| name),
            );
        }
    } else {
        for bucket in &snapshot.buckets {
            let named = bucket.nodes.iter().filter_map(|node| quiet.take(&*node.name));
            empty.extend(named.filter(|name| !has_pod(name, bucket, snapshot)));
        }
    }
    empty
}

/// Whether a node of this bucket has one of the workload's pods.
fn has_pod(node: &str, bucket: &Bucket, snapshot: &Snapshot) -> bool {
    let from = bucket.pods.partition_point(|pod| pod.target.node() < Some(node));
    let on_node = bucket.pods[from..]
        .iter()
        .take_while(|pod| pod.target.node() == Some(node));
    let mut claims = on_node.map(|pod| pods::claim(&snapshot.daemon_set, pod));
    claims.any(|claim| matches!(claim, Claim::Owned | Claim::Adopt))
}
