//! The writes that a plan makes for the policies of a DaemonSet: their statuses, and the measurements that they ask for.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    core::{
        measurement::MeasurementRequest,
        plan::{Action, ActionKind, EventType, Reason},
        snapshot::BlockedEviction,
        status::DaemonSetStatus,
    },
    daemonset::{policy::Governed, workload::DaemonSet},
    rollout::{
        policy::Policy,
        status::{State, TargetStatus},
        write::{self, StatusWrite},
    },
};

/// The writes of one plan.
#[derive(Debug, Default)]
pub(crate) struct PolicyWrites {
    /// The status of the policy that counts.
    pub(crate) statuses: Vec<Action>,
    /// Statuses of the policies that do not count.
    pub(crate) conflicts: Vec<Action>,
    /// Measurements.
    pub(crate) measurements: Vec<Action>,
    /// Events that no status goes with.
    pub(crate) events: Vec<Action>,
    /// When to plan again, and why.
    pub(crate) again: Vec<(Duration, String)>,
}

/// What the status of a policy says besides the decision.
#[derive(Debug)]
pub(crate) struct Counts<'s> {
    /// Nodes that this plan begins.
    pub(crate) begun: usize,
    /// The status of the DaemonSet.
    pub(crate) status: &'s DaemonSetStatus,
    /// Its maxUnavailable as a number of nodes.
    pub(crate) max_unavailable: i64,
    /// Evictions that a PodDisruptionBudget did not allow, with the node.
    pub(crate) blocked: &'s [(BlockedEviction, &'s str)],
}

/// The writes for the policies of a DaemonSet.
pub(crate) fn of(governed: &Governed<'_>, counts: &Counts<'_>, now: Timestamp) -> PolicyWrites {
    let mut writes = PolicyWrites {
        again: governed.decision.again.clone(),
        ..PolicyWrites::default()
    };
    let decided = &governed.decision.status;
    if governed.is_unrecorded {
        let is_idle = counts.status.updated_number_scheduled == counts.status.desired_number_scheduled;
        writes.events.extend((!is_idle).then(|| held(governed.policy)));
    } else {
        let target = target(governed, counts, now);
        let events = &governed.decision.events;
        let status = write::status(governed.policy, target, events, now);
        let status = writes.written(status);
        writes.statuses.extend(status);
    }
    for other in &governed.conflicting {
        let conflict = format!(
            "RolloutPolicy {} targets {} as well, and is older or comes before it by name",
            governed.policy.name, decided.name
        );
        let conflict = write::conflict(other, (&decided.name, &decided.uid), conflict, now);
        let conflict = writes.written(conflict);
        writes.conflicts.extend(conflict);
    }
    writes.measurements = governed.decision.due.iter().map(measure).collect();
    writes
}

impl PolicyWrites {
    /// The action of a write that is made now.
    fn written(&mut self, write: StatusWrite) -> Option<Action> {
        match write {
            StatusWrite::No => None,
            StatusWrite::Later(delay) => {
                let what = "the counts of a policy's status are written".to_owned();
                self.again.push((delay, what));
                None
            }
            StatusWrite::Yes(action) => Some(*action),
        }
    }
}

/// The status of the target, with what the plan adds to the decision.
fn target(governed: &Governed<'_>, counts: &Counts<'_>, now: Timestamp) -> TargetStatus {
    let mut target = governed.decision.status.clone();
    let number = |count: i32| u32::try_from(count).unwrap_or_default();
    target.desired = number(counts.status.desired_number_scheduled);
    target.updated = number(counts.status.updated_number_scheduled);
    target.available = number(counts.status.number_available);
    target.max_unavailable = u32::try_from(counts.max_unavailable.max(0)).unwrap_or(u32::MAX);
    target.limited = governed.limited.iter().map(|field| (*field).to_owned()).collect();
    target.last_update_time = Some(now);
    if counts.begun > 0 && governed.decision.pace_left.is_some() {
        target.note_begun(counts.begun, now);
    }
    for (eviction, node) in counts.blocked {
        target.block(
            node,
            format!("a PodDisruptionBudget protects its pod: {}", eviction.message),
        );
    }
    target
}

/// The Event about a workload for which the policy's status has no place.
fn held(policy: &Policy) -> Action {
    Action {
        reason: Reason::PolicyStatusChanged,
        message: format!("RolloutPolicy {} holds the rollout", policy.name),
        kind: ActionKind::EmitEvent {
            event_type: EventType::Warning,
            reason: "RolloutHeld",
            message: format!("RolloutPolicy {}: {}", policy.name, write::FULL),
        },
    }
}

/// The write for a DaemonSet whose own controller rolls it out: beside it, the policy has no say (L-38). What the status knows stays.
pub(crate) fn has_no_say(policy: &Policy, ds: &DaemonSet, now: Timestamp) -> StatusWrite {
    let known = policy.status.target(&ds.name, &ds.uid).cloned();
    let target = TargetStatus {
        name: ds.name.clone(),
        uid: ds.uid.clone(),
        state: State::Invalid,
        message: "spec.updateStrategy.type is RollingUpdate, so another controller rolls the DaemonSet out, and this policy has no say; \
                  with OnDelete, or if Nodewise owns DaemonSets, it has"
            .to_owned(),
        last_update_time: Some(now),
        ..known.unwrap_or_default()
    };
    if write::is_full(policy, &target) {
        return StatusWrite::No;
    }
    write::status(policy, target, &[], now)
}

fn measure(request: &MeasurementRequest) -> Action {
    let id = &request.id;
    Action {
        reason: Reason::AnalysisDue,
        message: format!(
            "measurement {} of check {} of stage {}",
            id.number.saturating_add(1),
            id.check,
            id.stage
        ),
        kind: ActionKind::Measure(Box::new(request.clone())),
    }
}

/// The uids of the policies of a snapshot, which its plan confirms.
pub(crate) fn policy_uids(ds: &DaemonSet) -> Vec<String> {
    let uids = ds.rollout.policies.iter().map(|policy| policy.uid.clone());
    uids.collect()
}
