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
use crate::questions::{Kind, Question, Questions};
use crate::replica::Replica;
use crate::report::Finding;
use crate::{measure, programs, samples};

mod finding;

const SIZE: Size = Size {
    nodes: 5_000,
    more_nodes: 15_000,
    replicas: 50_000,
    calls: [100, 40, 200, 200],
};

/// Measures the given number of rounds.
///
/// # Errors
/// The server was not built, or answers incorrectly.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    let measured = calls(&program, SIZE, rounds).await?;
    Ok(finding::of(&measured))
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of nodes of the DaemonSet.
    pub nodes: usize,
    /// The number of nodes of the DaemonSet in a larger cluster.
    pub more_nodes: usize,
    /// The number of pods of the ReplicaSet.
    pub replicas: usize,
    /// The number of calls of each kind in a round, in the order of [`Measured`].
    pub calls: [usize; 4],
}

/// The measurements of all calls.
#[derive(Debug)]
pub struct Measured {
    /// All inline.
    pub inline: Calls,
    /// All inline, in the larger cluster.
    pub more_inline: Calls,
    /// One pod of the DaemonSet changed.
    pub changed: Calls,
    /// One pod of the ReplicaSet changed.
    pub replica_set: Calls,
    /// What the cache of a server takes after the first plan for the DaemonSet, in bytes for a node and its pod.
    pub cached_bytes: f64,
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
pub async fn calls(program: &Path, size: Size, rounds: usize) -> Result<Measured> {
    ensure!(
        size.calls.iter().all(|&count| count > 0),
        "nothing is measured by no call"
    );
    let mut asked = [
        Asker::new(program, Questions::new(Kind::Inline, size.nodes)?).await?,
        Asker::new(program, Questions::new(Kind::Inline, size.more_nodes)?).await?,
        Asker::new(program, Questions::new(Kind::Changed, size.nodes)?).await?,
        Asker::new(
            program,
            Questions::about_replica_set(Kind::Changed, size.replicas)?,
        )
        .await?,
    ];
    let changed = &mut asked[2];
    changed.call().await?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let cached_bytes = changed.cached_bytes().await? / size.nodes as f64;
    // The first calls also set up connections, threads and memory, so they do not count.
    for asked in &mut asked {
        for _ in 0..10.min(size.calls[0]) {
            asked.call().await?;
        }
    }
    let mut all: [Rounds; 4] = Default::default();
    for _ in 0..rounds {
        for ((asked, count), all) in asked.iter_mut().zip(size.calls).zip(&mut all) {
            let mut round = Vec::with_capacity(count);
            for _ in 0..count {
                round.push(asked.call().await.context(asked.questions.kind().name())?);
            }
            all.add(&round);
        }
    }
    let [inline, more_inline, changed, replica_set] = all;
    let [inline_calls, more_inline_calls, changed_calls, replica_set_calls] = size.calls;
    Ok(Measured {
        inline: inline.calls(inline_calls)?,
        more_inline: more_inline.calls(more_inline_calls)?,
        changed: changed.calls(changed_calls)?,
        replica_set: replica_set.calls(replica_set_calls)?,
        cached_bytes,
    })
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
    replica: Replica,
}

impl Asker {
    pub(crate) async fn new(program: &Path, questions: Questions) -> Result<Self> {
        let replica = Replica::start(program, questions.kind().flags())?;
        Ok(Self {
            questions,
            client: replica.client().await?,
            replica,
        })
    }

    /// The caches of the executor, for requests to another server. This server ends.
    pub(crate) fn into_questions(self) -> Questions {
        self.questions
    }

    /// What the server's cache takes now, in bytes.
    async fn cached_bytes(&self) -> Result<f64> {
        samples::sum(&self.replica.metrics().await?, "nodewise_cache_bytes", &[])
    }

    /// The peak memory of the server so far, in MB.
    pub(crate) fn peak_memory_mb(&self) -> Result<f64> {
        measure::peak_memory_mb(self.replica.pid())
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
}
