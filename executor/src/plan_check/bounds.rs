//! How much a plan does, and where it creates pods. Otherwise a wrong service could fill the cluster with pods of the workload's own
//! template, or keep the executor writing.

use std::collections::HashSet;

use nodewise_proto::v1::{self, action::Kind};

use super::{Asked, Caches, Checked, Violation};
use crate::apply;
use crate::event::Resource;

/// Most pods of the workload that live on a node where the plan creates another one. A surge has an old pod beside the new one.
const MAX_LIVE_PODS: usize = 1;
/// How many adoptions, releases, relabels and updates of revisions a plan may have: as many as the burst, but never fewer or more than
/// these. It may have as many deletes of revisions besides.
const CLAIMS: (usize, usize) = (1_000, 10_000);
/// Events about the workload as a whole, besides one for each pod that is deleted.
const MAX_OTHER_EVENTS: usize = 10;

/// Checks how much the plan does.
pub(super) fn check(plan: &v1::Plan, asked: &Asked<'_>) -> Result<(), Violation> {
    let count = |is: fn(&Kind) -> bool| {
        let kinds = plan.actions().filter_map(|action| action.kind.as_ref());
        kinds.filter(|kind| is(kind)).count()
    };
    // A batch may be confirmed by a read, whatever is in it.
    if plan.phases.iter().any(|phase| phase.batches.is_empty()) {
        return Err(Violation::of_plan("it has a phase without batches"));
    }
    let mut batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    if batches.any(|batch| batch.actions.is_empty()) {
        return Err(Violation::of_plan("it has a batch without actions"));
    }
    let burst = asked.burst;
    // Those of an unknown kind among them.
    let objects = plan
        .actions()
        .filter(|action| action.kind.is_none() || apply::object(action).is_some())
        .count();
    let deletes = count(|kind| matches!(kind, Kind::DeletePod(_)));
    let mut bounds = vec![
        (
            "creates",
            count(|kind| matches!(kind, Kind::CreatePod(_))),
            burst,
            "pods",
        ),
        ("deletes", deletes, burst, "pods"),
        (
            "creates",
            count(|kind| matches!(kind, Kind::CreateRevision(_))),
            1,
            "revisions",
        ),
        (
            "writes",
            count(|kind| matches!(kind, Kind::UpdateStatus(_))),
            1,
            "statuses",
        ),
        (
            "adopts, releases, relabels, updates and deletes",
            objects - deletes,
            2 * burst.clamp(CLAIMS.0, CLAIMS.1),
            "pods and revisions",
        ),
    ];
    if asked.decides_after_cut {
        let events = count(|kind| matches!(kind, Kind::EmitEvent(_)));
        bounds.push(("emits", events, burst + MAX_OTHER_EVENTS, "Events"));
    }
    for (does, count, most, what) in bounds {
        if count > most {
            let are = if most == 1 { "is" } else { "are" };
            return Err(Violation::of_plan(format!(
                "it {does} {count} {what}, and {most} {are} the most"
            )));
        }
    }
    let mut nodes = HashSet::new();
    for (action, node) in created(plan) {
        if !nodes.insert(node) {
            let what = format!("it creates a second pod for node {node:?}");
            return Err(Violation::of(action, what));
        }
    }
    Ok(())
}

/// Checks the nodes that the plan creates pods for. Nodes and pods may have changed since the snapshot.
pub(super) fn check_nodes(
    plan: &v1::Plan,
    asked: &Asked<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let nodes: HashSet<&str> = created(plan).map(|(_, node)| node).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let live = caches.live_pods(&nodes);
    for (action, node) in created(plan) {
        let (changed, what) = match live.get(node) {
            None => {
                let gone = caches.changed(Resource::Nodes, node);
                (gone, format!("node {node:?} does not exist"))
            }
            Some(pods) if pods.count > MAX_LIVE_PODS => {
                let what = format!("node {node:?} has {} pods of the workload already", pods.count);
                (pods.changed, what)
            }
            Some(_) => continue,
        };
        checked.leave_out(action, asked, changed, what)?;
    }
    Ok(())
}

/// The actions that create pods, and their nodes.
pub(super) fn created(plan: &v1::Plan) -> impl Iterator<Item = (&v1::Action, &str)> {
    plan.actions().filter_map(|action| match &action.kind {
        Some(Kind::CreatePod(create)) => Some((action, &*create.node_name)),
        _ => None,
    })
}
