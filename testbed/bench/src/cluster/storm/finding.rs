//! The results of the storms: the table, the goals and the charts.

use anyhow::Result;

use super::super::owner::OwnerKind;
use super::super::sides::{Quantity, Sides};
use super::observe::EVERY;
use super::{Run, Size};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Chart, Finding, Target};

/// The goals: the longest time between two plans, in seconds, and the memory of the second half divided by that of the first.
const LONGEST_GAP: f64 = 2.0;
const FLAT: f64 = 1.1;

const ROLLOUT: Quantity<Run> = Quantity::new("rolling update: seconds", |run| run.rollout);
const GAP: Quantity<Run> = Quantity::new("longest time without a plan or sync: seconds", |run| {
    run.observed.longest_gap
});
const WAIT: Quantity<Run> = Quantity::new("longest wait in a queue: seconds", |run| {
    run.observed.longest_wait
});
const CHANGES: Quantity<Run> = Quantity::new("changes of nodes", |run| run.changes);
const CALLS: Quantity<Run> = Quantity::new("API calls", |run| run.part.calls);
const CPU: Quantity<Run> = Quantity::new("CPU seconds", |run| run.part.cpu_seconds());
const APISERVER: Quantity<Run> = Quantity::new("CPU seconds of kube-apiserver", |run| run.part.apiserver_cpu);
const FIRST: Quantity<Run> = Quantity::new("memory, first half: MB", |run| run.observed.first_half_mb);
const SECOND: Quantity<Run> = Quantity::new("memory, second half: MB", |run| run.observed.second_half_mb);
const PEAK: Quantity<Run> = Quantity::new("peak memory: MB", |run| run.peak_memory_mb);

/// The finding for these storms.
pub(super) fn of(size: Size, sides: &Sides<Run>) -> Result<Finding> {
    let rows = [
        ROLLOUT, GAP, WAIT, CHANGES, CALLS, CPU, APISERVER, FIRST, SECOND, PEAK,
    ];
    let rows = rows.iter().map(|quantity| sides.row(quantity));
    let flat = sides
        .nodewise
        .iter()
        .map(|run| run.observed.second_half_mb / run.observed.first_half_mb);
    let nodes = figure(count(size.nodes));
    Ok(Finding {
        title: format!("A storm of node events on {nodes} nodes, beside a rollout"),
        about: about(size),
        columns: [
            "",
            OwnerKind::Upstream.name(),
            OwnerKind::Nodewise.name(),
            "ratio",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect::<Result<_>>()?,
        targets: vec![
            Target::at_most(
                "storm of node events: the longest time without a plan",
                LONGEST_GAP,
                // Of all storms: no plan may be later.
                sides.ours(&GAP)?.max(),
                "seconds",
            ),
            Target::at_most(
                "storm of node events: memory in its second half",
                FLAT,
                Spread::of(flat)?.median(),
                "times that of the first half",
            ),
        ],
        charts: vec![
            Chart::of_costs(
                "storm-time",
                format!("A rollout in a storm of node events, {nodes} nodes"),
                "seconds",
                [sides.bars(&ROLLOUT)?, sides.bars(&GAP)?].concat(),
            ),
            Chart::of_costs(
                "storm-memory",
                "Memory of the owner in a storm of node events",
                "MB",
                [sides.bars(&FIRST)?, sides.bars(&SECOND)?].concat(),
            ),
        ],
    })
}

fn about(size: Size) -> String {
    let (nodes, foreign) = (figure(count(size.nodes)), figure(count(size.foreign_pods)));
    let (flaps, seconds) = (size.flaps, figure(size.lasts.as_secs_f64()));
    let every = EVERY.as_millis();
    format!(
        "etcd and kube-apiserver with {nodes} nodes, and {foreign} pods that belong to no DaemonSet, as in the section about a DaemonSet on a \
         real apiserver; the settings are the same. All pods of a DaemonSet are ready. Then its image changes, with `maxUnavailable: 10%`, \
         and at the same time all nodes begin to flap, as in [kubernetes/kubernetes#121474](https://github.com/kubernetes/kubernetes/issues/121474): \
         for {seconds} seconds one node after the other becomes not ready, {flaps} times each, and ready again when a tenth of all nodes \
         has followed. Each change is a patch of the condition `Ready` and one of the taints `node.kubernetes.io/not-ready` with `NoSchedule` and \
         `NoExecute`. If the apiserver is too slow for all of them, the storm still ends in time: *changes of nodes* says how many there were. The \
         script is the same for both owners, one after the other; which one is first alternates.\n\n\
         *Rolling update* lasts from the change of the image until every node has a new pod that is ready. Every \
         {every} ms the owner's metrics are read. *Longest time without a plan or sync* is the longest time in which `nodewise_plans_total` of the executor, or the \
         `workqueue_work_duration_seconds_count` of DaemonSets of kube-controller-manager, did not rise, from the beginning until both the storm \
         and the rollout have ended. In all this time there was something to do. *Longest wait in a queue* is \
         the largest mean of `workqueue_queue_duration_seconds` within {every} ms; kube-controller-manager has two queues, one of them of \
         changed nodes. API calls, CPU seconds and memory are those of \
         kube-controller-manager with only its DaemonSet controller, and of server and executor together, over the same time. Memory of each \
         half is the most resident memory that was read. The CPU time of kube-apiserver includes what the storm itself takes."
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts of nodes and pods")]
fn count(of: usize) -> f64 {
    of as f64
}
