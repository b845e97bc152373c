//! Plays the rollout of a snapshot to its end.

use std::ops::ControlFlow;

use nodewise_forecast::{self as forecast, Assumptions, Bounds, Forecast, Step};
use nodewise_proto::v1;

use crate::{
    engine::Engine,
    parse::{self, Context, Parsed},
    refusal::{Refusal, Violation},
    workload::AnySnapshot,
};

/// A play that has ended.
#[derive(Debug)]
pub struct Simulated {
    /// How it ended.
    pub forecast: Forecast,
    /// Warnings about odd objects of the snapshot.
    pub warnings: Vec<v1::Warning>,
    /// The number of further warnings.
    pub more_warnings: u32,
}

impl Engine {
    /// Plays a snapshot to its end: plans, and applies each plan to a simulated cluster. `each` gets the steps, and may end the play.
    ///
    /// The play ends with `End::Cancelled` once `stop` is true.
    pub fn simulate(
        &self,
        request: v1::PlanRequest,
        assumptions: &Assumptions,
        bounds: &Bounds,
        stop: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Simulated, Refusal> {
        let context = Context::new(self.cache(), self.limits(), stop);
        let Parsed {
            snapshot, warnings, ..
        } = parse::request::plan(request, context, |_| None)?;
        let played = match snapshot {
            AnySnapshot::DaemonSet(snapshot) => {
                forecast::daemon_set(snapshot, assumptions, bounds, stop, each)
            }
            AnySnapshot::ReplicaSet(_) | AnySnapshot::Deployment(_) => {
                return Err(invalid("snapshot.workload", "must be a DaemonSet"));
            }
        };
        let forecast = played.map_err(|error| match error {
            forecast::Error::TooLarge { .. } => Refusal::TooLarge(Violation {
                field: "snapshot".to_owned(),
                description: error.to_string(),
            }),
            forecast::Error::Refused { .. } => invalid("snapshot", error.to_string()),
        })?;
        let (warnings, more_warnings) = warnings.to_messages();
        Ok(Simulated {
            forecast,
            warnings,
            more_warnings,
        })
    }
}

fn invalid(field: &str, description: impl Into<String>) -> Refusal {
    Refusal::Invalid {
        violations: vec![Violation {
            field: field.to_owned(),
            description: description.into(),
        }],
        more: 0,
    }
}
