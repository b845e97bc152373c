//! Reads the responses of a planning service that plays.

use std::time::Duration;

use anyhow::{Context as _, bail};
use nodewise_forecast::{Budget, Change, Counts, End, Forecast, Limit, Step, Verb};
use nodewise_proto::v1::{self, simulate_response::Content, simulation_change, simulation_end};

use super::played::Played;

/// The steps so far.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The changes of a step whose last part has not come yet.
    changes: Vec<Change>,
    last: Option<Step>,
    count: usize,
    worst_unavailable: u32,
    worst_surging: u32,
}

/// A response.
pub(super) enum Read {
    Step(Step),
    /// A part of a step that continues.
    Part,
    End(Played),
}

impl Steps {
    /// Reads the next response; `None` if there is none.
    pub(super) fn read(&mut self, response: Option<v1::SimulateResponse>) -> anyhow::Result<Read> {
        match response.and_then(|response| response.content) {
            Some(Content::Step(step)) => {
                self.changes.extend(step.changes.iter().map(change));
                if step.continues {
                    return Ok(Read::Part);
                }
                let step = Step {
                    at: duration(step.at),
                    changes: std::mem::take(&mut self.changes),
                    counts: counts(step.counts),
                    worst_unavailable: step.worst_unavailable,
                    worst_surging: step.worst_surging,
                    budget: budget(step.budget),
                };
                self.count += 1;
                self.worst_unavailable = self.worst_unavailable.max(step.worst_unavailable);
                self.worst_surging = self.worst_surging.max(step.worst_surging);
                self.last = Some(Step {
                    changes: Vec::new(),
                    ..step.clone()
                });
                Ok(Read::Step(step))
            }
            Some(Content::End(end)) => Ok(Read::End(played(end)?)),
            None => bail!("the planning service sent neither a step nor an end"),
        }
    }

    /// The result if the user ends the play.
    pub(super) fn cancelled(self) -> Played {
        let last = self.last.as_ref();
        Played {
            forecast: Forecast {
                end: End::Cancelled,
                took: last.map_or(Duration::ZERO, |step| step.at),
                steps: self.count,
                plans: 0,
                counts: last.map_or_else(Counts::default, |step| step.counts),
                worst_unavailable: self.worst_unavailable,
                worst_surging: self.worst_surging,
                failed_pods: 0,
                failing_nodes: Vec::new(),
                budget: last.map_or_else(Budget::default, |step| step.budget),
            },
            warnings: Vec::new(),
            more_warnings: 0,
        }
    }
}

fn played(end: v1::SimulationEnd) -> anyhow::Result<Played> {
    let result = simulation_end::Result::try_from(end.result).ok();
    let result =
        result.context("the planning service ended the play in a way that this version does not know")?;
    let how = match result {
        simulation_end::Result::Done => End::Done,
        simulation_end::Result::Stuck => End::Stuck {
            cause: end.cause,
            blocking: end.blocking,
        },
        simulation_end::Result::TimeBound => End::Bound(Limit::Time),
        simulation_end::Result::StepBound => End::Bound(Limit::Steps),
        simulation_end::Result::Unspecified => bail!("the planning service did not say how the play ended"),
    };
    Ok(Played {
        forecast: Forecast {
            end: how,
            took: duration(end.took),
            steps: end.steps as usize,
            plans: usize::try_from(end.plans).unwrap_or(usize::MAX),
            counts: counts(end.counts),
            worst_unavailable: end.worst_unavailable,
            worst_surging: end.worst_surging,
            failed_pods: end.failed_pods as usize,
            failing_nodes: Vec::new(),
            budget: budget(end.budget),
        },
        warnings: end.warnings,
        more_warnings: end.more_warnings,
    })
}

fn change(change: &v1::SimulationChange) -> Change {
    let known = ["pods", "controllerrevisions", "replicasets", "deployments"];
    Change {
        verb: match change.verb() {
            simulation_change::Verb::Create => Verb::Create,
            simulation_change::Verb::Delete => Verb::Delete,
            simulation_change::Verb::Patch | simulation_change::Verb::Unspecified => Verb::Patch,
        },
        resource: known
            .into_iter()
            .find(|known| *known == change.resource)
            .unwrap_or("objects"),
        name: change.name.clone(),
        node: change.node_name.clone(),
        reason: None,
        message: change.message.clone(),
    }
}

fn counts(counts: Option<v1::SimulationCounts>) -> Counts {
    let counts = counts.unwrap_or_default();
    Counts {
        desired: counts.desired,
        updated: counts.updated,
        ready: counts.ready,
        available: counts.available,
        unavailable: counts.unavailable,
        surging: counts.surging,
    }
}

fn budget(budget: Option<v1::SimulationBudget>) -> Budget {
    let budget = budget.unwrap_or_default();
    Budget {
        max_unavailable: budget.max_unavailable,
        max_surge: budget.max_surge,
    }
}

fn duration(duration: Option<nodewise_proto::Duration>) -> Duration {
    Duration::try_from(duration.unwrap_or_default()).unwrap_or_default()
}
