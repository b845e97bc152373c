//! Plays a workload of a cluster: the one function that the command line and other views call.

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
pub(crate) fn play(
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
pub(crate) async fn play_by(
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
    let mut steps = remote::Steps::default();
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

/// Waits until `stop` is true.
async fn stopped(stop: &AtomicBool) {
    let mut ticks = tokio::time::interval(RECHECK);
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
    }
}

/// Becomes true when the user presses Ctrl-C. Then the play ends, and what was played stays printed.
pub(crate) fn cancelled_by_ctrl_c() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&stop);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.store(true, Ordering::Relaxed);
        }
    });
    stop
}
