//! The results: the table, the goals and the charts.

use anyhow::Result;

use super::super::owner::OwnerKind;
use super::super::sides::{Quantity, Sides};
use super::Size;
use super::run::{NAMESPACES, Run, SMALL_PODS};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Chart, Finding};

const CREATE: Quantity<Run> = Quantity::new("create: seconds", |run| run.create.seconds);
const CREATE_CPU: Quantity<Run> = Quantity::new("create: CPU seconds", |run| run.create.cpu_seconds());
const CREATE_CALLS: Quantity<Run> = Quantity::new("create: API calls", |run| run.create.calls);
const ROLL: Quantity<Run> = Quantity::new("rolling update: seconds", |run| run.roll.seconds);
const ROLL_CPU: Quantity<Run> = Quantity::new("rolling update: CPU seconds", |run| run.roll.cpu_seconds());
const ROLL_CALLS: Quantity<Run> = Quantity::new("rolling update: API calls", |run| run.roll.calls);
const SHRINK: Quantity<Run> = Quantity::new("scale to 0: seconds", |run| run.shrink.seconds);
const SHRINK_CPU: Quantity<Run> = Quantity::new("scale to 0: CPU seconds", |run| run.shrink.cpu_seconds());
const SHRINK_CALLS: Quantity<Run> = Quantity::new("scale to 0: API calls", |run| run.shrink.calls);
const SMALL: Quantity<Run> = Quantity::new("small ones, rolling update: seconds", |run| {
    run.roll_small.seconds
});
const SMALL_CPU: Quantity<Run> = Quantity::new("small ones, rolling update: CPU seconds", |run| {
    run.roll_small.cpu_seconds()
});
const SMALL_CALLS: Quantity<Run> = Quantity::new("small ones, rolling update: API calls", |run| {
    run.roll_small.calls
});
const REST: Quantity<Run> = Quantity::new("at rest: seconds", |run| run.rest.seconds);
const REST_CPU: Quantity<Run> = Quantity::new("at rest: CPU seconds", |run| run.rest.cpu_seconds());
const REST_CALLS: Quantity<Run> = Quantity::new("at rest: API calls", |run| run.rest.calls);
const MEMORY: Quantity<Run> = Quantity::new("peak memory: MB", |run| run.peak_memory_mb);

/// The finding for these runs.
pub(super) fn of(size: Size, sides: &Sides<Run>) -> Result<Finding> {
    let rows = [
        CREATE,
        CREATE_CPU,
        CREATE_CALLS,
        ROLL,
        ROLL_CPU,
        ROLL_CALLS,
        SHRINK,
        SHRINK_CPU,
        SHRINK_CALLS,
        SMALL,
        SMALL_CPU,
        SMALL_CALLS,
        REST,
        REST_CPU,
        REST_CALLS,
        MEMORY,
    ];
    let rows = rows.iter().map(|quantity| sides.row(quantity));
    let targets = [
        sides.faster(
            "a large Deployment, create, against kube-controller-manager",
            1.0,
            &CREATE,
        ),
        sides.faster(
            "a large Deployment, rolling update, against kube-controller-manager",
            1.0,
            &ROLL,
        ),
        sides.faster(
            "a large Deployment, scale to 0, against kube-controller-manager",
            1.0,
            &SHRINK,
        ),
        sides.faster(
            "small Deployments, rolling update, against kube-controller-manager",
            1.0,
            &SMALL,
        ),
        sides.less("CPU of a large Deployment's create", 0.5, &CREATE_CPU),
        sides.less("CPU of a large Deployment's rolling update", 0.5, &ROLL_CPU),
        sides.less("CPU of a large Deployment's scale to 0", 0.5, &SHRINK_CPU),
        sides.less("CPU of the rolling update of small Deployments", 0.5, &SMALL_CPU),
        sides.less("CPU of a sync of Deployments at rest", 0.5, &REST_CPU),
        sides.less("peak memory, Deployments", 0.5, &MEMORY),
    ];
    let chart = |file: &str, title: &str, unit: &str, quantities: &[Quantity<Run>]| -> Result<Chart> {
        let bars = quantities.iter().map(|quantity| sides.bars(quantity));
        let bars = bars.collect::<Result<Vec<_>>>()?.concat();
        Ok(Chart::of_costs(file, title, unit, bars))
    };
    Ok(Finding {
        title: "Deployments, on a real apiserver".to_owned(),
        about: about(size, &sides.nodewise)?,
        columns: [
            "",
            OwnerKind::Upstream.name(),
            OwnerKind::Nodewise.name(),
            "ratio",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect::<Result<_>>()?,
        targets: targets.into_iter().collect::<Result<_>>()?,
        charts: vec![
            chart(
                "deployments-time",
                "Deployments: time",
                "seconds",
                &[CREATE, ROLL, SHRINK, SMALL],
            )?,
            chart(
                "deployments-cpu",
                "Deployments: CPU time of the owner",
                "CPU seconds",
                &[CREATE_CPU, ROLL_CPU, SHRINK_CPU, SMALL_CPU, REST_CPU],
            )?,
            chart(
                "deployments-memory",
                "Deployments: peak memory of the owner",
                "MB",
                &[MEMORY],
            )?,
        ],
    })
}

fn about(size: Size, nodewise: &[Run]) -> Result<String> {
    let process = |index: usize| {
        Spread::of(
            nodewise
                .iter()
                .filter_map(|run| run.rest.process_cpu.get(index).copied()),
        )
    };
    let (server, executor) = (process(0)?, process(1)?);
    #[expect(clippy::cast_precision_loss, reason = "some thousand Deployments")]
    let [small, at_rest] = [size.small, size.at_rest].map(|count| figure(count as f64));
    let pods = figure(size.pods.into());
    Ok(format!(
        "etcd and kube-apiserver, new for each owner and each round. The owner runs the Deployment and the ReplicaSet controller. A \
         Deployment of {pods} pods is created (*create*, until its status counts all pods), its image changes (*rolling update*), and \
         it is scaled to 0. Then {small} Deployments of {SMALL_PODS} pods each, in {NAMESPACES} namespaces, get another image at once \
         (*small ones*). At last {at_rest} Deployments of one pod get another `revisionHistoryLimit` (*at rest*): each is synced, and \
         the only write is its status with the observed generation. All but *create* last from the first request until the status of \
         every Deployment says that all pods are updated and available and no others are there. API calls are those of the owner in \
         the audit log, including watches. CPU seconds and peak resident memory are those of kube-controller-manager with only these two \
         controllers, and of server and executor together: for *at rest* {server} CPU seconds of the server and {executor} of the executor.\n\n\
         All settings are the defaults, except that kube-controller-manager may make 5,000 calls a second (its default is 20), because \
         the executor has no limit either. Neither scheduler nor kubelets run. Pods stay unbound; from the end of *create* each new one is made \
         ready as soon as a watch shows it, and it disappears when it is deleted. Which owner is first alternates."
    ))
}
