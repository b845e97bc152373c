//! Renders the steps and the end of a play.

use nodewise_forecast::{Budget, Change, Counts, End, Limit, Step, Verb};
use nodewise_proto::v1::{self, simulate_response::Content, simulation_change, simulation_end};

use super::{action, duration};
use crate::simulated::Simulated;

/// The most changes of one message. A message then has less than a megabyte.
const MOST_CHANGES: usize = 1_000;

/// The messages of a step; several if it has very many changes.
pub(crate) fn steps(step: Step) -> impl Iterator<Item = v1::SimulateResponse> {
    let mut changes = step.changes.into_iter().map(change).peekable();
    let template = v1::SimulationStep {
        at: Some(duration(step.at)),
        changes: Vec::new(),
        counts: Some(counts(&step.counts)),
        worst_unavailable: step.worst_unavailable,
        worst_surging: step.worst_surging,
        budget: Some(budget(step.budget)),
        continues: false,
    };
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let part = changes.by_ref().take(MOST_CHANGES).collect();
        is_over = changes.peek().is_none();
        let step = v1::SimulationStep {
            changes: part,
            continues: !is_over,
            ..template.clone()
        };
        Some(response(Content::Step(step)))
    })
}

/// The message with the end; `None` if the play was cancelled.
pub(crate) fn end(simulated: Simulated) -> Option<v1::SimulateResponse> {
    let forecast = simulated.forecast;
    let (result, cause, blocking) = match forecast.end {
        End::Done => (simulation_end::Result::Done, String::new(), Vec::new()),
        End::Stuck { cause, blocking } => (simulation_end::Result::Stuck, cause, blocking),
        End::Bound(Limit::Time) => (simulation_end::Result::TimeBound, String::new(), Vec::new()),
        End::Bound(Limit::Steps) => (simulation_end::Result::StepBound, String::new(), Vec::new()),
        End::Cancelled => return None,
    };
    Some(response(Content::End(v1::SimulationEnd {
        result: result.into(),
        cause,
        blocking,
        took: Some(duration(forecast.took)),
        steps: u32::try_from(forecast.steps).unwrap_or(u32::MAX),
        plans: u64::try_from(forecast.plans).unwrap_or(u64::MAX),
        counts: Some(counts(&forecast.counts)),
        worst_unavailable: forecast.worst_unavailable,
        worst_surging: forecast.worst_surging,
        budget: Some(budget(forecast.budget)),
        failed_pods: u32::try_from(forecast.failed_pods).unwrap_or(u32::MAX),
        warnings: simulated.warnings,
        more_warnings: simulated.more_warnings,
    })))
}

fn response(content: Content) -> v1::SimulateResponse {
    v1::SimulateResponse {
        content: Some(content),
    }
}

fn change(change: Change) -> v1::SimulationChange {
    let verb = match change.verb {
        Verb::Create => simulation_change::Verb::Create,
        Verb::Patch => simulation_change::Verb::Patch,
        Verb::Delete => simulation_change::Verb::Delete,
    };
    v1::SimulationChange {
        verb: verb.into(),
        resource: change.resource.to_owned(),
        name: change.name,
        node_name: change.node,
        reason: change.reason.map(action::reason).unwrap_or_default().into(),
        message: change.message,
    }
}

fn counts(counts: &Counts) -> v1::SimulationCounts {
    v1::SimulationCounts {
        desired: counts.desired,
        updated: counts.updated,
        ready: counts.ready,
        available: counts.available,
        unavailable: counts.unavailable,
        surging: counts.surging,
    }
}

fn budget(budget: Budget) -> v1::SimulationBudget {
    v1::SimulationBudget {
        max_unavailable: budget.max_unavailable,
        max_surge: budget.max_surge,
    }
}
