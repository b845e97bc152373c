//! A change that can be played without the cluster, for the page.

use std::{ops::ControlFlow, time::Duration};

use anyhow::{Context as _, anyhow, ensure};
use nodewise_forecast::{Assumptions, Bounds};
use nodewise_proto::v1;
use serde_json::{Value, json};
use tonic::Status;

use super::{change, readiness, report};
use crate::{
    engine::{NO_CACHE, UNLIMITED},
    input::{Cluster, Served},
    kind::Kind,
    request::RequestFactory,
};

/// The longest virtual time of a play.
const MAX_TIME: Duration = Duration::from_hours(168);
/// The most steps.
const MAX_STEPS: usize = 20_000;
/// The longest time until a pod is ready, in seconds: a day.
const MAX_READY_AFTER: f64 = 86_400.0;

/// A changed workload, and all that its play reads.
pub(crate) struct Preview {
    request: v1::PlanRequest,
    title: String,
    begin: Value,
    assumptions: Assumptions,
}

impl Preview {
    /// The workload with the fields of a manifest.
    ///
    /// # Errors
    /// The workload is of a kind that is not played, or the change is not valid.
    pub(crate) fn new(
        cluster: &Cluster,
        workload: &Served,
        manifest: &Value,
        ready_after_seconds: Option<f64>,
        failing: f64,
    ) -> anyhow::Result<Self> {
        ensure!(
            workload.kind == Kind::DaemonSet,
            "{}: not a kind that can be played; DaemonSet is",
            workload.kind.name()
        );
        ensure!(
            (0.0..=1.0).contains(&failing),
            "the share of failing pods is {failing}; expected 0 to 1"
        );
        let seconds = |seconds: f64| {
            ensure!(
                (0.0..=MAX_READY_AFTER).contains(&seconds),
                "the time until a pod is ready is {seconds} s; expected 0 to {MAX_READY_AFTER}"
            );
            Ok(Duration::from_secs_f64(seconds))
        };
        let given = ready_after_seconds.map(seconds).transpose()?;
        let before: Value = serde_json::from_str(workload.json.get()).context("cannot read the workload")?;
        let mut after = before.clone();
        change::apply(&mut after, manifest)?;
        change::raise_generations(workload.kind, &before, &mut after);
        let changed = change::served(workload, &after)?;
        let readiness = readiness::of(given, cluster, workload);
        let requests = RequestFactory::at(cluster, None, v1::Profile::Default);
        let request = requests.request_for(&changed);
        let assumptions = Assumptions {
            ready_after: readiness.after,
            failing,
            ..Assumptions::default()
        };
        let begin = json!({
            "key": { "kind": workload.kind.name(), "namespace": workload.namespace, "name": workload.name },
            "differences": change::differences(&before["spec"], &after["spec"]),
            "readyAfterSeconds": readiness.after.as_secs_f64(),
            "readyAfterOrigin": readiness.origin(),
        });
        Ok(Self {
            request: v1::PlanRequest {
                snapshot: Some(request.snapshot(|_| false)),
                options: Some(request.options.clone()),
                undelivered_reports: Vec::new(),
            },
            title: workload.title(),
            begin,
            assumptions,
        })
    }

    /// Plays to the end, or until `stop` or `show` says so. Shows what is played, each step, and how it ends.
    ///
    /// # Errors
    /// The planner refuses the changed workload.
    pub(crate) fn play(
        self,
        stop: &dyn Fn() -> bool,
        show: &mut dyn FnMut(Value) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        let bounds = Bounds {
            time: MAX_TIME,
            steps: MAX_STEPS,
            nodes: usize::MAX,
        };
        let mut begin = Some(json!({ "begin": self.begin }));
        let engine = nodewise_server::Engine::new(UNLIMITED, NO_CACHE);
        let forecast = engine.simulate(self.request, &self.assumptions, &bounds, &stop, &mut |step| {
            if let Some(begin) = begin.take() {
                show(begin)?;
            }
            show(json!({ "step": report::step_json(&step) }))
        });
        let forecast =
            forecast.map_err(|refusal| anyhow!("{}: {}", self.title, Status::from(refusal).message()))?;
        if let Some(begin) = begin {
            let _ = show(begin);
        }
        let _ = show(json!({ "end": report::end_json(&forecast) }));
        Ok(())
    }
}
