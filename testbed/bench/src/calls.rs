//! What a plan costs who asks for it: `Plan` over gRPC on the loopback interface, from the real server in a process of its own.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use prost::Message as _;
use tonic::transport::Channel;

use crate::measure::Spread;
use crate::programs;
use crate::questions::{Kind, Question, Questions};
use crate::replica::Replica;
use crate::report::{Bar, Chart, Finding, Shape, Target, figure};

const NODES: usize = 5_000;
/// Calls of each kind in a round.
const INLINE_CALLS: usize = 100;
const CHANGED_CALLS: usize = 200;
/// What is to be reached, at half of the calls.
const INLINE_MS: f64 = 10.0;
const CHANGED_MS: f64 = 1.0;
const CHANGED_KB: f64 = 20.0;

const ABOUT: &str = "\
One DaemonSet on 5,000 nodes with a ready pod on each, in 64 buckets, asked for over gRPC on the loopback interface. The time is the \
caller's: from handing over the request, as the executor builds it from its caches, to having the decoded plan. Calls come one after \
another, on one connection; a round is a number of calls of one kind and then of the other.

- *all inline* is what a replica gets that knows nothing: every bucket with its digest. So that it knows nothing at every call, this \
server keeps none (`--bucket-cache-size 0`): it checks the digests, decodes everything and plans from scratch.
- *one pod changed* is what it gets from then on: before each call a pod stops being ready, or is ready again, and only its bucket is \
sent; the other 127 go by their digest. No bucket comes twice.";

/// Measures, in so many rounds.
///
/// # Errors
/// The server was not built, or does not answer as it should.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    let [inline, changed] = calls(&program, NODES, rounds, [INLINE_CALLS, CHANGED_CALLS]).await?;
    Ok(finding(&inline, &changed))
}

/// What was measured of calls of one kind.
#[derive(Debug)]
pub struct Calls {
    /// How many of them were in a round.
    pub of: usize,
    /// Half of a round's calls were not slower, in ms.
    pub p50: Spread,
    /// 99 of 100 were not slower, in ms.
    pub p99: Spread,
    /// Sizes of the requests, in kB (1,000 bytes).
    pub size: Spread,
    /// What is in the largest of them.
    pub largest: Parts,
}

/// What a request is made of, in kB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// All of it.
    pub all: f64,
    /// Content of buckets.
    pub buckets: f64,
    /// Digests.
    pub digests: f64,
}

impl Parts {
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    fn of(request: &v1::PlanRequest) -> Self {
        let buckets = || {
            let snapshot = request.snapshot.iter();
            snapshot.flat_map(|snapshot| snapshot.node_buckets.iter().chain(&snapshot.pod_buckets))
        };
        let data: usize = buckets()
            .filter_map(|bucket| bucket.data.as_ref())
            .map(Bytes::len)
            .sum();
        let digests: usize = buckets().map(|bucket| bucket.digest.len()).sum();
        let [all, buckets, digests] = [request.encoded_len(), data, digests].map(|bytes| bytes as f64 / 1e3);
        Self {
            all,
            buckets,
            digests,
        }
    }
}

/// As a sentence goes on: "30 kB: 20 of a bucket, …".
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.all - self.buckets - self.digests;
        let [all, buckets, digests, rest] = [self.all, self.buckets, self.digests, rest].map(figure);
        write!(
            f,
            "{all} kB: {buckets} of the bucket, {digests} of digests, and {rest} of the DaemonSet, its revision and what holds it together"
        )
    }
}

/// Measures calls with everything inline, and calls after one pod changed; so many of each in a round.
///
/// # Errors
/// As [`measure`].
pub async fn calls(program: &Path, nodes: usize, rounds: usize, counts: [usize; 2]) -> Result<[Calls; 2]> {
    ensure!(
        counts.iter().all(|&count| count > 0),
        "nothing is measured by no call"
    );
    let mut asked = Vec::with_capacity(Kind::ALL.len());
    for kind in Kind::ALL {
        asked.push(Asked::new(program, kind, nodes).await?);
    }
    // Connections, threads and memory are there after the first calls.
    for asked in &mut asked {
        for _ in 0..10.min(counts[0]) {
            asked.call().await?;
        }
    }
    let mut all = [Rounds::default(), Rounds::default()];
    for _ in 0..rounds {
        for ((asked, count), all) in asked.iter_mut().zip(counts).zip(&mut all) {
            let mut round = Vec::with_capacity(count);
            for _ in 0..count {
                round.push(asked.call().await.context(asked.kind.name())?);
            }
            all.add(&round);
        }
    }
    let [inline, changed] = all;
    Ok([inline.calls(counts[0])?, changed.calls(counts[1])?])
}

/// A call: how many ms it took, and what it sent.
#[derive(Clone, Copy, Debug)]
struct Call {
    ms: f64,
    sent: Parts,
}

/// By round.
#[derive(Default)]
struct Rounds {
    p50: Vec<f64>,
    p99: Vec<f64>,
    sizes: Vec<f64>,
    largest: Parts,
}

impl Rounds {
    fn add(&mut self, round: &[Call]) {
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

    fn calls(self, of: usize) -> Result<Calls> {
        Ok(Calls {
            of,
            p50: Spread::of(self.p50)?,
            p99: Spread::of(self.p99)?,
            size: Spread::of(self.sizes)?,
            largest: self.largest,
        })
    }
}

/// The least of sorted values than which so many percent are not greater.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.saturating_sub(1)]
}

/// An executor's questions, and the server that it asks.
struct Asked {
    kind: Kind,
    questions: Questions,
    client: ReconcileServiceClient<Channel>,
    _replica: Replica,
}

impl Asked {
    async fn new(program: &Path, kind: Kind, nodes: usize) -> Result<Self> {
        let replica = Replica::start(program, kind.flags())?;
        Ok(Self {
            kind,
            questions: Questions::new(kind, nodes)?,
            client: replica.client().await?,
            _replica: replica,
        })
    }

    async fn call(&mut self) -> Result<Call> {
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

/// The table, the targets and the chart.
fn finding(inline: &Calls, changed: &Calls) -> Finding {
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
        ],
        charts: vec![Chart {
            file: "calls".to_owned(),
            title: format!(
                "Plan over gRPC, {nodes}: p50 and p99, and their spread over {} rounds",
                figure_of(inline)
            ),
            unit: "ms, less is better".to_owned(),
            logarithmic: true,
            shape: Shape::Bars(vec![
                bar("all inline", "p50", &inline.p50),
                bar("all inline", "p99", &inline.p99),
                bar("one pod changed", "p50", &changed.p50),
                bar("one pod changed", "p99", &changed.p99),
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
    fn percentiles_are_values_that_were_measured() {
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
    fn figures_become_rows_and_targets() -> Result<()> {
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
        let finding = finding(
            &calls([8.0, 9.0, 11.0], 15.0, [2_500.0, 2_500.0])?,
            &calls([1.0, 1.1, 1.2], 2.0, [12.5, 19.0])?,
        );
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(
            finding.rows[0],
            ["all inline", "2,500", "9 (8–11)", "15", "3 × 100"]
        );
        let reached: Vec<_> = finding.targets.iter().map(|target| target.reached).collect();
        assert_eq!(reached, [true, false, true]);
        let told = "has 19 kB: 12 of the bucket, 4.1 of digests, and 2.9 of the DaemonSet";
        assert!(finding.about.contains(told), "{}", finding.about);
        Ok(())
    }
}
