//! Plays a workload of a cluster, and shows the steps as they come.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use nodewise_forecast::Step;
use nodewise_proto::v1;

use super::{assumed::Assumed, played::Played, remote};
use crate::{
    engine::{Engine, NO_CACHE, UNLIMITED, refused},
    input::{Cluster, Served},
    request::RequestFactory,
};

/// When the change is made, and how plans are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    /// `None`: now.
    pub(crate) now: Option<Timestamp>,
    pub(crate) profile: v1::Profile,
}

/// How often a play by a service looks whether the user has pressed Ctrl-C.
const RECHECK: Duration = Duration::from_millis(100);

/// Plays a workload, which may differ from that of the cluster, to its end. `each` gets the steps as they come, and may end the
/// play. It also ends, with `End::Cancelled`, once `stop` is true. Nothing is written.
fn play(
    cluster: &Cluster,
    workload: &Served,
    assumed: &Assumed,
    when: When,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Step) -> ControlFlow<()>,
) -> anyhow::Result<Played> {
    let requests = RequestFactory::at(cluster, when.now, when.profile);
    let request = requests.request_to_play(workload);
    let message = v1::PlanRequest {
        snapshot: Some(request.snapshot(|_| false)),
        options: Some(request.options.clone()),
        undelivered_reports: Vec::new(),
    };
    let engine = nodewise_server::Engine::new(UNLIMITED, NO_CACHE);
    let stop = || stop.load(Ordering::Relaxed);
    let simulated = engine.simulate(message, &assumed.pods, &assumed.bounds, &stop, each);
    let simulated = simulated.map_err(|refusal| refused(&request, refusal))?;
    Ok(Played {
        forecast: simulated.forecast,
        warnings: simulated.warnings,
        more_warnings: simulated.more_warnings,
    })
}

/// As [`play`], by a planner in this process or by a planning service.
async fn play_by(
    engine: &Engine,
    cluster: &Cluster,
    workload: &Served,
    assumed: &Assumed,
    when: When,
    stop: &AtomicBool,
    each: &mut (dyn FnMut(Step) -> ControlFlow<()> + Send),
) -> anyhow::Result<Played> {
    let Engine::Remote(service) = engine else {
        return play(cluster, workload, assumed, when, stop, each);
    };
    let requests = RequestFactory::at(cluster, when.now, when.profile);
    let request = requests.request_to_play(workload);
    let mut simulation = service.simulate(&request, assumed.messages()).await?;
    let mut steps = remote::Steps::new(assumed.bounds);
    loop {
        let response = tokio::select! {
            response = simulation.next() => response,
            () = stopped(stop) => return Ok(steps.cancelled()),
        };
        let response = response.map_err(|error| service.failed(&request, &error))?;
        match steps.read(response)? {
            remote::Read::Step(next) => {
                if each(next).is_break() {
                    return Ok(steps.cancelled());
                }
            }
            remote::Read::Part => {}
            remote::Read::End(played) => return Ok(played),
        }
    }
}

/// As [`play_by`], and shows each step, until the user presses Ctrl-C. If a step cannot be shown, the play ends, and that is the error.
pub(crate) async fn show(
    engine: &Engine,
    cluster: &Cluster,
    workload: &Served,
    assumed: &Assumed,
    when: When,
    show: &mut (dyn FnMut(&Step) -> anyhow::Result<()> + Send),
) -> anyhow::Result<Played> {
    let mut failed = None;
    let mut each = |step: Step| match show(&step) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    };
    let stop = cancelled_by_ctrl_c();
    let played = play_by(engine, cluster, workload, assumed, when, &stop, &mut each).await?;
    failed.map_or(Ok(played), Err)
}

/// Waits until `stop` is true.
async fn stopped(stop: &AtomicBool) {
    let mut ticks = tokio::time::interval(RECHECK);
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
    }
}

/// Becomes true when the user presses Ctrl-C. Then the play ends, and what was played stays printed.
fn cancelled_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&stop);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.store(true, Ordering::Relaxed);
        }
    });
    stop
}
