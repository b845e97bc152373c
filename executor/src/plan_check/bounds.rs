//! Bounds on how much a plan does and on which nodes it creates pods. Without them a faulty service could fill the
//! cluster with pods of the workload's own template, or keep the executor writing.

use std::collections::{HashMap, HashSet};

use nodewise_proto::v1::{self, action::Kind};
use nodewise_runtime::Resource;

use super::{Caches, Checked, RequestContext, Violation, in_short};
use nodewise_runtime::{apply, store::LivePods};

/// Maximum number of live pods of the workload on a node for which the plan creates another pod. A surge has an old pod
/// beside the new one.
const MAX_LIVE_PODS: usize = 1;
/// Minimum and maximum bound for the sum of adoptions, releases, relabels, and changes of revisions and other objects. Within these,
/// the bound is the burst. The same number is added for deletes of such objects.
const CLAIMS: (usize, usize) = (1_000, 10_000);
/// Maximum number of actions on one object of any resource: a plan may adopt an object and change it.
const MAX_WRITES: usize = 4;
/// Maximum number of measurements. A stage of a RolloutPolicy has at most ten checks.
const MAX_MEASUREMENTS: usize = 100;
/// Maximum number of Events that follow one action.
const MAX_FOLLOWING_EVENTS: usize = 4;
/// Maximum number of Events besides one for each deleted pod.
const MAX_OTHER_EVENTS: usize = 10;

/// Checks how much a plan does, as far as that needs no caches.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    check_batches(plan)?;
    check_numbers(plan, request)?;
    check_writes(plan)?;
    check_nodes_of_creates(plan, request)
}

/// Empty phases and batches are refused: each batch may ask for a live read of the workload, whatever actions it has.
fn check_batches(plan: &v1::Plan) -> Result<(), Violation> {
    if plan.phases.iter().any(|phase| phase.batches.is_empty()) {
        return Err(Violation::of_plan("it has a phase without batches"));
    }
    let mut batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    if batches.any(|batch| batch.actions.is_empty()) {
        return Err(Violation::of_plan("it has a batch without actions"));
    }
    Ok(())
}

/// Checks the numbers of actions.
fn check_numbers(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let count = |is: fn(&Kind) -> bool| {
        let kinds = plan.actions().filter_map(|action| action.kind.as_ref());
        kinds.filter(|kind| is(kind)).count()
    };
    let burst = request.burst;
    let is_write = |action: &&v1::Action| match &action.kind {
        Some(Kind::PatchObject(_) | Kind::DeleteObject(_)) => true,
        // Including actions of an unknown kind.
        kind => kind.is_none() || apply::object(action).is_some(),
    };
    let objects = plan.actions().filter(is_write).count();
    let deletes = count(|kind| matches!(kind, Kind::DeletePod(_) | Kind::EvictPod(_)));
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
            "creates",
            count(|kind| matches!(kind, Kind::CreateObject(_))),
            1,
            "objects",
        ),
        (
            "writes",
            count(|kind| matches!(kind, Kind::UpdateStatus(_))),
            1,
            "statuses",
        ),
        (
            "asks for",
            count(|kind| matches!(kind, Kind::Measure(_))),
            MAX_MEASUREMENTS,
            "measurements",
        ),
        (
            "adopts, releases, relabels, changes and deletes",
            objects - deletes,
            2 * burst.clamp(CLAIMS.0, CLAIMS.1),
            "objects",
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
    Ok(())
}

/// Checks that each pod is for another node, or that all are for none.
fn check_nodes_of_creates(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let mut nodes = HashSet::new();
    for (action, create) in created(plan) {
        let node = &*create.node_name;
        if request.rules.has_nodes && !nodes.insert(node) {
            let what = format!("it creates a second pod for node {node:?}");
            return Err(Violation::of(action, what));
        }
        if !request.rules.has_nodes && !node.is_empty() {
            let kind = request.workload.key.kind;
            let what = format!("it creates a pod for node {node:?}, and pods of a {kind} are for no node");
            return Err(Violation::of(action, what));
        }
    }
    Ok(())
}

/// Checks how often a plan writes one object of any resource, and how many Events follow an action.
fn check_writes(plan: &v1::Plan) -> Result<(), Violation> {
    let mut writes: HashMap<&str, usize> = HashMap::new();
    for action in plan.actions() {
        if action.success_events.len() > MAX_FOLLOWING_EVENTS {
            let what = format!("more than {MAX_FOLLOWING_EVENTS} events follow it");
            return Err(Violation::of(action, what));
        }
        let object = match &action.kind {
            Some(Kind::PatchObject(patch)) => patch.object.as_ref(),
            Some(Kind::DeleteObject(delete)) => delete.object.as_ref(),
            _ => None,
        };
        let Some(object) = object else { continue };
        let count = writes.entry(&object.uid).or_default();
        *count += 1;
        if *count > MAX_WRITES {
            let what = format!("it writes {} more than {MAX_WRITES} times", object.name);
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
    let nodes: HashSet<&str> = created(plan).map(|(_, create)| &*create.node_name).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let live = caches.live_pods(&nodes);
    for (action, create) in created(plan) {
        let node = &*create.node_name;
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

/// Checks that the workload gets no more pods than it should have, with those that the caches show now, and those that were created
/// and that they do not show yet: a plan that was made from an old snapshot must not create pods once more.
pub(super) fn check_replicas(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let creates = created(plan).count();
    let replicas = request.workload.replicas.unwrap_or_default();
    let replicas = usize::try_from(replicas).unwrap_or_default();
    if creates == 0 {
        return Ok(());
    }
    let names: HashSet<&str> = created(plan).map(|(_, create)| &*create.pod_name).collect();
    // A pod that is created once more is the same pod.
    let unseen = caches.unseen_creates();
    let unseen = unseen
        .iter()
        .filter(|name| !names.contains(name.as_str()))
        .count();
    // More creates than replicas are a violation whatever the caches show.
    let room = replicas.saturating_sub(creates);
    let live = caches.live_pods_beyond(room.saturating_sub(unseen));
    let LivePods { count: live, changed } = live.unwrap_or_default();
    let seen_beyond = (live + creates).saturating_sub(replicas).min(creates);
    let beyond = (live + unseen + creates).saturating_sub(replicas).min(creates);
    let beside = format!("the plan creates {creates} pods beside {live} that the caches show");
    for (number, (action, _)) in created(plan).enumerate().skip(creates - beyond) {
        if number >= creates - seen_beyond {
            let what = format!("{beside}, and spec.replicas is {replicas}");
            checked.leave_out(action, request, changed, what)?;
        } else {
            let what =
                format!("{beside} and {unseen} that they do not show yet, and spec.replicas is {replicas}");
            checked.left_out.insert(action.id, in_short(&what));
        }
    }
    Ok(())
}

/// The actions that create pods.
pub(super) fn created(plan: &v1::Plan) -> impl Iterator<Item = (&v1::Action, &v1::CreatePod)> {
    plan.actions().filter_map(|action| match &action.kind {
        Some(Kind::CreatePod(create)) => Some((action, create)),
        _ => None,
    })
}
