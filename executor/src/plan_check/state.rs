//! Checks the state that a plan returns. The executor sends it with every later request, so it is limited to existing
//! nodes.

use std::collections::{BTreeSet, HashMap, HashSet};

use nodewise_projection::is_label_value;
use nodewise_proto::v1;
use nodewise_runtime::Resource;

use super::{Caches, RequestContext, Violation, names, rules};

/// Maximum number of back-off entries of one node. Each entry is of another generation of the workload's spec, and only
/// the current one matters.
const MAX_BACKOFFS: usize = 4;

/// Checks the state of a plan. A node that was removed since the snapshot is no violation; its entries are dropped
/// later.
pub(super) fn check(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
) -> Result<(), Violation> {
    let Some(state) = &plan.state else { return Ok(()) };
    if !request.rules.has_nodes {
        let mut named = nodes(state).filter(|node| !node.is_empty());
        if let Some(node) = named.next() {
            let kind = request.workload.key.kind;
            let what = format!("its state names node {node:?}, and pods of a {kind} are for no node");
            return Err(Violation::of_plan(what));
        }
        return check_hash(state);
    }
    let sent: HashSet<&str> = nodes(request.sent).collect();
    for node in nodes(state) {
        let what = if !names::is_of_object(node) {
            "no object can be called so"
        } else if sent.contains(node)
            || caches.has_node(node)
            || caches.changed(Resource::NODES, node) > request.as_of
        {
            continue;
        } else {
            "that does not exist"
        };
        return Err(Violation::of_plan(format!(
            "its state names node {node:?}, and {what}"
        )));
    }
    check_hash(state)
}

/// Checks the hash of the pods whose creates were slowed down.
fn check_hash(state: &v1::ReconcileState) -> Result<(), Violation> {
    let hash = state.slow_start.as_ref().map_or("", |known| &known.revision_hash);
    if is_label_value(hash) {
        return Ok(());
    }
    Err(Violation::of_plan(format!(
        "its state names the hash {hash:?}, and no label has such a value"
    )))
}

/// The nodes in those parts of a state that only the service reads.
fn nodes(state: &v1::ReconcileState) -> impl Iterator<Item = &str> {
    let backoffs = state.failed_pod_backoffs.iter().map(|entry| &*entry.node_name);
    let collisions = state.pod_name_collisions.iter().map(|entry| &*entry.node_name);
    backoffs.chain(collisions)
}

/// Removes entries that must not be kept: of nodes that neither exist nor were in the sent state, of old generations if
/// a node has many, and duplicates. If pods of this kind of workload are for no node, entries without a node stay.
pub(crate) fn retain(
    kind: &str,
    state: &mut v1::ReconcileState,
    sent: &v1::ReconcileState,
    has_node: impl Fn(&str) -> bool,
) {
    let sent: HashSet<&str> = nodes(sent).collect();
    let has_nodes = rules(kind).has_nodes;
    let is_known = |node: &str| {
        if has_nodes {
            names::is_of_object(node) && (sent.contains(node) || has_node(node))
        } else {
            node.is_empty()
        }
    };
    let mut newest: HashMap<String, BTreeSet<i64>> = HashMap::new();
    for entry in &state.failed_pod_backoffs {
        let newest = newest.entry(entry.node_name.clone()).or_default();
        newest.insert(entry.observed_generation);
        if newest.len() > MAX_BACKOFFS {
            newest.pop_first();
        }
    }
    state.failed_pod_backoffs.retain(|entry| {
        let newest = newest.get_mut(&entry.node_name);
        // `remove` makes sure that each entry is kept once.
        newest.is_some_and(|newest| newest.remove(&entry.observed_generation)) && is_known(&entry.node_name)
    });
    let mut seen = HashSet::new();
    let collisions = &mut state.pod_name_collisions;
    collisions.retain(|entry| is_known(&entry.node_name) && seen.insert(entry.node_name.clone()));
    state
        .slow_start
        .take_if(|known| !is_label_value(&known.revision_hash));
}

#[cfg(test)]
mod tests {
    use nodewise_proto::workload::{DAEMON_SET, REPLICA_SET};

    use super::*;

    // A faulty service could make an entry for each of many generations.
    #[test]
    fn of_each_node_the_newest_entries_are_kept() {
        let of = |entries: &[(&str, i64)]| v1::ReconcileState {
            failed_pod_backoffs: entries
                .iter()
                .map(|(node, generation)| v1::FailedPodBackoff {
                    node_name: (*node).to_owned(),
                    observed_generation: *generation,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let entries = [
            ("n1", 1),
            ("n1", 2),
            ("n1", 3),
            ("n1", 4),
            ("n1", 5),
            ("n2", 1),
            ("n1", 3),
            ("gone", 1),
            ("sent", 1),
        ];
        let mut state = of(&entries);
        retain(DAEMON_SET, &mut state, &of(&[("sent", 1)]), |node| {
            ["n1", "n2"].contains(&node)
        });
        let kept = [("n1", 2), ("n1", 3), ("n1", 4), ("n1", 5), ("n2", 1), ("sent", 1)];
        assert_eq!(state, of(&kept));

        let mut state = of(&[("", 1), ("n1", 1), ("", 1)]);
        retain(REPLICA_SET, &mut state, &of(&[("n1", 1)]), |_| true);
        assert_eq!(state, of(&[("", 1)]));
    }
}
