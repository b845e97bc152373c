//! The status of a workload as its controller computes it, which has no explanation of the nodes.
//!
//! The counts come from the plan. Only the units with a pod that is not ready are looked at, so the cost does not depend on the
//! size of the workload. The states, the causes and the messages are computed as for every other view.

use std::collections::HashMap;

use jiff::Timestamp;
use nodewise_projection::timestamp;
use nodewise_proto::v1;

use crate::{
    causes, counts,
    facts::PodFacts,
    message,
    progress::{self, Situation},
    units::{self, Progress, Unit},
};

/// What the controller of a workload knows. The counts are of nodes or of replicas; each is counted once.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Controlled {
    /// The workload.
    pub workload: v1::WorkloadReference,
    /// Those that should have a pod.
    pub desired: u32,
    /// Those with an available pod of the current template.
    pub done: u32,
    /// Those with a pod of the current template that is not available.
    pub unavailable: u32,
    /// Those with pods of older templates only.
    pub outdated: u32,
    /// Those without a pod.
    pub missing: u32,
    /// Pods that must still go before the rollout is complete.
    pub surplus: u32,
    /// spec.paused.
    pub is_paused: bool,
    /// Someone else is expected to delete outdated pods.
    pub is_on_delete: bool,
    /// A Deployment with the strategy `Recreate`: new pods are created when all others are gone.
    pub is_recreate: bool,
    /// The last plan changes pods: [`crate::changes_pods`].
    pub moves: bool,
    /// The last create that the apiserver refused, if none succeeded since.
    pub refusal: Option<v1::Refusal>,
}

/// A node or replica with a pod that is not ready or is being deleted.
#[derive(Clone, Debug)]
pub struct UnreadyUnit {
    /// The pod.
    pub pod: PodFacts,
    /// Whether it has the current template.
    pub is_updated: bool,
    /// Whether the unit is the pod's node, and not the pod.
    pub is_node: bool,
}

impl UnreadyUnit {
    fn name(&self) -> &str {
        if self.is_node {
            &self.pod.node_name
        } else {
            &self.pod.name
        }
    }

    /// A pod of the current template decides before one that goes. Other pods say nothing about the rollout.
    fn rank(&self) -> Option<u8> {
        match (self.is_updated, self.pod.deleted) {
            (true, None) => Some(0),
            (true, Some(_)) => Some(1),
            (false, Some(_)) => Some(2),
            (false, None) => None,
        }
    }
}

/// The status of a workload without its nodes, pods, revisions and pace; and when the status changes although nothing happens.
#[must_use]
pub fn of_controller(
    workload: &Controlled,
    unready: &[UnreadyUnit],
    now: Timestamp,
) -> (v1::WorkloadStatus, Option<Timestamp>) {
    let deciding = deciding(unready);
    let changes = deciding
        .iter()
        .filter_map(|unit| units::blocked_at(&unit.pod, now));
    let next_change = changes.min();
    let (units, counts) = units(workload, &deciding, now);
    let refusal = workload
        .refusal
        .as_ref()
        .filter(|_| workload.done < workload.desired);
    let causes = causes::of(&units, refusal);
    let situation = Situation {
        is_paused: workload.is_paused,
        is_on_delete: workload.is_on_delete,
        moves: workload.moves,
        surplus: workload.surplus as usize,
        is_refused: refusal.is_some(),
    };
    let state = progress::state(&situation, &counts);
    let reference = workload.workload.clone();
    let mut status = v1::WorkloadStatus {
        kind: reference.kind,
        namespace: reference.namespace,
        name: reference.name,
        uid: reference.uid,
        observed_at: Some(timestamp(now)),
        state: state.into(),
        counts: Some(counts),
        stuck_since: causes::stuck_since(state, &causes),
        causes,
        last_refusal: refusal.cloned(),
        ..v1::WorkloadStatus::default()
    };
    status.message = message::of(&status, workload.is_paused, now);
    (status, next_change)
}

/// The deciding pod of each unit.
fn deciding(unready: &[UnreadyUnit]) -> Vec<&UnreadyUnit> {
    let mut deciding: HashMap<&str, (u8, &UnreadyUnit)> = HashMap::new();
    for unit in unready {
        let Some(rank) = unit.rank() else { continue };
        let first = deciding.entry(unit.name()).or_insert((rank, unit));
        if rank < first.0 {
            *first = (rank, unit);
        }
    }
    deciding.into_values().map(|(_, unit)| unit).collect()
}

/// The units whose pods say how far they are, and the counts of all units.
fn units(workload: &Controlled, deciding: &[&UnreadyUnit], now: Timestamp) -> (Vec<Unit>, v1::UnitCounts) {
    let Controlled {
        desired,
        done,
        mut unavailable,
        mut outdated,
        mut missing,
        ..
    } = *workload;
    let mut units = Vec::new();
    for unit in deciding {
        let progress = units::of_pod(&unit.pod, now);
        let ends = unit.pod.deleted.is_some();
        let is_blocked = matches!(progress, Progress::Blocked(_));
        // A unit is counted once. One whose pod ends counts as missing, or as outdated.
        let counted = if unit.is_updated && !ends {
            [&mut unavailable, &mut missing]
        } else {
            [&mut missing, &mut outdated]
        };
        match counted.into_iter().find(|count| **count > 0) {
            Some(count) => *count -= 1,
            None if ends && is_blocked => {}
            // The pod is newer than the counts, or its node should have none.
            None => continue,
        }
        units.push(Unit {
            name: unit.name().to_owned(),
            progress,
        });
    }
    let mut counts = counts::of(&units, desired);
    let is_held = workload.is_recreate
        && units
            .iter()
            .any(|unit| matches!(unit.progress, Progress::Blocked(_)));
    let [blocked, progressing, waiting] = match &workload.refusal {
        _ if is_held => [0, 0, missing],
        Some(_) => [missing, 0, 0],
        None => [0, missing, 0],
    };
    counts.done = counts.done.saturating_add(done);
    counts.blocked = counts.blocked.saturating_add(blocked);
    let progressing = progressing.saturating_add(unavailable);
    counts.progressing = counts.progressing.saturating_add(progressing);
    counts.waiting = counts.waiting.saturating_add(outdated).saturating_add(waiting);
    (units, counts)
}
