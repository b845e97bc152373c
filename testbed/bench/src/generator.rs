//! A cheap load generator: one thread sends requests that were encoded in advance and does not decode the responses.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use nodewise_client::Digest;
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1;
use nodewise_testbed::RawCodec;
use prost::Message as _;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

use crate::objects::{Caches, Cluster, digests};

/// The requests about several workloads.
#[derive(Debug)]
pub struct Load {
    workloads: Vec<Questions>,
}

/// The requests about one workload, in order.
#[derive(Debug)]
struct Questions {
    /// The first request, with all buckets inline.
    first: Bytes,
    /// One request after each change of a pod, with the unchanged buckets by digest.
    changes: Vec<Bytes>,
}

impl Load {
    /// Requests about `workloads` settled DaemonSets on the same nodes, with `changes` changes of a pod each.
    ///
    /// # Errors
    /// See [`Cluster::settled`].
    pub fn new(nodes: usize, workloads: usize, changes: usize) -> Result<Self> {
        let mut caches = Caches::of(&Arc::new(Cluster::settled(nodes, workloads)?))?;
        let questions = (0..workloads).map(|workload| Questions::new(&mut caches, workload, changes));
        Ok(Self {
            workloads: questions.collect::<Result<_>>()?,
        })
    }

    /// The total number of changes.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.workloads
            .iter()
            .map(|questions| questions.changes.len())
            .sum()
    }

    /// The average size in bytes of a request after a change.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "some hundred million")]
    pub fn bytes_per_change(&self) -> f64 {
        let all = self.workloads.iter().flat_map(|questions| &questions.changes);
        all.map(Bytes::len).sum::<usize>() as f64 / self.changes() as f64
    }

    /// Sends the first requests, so that the replicas cache all buckets. The workloads are divided evenly among the
    /// replicas.
    ///
    /// # Errors
    /// A response is not a plan with nothing to do.
    pub async fn warm_up(&self, replicas: &[Client]) -> Result<()> {
        let each = self.shares(replicas).map(|(questions, client)| async move {
            let answer = client.ask(questions.first.clone()).await?;
            verdict(answer, v1::Verdict::Noop)
        });
        try_join_all(each).await.map(drop)
    }

    /// Sends all changes, one after another for each workload. Each workload always has one call in progress.
    ///
    /// # Errors
    /// A response has no plan.
    pub async fn run(&self, replicas: &[Client]) -> Result<()> {
        let each = self.shares(replicas).map(|(questions, client)| async move {
            let mut last = Bytes::new();
            for change in &questions.changes {
                last = client.ask(change.clone()).await?;
                ensure!(!last.is_empty(), "an answer without a plan");
            }
            verdict(last, expected(questions.changes.len() - 1))
        });
        try_join_all(each).await.map(drop)
    }

    /// Each workload with the client of its replica.
    fn shares<'a>(&'a self, replicas: &'a [Client]) -> impl Iterator<Item = (&'a Questions, &'a Client)> {
        self.workloads.iter().zip(replicas.iter().cycle())
    }
}

impl Questions {
    fn new(caches: &mut Caches, workload: usize, changes: usize) -> Result<Self> {
        ensure!(changes > 0, "nothing changes");
        let first = caches.request(workload, &Receiver::EMPTY);
        let mut known: HashSet<Digest> = digests(&first).collect();
        let changes = (0..changes).map(|change| {
            let node = (change / 2 * 7_919) % caches.nodes();
            caches.set_ready(workload, node, expected(change) == v1::Verdict::Noop)?;
            let request = caches.request(workload, &Receiver::new(&|digest| known.contains(digest)));
            known.extend(digests(&request));
            Ok(request.encode_to_vec().into())
        });
        Ok(Self {
            changes: changes.collect::<Result<_>>()?,
            first: first.encode_to_vec().into(),
        })
    }
}

/// The expected verdict after a change: a pod becomes unready and ready in turn.
fn expected(change: usize) -> v1::Verdict {
    if change.is_multiple_of(2) {
        v1::Verdict::Apply
    } else {
        v1::Verdict::Noop
    }
}

fn verdict(answer: Bytes, expected: v1::Verdict) -> Result<()> {
    let plan = v1::PlanResponse::decode(answer)?
        .plan
        .context("an answer without a plan")?;
    ensure!(plan.verdict() == expected, "the plan is {plan:?}");
    Ok(())
}

/// A client that sends and receives raw bytes.
#[derive(Clone, Debug)]
pub struct Client(Grpc<Channel>);

impl Client {
    /// A client on this connection.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self(Grpc::new(channel).max_decoding_message_size(usize::MAX))
    }

    async fn ask(&self, request: Bytes) -> Result<Bytes> {
        let mut grpc = self.0.clone();
        grpc.ready().await?;
        let path = PathAndQuery::from_static("/nodewise.v1.ReconcileService/Plan");
        Ok(grpc
            .unary(Request::new(request), path, RawCodec)
            .await?
            .into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::engine;
    use nodewise_server::never;

    // The engine stands for a replica.
    #[test]
    fn requests_get_the_expected_verdicts() -> Result<()> {
        let load = Load::new(30, 2, 3)?;
        assert_eq!(load.changes(), 6);
        let replica = engine();
        for questions in &load.workloads {
            let all = std::iter::once(&questions.first).chain(&questions.changes);
            let verdicts = all.map(|question| -> Result<_> {
                let request = v1::PlanRequest::decode(question.clone())?;
                let plan = replica.plan(request, &never)?.plan.context("a plan")?;
                Ok(plan.verdict())
            });
            let [noop, apply] = [v1::Verdict::Noop, v1::Verdict::Apply];
            assert_eq!(verdicts.collect::<Result<Vec<_>>>()?, [noop, apply, noop, apply]);
        }
        assert_eq!(
            replica.tally().summaries_computed,
            2 * (64 + 3),
            "one bucket changes at a time"
        );
        Ok(())
    }
}
