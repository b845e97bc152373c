//! What the rollouts come to: the table, what was to be reached, and the charts.

use anyhow::Result;

use super::owner::Who;
use super::run::{Limit, Rollout};
use super::{Size, bare};
use crate::measure::Spread;
use crate::report::{Bar, Chart, Finding, Shape, Target, figure};

/// Something that is measured of a rollout.
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

/// All rounds of both owners, and of the bare loop.
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

    /// How many times as much it is there as here.
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
            bar(Who::Upstream.name(), self.theirs(quantity)?),
            bar(Who::Nodewise.name(), self.ours(quantity)?),
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
            // A ratio would hide a handful of calls among ten thousand.
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

/// What they come to.
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
            Who::Upstream.name(),
            Who::Nodewise.name(),
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
        "etcd and kube-apiserver, {nodes} nodes, and {foreign} pods of ReplicaSets that are nobody's concern here. Each owner \
         is started, gets a DaemonSet, and creates its pods: from the request that created the DaemonSet to the answer to the last \
         create, by the apiserver's audit log. Then all pods are made ready, and the image changes with `maxUnavailable: 10%`; every \
         new pod becomes ready as soon as a watch shows it: from the request that changed the image until the status says that all \
         pods are new and available. Calls are those of the owner in the audit log, watches included; CPU seconds and peak \
         resident memory are those of kube-controller-manager with its DaemonSet controller alone, and of server and executor taken \
         together. The bare loop creates the same pods with {workers} workers and does nothing else.\n\n\
         All settings are the defaults, but kube-controller-manager may make 5,000 calls a second (its default is 20), as the \
         executor has no limit either. Neither scheduler nor kubelets run: their work would be the same for both and take most of the \
         machine. Pods are for a node by their affinity, unbound, and gone when deleted. The owners take turns in being first."
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts of nodes and pods")]
fn count(of: usize) -> f64 {
    of as f64
}
