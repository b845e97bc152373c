//! What is played, what is kept of each step, and the JSON output.

use std::{io::Write, time::Duration};

use nodewise_forecast::{Budget, Change, Counts, End, Forecast, Limit, Step, Verb};
use serde::Serialize;
use serde_json::Value;

use super::{
    assumed::Assumed,
    object_writer::{ObjectWriter, write, write_value},
    played::Played,
};
use crate::{input::Served, kind::Kind};

/// The workload that is played.
pub(crate) struct Subject {
    /// `DaemonSet kube-system/agent`.
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The changed fields.
    pub(crate) differences: Vec<String>,
    pub(crate) assumed: Assumed,
}

impl Subject {
    pub(crate) fn new(workload: &Served, differences: Vec<String>, assumed: Assumed) -> Self {
        Self {
            title: workload.title(),
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
            differences,
            assumed,
        }
    }

    /// What the counts count.
    pub(crate) fn noun(&self) -> &'static str {
        match self.kind {
            Kind::DaemonSet => "node",
            _ => "replica",
        }
    }
}

/// The numbers of a step, without its changes. A play has many steps, and a step may have many changes, so only these are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) counts: Counts,
    pub(crate) worst_unavailable: u32,
    pub(crate) worst_surging: u32,
    pub(crate) budget: Budget,
}

impl From<&Step> for Sample {
    fn from(step: &Step) -> Self {
        Self {
            at: step.at,
            counts: step.counts,
            worst_unavailable: step.worst_unavailable,
            worst_surging: step.worst_surging,
            budget: step.budget,
        }
    }
}

/// Writes a play as one JSON object: each step in a line, as it comes.
pub(crate) struct JsonWriter<W> {
    object: ObjectWriter<W>,
    steps: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Assumptions<'a> {
    ready_after_seconds: f64,
    ready_after_origin: &'a str,
    gone_after_seconds: f64,
    gone_after_origin: &'a str,
    failing_share: f64,
    seed: u64,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    rollout_policy: &'a [String],
}

#[derive(Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
pub(crate) enum JsonEnd<'a> {
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
    surging: u32,
    worst_unavailable: u32,
    max_unavailable: u32,
    worst_surging: u32,
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

impl<W: Write> JsonWriter<W> {
    /// Writes what is known before the first step.
    pub(crate) fn begin(out: W, subject: &Subject) -> anyhow::Result<Self> {
        let mut object = ObjectWriter::begin(out)?;
        let pods = &subject.assumed.pods;
        object.field("kind", &subject.kind.name())?;
        object.field("namespace", &subject.namespace)?;
        object.field("name", &subject.name)?;
        object.field("differences", &subject.differences)?;
        object.field(
            "assumptions",
            &Assumptions {
                ready_after_seconds: pods.ready_after.as_secs_f64(),
                ready_after_origin: &subject.assumed.ready_origin,
                gone_after_seconds: pods.gone_after.as_secs_f64(),
                gone_after_origin: &subject.assumed.gone_origin,
                failing_share: pods.failing,
                seed: pods.seed,
                rollout_policy: &subject.assumed.policy,
            },
        )?;
        write(object.open("steps")?, "[")?;
        Ok(Self { object, steps: 0 })
    }

    /// Writes a step.
    pub(crate) fn step(&mut self, step: &Step) -> anyhow::Result<()> {
        let separator = if self.steps == 0 { "\n    " } else { ",\n    " };
        self.steps += 1;
        let out = self.object.out();
        write(out, separator)?;
        write_value(out, &json_step(step))
    }

    /// Writes how the play ended. Returns the writer below.
    pub(crate) fn end(self, played: &Played) -> anyhow::Result<W> {
        let Forecast {
            end,
            took,
            plans,
            worst_unavailable,
            worst_surging,
            failed_pods,
            ..
        } = &played.forecast;
        let mut object = self.object;
        write(object.out(), if self.steps == 0 { "]" } else { "\n  ]" })?;
        object.field("end", &json_end(end))?;
        object.field("seconds", &took.as_secs())?;
        object.field("plans", plans)?;
        object.field("worstUnavailable", worst_unavailable)?;
        object.field("worstSurging", worst_surging)?;
        object.field("failedPods", failed_pods)?;
        object.field("warnings", &played.warnings)?;
        object.end()
    }
}

pub(crate) fn json_end(end: &End) -> JsonEnd<'_> {
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

/// A step as JSON.
pub(super) fn step_value(step: &Step) -> Value {
    serde_json::to_value(json_step(step)).unwrap_or_default()
}

/// How a play ends, as JSON.
pub(super) fn end_value(forecast: &Forecast) -> Value {
    serde_json::json!({
        "result": json_end(&forecast.end),
        "seconds": forecast.took.as_secs(),
        "steps": forecast.steps,
        "worstUnavailable": forecast.worst_unavailable,
        "failedPods": forecast.failed_pods,
        "failingNodes": forecast.failing_nodes,
    })
}

fn json_step(step: &Step) -> JsonStep<'_> {
    JsonStep {
        seconds: step.at.as_secs(),
        desired: step.counts.desired,
        updated: step.counts.updated,
        ready: step.counts.ready,
        available: step.counts.available,
        unavailable: step.counts.unavailable,
        surging: step.counts.surging,
        worst_unavailable: step.worst_unavailable,
        max_unavailable: step.budget.max_unavailable,
        worst_surging: step.worst_surging,
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
