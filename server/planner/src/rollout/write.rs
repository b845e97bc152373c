//! The writes of policies: their statuses, with conditions that sum up all workloads of a policy (L-36).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    core::{
        canonical,
        plan::{Action, ActionKind, Event, ObjectRef, PatchType, Reason, Resource, Subresource, WriteEvents},
    },
    rollout::{
        decision::RolloutEvent,
        policy::{Policy, Targets},
        status::{Condition, PolicyStatus, State, Summary, TargetStatus},
    },
};

/// The most workloads of a status. Rollouts of more are held.
const MOST_TARGETS: usize = 100;
/// Why a policy cannot be used for a further workload.
pub(crate) const FULL: &str = "the policy's status has no place for the stages of a further DaemonSet, so nothing is updated; divide the \
    DaemonSets among several policies";
/// The most bytes of all entries of a status. The apiserver and the service take 1 MiB of a policy, with its spec.
const MOST_BYTES: usize = 512 << 10;
/// So many entries and stages are always within [`MOST_BYTES`] or close to it.
const FEW_STAGES: usize = 200;
/// The longest text of a status, in bytes. The CRD has the same limit.
const MOST_TEXT: usize = 1_024;
/// How often counts alone are written. Every pod changes them, and a write per pod would double the cost of a rollout.
const COUNTS_EVERY: Duration = Duration::from_secs(2);

/// A write of a policy's status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatusWrite {
    /// Nothing changed.
    No,
    /// Only counts changed, and they were written a moment ago: this much later.
    Later(Duration),
    /// This write.
    Yes(Box<Action>),
}

/// The write of the status of a policy for which another one counts (L-1). What it knows of the workload stays.
pub(crate) fn conflict(
    policy: &Policy,
    (name, uid): (&str, &str),
    why: String,
    now: Timestamp,
) -> StatusWrite {
    let target = TargetStatus {
        name: name.to_owned(),
        uid: uid.to_owned(),
        state: State::Conflict,
        message: why,
        last_update_time: Some(now),
        ..policy.status.target(name, uid).cloned().unwrap_or_default()
    };
    if is_full(policy, &target) {
        return StatusWrite::No;
    }
    status(policy, target, &[], now)
}

/// Whether the status of a policy has no place for this entry of a workload.
pub(crate) fn is_full(policy: &Policy, target: &TargetStatus) -> bool {
    let others = || {
        let all = policy.status.targets.iter();
        all.filter(|other| other.name != target.name)
    };
    let all = || others().chain([target]);
    others().count() >= MOST_TARGETS
        || all().map(|target| 1 + target.stages.len()).sum::<usize>() > FEW_STAGES
            && all()
                .map(|target| canonical::to_bytes(&json!(target)).len())
                .sum::<usize>()
                > MOST_BYTES
}

/// The write of the status of a policy, after `target` was decided.
pub(crate) fn status(
    policy: &Policy,
    mut target: TargetStatus,
    events: &[RolloutEvent],
    now: Timestamp,
) -> StatusWrite {
    let mut next = PolicyStatus {
        observed_generation: policy.generation,
        ..policy.status.clone()
    };
    for text in texts(&mut target) {
        text.truncate(text.floor_char_boundary(MOST_TEXT));
    }
    let known = next.targets.iter_mut().find(|known| known.name == target.name);
    let since_last = known.as_ref().and_then(|known| known.last_update_time);
    match known {
        Some(known) => *known = target,
        None => next.targets.push(target),
    }
    if let Some(Targets::Names(names)) = &policy.targets {
        next.targets.retain(|target| names.contains(&target.name));
    }
    next.targets.sort_by(|a, b| a.name.cmp(&b.name));
    next.conditions = conditions(policy, &next.targets, now);
    next.summary = summary(&next.targets);
    if same(&next, &policy.status) {
        return StatusWrite::No;
    }
    if events.is_empty() && same(&without_counts(&next), &without_counts(&policy.status)) {
        let elapsed = since_last.map_or(SignedDuration::MAX, |last| now.duration_since(last));
        let left = COUNTS_EVERY.saturating_sub(elapsed.max(SignedDuration::ZERO).unsigned_abs());
        if !left.is_zero() {
            return StatusWrite::Later(left);
        }
    }
    StatusWrite::Yes(Box::new(patch(policy, &next, events)))
}

/// The texts of a target that may be long: names of nodes and answers of others are in them.
fn texts(target: &mut TargetStatus) -> impl Iterator<Item = &mut String> {
    let rejected = target.rejected_revision.iter_mut();
    let blocking = target.blocking.iter_mut().map(|node| &mut node.reason);
    [&mut target.message]
        .into_iter()
        .chain(blocking)
        .chain(rejected.map(|rejected| &mut rejected.message))
}

/// Whether two statuses say the same, whenever they were written.
fn same(a: &PolicyStatus, b: &PolicyStatus) -> bool {
    let timeless = |status: &PolicyStatus| {
        let mut status = status.clone();
        status
            .targets
            .iter_mut()
            .for_each(|target| target.last_update_time = None);
        status
    };
    timeless(a) == timeless(b)
}

/// A status without what changes with every pod.
fn without_counts(status: &PolicyStatus) -> PolicyStatus {
    let mut status = status.clone();
    status.summary = None;
    for condition in &mut status.conditions {
        condition.message.clear();
    }
    for target in &mut status.targets {
        target.message.clear();
        target.blocking.clear();
        (target.desired, target.updated, target.available) = (0, 0, 0);
        for stage in &mut target.stages {
            (
                stage.nodes,
                stage.updated,
                stage.available,
                stage.exempt,
                stage.failed,
            ) = (0, 0, 0, 0, 0);
            stage.soak_start_time = None;
        }
    }
    status
}

/// The workloads that the policy rolls out.
fn in_force(targets: &[TargetStatus]) -> Vec<&TargetStatus> {
    let in_force = targets.iter().filter(|target| target.state != State::Conflict);
    in_force.collect()
}

/// What `kubectl get` prints: of all workloads for which no other policy counts, or if there is none, of the others.
fn summary(targets: &[TargetStatus]) -> Option<Summary> {
    let mut counted = in_force(targets);
    if counted.is_empty() {
        counted.extend(targets);
    }
    let targets = counted;
    let worst = targets.iter().max_by_key(|target| target.state)?;
    let stage = worst.stages.iter().find(|stage| !stage.is_complete());
    let stage = stage
        .or(worst.stages.last())
        .map_or("", |stage| stage.name.as_str());
    let sum = |of: fn(&TargetStatus) -> u32| targets.iter().map(|target| u64::from(of(target))).sum::<u64>();
    Some(Summary {
        target: match targets.as_slice() {
            [only] => only.name.clone(),
            several => format!("{} DaemonSets", several.len()),
        },
        stage: stage.to_owned(),
        updated: format!(
            "{}/{}",
            sum(|target| target.updated),
            sum(|target| target.desired)
        ),
        state: worst.state.name().to_owned(),
    })
}

fn conditions(policy: &Policy, targets: &[TargetStatus], now: Timestamp) -> Vec<Condition> {
    let mut conditions = vec![("Accepted", accepted(targets))];
    let targets = in_force(targets);
    if let Some(worst) = targets.iter().max_by_key(|target| target.state) {
        let message = match targets.as_slice() {
            [only] => only.message.clone(),
            _ => format!("{}: {}", worst.name, worst.message),
        };
        conditions.push((
            "Progressing",
            (progressing(worst.state), worst.state.name(), message.clone()),
        ));
        conditions.push(("Available", available(&targets)));
        conditions.push(("RolledBack", rolled_back(&targets, message)));
    }
    let condition = |(kind, (status, reason, mut message)): (&str, (&str, &str, String))| {
        message.truncate(message.floor_char_boundary(MOST_TEXT));
        let known = policy.status.conditions.iter().find(|known| known.r#type == kind);
        let since = known
            .filter(|known| known.status == status)
            .and_then(|known| known.last_transition_time);
        Condition {
            r#type: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: policy.generation,
            last_transition_time: since.or(Some(now)),
        }
    };
    conditions.into_iter().map(condition).collect()
}

/// Whether the policy counts, and does what it says, for all its workloads. Only their entries say that: whoever plans one of them
/// finds the same, also another executor. Otherwise each would undo what the other wrote.
fn accepted(targets: &[TargetStatus]) -> (&'static str, &'static str, String) {
    let of = |target: &TargetStatus, message: &str| match targets {
        [_] => message.to_owned(),
        _ => format!("{}: {message}", target.name),
    };
    let first = |state| targets.iter().find(|target| target.state == state);
    if let Some(invalid) = first(State::Invalid) {
        ("False", "Invalid", of(invalid, &invalid.message))
    } else if let Some(conflict) = first(State::Conflict) {
        ("False", "Conflict", conflict.message.clone())
    } else if let Some(limited) = targets.iter().find(|target| !target.limited.is_empty()) {
        let fields = limited.limited.join(", no ");
        let why = "beside another controller, which creates every pod from the present template, there is no";
        ("True", "Limited", of(limited, &format!("{why} {fields}")))
    } else {
        ("True", "Accepted", "the policy is in force".to_owned())
    }
}

/// Whether a rollout goes on by itself: `Unknown` if it waits for a person.
fn progressing(state: State) -> &'static str {
    match state {
        State::Complete | State::Progressing | State::Soaking | State::Analyzing | State::OutsideWindow => {
            "True"
        }
        State::AwaitingApproval | State::Partitioned | State::Paused | State::AnalysisHeld => "Unknown",
        State::Conflict
        | State::TooManyNodesNotReady
        | State::ProgressDeadlineExceeded
        | State::RollingBack
        | State::RolledBack
        | State::Rejected
        | State::Invalid => "False",
    }
}

fn available(targets: &[&TargetStatus]) -> (&'static str, &'static str, String) {
    let lacks =
        |target: &&&TargetStatus| target.available.saturating_add(target.max_unavailable) < target.desired;
    match targets.iter().find(lacks) {
        Some(target) => {
            let TargetStatus {
                name,
                available,
                desired,
                max_unavailable,
                ..
            } = target;
            let message = format!(
                "{name}: {available} of {desired} nodes have an available pod, and maxUnavailable is {max_unavailable}"
            );
            ("False", "MinimumNodesUnavailable", message)
        }
        None => (
            "True",
            "MinimumNodesAvailable",
            "no more nodes than maxUnavailable lack an available pod".to_owned(),
        ),
    }
}

fn rolled_back(targets: &[&TargetStatus], message: String) -> (&'static str, &'static str, String) {
    let is = |state| targets.iter().any(|target| target.state == state);
    if is(State::RollingBack) {
        ("False", "RollingBack", message)
    } else if is(State::RolledBack) {
        ("True", "RolledBack", message)
    } else {
        ("False", "NotNeeded", "no revision had to go back".to_owned())
    }
}

/// The patch of a status. It has the uid and the resourceVersion, so that the apiserver refuses it if the policy has changed.
fn patch(policy: &Policy, status: &PolicyStatus, events: &[RolloutEvent]) -> Action {
    let mut body = serde_json::to_value(status).unwrap_or_default();
    if let (Value::Object(members), None) = (&mut body, &status.summary) {
        members.insert("summary".to_owned(), Value::Null);
    }
    let patch = json!({
        "metadata": {"uid": policy.uid, "resourceVersion": policy.resource_version},
        "status": body,
    });
    let event = |event: &RolloutEvent| Event {
        event_type: event.event_type,
        reason: event.reason,
        message: event.message.clone(),
    };
    let state = status
        .summary
        .as_ref()
        .map_or("", |summary| summary.state.as_str());
    let mut targets = status.targets.iter();
    let why = targets.find(|target| target.state == State::Invalid);
    let why = why.map_or_else(String::new, |target| format!(": {}", target.message));
    Action {
        reason: Reason::PolicyStatusChanged,
        message: format!("status of RolloutPolicy {}: {state}{why}", policy.name),
        kind: ActionKind::PatchObject {
            resource: Resource::RolloutPolicies,
            object: ObjectRef {
                name: policy.name.clone(),
                uid: policy.uid.clone(),
            },
            subresource: Subresource::Status,
            patch_type: PatchType::Merge,
            patch: canonical::to_bytes(&patch),
            failure_pointer: String::new(),
            claim: None,
            events: Box::new(WriteEvents {
                success: events.iter().map(event).collect(),
                failure: None,
            }),
        },
    }
}
