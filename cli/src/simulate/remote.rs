//! Reads the responses of a planning service that plays.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nodewise_forecast::{Bounds, Budget, Change, Counts, End, Forecast, Limit, Step, Verb};
use nodewise_proto::v1::{self, simulate_response::Content, simulation_change, simulation_end};

use super::{played::Played, text::time};

/// The most changes of one step: more than twice the nodes or pods of the largest clusters that services play.
const MOST_CHANGES: usize = 1_000_000;

/// The steps so far. A service that sends more than was asked for, or steps that cannot follow each other, is an error: what it sends is
/// kept until the play ends.
#[derive(Debug)]
pub(super) struct Steps {
    /// What was asked for.
    bounds: Bounds,
    most_changes: usize,
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
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            most_changes: MOST_CHANGES,
            changes: Vec::new(),
            last: None,
            count: 0,
            worst_unavailable: 0,
            worst_surging: 0,
        }
    }

    /// Reads the next response; `None` if there is none.
    pub(super) fn read(&mut self, response: Option<v1::SimulateResponse>) -> anyhow::Result<Read> {
        match response.and_then(|response| response.content) {
            Some(Content::Step(step)) => {
                let at = duration(step.at);
                self.check(at, &step)?;
                self.changes.extend(step.changes.iter().map(change));
                if step.continues {
                    return Ok(Read::Part);
                }
                let step = Step {
                    at,
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
            Some(Content::End(end)) => {
                ensure!(
                    self.changes.is_empty(),
                    "the planning service ended the play within a step"
                );
                let played = played(end)?;
                self.check_time(played.forecast.took, "the end")?;
                Ok(Read::End(played))
            }
            None => bail!("the planning service sent neither a step nor an end"),
        }
    }

    /// Checks a step, or a part of one.
    fn check(&self, at: Duration, step: &v1::SimulationStep) -> anyhow::Result<()> {
        self.check_time(at, "a step")?;
        ensure!(
            self.count < self.bounds.steps,
            "the planning service sent more steps than the {} that it was asked for (--max-steps)",
            self.bounds.steps
        );
        ensure!(
            !(step.continues && step.changes.is_empty()),
            "the planning service sent a part of a step without changes"
        );
        let most = self.most_changes;
        ensure!(
            self.changes.len() + step.changes.len() <= most,
            "the planning service sent a step with more than {most} changes"
        );
        Ok(())
    }

    /// Checks the time of a step or of the end: not before the last step, and not after the longest time.
    fn check_time(&self, at: Duration, what: &str) -> anyhow::Result<()> {
        let last = self.last.as_ref().map_or(Duration::ZERO, |step| step.at);
        ensure!(
            at >= last,
            "the planning service sent {what} at {} after a step at {}; steps come in the order of their times",
            time(at),
            time(last)
        );
        ensure!(
            at <= self.bounds.time,
            "the planning service sent {what} at {}, later than the {} that it was asked for (--max-time)",
            time(at),
            time(self.bounds.time)
        );
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        time: Duration::from_secs(100),
        steps: 2,
        nodes: 10,
    };

    fn seconds(seconds: i64) -> nodewise_proto::Duration {
        nodewise_proto::Duration { seconds, nanos: 0 }
    }

    fn step(at: i64, changes: usize, continues: bool) -> Content {
        Content::Step(v1::SimulationStep {
            at: Some(seconds(at)),
            changes: vec![v1::SimulationChange::default(); changes],
            continues,
            ..v1::SimulationStep::default()
        })
    }

    fn end(took: i64) -> Content {
        Content::End(v1::SimulationEnd {
            result: simulation_end::Result::Done.into(),
            took: Some(seconds(took)),
            ..v1::SimulationEnd::default()
        })
    }

    /// Reads all messages. The error of the last one, if it is refused; the others must not be.
    fn last_error(messages: Vec<Content>) -> Option<String> {
        let mut steps = Steps {
            most_changes: 5,
            ..Steps::new(BOUNDS)
        };
        let mut error = None;
        for message in messages {
            assert_eq!(error, None);
            let content = Some(message);
            let read = steps.read(Some(v1::SimulateResponse { content }));
            error = read.err().map(|error| error.to_string());
        }
        error
    }

    #[test]
    fn what_was_not_asked_for_is_an_error() {
        assert_eq!(
            last_error(vec![
                step(0, 2, true),
                step(0, 3, false),
                step(100, 0, false),
                end(100)
            ]),
            None
        );
        for (messages, expected) in [
            (
                vec![step(60, 1, false), step(30, 1, false)],
                "the planning service sent a step at 30s after a step at 1m; steps come in the order of their times",
            ),
            (
                vec![step(60, 1, false), end(59)],
                "the planning service sent the end at 59s after a step at 1m; steps come in the order of their times",
            ),
            (
                vec![step(101, 1, false)],
                "the planning service sent a step at 1m41s, later than the 1m40s that it was asked for (--max-time)",
            ),
            (
                vec![end(101)],
                "the planning service sent the end at 1m41s, later than the 1m40s that it was asked for (--max-time)",
            ),
            (
                vec![step(0, 1, false), step(1, 1, false), step(2, 1, false)],
                "the planning service sent more steps than the 2 that it was asked for (--max-steps)",
            ),
            (
                vec![step(0, 3, true), step(0, 3, true)],
                "the planning service sent a step with more than 5 changes",
            ),
            (
                vec![step(0, 0, true)],
                "the planning service sent a part of a step without changes",
            ),
            (
                vec![step(0, 1, true), end(0)],
                "the planning service ended the play within a step",
            ),
        ] {
            assert_eq!(last_error(messages).as_deref(), Some(expected));
        }
    }
}
