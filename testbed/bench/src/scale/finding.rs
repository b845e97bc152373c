//! The table, the goal and the charts for the rounds.

use anyhow::Result;

use super::{Round, Size};
use crate::figure::figure;
use crate::measure::Spread;
use crate::objects::LargeSize;
use crate::report::{Bar, Chart, Finding, Target};

/// The goal for the peak memory of the process with the caches.
const MOST_MB: f64 = 250.0;

/// A row of the table: its name, and the value of a round.
type Row<'a> = (String, &'a dyn Fn(&Round) -> f64);

/// The finding for these rounds.
pub(super) fn of(size: Size, rounds: &[Round]) -> Result<Finding> {
    let LargeSize { nodes, pods, .. } = size.cluster;
    let (nodes, pods) = (count(nodes), count(pods));
    let per_node = |round: &Round| (round.caches.pods_mb - round.pods_alone_mb) * 1e6 / nodes;
    let per_pod = |round: &Round| (round.pods_alone_mb - round.caches.empty_mb) * 1e6 / pods;
    let (nodes, pods) = (figure(nodes), figure(pods));
    let values: [Row<'_>; 15] = [
        ("memory before the first node and pod, MB".to_owned(), &|round| {
            round.caches.empty_mb
        }),
        (format!("memory with {nodes} nodes, MB"), &|round| {
            round.caches.nodes_mb
        }),
        ("peak memory until then, MB".to_owned(), &|round| {
            round.caches.nodes_peak_mb
        }),
        (format!("memory with {pods} pods, too, MB"), &|round| {
            round.caches.pods_mb
        }),
        ("peak memory until then, MB".to_owned(), &|round| {
            round.caches.pods_peak_mb
        }),
        ("bytes for a node".to_owned(), &per_node),
        ("bytes for a pod".to_owned(), &per_pod),
        ("reading all nodes and pods from JSON, s".to_owned(), &|round| {
            round.caches.reading
        }),
        ("caching them, s".to_owned(), &|round| round.caches.caching),
        ("a plan, all inline: kB sent".to_owned(), &|round| {
            round.caches.inline.sent_kb
        }),
        ("a plan, all inline: p50, ms".to_owned(), &|round| {
            round.caches.inline.p50
        }),
        ("a plan, one pod changed: kB sent".to_owned(), &|round| {
            round.caches.changed.sent_kb
        }),
        ("a plan, one pod changed: p50, ms".to_owned(), &|round| {
            round.caches.changed.p50
        }),
        (
            "peak memory with the requests for plans, MB".to_owned(),
            &|round| round.caches.requests_peak_mb,
        ),
        ("peak memory of a server, MB".to_owned(), &server_peak),
    ];
    let over = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value));
    let rows = values
        .into_iter()
        .map(|(name, value)| Ok(vec![name, over(value)?.to_string()]));
    let peak = over(&|round| round.caches.pods_peak_mb)?;
    Ok(Finding {
        title: format!("{nodes} nodes and {pods} pods"),
        about: about(size),
        columns: ["", "measured"].map(str::to_owned).into(),
        rows: rows.collect::<Result<_>>()?,
        targets: vec![Target::at_most(
            format!("the executor's caches of {nodes} nodes and {pods} pods: peak memory"),
            MOST_MB,
            peak.median(),
            "MB",
        )],
        charts: vec![chart(
            &nodes,
            &pods,
            [
                ("caches: no nodes and pods", over(&|round| round.caches.empty_mb)?),
                ("caches: all nodes", over(&|round| round.caches.nodes_peak_mb)?),
                ("caches: all pods", peak),
                (
                    "caches and requests",
                    over(&|round| round.caches.requests_peak_mb)?,
                ),
                (
                    "server, all inline",
                    over(&|round| round.caches.inline.server_peak_mb)?,
                ),
                (
                    "server, one pod changed",
                    over(&|round| round.caches.changed.server_peak_mb)?,
                ),
            ],
        )],
    })
}

fn server_peak(round: &Round) -> f64 {
    round
        .caches
        .inline
        .server_peak_mb
        .max(round.caches.changed.server_peak_mb)
}

fn chart(nodes: &str, pods: &str, groups: [(&str, Spread); 6]) -> Chart {
    let bars = groups.into_iter().map(|(group, values)| Bar {
        group: group.to_owned(),
        who: "Nodewise".to_owned(),
        values,
    });
    let title = format!("Peak memory, {nodes} nodes and {pods} pods");
    Chart::of_costs("scale", title, "MB", bars.collect())
}

fn about(size: Size) -> String {
    let LargeSize {
        nodes,
        pods,
        daemon_sets,
    } = size.cluster;
    let others = figure(count(pods - nodes * daemon_sets));
    let [inline, changed] = size.calls.map(|calls| figure(count(calls)));
    format!(
        "The executor's caches (`Store`) in a cluster of {} nodes: each of {daemon_sets} DaemonSets has a pod on every node, and {others} pods \
         belong to ReplicaSets of 50 pods, as an executor with all controllers caches them. A process has these caches, the executor's \
         allocator, and nothing else of the executor: no connections, no pages of the apiserver's lists, no queues and no metrics. It fills the \
         caches as the watches do: a few nodes or pods of a list at a time. Each object is made, read and cached before the next \
         one, so the process never has the JSON of more than one. Memory is resident memory according to the kernel. After a \
         list the allocator keeps some of the memory that is free again. So bytes for a pod are what another process takes for \
         the same pods without any node, and bytes for a node what the first process has more than that one. The time to make the JSON is not counted; the executor reads \
         Protobuf, which [takes a third](#reading-pods-and-nodes-from-the-apiserver) of the time.\n\n\
         Then the process asks a real server, over gRPC on the loopback interface, for plans for one DaemonSet: {inline} with all inline, \
         from a server that keeps no cache, and {changed} after one pod changed, as in [the section about calls](#a-plan-over-grpc). A bucket has {} pods.",
        figure(count(nodes)),
        figure(count(nodes / 64)),
    )
}

#[expect(clippy::cast_precision_loss, reason = "a few million")]
fn count(of: usize) -> f64 {
    of as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::process::{Caches, Plans};

    fn round(peak: f64) -> Round {
        let plans = |p50| Plans {
            p50,
            sent_kb: 30.0,
            server_peak_mb: 10.0 * p50,
        };
        let caches = Caches {
            empty_mb: 10.0,
            nodes_mb: 23.0,
            nodes_peak_mb: 60.0,
            pods_mb: 223.0,
            pods_peak_mb: peak,
            requests_peak_mb: 300.0,
            reading: 9.0,
            caching: 2.0,
            inline: plans(50.0),
            changed: plans(2.0),
        };
        Round {
            caches,
            pods_alone_mb: 210.0,
        }
    }

    #[test]
    fn finding_has_rows_and_the_goal() -> Result<()> {
        let size = Size {
            cluster: LargeSize {
                nodes: 130_000,
                pods: 1_000_000,
                daemon_sets: 7,
            },
            calls: [5, 100],
            rounds: 3,
        };
        let finding = of(size, &[round(249.0), round(250.0), round(290.0)])?;
        let measured = |name: &str| {
            let row = finding.rows.iter().find(|row| row[0] == name);
            row.map(|row| row[1].clone()).unwrap_or_default()
        };
        assert_eq!(measured("bytes for a node"), "100");
        assert_eq!(measured("bytes for a pod"), "200");
        assert_eq!(measured("peak memory of a server, MB"), "500");
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert!(finding.targets[0].reached && finding.about.contains("90,000 pods belong to ReplicaSets"));
        assert!(!of(size, &[round(251.0)])?.targets[0].reached);
        Ok(())
    }
}
