//! What was played, and its JSON.

use std::time::Duration;

use nodewise_forecast::{Assumptions, Change, End, Forecast, Limit, Step, Verb};
use serde::Serialize;
use serde_json::Value;

use crate::kind::Kind;

/// A play of one workload.
pub(super) struct Played {
    /// `DaemonSet kube-system/agent`.
    pub(super) title: String,
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The changed fields.
    pub(super) differences: Vec<String>,
    pub(super) readiness: Readiness,
    pub(super) assumptions: Assumptions,
    pub(super) steps: Vec<Step>,
    pub(super) forecast: Forecast,
}

/// The assumed time until a pod is ready.
pub(super) struct Readiness {
    pub(super) after: Duration,
    /// The number of ready pods whose median it is.
    pub(super) observed: Option<usize>,
    /// Whether the command line gives it.
    pub(super) is_given: bool,
}

impl Readiness {
    /// Where the time is from.
    pub(super) fn origin(&self) -> String {
        match (self.is_given, self.observed) {
            (true, _) => "as given".to_owned(),
            (false, Some(1)) => "as the ready pod did".to_owned(),
            (false, Some(pods)) => format!("the median of {pods} ready pods"),
            (false, None) => "the default, because no pod is ready".to_owned(),
        }
    }
}

/// The JSON output. Durations are in seconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Json<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    differences: &'a [String],
    assumptions: JsonAssumptions,
    end: JsonEnd<'a>,
    seconds: u64,
    plans: usize,
    worst_unavailable: u32,
    failed_pods: usize,
    steps: Vec<JsonStep<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonAssumptions {
    ready_after_seconds: f64,
    ready_after_origin: String,
    gone_after_seconds: f64,
    failing_share: f64,
    seed: u64,
}

#[derive(Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
enum JsonEnd<'a> {
    Done,
    Stuck { cause: &'a str, blocking: &'a [String] },
    BoundReached { bound: &'static str },
    Cancelled,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonStep<'a> {
    seconds: u64,
    desired: u32,
    updated: u32,
    ready: u32,
    available: u32,
    unavailable: u32,
    worst_unavailable: u32,
    max_unavailable: u32,
    max_surge: u32,
    changes: Vec<JsonChange<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonChange<'a> {
    verb: &'static str,
    resource: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    node: &'a str,
    message: &'a str,
}

impl<'a> Json<'a> {
    pub(super) fn of(played: &'a Played) -> Self {
        let Forecast {
            end,
            took,
            plans,
            worst_unavailable,
            failed_pods,
            ..
        } = &played.forecast;
        Self {
            kind: played.kind.name(),
            namespace: &played.namespace,
            name: &played.name,
            differences: &played.differences,
            assumptions: JsonAssumptions {
                ready_after_seconds: played.assumptions.ready_after.as_secs_f64(),
                ready_after_origin: played.readiness.origin(),
                gone_after_seconds: played.assumptions.gone_after.as_secs_f64(),
                failing_share: played.assumptions.failing,
                seed: played.assumptions.seed,
            },
            end: self::end(end),
            seconds: took.as_secs(),
            plans: *plans,
            worst_unavailable: *worst_unavailable,
            failed_pods: *failed_pods,
            steps: played.steps.iter().map(step).collect(),
        }
    }
}

/// A step as JSON.
pub(super) fn step_json(played: &Step) -> Value {
    serde_json::to_value(step(played)).unwrap_or_default()
}

/// How a play ends, as JSON.
pub(super) fn end_json(forecast: &Forecast) -> Value {
    serde_json::json!({
        "result": end(&forecast.end),
        "seconds": forecast.took.as_secs(),
        "steps": forecast.steps,
        "worstUnavailable": forecast.worst_unavailable,
        "failedPods": forecast.failed_pods,
    })
}

fn end(end: &End) -> JsonEnd<'_> {
    match end {
        End::Done => JsonEnd::Done,
        End::Stuck { cause, blocking } => JsonEnd::Stuck { cause, blocking },
        End::Bound(limit) => JsonEnd::BoundReached { bound: bound(*limit) },
        End::Cancelled => JsonEnd::Cancelled,
    }
}

/// The flag of a bound.
pub(super) fn bound(limit: Limit) -> &'static str {
    match limit {
        Limit::Time => "--max-time",
        Limit::Steps => "--max-steps",
    }
}

fn step(step: &Step) -> JsonStep<'_> {
    JsonStep {
        seconds: step.at.as_secs(),
        desired: step.counts.desired,
        updated: step.counts.updated,
        ready: step.counts.ready,
        available: step.counts.available,
        unavailable: step.counts.unavailable,
        worst_unavailable: step.worst_unavailable,
        max_unavailable: step.budget.max_unavailable,
        max_surge: step.budget.max_surge,
        changes: step.changes.iter().map(change).collect(),
    }
}

fn change(change: &Change) -> JsonChange<'_> {
    JsonChange {
        verb: verb(change.verb),
        resource: change.resource,
        name: &change.name,
        node: &change.node,
        message: &change.message,
    }
}

pub(super) fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}
