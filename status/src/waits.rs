//! What a rollout with a RolloutPolicy waits for beyond what its state says: the budget, the pace, nodes that are not ready, or a
//! check that was inconclusive. With numbers, and when it goes on.
//!
//! The numbers come from the plan and from the policy's status, so they are those by which the planner decides.

use jiff::{SignedDuration, Timestamp};
use nodewise_api::defaults::MAX_EXEMPT;
use nodewise_proto::v1::{self, NodeState};
use serde_json::Value;

use crate::{
    facts::{PolicyFacts, read},
    inputs::Inputs,
    progress::changes_pods,
};

/// What the rollout waits for, in sentences without a full stop. `shown` is the entry of the workload in the status of the policy, and
/// `nodes` are those of the workload's status.
pub(crate) fn of(
    policy: &PolicyFacts,
    shown: &Value,
    inputs: &Inputs<'_>,
    nodes: &[v1::NodeStatus],
) -> Vec<String> {
    match read::text(shown, "/state") {
        "Progressing" | "ProgressDeadlineExceeded"
            if !changes_pods(inputs.plan) && has_admitted_node(shown, nodes) =>
        {
            let budget = budget(inputs.plan.rollout.as_ref());
            let pace = pace(policy, shown, inputs.now);
            budget.into_iter().chain(pace).collect()
        }
        "TooManyNodesNotReady" => {
            let desired = u32::try_from(read::number(shown, "/desired")).unwrap_or_default();
            let most = policy.max_exempt.unwrap_or(MAX_EXEMPT).rounded_up(desired);
            vec![format!("the rollout goes on by itself when at most {most} are")]
        }
        "AnalysisHeld" => vec![held(policy, shown)],
        _ => Vec::new(),
    }
}

/// Whether a node still has an old pod that its stage would replace: one that only the budget or the pace can keep.
fn has_admitted_node(shown: &Value, nodes: &[v1::NodeStatus]) -> bool {
    let begun = |name: &str| {
        let mut stages = read::list(shown, "/stages").iter();
        stages.any(|stage| read::text(stage, "/name") == name && read::time(stage, "/startTime").is_some())
    };
    let mut waiting = nodes
        .iter()
        .filter(|node| node.state() == NodeState::Waiting && !node.rollout_exempt);
    waiting.any(|node| begun(&node.rollout_stage))
}

/// That the budget of the present stage is used up. The plan has it within that of the workload, as a number of nodes.
fn budget(rollout: Option<&v1::Rollout>) -> Option<String> {
    let rollout = rollout?;
    let (field, most, used, what) = if rollout.max_surge > 0 {
        ("maxSurge", rollout.max_surge, rollout.surging, "with two pods")
    } else {
        (
            "maxUnavailable",
            rollout.max_unavailable,
            rollout.unavailable,
            "without an available pod",
        )
    };
    (used >= most).then(|| {
        format!(
            "the budget is used up: {} {what}, and {field} is {most} here; the next node follows as soon as they are fewer",
            number_of_nodes(used)
        )
    })
}

/// That the pace lets no further node begin, and until when.
fn pace(policy: &PolicyFacts, shown: &Value, now: Timestamp) -> Option<String> {
    let pace = policy.pace.as_ref()?;
    let interval = SignedDuration::from_secs(pace.seconds);
    let begun = read::list(shown, "/pace").iter().filter_map(|entry| {
        // A time in the future, after the clock was set back, is now.
        let time = read::time(entry, "/time")?.min(now);
        (now.duration_since(time) < interval).then(|| (time, read::number(entry, "/nodes")))
    });
    let begun: Vec<(Timestamp, i64)> = begun.collect();
    let nodes: i64 = begun.iter().map(|(_, nodes)| nodes).sum();
    let next = begun.iter().map(|(time, _)| *time).min()?.checked_add(interval);
    let next = next.ok().filter(|_| nodes >= pace.nodes)?;
    let next = Timestamp::from_second(next.as_second()).unwrap_or(next);
    Some(format!(
        "the pace allows {} in {}, and so many have begun; the next ones may begin at {next}",
        number_of_nodes(pace.nodes.unsigned_abs()),
        pace.interval
    ))
}

/// What lets a check go on that is held.
fn held(policy: &PolicyFacts, shown: &Value) -> String {
    let mut stages = read::list(shown, "/stages").iter();
    let is_inconclusive = stages.any(|stage| {
        let facts = policy.stage(read::text(stage, "/name"));
        let is_open = read::text(stage, "/state") != "Complete";
        is_open
            && read::list(stage, "/analysis").iter().any(|check| {
                let check_facts = facts.and_then(|facts| facts.checks.get(read::text(check, "/name")));
                check_facts.is_some_and(|facts| {
                    read::number(check, "/inconclusive") > i64::from(facts.inconclusive_limit)
                })
            })
    });
    if is_inconclusive {
        "the check is not made again by itself: `nodewise rollout resume` makes it go on without the inconclusive measurements, and \
         `nodewise rollout rollback` rejects the revision"
            .to_owned()
    } else {
        "the check is made again each interval, and the rollout goes on as soon as it can be made".to_owned()
    }
}

fn number_of_nodes(count: impl Into<u64>) -> String {
    match count.into() {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
