//! A change that can be played without the cluster, for the page.

use std::{ops::ControlFlow, time::Duration};

use anyhow::{anyhow, ensure};
use nodewise_proto::v1;
use serde_json::{Value, json};
use tonic::Status;

use super::{
    args::{AssumptionArgs, MAX_NODES},
    assumed::Assumed,
    change,
    play::When,
    report,
};
use crate::{
    engine::{NO_CACHE, UNLIMITED},
    input::{Cluster, Served},
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
    assumed: Assumed,
}

impl Preview {
    /// The workload with the fields of a manifest. Assumed are the time until a pod is ready, in seconds, and the share of the pods that
    /// never are.
    ///
    /// # Errors
    /// The change is not valid.
    pub(crate) fn new(
        cluster: &Cluster,
        workload: &Served,
        manifest: &Value,
        (ready_after_seconds, failing): (Option<f64>, f64),
        when: When,
    ) -> anyhow::Result<Self> {
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
        let before = change::value(workload)?;
        let after = change::merged_into(workload.kind, &before, manifest)?;
        let changed = change::served(workload, &after)?;
        let assumed = AssumptionArgs {
            ready_after: given,
            gone_after: None,
            failing,
            seed: 0,
            max_time: MAX_TIME,
            max_steps: MAX_STEPS,
            max_nodes: MAX_NODES,
            all_steps: true,
        };
        let assumed = Assumed::about(&assumed, cluster, &changed);
        let requests = RequestFactory::at(cluster, when.now, when.profile);
        let request = requests.request_to_play(&changed);
        let begin = json!({
            "key": { "kind": workload.kind.name(), "namespace": workload.namespace, "name": workload.name },
            "templateChanges": before["spec"]["template"] != after["spec"]["template"],
            "differences": change::differences(&before["spec"], &after["spec"]),
            "readyAfterSeconds": assumed.pods.ready_after.as_secs_f64(),
            "readyAfterOrigin": assumed.ready_origin,
            "aboutPolicy": assumed.policy,
        });
        Ok(Self {
            request: v1::PlanRequest {
                snapshot: Some(request.snapshot(|_| false)),
                options: Some(request.options.clone()),
                undelivered_reports: Vec::new(),
            },
            title: workload.title(),
            begin,
            assumed,
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
        let mut begin = Some(json!({ "begin": self.begin }));
        let engine = nodewise_server::Engine::new(UNLIMITED, NO_CACHE);
        let Assumed { pods, bounds, .. } = &self.assumed;
        let played = engine.simulate(self.request, pods, bounds, &stop, &mut |step| {
            if let Some(begin) = begin.take() {
                show(begin)?;
            }
            show(json!({ "step": report::step_value(&step) }))
        });
        let played =
            played.map_err(|refusal| anyhow!("{}: {}", self.title, Status::from(refusal).message()))?;
        if let Some(begin) = begin {
            let _ = show(begin);
        }
        let _ = show(json!({ "end": report::end_value(&played.forecast) }));
        Ok(())
    }
}
