//! Bounds on how much a plan does and on which nodes it creates pods. Without them a faulty service could fill the
//! cluster with pods of the workload's own template, or keep the executor writing.

use std::collections::HashSet;

use nodewise_proto::v1::{self, action::Kind};
use nodewise_runtime::Resource;

use super::{Caches, Checked, RequestContext, Violation};
use nodewise_runtime::apply;

/// Maximum number of live pods of the workload on a node for which the plan creates another pod. A surge has an old pod
/// beside the new one.
const MAX_LIVE_PODS: usize = 1;
/// Minimum and maximum bound for the sum of adoptions, releases, relabels and updates of revisions. Within these, the
/// bound is the burst. The same number is added for deletes of revisions.
const CLAIMS: (usize, usize) = (1_000, 10_000);
/// Maximum number of Events besides one for each deleted pod.
const MAX_OTHER_EVENTS: usize = 10;

/// Checks the numbers of actions.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let count = |is: fn(&Kind) -> bool| {
        let kinds = plan.actions().filter_map(|action| action.kind.as_ref());
        kinds.filter(|kind| is(kind)).count()
    };
    // Empty phases and batches are refused: each batch may ask for a live read of the workload, whatever actions it
    // has.
    if plan.phases.iter().any(|phase| phase.batches.is_empty()) {
        return Err(Violation::of_plan("it has a phase without batches"));
    }
    let mut batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    if batches.any(|batch| batch.actions.is_empty()) {
        return Err(Violation::of_plan("it has a batch without actions"));
    }
    let burst = request.burst;
    // Including actions of an unknown kind.
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
    if request.decides_after_cut {
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

/// Checks the nodes for which the plan creates pods. Nodes and pods may have changed since the snapshot.
pub(super) fn check_nodes(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
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
                let gone = caches.changed(Resource::NODES, node);
                (gone, format!("node {node:?} does not exist"))
            }
            Some(pods) if pods.count > MAX_LIVE_PODS => {
                let what = format!("node {node:?} has {} pods of the workload already", pods.count);
                (pods.changed, what)
            }
            Some(_) => continue,
        };
        checked.leave_out(action, request, changed, what)?;
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
