//! Plays a workload of a cluster: the one function that the command line and other views call.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use nodewise_forecast::{Forecast, Step};
use nodewise_proto::v1;

use super::assumed::Assumed;
use crate::{
    engine::{NO_CACHE, UNLIMITED, refused},
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

/// The end of a play.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) forecast: Forecast,
    /// Warnings about objects of the cluster.
    pub(crate) warnings: Vec<v1::Warning>,
    pub(crate) more_warnings: u32,
}

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
    let request = requests.request_for(workload);
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
