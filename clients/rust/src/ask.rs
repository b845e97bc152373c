//! An answer about a workload from one replica, or from the quicker of two.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_telemetry::grpc::ClientCall;
use prost::Message as _;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Request, Status};

use super::bounded;
use super::fault::{Failed, Fault, note_failure};
use super::pieces::Pieces;
use super::replica::Replica;
use super::replicas::Replicas;
use super::tries::Turn;
use crate::observer::{Evicted, Fate, Hedge, Observer};
use crate::question::Question;
use crate::service::{BuildRequest, Digest};

/// How often a replica may lack buckets of one request before it is sent all of them.
const CORRECTIONS: usize = 3;

/// Builds requests for several replicas, and numbers them.
pub(super) struct Builder<'a, 'b, Q>(Mutex<(usize, &'a mut BuildRequest<'b, Q>)>);

impl<'a, 'b, Q> Builder<'a, 'b, Q> {
    pub(super) fn new(build: &'a mut BuildRequest<'b, Q>) -> Self {
        Self(Mutex::new((0, build)))
    }

    /// A request for this replica, with everything inline or only what it is not believed to have, and which one it is.
    fn build(&self, replica: &Replica, everything: bool) -> (usize, Q) {
        let mut builder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = builder.0;
        builder.0 += 1;
        let span = tracing::debug_span!("snapshot");
        (
            number,
            span.in_scope(|| builder.1(&|digest| !everything && replica.knows(digest))),
        )
    }
}

/// What asking needs.
pub(super) struct Asking<'a, 'b, 'c, Q> {
    /// Of the workload.
    pub(super) uid: &'a str,
    pub(super) replicas: &'a Replicas,
    pub(super) observer: &'a dyn Observer,
    pub(super) builder: &'a Builder<'b, 'c, Q>,
    /// The longest request that is not sent in pieces, in bytes.
    pub(super) piece_bytes: usize,
}

/// An answer, and which of the requests that were built it answers.
#[derive(Debug)]
pub(super) struct Answered<A> {
    pub(super) answer: A,
    pub(super) request: usize,
}

/// What became of a turn.
#[derive(Debug)]
pub(super) struct Taken<'t, A> {
    /// The answer, and whose it is.
    pub(super) answer: Option<(Answered<A>, &'t Arc<Replica>)>,
    /// Who failed.
    pub(super) failed: Vec<(&'t Arc<Replica>, Failed)>,
    /// Whether the spare replica was asked, too.
    pub(super) hedged: bool,
}

impl<'t, A> Taken<'t, A> {
    fn nothing() -> Self {
        Self {
            answer: None,
            failed: Vec::new(),
            hedged: false,
        }
    }

    fn said(mut self, by: &'t Arc<Replica>, result: Result<Answered<A>, Failed>) -> Self {
        match result {
            Ok(answer) => self.answer = Some((answer, by)),
            Err(failed) => self.failed.push((by, failed)),
        }
        self
    }
}

impl<Q: Question> Asking<'_, '_, '_, Q> {
    /// Asks the replica whose turn it is. When `hedge_after` has passed without an answer, a spare one is asked as well; the
    /// first answer is taken, and the other call is cancelled. A question changes nothing, so that it may be asked twice.
    pub(super) async fn take_turn<'t>(
        &self,
        turn: &'t Turn,
        hedge_after: Option<Duration>,
    ) -> Taken<'t, Q::Answer> {
        let (asked, until) = (&turn.replica, turn.until);
        let taken = Taken::nothing();
        let mut first = std::pin::pin!(self.ask(asked, until));
        let (Some(after), Some(spare)) = (hedge_after, &turn.spare) else {
            return taken.said(asked, first.await);
        };
        if let Ok(result) = tokio::time::timeout(after, &mut first).await {
            return taken.said(asked, result);
        }
        tracing::debug!(slow = %asked.address(), also = %spare.address(), "no answer yet; asking another replica, too");
        let mut second = std::pin::pin!(self.ask(spare, until));
        let (quicker, by, slower, its) = tokio::select! {
            result = &mut first => (result, asked, second, spare),
            result = &mut second => (result, spare, first, asked),
        };
        let asks_on = quicker
            .as_ref()
            .is_err_and(|failed| failed.fault != Fault::Request);
        let mut taken = taken.said(by, quicker);
        taken.hedged = true;
        if asks_on {
            taken = taken.said(its, slower.await);
        } else {
            self.observer.call(Q::METHOD, Fate::Cancelled);
            if taken.answer.is_some() && Arc::ptr_eq(its, asked) {
                self.overtaken(asked);
            }
        }
        self.observer.hedged(match &taken.answer {
            None => Hedge::Failed,
            Some((_, by)) if Arc::ptr_eq(by, spare) => Hedge::Won,
            Some(_) => Hedge::Lost,
        });
        taken
    }

    /// Another replica that was asked later has answered first. That is no failure; but one that hangs is never told from one
    /// that is slow when nobody waits for it.
    fn overtaken(&self, replica: &Replica) {
        if replica.is_overtaken_again() {
            let reason = format!("{}: others answered first, time after time", replica.url());
            self.replicas.failed(replica, &reason, Evicted::TimedOut);
        }
    }

    /// Waits until no other call sends pieces to a replica.
    async fn turn_for_pieces<'r>(
        &self,
        replica: &'r Replica,
        until: Instant,
    ) -> Result<MutexGuard<'r, ()>, Failed> {
        let turn = timeout_at(until, replica.pieces.lock()).await;
        turn.map_err(|_| Failed {
            reason: format!("{}: another call sends it buckets in pieces", replica.url()),
            fault: Fault::Moment,
            violations: Vec::new(),
            retry_after: None,
        })
    }

    /// Asks one replica; again when it turns out to lack buckets.
    async fn ask(&self, replica: &Replica, until: Instant) -> Result<Answered<Q::Answer>, Failed> {
        let mut corrections = 0;
        let mut pieces = Pieces::new(self.piece_bytes);
        let mut turn = None;
        loop {
            let everything = corrections == CORRECTIONS;
            let (number, mut request) = self.builder.build(replica, everything);
            let piece = if everything {
                None
            } else {
                pieces.cut(&mut request)
            };
            if let (Some(brought), None) = (&piece, &turn) {
                turn = Some(self.turn_for_pieces(replica, until).await?);
                if brought.iter().any(|digest| replica.knows(digest)) {
                    // Another call has sent it meanwhile.
                    continue;
                }
            }
            let (size, digests) = (request.encoded_len(), digests(request.snapshot()));
            let started = Instant::now();
            let status = match call(replica, request, size, until).await {
                Ok(answer) => {
                    Q::answered(self.observer, started.elapsed(), size, &answer);
                    self.observer.call(Q::METHOD, Fate::Answered);
                    self.replicas.answered(replica);
                    replica.learn(digests.into_iter().flatten());
                    return Ok(Answered {
                        answer,
                        request: number,
                    });
                }
                Err(status) => status,
            };
            Q::failed(self.observer, started.elapsed(), status.code());
            // It may lose more while we send, and what it lacks may be believed to be there again by the answer to another
            // workload: in the end it gets everything, whatever is believed.
            if status.code() != Code::FailedPrecondition || everything {
                let of = (self.replicas, self.observer);
                let failed = note_failure(of, self.uid, replica, Q::METHOD, &status);
                return Err(if everything {
                    pieces.explain(failed, size)
                } else {
                    failed
                });
            }
            self.observer.call(Q::METHOD, Fate::LacksBuckets);
            let Some(missing) = missing(&status) else {
                corrections = CORRECTIONS;
                continue;
            };
            let left = missing.node_bucket_indices.len() + missing.pod_bucket_indices.len();
            corrections = match &piece {
                None => corrections + 1,
                Some(brought) if pieces.are_kept(brought.len(), left) => corrections,
                Some(_) => CORRECTIONS,
            };
            replica.learn(piece.into_iter().flatten());
            replica.forget(&missing, &digests);
        }
    }
}

async fn call<Q: Question>(
    replica: &Replica,
    request: Q,
    size: usize,
    until: Instant,
) -> Result<Q::Answer, Status> {
    let call = ClientCall::new(Q::METHOD.full_name(), replica.url());
    call.count("nodewise.request.bytes", size);
    let answer = call.run(timed(request, until), async |request| {
        bounded(until, Q::ask(replica.client(), request)).await
    });
    let answer = Q::read(answer.await?)?;
    Q::describe(&call, &answer);
    Ok(answer)
}

/// A request that tells its deadline.
pub(super) fn timed<T>(message: T, until: Instant) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    request
}

/// The digests of a request's node and pod buckets.
fn digests(snapshot: Option<&v1::Snapshot>) -> [Vec<Digest>; 2] {
    let read = |buckets: &[v1::Bucket]| {
        buckets
            .iter()
            .map(|bucket| bucket.digest.as_ref().try_into().unwrap_or_default())
            .collect()
    };
    [
        snapshot
            .map(|snapshot| read(&snapshot.node_buckets))
            .unwrap_or_default(),
        snapshot
            .map(|snapshot| read(&snapshot.pod_buckets))
            .unwrap_or_default(),
    ]
}

/// The detail of FAILED_PRECONDITION that names buckets.
fn missing(status: &Status) -> Option<v1::MissingBuckets> {
    let status = tonic_types::pb::Status::decode(status.details()).ok()?;
    let detail = status
        .details
        .iter()
        .find(|any| any.type_url.ends_with("nodewise.v1.MissingBuckets"))?;
    v1::MissingBuckets::decode(detail.value.as_slice()).ok()
}
