//! The table, goals and chart for the calls.

use super::{Calls, Measured};
use crate::figure::figure;
use crate::measure::Spread;
use crate::questions::Kind;
use crate::report::{Bar, Chart, Finding, Shape, Target};

/// The goals for the medians.
const INLINE_MS: f64 = 6.0;
const MORE_INLINE_MS: f64 = 14.0;
const CHANGED_MS: f64 = 0.5;
const REPLICA_SET_MS: f64 = 1.0;
/// The goals for the largest request after a change, and for the server's cache.
const CHANGED_KB: f64 = 20.0;
const CACHED_BYTES: f64 = 350.0;

const ABOUT: &str = "\
One DaemonSet on 5,000 nodes with a ready pod on each, in 64 buckets. A client calls `Plan` over gRPC on the loopback interface. \
The time is that of the client: from sending the request, which the executor's code builds from its caches, to the decoded plan. \
Calls are sequential on one connection. A round is a number of calls of one kind, then of the next.

- *all inline*: the request to a replica with an empty cache, with the content and the digest of every bucket. This server keeps \
no cache (`--bucket-cache-size 0`), so in every call it checks the digests, decodes everything and plans from scratch.
- *all inline, 15,000 nodes*: the same in a larger cluster.
- *one pod changed*: the requests after that. Before each call a pod becomes unready or ready. Only its bucket is sent; the \
other 127 are named by their digests. No bucket has the same content twice.
- *one pod of a ReplicaSet changed*: the same for a ReplicaSet of 50,000 ready pods, in 256 buckets of pods.";

/// The table, the goals and the chart.
pub(super) fn of(measured: &Measured) -> Finding {
    let Measured {
        inline,
        more_inline,
        changed,
        replica_set,
        cached_bytes,
    } = measured;
    let row = |what: &str, calls: &Calls| {
        vec![
            what.to_owned(),
            calls.size.to_string(),
            calls.p50.to_string(),
            calls.p99.to_string(),
            format!("{} × {}", calls.p50.rounds(), calls.of),
        ]
    };
    let bar = |group: &str, who: &str, values: &Spread| Bar {
        group: group.to_owned(),
        who: who.to_owned(),
        values: values.clone(),
    };
    let (nodes, more_nodes) = ("5,000 nodes", "15,000 nodes");
    Finding {
        title: "A plan over gRPC".to_owned(),
        about: format!(
            "{ABOUT}\n\nThe largest request after a change has {}. The cache of the server, which has the content of all buckets and \
             the results of the last plan, takes {} bytes for each node with its pod, as `nodewise_cache_bytes` says after the first plan.",
            changed.largest,
            figure(*cached_bytes)
        ),
        columns: ["request", "kB sent", "p50, ms", "p99, ms", "rounds × calls"]
            .map(str::to_owned)
            .to_vec(),
        rows: vec![
            row(Kind::Inline.name(), inline),
            row(&format!("all inline, {more_nodes}"), more_inline),
            row(Kind::Changed.name(), changed),
            row("one pod of a ReplicaSet changed", replica_set),
        ],
        targets: vec![
            Target::at_most(
                format!("{nodes}, all inline: p50"),
                INLINE_MS,
                inline.p50.median(),
                "ms",
            ),
            Target::at_most(
                format!("{more_nodes}, all inline: p50"),
                MORE_INLINE_MS,
                more_inline.p50.median(),
                "ms",
            ),
            Target::at_most(
                format!("{nodes}, one pod changed: p50"),
                CHANGED_MS,
                changed.p50.median(),
                "ms",
            ),
            Target::at_most(
                format!("{nodes}, one pod changed: the largest request"),
                CHANGED_KB,
                changed.size.max(),
                "kB",
            ),
            Target::at_most(
                "a ReplicaSet of 50,000 pods, one pod changed: p50",
                REPLICA_SET_MS,
                replica_set.p50.median(),
                "ms",
            ),
            Target::at_most(
                format!("{nodes}: the cache of the server"),
                CACHED_BYTES,
                *cached_bytes,
                "bytes for a node and its pod",
            ),
        ],
        charts: vec![Chart {
            file: "calls".to_owned(),
            title: format!(
                "Plan over gRPC, {nodes} or 50,000 replicas: p50 and p99, and their spread over {} rounds",
                figure_of(inline)
            ),
            unit: "ms, less is better".to_owned(),
            logarithmic: true,
            shape: Shape::Bars(vec![
                bar("all inline", "p50", &inline.p50),
                bar("all inline", "p99", &inline.p99),
                bar("all inline, 15,000", "p50", &more_inline.p50),
                bar("all inline, 15,000", "p99", &more_inline.p99),
                bar("one pod changed", "p50", &changed.p50),
                bar("one pod changed", "p99", &changed.p99),
                bar("one pod of a ReplicaSet changed", "p50", &replica_set.p50),
                bar("one pod of a ReplicaSet changed", "p99", &replica_set.p99),
            ]),
        }],
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few rounds")]
fn figure_of(calls: &Calls) -> String {
    figure(calls.p50.rounds() as f64)
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;
    use crate::calls::Parts;

    #[test]
    fn finding_has_rows_and_goals() -> Result<()> {
        let calls = |p50, p99, kb| -> Result<Calls> {
            Ok(Calls {
                of: 100,
                p50: Spread::of(p50)?,
                p99: Spread::of([p99])?,
                size: Spread::of(kb)?,
                largest: Parts {
                    all: 19.0,
                    buckets: 12.0,
                    digests: 4.1,
                },
            })
        };
        let finding = of(&Measured {
            inline: calls([5.0, 5.9, 11.0], 15.0, [2_500.0, 2_500.0])?,
            more_inline: calls([13.0, 14.1, 20.0], 25.0, [7_500.0, 7_500.0])?,
            changed: calls([0.4, 0.6, 0.7], 2.0, [12.5, 19.0])?,
            replica_set: calls([0.8, 0.9, 1.1], 2.0, [65.0, 70.0])?,
            cached_bytes: 237.0,
        });
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(
            finding.rows[0],
            ["all inline", "2,500", "5.9 (5–11)", "15", "3 × 100"]
        );
        let reached: Vec<_> = finding.targets.iter().map(|target| target.reached).collect();
        assert_eq!(reached, [true, false, false, true, true, true]);
        let told = "has 19 kB: 12 of the bucket, 4.1 of digests, and 2.9 of the DaemonSet";
        assert!(finding.about.contains(told), "{}", finding.about);
        assert!(finding.about.contains("takes 237 bytes"), "{}", finding.about);
        Ok(())
    }
}
