//! The results of the rollouts: the table, the goals and the charts.

use anyhow::Result;

use super::owner::OwnerKind;
use super::run::{Limit, Rollout};
use super::{Size, bare};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Bar, Chart, Finding, Shape, Target};

/// A quantity that is measured for each rollout.
struct Quantity {
    name: &'static str,
    of: fn(&Rollout) -> f64,
}

const fn quantity(name: &'static str, of: fn(&Rollout) -> f64) -> Quantity {
    Quantity { name, of }
}

const CREATE: Quantity = quantity("create: seconds", |rollout| rollout.create.seconds);
const CREATE_CALLS: Quantity = quantity("create: API calls", |rollout| rollout.create.calls);
const CREATE_CPU: Quantity = quantity("create: CPU seconds", |rollout| rollout.create.cpu_seconds);
const UPDATE: Quantity = quantity("rolling update: seconds", |rollout| rollout.update.seconds);
const UPDATE_CALLS: Quantity = quantity("rolling update: API calls", |rollout| rollout.update.calls);
const UPDATE_CPU: Quantity = quantity("rolling update: CPU seconds", |rollout| {
    rollout.update.cpu_seconds
});
const MEMORY: Quantity = quantity("peak memory: MB", |rollout| rollout.peak_memory_mb);

/// All rounds of both owners and of the bare loop.
struct Rounds<'a> {
    upstream: &'a [Rollout],
    nodewise: &'a [Rollout],
    limit: Spread,
}

impl Rounds<'_> {
    fn theirs(&self, quantity: &Quantity) -> Result<Spread> {
        Spread::of(self.upstream.iter().map(quantity.of))
    }

    fn ours(&self, quantity: &Quantity) -> Result<Spread> {
        Spread::of(self.nodewise.iter().map(quantity.of))
    }

    /// The median of kube-controller-manager divided by that of Nodewise.
    fn ratio(&self, quantity: &Quantity) -> Result<f64> {
        Ok(self.theirs(quantity)?.median() / self.ours(quantity)?.median())
    }

    fn row(&self, quantity: &Quantity, limit: Option<&Spread>) -> Result<Vec<String>> {
        Ok(vec![
            quantity.name.to_owned(),
            self.theirs(quantity)?.to_string(),
            self.ours(quantity)?.to_string(),
            figure(self.ratio(quantity)?),
            limit.map_or_else(|| "–".to_owned(), Spread::to_string),
        ])
    }

    fn bars(&self, quantity: &Quantity, limit: Option<&Spread>) -> Result<Vec<Bar>> {
        let bar = |who: &str, values: Spread| Bar {
            group: quantity.name.to_owned(),
            who: who.to_owned(),
            values,
        };
        let mut bars = vec![
            bar(OwnerKind::Upstream.name(), self.theirs(quantity)?),
            bar(OwnerKind::Nodewise.name(), self.ours(quantity)?),
        ];
        bars.extend(limit.map(|limit| bar("bare loop", limit.clone())));
        Ok(bars)
    }

    fn targets(&self) -> Result<Vec<Target>> {
        let limit = self.ours(&CREATE)?.median() / self.limit.median();
        let faster = |what, goal, quantity| {
            Ok(Target::at_least(
                what,
                goal,
                self.ratio(quantity)?,
                "times as fast",
            ))
        };
        let less = |what, goal, quantity| {
            Ok(Target::at_most(
                what,
                goal,
                1.0 / self.ratio(quantity)?,
                "times theirs",
            ))
        };
        [
            faster("create, against kube-controller-manager", 1.6, &CREATE),
            Ok(Target::at_most(
                "create, against the bare loop",
                1.2,
                limit,
                "times its time",
            )),
            faster("rolling update, against kube-controller-manager", 1.0, &UPDATE),
            // Not a ratio, which would hide a few calls among ten thousand.
            Ok(Target::at_most(
                "rolling update, against theirs",
                self.theirs(&UPDATE_CALLS)?.median(),
                self.ours(&UPDATE_CALLS)?.median(),
                "API calls",
            )),
            less("CPU of create", 0.5, &CREATE_CPU),
            less("CPU of the rolling update", 0.5, &UPDATE_CPU),
            less("peak memory of both", 0.5, &MEMORY),
        ]
        .into_iter()
        .collect()
    }
}

/// The finding for these rollouts.
pub(super) fn of(
    size: Size,
    upstream: &[Rollout],
    nodewise: &[Rollout],
    limits: &[Limit],
) -> Result<Finding> {
    let limit = Spread::of(limits.iter().map(|limit| limit.seconds))?;
    let rounds = Rounds {
        upstream,
        nodewise,
        limit,
    };
    let mut rows = vec![rounds.row(&CREATE, Some(&rounds.limit))?];
    for quantity in [CREATE_CALLS, CREATE_CPU, UPDATE, UPDATE_CALLS, UPDATE_CPU, MEMORY] {
        rows.push(rounds.row(&quantity, None)?);
    }
    let nodes = figure(count(size.nodes));
    let chart = |file: &str, title: String, unit: &str, bars: [Vec<Bar>; 2]| Chart {
        file: file.to_owned(),
        title,
        unit: format!("{unit}, less is better"),
        logarithmic: false,
        shape: Shape::Bars(bars.concat()),
    };
    let times = [
        rounds.bars(&CREATE, Some(&rounds.limit))?,
        rounds.bars(&UPDATE, None)?,
    ];
    let cpu = [rounds.bars(&CREATE_CPU, None)?, rounds.bars(&UPDATE_CPU, None)?];
    let memory = [rounds.bars(&MEMORY, None)?, Vec::new()];
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
        targets: rounds.targets()?,
        charts: vec![
            chart(
                "cluster-time",
                format!("Rollouts on {nodes} nodes"),
                "seconds",
                times,
            ),
            chart(
                "cluster-cpu",
                format!("CPU time of rollouts on {nodes} nodes"),
                "CPU seconds",
                cpu,
            ),
            chart(
                "cluster-memory",
                "Peak memory of the owner".to_owned(),
                "MB",
                memory,
            ),
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
         kube-controller-manager with only its DaemonSet controller, and of server and executor together. The bare loop creates \
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
