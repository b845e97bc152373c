//! The latency of `Plan` over gRPC on the loopback interface, with the real server in its own process.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use prost::Message as _;
use tonic::transport::Channel;

use crate::figure::figure;
use crate::measure::Spread;
use crate::programs;
use crate::questions::{Kind, Question, Questions};
use crate::replica::Replica;
use crate::report::{Bar, Chart, Finding, Shape, Target};

const SIZE: Size = Size {
    nodes: 5_000,
    replicas: 50_000,
    calls: [100, 200, 200],
};
/// The goals for the medians.
const INLINE_MS: f64 = 10.0;
const CHANGED_MS: f64 = 1.0;
const CHANGED_KB: f64 = 20.0;

const ABOUT: &str = "\
One DaemonSet on 5,000 nodes with a ready pod on each, in 64 buckets. A client calls `Plan` over gRPC on the loopback interface. \
The time is that of the client: from sending the request, which the executor's code builds from its caches, to the decoded plan. \
Calls are sequential on one connection. A round is a number of calls of one kind, then of the next.

- *all inline*: the request to a replica with an empty cache, with the content and the digest of every bucket. This server keeps \
no cache (`--bucket-cache-size 0`), so in every call it checks the digests, decodes everything and plans from scratch.
- *one pod changed*: the requests after that. Before each call a pod becomes unready or ready. Only its bucket is sent; the \
other 127 are named by their digests. No bucket has the same content twice.
- *one pod of a ReplicaSet changed*: the same for a ReplicaSet of 50,000 ready pods, in 256 buckets of pods.";

/// Measures the given number of rounds.
///
/// # Errors
/// The server was not built, or answers incorrectly.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    let all = calls(&program, SIZE, rounds).await?;
    Ok(finding(&all))
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of nodes of the DaemonSet.
    pub nodes: usize,
    /// The number of pods of the ReplicaSet.
    pub replicas: usize,
    /// The number of calls of each kind in a round: all inline, one pod changed, one pod of the ReplicaSet changed.
    pub calls: [usize; 3],
}

/// The measurements of calls of one kind.
#[derive(Debug)]
pub struct Calls {
    /// The number of calls in a round.
    pub of: usize,
    /// The median of a round's latencies, in ms.
    pub p50: Spread,
    /// The 99th percentile of a round's latencies, in ms.
    pub p99: Spread,
    /// The sizes of the requests, in kB (1,000 bytes).
    pub size: Spread,
    /// The parts of the largest request.
    pub largest: Parts,
}

/// The parts of a request, in kB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// The whole request.
    pub all: f64,
    /// The content of buckets.
    pub buckets: f64,
    /// The digests.
    pub digests: f64,
}

impl Parts {
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    fn of(request: &v1::PlanRequest) -> Self {
        let buckets = || {
            let snapshot = request.snapshot.iter();
            snapshot.flat_map(|snapshot| snapshot.node_buckets.iter().chain(&snapshot.pod_buckets))
        };
        let data: usize = buckets().filter_map(v1::Bucket::inline).map(Bytes::len).sum();
        let digests: usize = buckets().map(|bucket| bucket.digest.len()).sum();
        let [all, buckets, digests] = [request.encoded_len(), data, digests].map(|bytes| bytes as f64 / 1e3);
        Self {
            all,
            buckets,
            digests,
        }
    }
}

/// As part of a sentence: "30 kB: 20 of a bucket, …".
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.all - self.buckets - self.digests;
        let [all, buckets, digests, rest] = [self.all, self.buckets, self.digests, rest].map(figure);
        write!(
            f,
            "{all} kB: {buckets} of the bucket, {digests} of digests, and {rest} of the DaemonSet, its revision and other fields"
        )
    }
}

/// Measures the calls of each kind.
///
/// # Errors
/// As [`measure`].
pub async fn calls(program: &Path, size: Size, rounds: usize) -> Result<[Calls; 3]> {
    ensure!(
        size.calls.iter().all(|&count| count > 0),
        "nothing is measured by no call"
    );
    let mut asked = [
        Asker::new(program, Questions::new(Kind::Inline, size.nodes)?).await?,
        Asker::new(program, Questions::new(Kind::Changed, size.nodes)?).await?,
        Asker::new(
            program,
            Questions::about_replica_set(Kind::Changed, size.replicas)?,
        )
        .await?,
    ];
    // The first calls also set up connections, threads and memory, so they do not count.
    for asked in &mut asked {
        for _ in 0..10.min(size.calls[0]) {
            asked.call().await?;
        }
    }
    let mut all = [Rounds::default(), Rounds::default(), Rounds::default()];
    for _ in 0..rounds {
        for ((asked, count), all) in asked.iter_mut().zip(size.calls).zip(&mut all) {
            let mut round = Vec::with_capacity(count);
            for _ in 0..count {
                round.push(asked.call().await.context(asked.questions.kind().name())?);
            }
            all.add(&round);
        }
    }
    let [inline, changed, replica_set] = all;
    let [inline_calls, changed_calls, replica_set_calls] = size.calls;
    Ok([
        inline.calls(inline_calls)?,
        changed.calls(changed_calls)?,
        replica_set.calls(replica_set_calls)?,
    ])
}

/// A call: its latency in ms, and what it sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    ms: f64,
    sent: Parts,
}

/// The values of each round.
#[derive(Default)]
pub(crate) struct Rounds {
    p50: Vec<f64>,
    p99: Vec<f64>,
    sizes: Vec<f64>,
    largest: Parts,
}

impl Rounds {
    pub(crate) fn add(&mut self, round: &[Call]) {
        let mut times: Vec<_> = round.iter().map(|call| call.ms).collect();
        times.sort_by(f64::total_cmp);
        self.p50.push(percentile(&times, 50));
        self.p99.push(percentile(&times, 99));
        for Call { sent, .. } in round {
            self.sizes.push(sent.all);
            if sent.all > self.largest.all {
                self.largest = *sent;
            }
        }
    }

    pub(crate) fn calls(self, of: usize) -> Result<Calls> {
        Ok(Calls {
            of,
            p50: Spread::of(self.p50)?,
            p99: Spread::of(self.p99)?,
            size: Spread::of(self.sizes)?,
            largest: self.largest,
        })
    }
}

/// The smallest of these sorted values that at least `percent` percent of the values do not exceed.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.saturating_sub(1)]
}

/// The requests of an executor, and the server that gets them.
pub(crate) struct Asker {
    questions: Questions,
    client: ReconcileServiceClient<Channel>,
    _replica: Replica,
}

impl Asker {
    pub(crate) async fn new(program: &Path, questions: Questions) -> Result<Self> {
        let replica = Replica::start(program, questions.kind().flags())?;
        Ok(Self {
            questions,
            client: replica.client().await?,
            _replica: replica,
        })
    }

    pub(crate) async fn call(&mut self) -> Result<Call> {
        let Question { request, verdict } = self.questions.next_question()?;
        let sent = Parts::of(&request);
        let begun = Instant::now();
        let answer = self.client.plan(request).await?;
        let took = begun.elapsed();
        let plan = answer.into_inner().plan.context("an answer without a plan")?;
        ensure!(plan.verdict() == verdict, "the plan is {plan:?}");
        Ok(Call {
            ms: took.as_secs_f64() * 1e3,
            sent,
        })
    }
}

/// The table, the goals and the chart.
fn finding([inline, changed, replica_set]: &[Calls; 3]) -> Finding {
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
    let nodes = "5,000 nodes";
    Finding {
        title: "A plan over gRPC".to_owned(),
        about: format!(
            "{ABOUT}\n\nThe largest request after a change has {}.",
            changed.largest
        ),
        columns: ["request", "kB sent", "p50, ms", "p99, ms", "rounds × calls"]
            .map(str::to_owned)
            .to_vec(),
        rows: vec![
            row(Kind::Inline.name(), inline),
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
                CHANGED_MS,
                replica_set.p50.median(),
                "ms",
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
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        for (percent, expected) in [(50, 100.0), (99, 198.0), (100, 200.0), (0, 1.0)] {
            assert!(
                (percentile(&values, percent) - expected).abs() < f64::EPSILON,
                "{percent}"
            );
        }
        assert!((percentile(&[3.0], 50) - 3.0).abs() < f64::EPSILON);
    }

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
        let finding = finding(&[
            calls([8.0, 9.0, 11.0], 15.0, [2_500.0, 2_500.0])?,
            calls([1.0, 1.1, 1.2], 2.0, [12.5, 19.0])?,
            calls([0.8, 0.9, 1.1], 2.0, [65.0, 70.0])?,
        ]);
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(
            finding.rows[0],
            ["all inline", "2,500", "9 (8–11)", "15", "3 × 100"]
        );
        let reached: Vec<_> = finding.targets.iter().map(|target| target.reached).collect();
        assert_eq!(reached, [true, false, true, true]);
        let told = "has 19 kB: 12 of the bucket, 4.1 of digests, and 2.9 of the DaemonSet";
        assert!(finding.about.contains(told), "{}", finding.about);
        Ok(())
    }
}
