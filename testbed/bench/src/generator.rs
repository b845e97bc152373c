//! Load for servers, as cheap as it can be: requests that were encoded before, sent by one thread, and answers that are not decoded.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use nodewise_client::Digest;
use nodewise_proto::v1;
use nodewise_testbed::RawCodec;
use prost::Message as _;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

use crate::objects::{Caches, Cluster, digests};

/// What several executors' workloads ask one after another.
#[derive(Debug)]
pub struct Load {
    workloads: Vec<Questions>,
}

/// What is asked about one workload, in this order.
#[derive(Debug)]
struct Questions {
    /// With everything inline: a replica knows nothing at first.
    first: Bytes,
    /// After one pod changed each, with the rest by digest.
    changes: Vec<Bytes>,
}

impl Load {
    /// So many DaemonSets at rest on the same nodes, of each of which a pod changes so often.
    ///
    /// # Errors
    /// See [`Cluster::at_rest`].
    pub fn new(nodes: usize, workloads: usize, changes: usize) -> Result<Self> {
        let mut caches = Caches::of(&Arc::new(Cluster::at_rest(nodes, workloads)?))?;
        let questions = (0..workloads).map(|workload| Questions::new(&mut caches, workload, changes));
        Ok(Self {
            workloads: questions.collect::<Result<_>>()?,
        })
    }

    /// How many changes there are in all.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.workloads
            .iter()
            .map(|questions| questions.changes.len())
            .sum()
    }

    /// Bytes of a request after a change, on average.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "some hundred million")]
    pub fn bytes_per_change(&self) -> f64 {
        let all = self.workloads.iter().flat_map(|questions| &questions.changes);
        all.map(Bytes::len).sum::<usize>() as f64 / self.changes() as f64
    }

    /// Makes everything known to the replicas, each of which gets a fair share of the workloads.
    ///
    /// # Errors
    /// One does not answer that there is nothing to do.
    pub async fn warm_up(&self, replicas: &[Client]) -> Result<()> {
        let each = self.shares(replicas).map(|(questions, client)| async move {
            let answer = client.ask(questions.first.clone()).await?;
            verdict(answer, v1::Verdict::Noop)
        });
        try_join_all(each).await.map(drop)
    }

    /// Sends all changes, those of a workload one after another. For each workload one question is under way all the time.
    ///
    /// # Errors
    /// One is not answered with a plan.
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

    /// Each workload, and whom it asks.
    fn shares<'a>(&'a self, replicas: &'a [Client]) -> impl Iterator<Item = (&'a Questions, &'a Client)> {
        self.workloads.iter().zip(replicas.iter().cycle())
    }
}

impl Questions {
    fn new(caches: &mut Caches, workload: usize, changes: usize) -> Result<Self> {
        ensure!(changes > 0, "nothing changes");
        let first = caches.request(workload, &|_| false);
        let mut known: HashSet<Digest> = digests(&first).collect();
        let changes = (0..changes).map(|change| {
            let node = (change / 2 * 7_919) % caches.nodes();
            caches.turn(workload, node, expected(change) == v1::Verdict::Noop)?;
            let request = caches.request(workload, &|digest| known.contains(digest));
            known.extend(digests(&request));
            Ok(request.encode_to_vec().into())
        });
        Ok(Self {
            changes: changes.collect::<Result<_>>()?,
            first: first.encode_to_vec().into(),
        })
    }
}

/// What is to be done after a change: at first a pod stops being ready, then it is ready again.
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

/// Who sends bytes and gets bytes.
#[derive(Clone, Debug)]
pub struct Client(Grpc<Channel>);

impl Client {
    /// On a connection.
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

    // The engine is what a replica answers with.
    #[test]
    fn questions_are_answered_in_their_order() -> Result<()> {
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
            replica.tally().summaries_made,
            2 * (64 + 3),
            "one bucket changes at a time"
        );
        Ok(())
    }
}
