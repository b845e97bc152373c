//! How many pods and revisions a plan creates, and where. Otherwise a wrong service could fill the cluster with pods of the workload's
//! own template.

use std::collections::HashSet;

use nodewise_proto::v1::{self, action::Kind};

use super::{Asked, Caches, Violation};

/// Most pods of the workload that live on a node where the plan creates another one. A surge has an old pod beside the new one.
const MAX_LIVE_PODS: usize = 1;

/// Checks how much the plan creates and deletes.
pub(super) fn check(plan: &v1::Plan, asked: &Asked<'_>) -> Result<(), Violation> {
    let (mut pods, mut deletes, mut revisions) = (0, 0, 0);
    for action in plan.actions() {
        match &action.kind {
            Some(Kind::CreatePod(_)) => pods += 1,
            Some(Kind::DeletePod(_)) => deletes += 1,
            Some(Kind::CreateRevision(_)) => revisions += 1,
            _ => {}
        }
    }
    for (does, count) in [("creates", pods), ("deletes", deletes)] {
        if count > asked.burst {
            return Err(Violation::of_plan(format!(
                "it {does} {count} pods, and {} are the most that were asked for",
                asked.burst
            )));
        }
    }
    if revisions > 1 {
        let what = format!("it creates {revisions} revisions, and 1 is the most");
        return Err(Violation::of_plan(what));
    }
    let mut nodes = HashSet::new();
    for action in plan.actions() {
        if let Some(Kind::CreatePod(create)) = &action.kind
            && !nodes.insert(&*create.node_name)
        {
            let what = format!("it creates a second pod for node {:?}", create.node_name);
            return Err(Violation::of(action, what));
        }
    }
    Ok(())
}

/// Checks the node that an action creates a pod for. Nodes and pods may have changed since the snapshot.
pub(super) fn check_node(
    action: &v1::Action,
    create: &v1::CreatePod,
    caches: &impl Caches,
) -> Result<(), Violation> {
    let node = &create.node_name;
    let what = match caches.live_pods(node) {
        None => format!("node {node:?} does not exist"),
        Some(count) if count > MAX_LIVE_PODS => {
            format!("node {node:?} has {count} pods of the workload already")
        }
        Some(_) => return Ok(()),
    };
    Err(Violation {
        contradicts: Some(format!("node/{node}")),
        ..Violation::of(action, what)
    })
}
