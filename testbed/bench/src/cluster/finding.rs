//! The results of the rollouts: the table, the goals and the charts.

use anyhow::Result;

use super::owner::OwnerKind;
use super::run::{Limit, Rollout};
use super::sides::{Quantity, Sides};
use super::{Size, bare};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Chart, Finding, Target};

const CREATE: Quantity<Rollout> = Quantity::new("create: seconds", |rollout| rollout.create.seconds);
const CREATE_CALLS: Quantity<Rollout> = Quantity::new("create: API calls", |rollout| rollout.create.calls);
const CREATE_CPU: Quantity<Rollout> =
    Quantity::new("create: CPU seconds", |rollout| rollout.create.cpu_seconds());
const UPDATE: Quantity<Rollout> = Quantity::new("rolling update: seconds", |rollout| rollout.update.seconds);
const UPDATE_CALLS: Quantity<Rollout> =
    Quantity::new("rolling update: API calls", |rollout| rollout.update.calls);
const UPDATE_CPU: Quantity<Rollout> = Quantity::new("rolling update: CPU seconds", |rollout| {
    rollout.update.cpu_seconds()
});
const CREATE_APISERVER: Quantity<Rollout> =
    Quantity::new("create: CPU seconds of kube-apiserver", |rollout| {
        rollout.create.apiserver_cpu
    });
const UPDATE_APISERVER: Quantity<Rollout> =
    Quantity::new("rolling update: CPU seconds of kube-apiserver", |rollout| {
        rollout.update.apiserver_cpu
    });
const MEMORY: Quantity<Rollout> = Quantity::new("peak memory: MB", |rollout| rollout.peak_memory_mb);

fn targets(sides: &Sides<Rollout>, limit: &Spread) -> Result<Vec<Target>> {
    let to_limit = sides.ours(&CREATE)?.median() / limit.median();
    [
        sides.faster("create, against kube-controller-manager", 1.6, &CREATE),
        Ok(Target::at_most(
            "create, against the bare loop",
            1.25,
            to_limit,
            "times its time",
        )),
        sides.faster("rolling update, against kube-controller-manager", 1.15, &UPDATE),
        // Not a ratio, which would hide a few calls among ten thousand.
        Ok(Target::at_most(
            "rolling update, against theirs",
            sides.theirs(&UPDATE_CALLS)?.median(),
            sides.ours(&UPDATE_CALLS)?.median(),
            "API calls",
        )),
        sides.less("CPU of create", 0.5, &CREATE_CPU),
        sides.less("CPU of the rolling update", 0.5, &UPDATE_CPU),
        sides.less("CPU of kube-apiserver for create", 0.9, &CREATE_APISERVER),
        sides.less(
            "CPU of kube-apiserver for the rolling update",
            0.9,
            &UPDATE_APISERVER,
        ),
        sides.less("peak memory of both", 0.5, &MEMORY),
    ]
    .into_iter()
    .collect()
}

/// The finding for these rollouts.
pub(super) fn of(size: Size, sides: &Sides<Rollout>, limits: &[Limit]) -> Result<Finding> {
    let limit = Spread::of(limits.iter().map(|limit| limit.seconds))?;
    let row = |quantity: Quantity<Rollout>, limit: &str| -> Result<Vec<String>> {
        let mut row = sides.row(&quantity)?;
        row.push(limit.to_owned());
        Ok(row)
    };
    let mut rows = vec![row(CREATE, &limit.to_string())?];
    for quantity in [
        CREATE_CALLS,
        CREATE_CPU,
        CREATE_APISERVER,
        UPDATE,
        UPDATE_CALLS,
        UPDATE_CPU,
        UPDATE_APISERVER,
        MEMORY,
    ] {
        rows.push(row(quantity, "–")?);
    }
    let nodes = figure(count(size.nodes));
    let bare = CREATE.bar("bare loop", limit.clone());
    let times = [sides.bars(&CREATE)?, vec![bare], sides.bars(&UPDATE)?].concat();
    let cpu = [sides.bars(&CREATE_CPU)?, sides.bars(&UPDATE_CPU)?].concat();
    let apiserver = [sides.bars(&CREATE_APISERVER)?, sides.bars(&UPDATE_APISERVER)?].concat();
    let memory = sides.bars(&MEMORY)?;
    Ok(Finding {
        title: format!("A DaemonSet on {nodes} nodes, on a real apiserver"),
        about: about(size),
        columns: [
            "",
            OwnerKind::Upstream.name(),
            OwnerKind::Nodewise.name(),
            "ratio",
            "bare loop",
        ]
        .map(str::to_owned)
        .into(),
        rows,
        targets: targets(sides, &limit)?,
        charts: vec![
            Chart::of_costs(
                "cluster-time",
                format!("Rollouts on {nodes} nodes"),
                "seconds",
                times,
            ),
            Chart::of_costs(
                "cluster-cpu",
                format!("CPU time of rollouts on {nodes} nodes"),
                "CPU seconds",
                cpu,
            ),
            Chart::of_costs(
                "cluster-apiserver",
                format!("CPU time of kube-apiserver during rollouts on {nodes} nodes"),
                "CPU seconds",
                apiserver,
            ),
            Chart::of_costs("cluster-memory", "Peak memory of the owner", "MB", memory),
        ],
    })
}

fn about(size: Size) -> String {
    let (nodes, foreign) = (figure(count(size.nodes)), figure(count(size.foreign_pods)));
    let workers = bare::WORKERS;
    format!(
        "etcd and kube-apiserver with {nodes} nodes, and {foreign} pods of ReplicaSets that belong to no DaemonSet. Each owner \
         is started and gets a DaemonSet. *Create* lasts from the request that created the DaemonSet to the response to the \
         last create of a pod, according to the apiserver's audit log. Then all pods are made ready, and the image changes with \
         `maxUnavailable: 10%`. Every new pod is made ready as soon as a watch shows it. *Rolling update* lasts from the \
         request that changed the image until the status says that all pods are updated and available. API calls are those of \
         the owner in the audit log, including watches. CPU seconds and peak resident memory are those of \
         kube-controller-manager with only its DaemonSet controller, and of server and executor together. CPU seconds of kube-apiserver \
         are all that its process used in that time: for the owner, and for what is the same for both, such as the audit log and \
         the pods that are made ready. The bare loop creates \
         the same pods with {workers} workers and does nothing else.\n\n\
         All settings are the defaults, except that kube-controller-manager may make 5,000 calls a second (its default is 20), \
         because the executor has no limit either. Neither scheduler nor kubelets run: their work would be the same for both \
         owners and use most of the machine. Pods have an affinity to their node, stay unbound, and disappear when they are \
         deleted. Which owner is first alternates."
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts of nodes and pods")]
fn count(of: usize) -> f64 {
    of as f64
}
