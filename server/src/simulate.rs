//! Plays the rollout of a snapshot to its end.

use std::{ops::ControlFlow, time::Duration};

use nodewise_forecast::{self as forecast, Assumptions, Bounds, Step};
use nodewise_proto::v1;

use crate::{
    engine::Engine,
    parse::{self, Context, Parsed, Path, Problems},
    refusal::{Refusal, Violation},
    render,
    response_memory::{self, Caller, Needs},
    simulated::Simulated,
    workload::AnySnapshot,
};

/// The longest duration of a request: about ten years.
const LONGEST: Duration = Duration::from_hours(24 * 3_660);
/// The most steps.
const MOST_STEPS: u32 = 100_000;

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
        let parsed = parse::request::simulate(request.snapshot, request.options, context)?;
        play(parsed, assumptions, bounds, stop, each)
    }

    /// Like [`Engine::simulate`], for a message of the method `Simulate`. `send` gets each response, the last one with the end, and
    /// returns false if nobody reads them any more.
    pub(crate) fn simulate_for(
        &self,
        request: v1::SimulateRequest,
        caller: Caller<'_>,
        send: &mut dyn FnMut(v1::SimulateResponse) -> bool,
    ) -> Result<(), Refusal> {
        let stop = caller.stop;
        let by_digest = request.snapshot.as_ref().is_some_and(crate::engine::is_by_digest);
        let needs = Needs::of(by_digest);
        let (assumptions, bounds) = read(
            request.assumptions.as_ref(),
            request.bounds.as_ref(),
            self.limits(),
        )?;
        let context = Context::new(self.cache(), self.limits(), stop);
        let parsed = parse::request::simulate(request.snapshot, request.options, context)?;
        (caller.hold)(needs(response_memory::play_bound(&parsed.snapshot)))?;
        let simulated = play(parsed, &assumptions, &bounds, stop, &mut |step| {
            for message in render::steps(step) {
                if !send(message) {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        match render::end(simulated) {
            Some(end) => {
                send(end);
                Ok(())
            }
            None => Err(Refusal::Stopped),
        }
    }
}

fn play(
    parsed: Parsed,
    assumptions: &Assumptions,
    bounds: &Bounds,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Step) -> ControlFlow<()>,
) -> Result<Simulated, Refusal> {
    let Parsed {
        snapshot, warnings, ..
    } = parsed;
    let played = match snapshot {
        AnySnapshot::DaemonSet(snapshot) => forecast::daemon_set(snapshot, assumptions, bounds, stop, each),
        AnySnapshot::ReplicaSet(snapshot) => forecast::replica_set(snapshot, assumptions, bounds, stop, each),
        AnySnapshot::Deployment(snapshot) => forecast::deployment(snapshot, assumptions, bounds, stop, each),
    };
    let forecast = played.map_err(|error| match error {
        forecast::Error::TooLarge { .. } => Refusal::TooLarge(Violation {
            field: "snapshot".to_owned(),
            description: error.to_string(),
        }),
        forecast::Error::Refused { .. } => Refusal::Invalid {
            violations: vec![Violation {
                field: "snapshot".to_owned(),
                description: error.to_string(),
            }],
            more: 0,
        },
    })?;
    let (warnings, more_warnings) = warnings.to_messages();
    Ok(Simulated {
        forecast,
        warnings,
        more_warnings,
    })
}

/// Reads the assumptions and the bounds of a request.
fn read(
    assumptions: Option<&v1::SimulationAssumptions>,
    bounds: Option<&v1::SimulationBounds>,
    limits: &crate::Limits,
) -> Result<(Assumptions, Bounds), Refusal> {
    let mut problems = Problems::default();
    let at = Path::root("assumptions");
    let default = Assumptions::default();
    let assumptions = assumptions.copied().unwrap_or_default();
    let mut duration = |at: &Path<'_>, found: Option<&nodewise_proto::Duration>, default| match found {
        None => default,
        Some(found) => Duration::try_from(*found)
            .ok()
            .filter(|duration| *duration <= LONGEST)
            .unwrap_or_else(|| {
                let (seconds, nanos) = (found.seconds, found.nanos);
                problems.add(
                    at,
                    format!("is {seconds} s and {nanos} ns; must be from 0 s to ten years"),
                );
                default
            }),
    };
    let ready_after = duration(
        &at.field("ready_after"),
        assumptions.ready_after.as_ref(),
        default.ready_after,
    );
    let gone_after = duration(
        &at.field("gone_after"),
        assumptions.gone_after.as_ref(),
        default.gone_after,
    );
    let bounds = bounds.copied().unwrap_or_default();
    let at_bounds = Path::root("bounds");
    let default = Bounds::default();
    let time = duration(&at_bounds.field("time"), bounds.time.as_ref(), default.time);
    let failing = assumptions.failing_share;
    if !(0.0..=1.0).contains(&failing) {
        problems.add(
            &at.field("failing_share"),
            format!("is {failing}; must be from 0 to 1"),
        );
    }
    if bounds.steps > MOST_STEPS {
        let problem = format!("is {}; must be at most {MOST_STEPS}", bounds.steps);
        problems.add(&at_bounds.field("steps"), problem);
    }
    problems.into_result()?;
    let steps = if bounds.steps == 0 {
        MOST_STEPS
    } else {
        bounds.steps
    };
    let bounds = Bounds {
        time,
        steps: steps as usize,
        nodes: limits.nodes as usize,
    };
    let assumptions = Assumptions {
        ready_after,
        gone_after,
        failing,
        seed: assumptions.seed,
    };
    Ok((assumptions, bounds))
}
