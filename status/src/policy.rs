//! The rollout of a DaemonSet as its RolloutPolicy rules it.
//!
//! The next plan says what the policy's status becomes, if it changes; otherwise the status that an executor wrote holds. Beside another
//! controller only the written one holds: a plan that is not made for that mode goes back where an executor cannot.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::timestamp;
use nodewise_proto::v1::{self, RolloutState, WorkloadMode, action};
use serde_json::Value;

use crate::{
    facts::{PolicyFacts, StageFacts, read},
    inputs::Inputs,
    span::span,
    waits,
};

/// The most nodes in `exempt`.
const MAX_EXEMPT: usize = 100;
/// The most nodes in `blocking`: those of the next plan, and those that only an executor knows.
const MAX_BLOCKING: usize = 20;

/// The policy in charge and its rollout. `None` if no policy targets the workload. `nodes` are those of the status.
pub(crate) fn of(inputs: &Inputs<'_>, nodes: &[v1::NodeStatus]) -> Option<v1::PolicyRollout> {
    let workload = inputs.workload;
    if inputs.policies.is_empty() || workload.kind != nodewise_proto::workload::DAEMON_SET {
        return None;
    }
    let all = PolicyFacts::of_workload(inputs.policies, &workload.name, &workload.labels);
    let [policy, others @ ..] = all.as_slice() else {
        return None;
    };
    let planned = planned(inputs.plan, &policy.uid).filter(|_| workload.mode != WorkloadMode::Companion);
    let written = target(&policy.status, inputs);
    let is_of_present = written.is_some_and(|target| is_of_present(target, inputs));
    let status = planned.as_ref().unwrap_or(&policy.status);
    let shown = target(status, inputs).unwrap_or(&Value::Null);
    // What people can ask for names what an executor wrote.
    let recorded = written.filter(|_| is_of_present).unwrap_or(&Value::Null);
    let (exempt, more_exempt) = exempt(nodes, inputs.now);
    Some(v1::PolicyRollout {
        name: policy.name.clone(),
        uid: policy.uid.clone(),
        state: read::owned(shown, "/state"),
        message: message(policy, shown, inputs, nodes),
        paused: policy.is_paused,
        not_accepted: not_accepted(status),
        others: others.iter().map(|other| other.name.clone()).collect(),
        stable_hash: read::owned(shown, "/stableRevision/hash"),
        stable_number: read::number(shown, "/stableRevision/number"),
        stages: read::list(shown, "/stages")
            .iter()
            .map(|stage| self::stage(policy, stage))
            .collect(),
        pending_approval: shown.get("pendingApproval").map(approval),
        rejection: rejection(shown, recorded),
        blocking: blocking(shown, recorded),
        exempt,
        more_exempt,
        rollback_digest: read::owned(recorded, "/digest"),
        requests: policy.requests.clone(),
        on_failure: policy.on_failure.clone(),
    })
}

/// The state in a sentence: that of the policy's status, and what the rollout waits for beyond it.
fn message(policy: &PolicyFacts, shown: &Value, inputs: &Inputs<'_>, nodes: &[v1::NodeStatus]) -> String {
    let said = [read::owned(shown, "/message")].into_iter();
    let said = said.filter(|said| !said.is_empty());
    let all: Vec<String> = said.chain(waits::of(policy, shown, inputs, nodes)).collect();
    all.join("; ")
}

/// The state of the rollout, with what the policy adds to it: its stages may not be over although every pod is there, and some states
/// need a person.
pub(crate) fn state(policy: &v1::PolicyRollout, state: RolloutState) -> RolloutState {
    match policy.state.as_str() {
        "Rejected"
        | "RolledBack"
        | "ProgressDeadlineExceeded"
        | "AnalysisHeld"
        | "TooManyNodesNotReady"
        | "Invalid" => RolloutState::Stuck,
        "Paused" => RolloutState::Paused,
        "" | "Complete" => state,
        _ if state == RolloutState::Complete => RolloutState::Progressing,
        _ => state,
    }
}

/// Why the policy lets nothing happen until a person acts.
pub(crate) fn cause(policy: &v1::PolicyRollout) -> Option<v1::BlockCause> {
    let is_stuck = state(policy, RolloutState::Unspecified) == RolloutState::Stuck;
    is_stuck.then(|| v1::BlockCause {
        reason: policy.state.clone(),
        message: format!("RolloutPolicy {}: {}", policy.name, policy.message),
        since: policy.rejection.as_ref().and_then(|rejection| rejection.at),
        ..v1::BlockCause::default()
    })
}

/// The status that the next plan gives the policy.
fn planned(plan: &v1::Plan, uid: &str) -> Option<Value> {
    let patches = plan.actions().filter_map(|action| match &action.kind {
        Some(action::Kind::PatchObject(patch)) => Some(patch),
        _ => None,
    });
    let mut patches = patches.filter(|patch| {
        let is_policy = |resource: &v1::GroupVersionResource| resource.resource == "rolloutpolicies";
        let is_it = patch.object.as_ref().is_some_and(|object| object.uid == uid);
        patch.subresource == "status" && is_it && patch.resource.as_ref().is_some_and(is_policy)
    });
    let mut patch: Value = serde_json::from_slice(&patches.next()?.patch).ok()?;
    Some(patch["status"].take())
}

/// The entry of the workload in the status of a policy.
fn target<'s>(status: &'s Value, inputs: &Inputs<'_>) -> Option<&'s Value> {
    let workload = inputs.workload;
    read::list(status, "/targets").iter().find(|target| {
        read::text(target, "/name") == workload.name && read::text(target, "/uid") == workload.uid
    })
}

/// Whether the entry is about the template that the workload has now.
fn is_of_present(target: &Value, inputs: &Inputs<'_>) -> bool {
    let rollout = inputs.plan.rollout.as_ref();
    let hash = rollout.map_or("", |rollout| rollout.current_hash.as_str());
    hash.is_empty() || read::text(target, "/updateRevision/hash") == hash
}

/// Why the policy is not in force, or not in all that it asks for. That it does not count for other workloads says nothing here.
fn not_accepted(status: &Value) -> String {
    let accepted = nodewise_api::accepted(status)
        .filter(|condition| matches!(read::text(condition, "/reason"), "Invalid" | "Limited"));
    accepted.map_or_else(String::new, |condition| read::owned(condition, "/message"))
}

fn stage(policy: &PolicyFacts, stage: &Value) -> v1::PolicyStage {
    let name = read::owned(stage, "/name");
    let none = StageFacts::default();
    let facts = policy.stage(&name).unwrap_or(&none);
    let is_soaking = read::text(stage, "/state") == "Soaking";
    let since = read::time(stage, "/soakStartTime").filter(|_| is_soaking);
    let ends = since.and_then(|since| {
        let ends = since.checked_add(SignedDuration::from_secs(facts.soak));
        ends.ok()
    });
    v1::PolicyStage {
        state: read::owned(stage, "/state"),
        nodes: count(stage, "/nodes"),
        updated: count(stage, "/updated"),
        available: count(stage, "/available"),
        exempt: count(stage, "/exempt"),
        failed: count(stage, "/failed"),
        started_at: time(stage, "/startTime"),
        soak_ends_at: ends.map(timestamp),
        completed_at: time(stage, "/completionTime"),
        checks: read::list(stage, "/analysis")
            .iter()
            .map(|check| self::check(facts, check))
            .collect(),
        name,
    }
}

fn check(stage: &StageFacts, check: &Value) -> v1::PolicyCheck {
    let name = read::owned(check, "/name");
    let facts = stage.checks.get(&name).copied().unwrap_or_default();
    v1::PolicyCheck {
        name,
        measurements: count(check, "/measurements"),
        count: facts.count,
        successful: count(check, "/successful"),
        failed: count(check, "/failed"),
        failure_limit: facts.failure_limit,
        inconclusive: count(check, "/inconclusive"),
        errors: count(check, "/errors"),
        at: time(check, "/time"),
        value: read::owned(check, "/value"),
        message: read::owned(check, "/message"),
    }
}

fn approval(pending: &Value) -> v1::PolicyApproval {
    v1::PolicyApproval {
        stage: read::owned(pending, "/stage"),
        nodes: count(pending, "/nodes"),
        digest: read::owned(pending, "/digest"),
        since: time(pending, "/time"),
        outdated_digest: read::owned(pending, "/refusedDigest"),
    }
}

/// The rejection of the current revision. Only the digest of one that an executor wrote can be named: that of the next plan has the time
/// of this snapshot in it.
fn rejection(shown: &Value, recorded: &Value) -> Option<v1::PolicyRejection> {
    let rejected = shown
        .get("rejectedRevision")
        .filter(|rejected| rejected.is_object())?;
    Some(v1::PolicyRejection {
        reason: read::owned(rejected, "/reason"),
        message: read::owned(rejected, "/message"),
        at: time(rejected, "/time"),
        resume_digest: read::owned(recorded, "/rejectedRevision/digest"),
        roll_back: read::flag(rejected, "/rollBack"),
    })
}

/// The nodes that hold the rollout up. Which evictions a PodDisruptionBudget did not allow, only an executor knows and writes.
fn blocking(shown: &Value, recorded: &Value) -> Vec<v1::PolicyNode> {
    let mut nodes: Vec<v1::PolicyNode> = Vec::new();
    for blocked in [shown, recorded]
        .iter()
        .flat_map(|target| read::list(target, "/blocking"))
    {
        let name = read::owned(blocked, "/node");
        if nodes.len() < MAX_BLOCKING && nodes.iter().all(|node| node.name != name) {
            nodes.push(v1::PolicyNode {
                name,
                reason: read::owned(blocked, "/reason"),
            });
        }
    }
    nodes
}

/// The nodes that the policy leaves alone, each with its own conditions, and the number of further ones.
fn exempt(nodes: &[v1::NodeStatus], now: Timestamp) -> (Vec<v1::PolicyNode>, u32) {
    let all = || nodes.iter().filter(|node| node.rollout_exempt);
    let reason = |node: &v1::NodeStatus| {
        let conditions = node.conditions.iter().map(|condition| {
            let since = condition.since.and_then(nodewise_projection::moment);
            let since = since.map(|since| format!(" for {}", span(now.duration_since(since).as_secs())));
            let since = since.unwrap_or_default();
            format!("{} is {}{since}", condition.r#type, condition.status)
        });
        let cordoned = node.unschedulable.then(|| "cordoned".to_owned());
        let reasons: Vec<String> = conditions.chain(cordoned).collect();
        reasons.join(", ")
    };
    let named = all().take(MAX_EXEMPT).map(|node| v1::PolicyNode {
        name: node.node_name.clone(),
        reason: reason(node),
    });
    let more = all().count().saturating_sub(MAX_EXEMPT);
    (named.collect(), u32::try_from(more).unwrap_or(u32::MAX))
}

fn count(object: &Value, pointer: &str) -> u32 {
    u32::try_from(read::number(object, pointer)).unwrap_or_default()
}

fn time(object: &Value, pointer: &str) -> Option<nodewise_proto::Timestamp> {
    read::time(object, pointer).map(timestamp)
}
