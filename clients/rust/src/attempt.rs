//! One attempt of a call: sends a request to one replica, and to a second one if the first is slow.
//!
//! If a replica lacks buckets, the attempt repeats the request with those buckets inline. Which replica is asked, and for how long,
//! is decided in `schedule`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::workload::{SHARED_LABELS_FEATURE, kind_of};
use nodewise_telemetry::grpc::ClientCall;
use prost::Message as _;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Request, Status};

use super::bounded;
use super::capabilities::Capabilities;
use super::fault::{Failed, Fault, note_failure};
use super::needs::Needs;
use super::pieces::Pieces;
use super::replica::Replica;
use super::replicas::Replicas;
use super::schedule::Attempt;
use super::sharing::Sharing;
use crate::observer::{Evicted, Fate, Hedge, Method, Observer};
use crate::service::{BuildRequest, Digest, Receiver};
use crate::snapshot_request::SnapshotRequest;

/// The number of times that a replica may answer "missing buckets" in one attempt. After that the request has all buckets inline.
const CORRECTIONS: usize = 3;

/// Builds the requests of one call, and numbers them from 0.
pub(super) struct RequestBuilder<'a, 'b, Q>(Mutex<(usize, &'a mut BuildRequest<'b, Q>)>);

impl<'a, 'b, Q> RequestBuilder<'a, 'b, Q> {
    pub(super) fn new(build: &'a mut BuildRequest<'b, Q>) -> Self {
        Self(Mutex::new((0, build)))
    }

    /// Builds a request for this replica and returns its number. With `everything` all buckets are inline; otherwise only those
    /// that the replica is not expected to have. With `shared_labels` nodes may share labels.
    fn build(&self, replica: &Replica, everything: bool, shared_labels: bool) -> (usize, Q) {
        let mut builder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = builder.0;
        builder.0 += 1;
        let has = |digest: &Digest| !everything && replica.knows(digest);
        let receiver = Receiver::new(&has).reading_shared_labels(shared_labels);
        let span = tracing::debug_span!("snapshot");
        (number, span.in_scope(|| builder.1(&receiver)))
    }
}

/// The parts of one call that all its attempts share.
pub(super) struct Caller<'a, 'b, 'c, Q> {
    /// The uid of the workload.
    pub(super) uid: &'a str,
    pub(super) replicas: &'a Replicas,
    pub(super) observer: &'a dyn Observer,
    pub(super) builder: &'a RequestBuilder<'b, 'c, Q>,
    /// The largest request in bytes that is sent as one message.
    pub(super) piece_bytes: usize,
    /// Whether requests may have shared labels, if the replica reads them.
    pub(super) shared_labels: bool,
}

/// A response, and the number of the request that it answers.
#[derive(Debug)]
pub(super) struct Answered<A> {
    pub(super) answer: A,
    pub(super) request: usize,
}

/// The results of one attempt.
#[derive(Debug)]
pub(super) struct AttemptOutcome<'t, A> {
    /// The response, and the replica that sent it.
    pub(super) answer: Option<(Answered<A>, &'t Arc<Replica>)>,
    /// The replicas that failed.
    pub(super) failed: Vec<(&'t Arc<Replica>, Failed)>,
    /// Whether the spare replica was asked as well.
    pub(super) hedged: bool,
}

impl<'t, A> AttemptOutcome<'t, A> {
    fn empty() -> Self {
        Self {
            answer: None,
            failed: Vec::new(),
            hedged: false,
        }
    }

    fn with_result(mut self, by: &'t Arc<Replica>, result: Result<Answered<A>, Failed>) -> Self {
        match result {
            Ok(answer) => self.answer = Some((answer, by)),
            Err(failed) => self.failed.push((by, failed)),
        }
        self
    }
}

impl<Q: SnapshotRequest> Caller<'_, '_, '_, Q> {
    /// Asks one replica. If there is no answer after `hedge_after`, the spare replica is asked as well. The first answer wins, and
    /// the other call is cancelled. Asking twice is safe, because these calls change nothing.
    pub(super) async fn run_attempt<'t>(
        &self,
        attempt: &'t Attempt,
        hedge_after: Option<Duration>,
    ) -> AttemptOutcome<'t, Q::Answer> {
        let (asked, until) = (&attempt.replica, attempt.until);
        let outcome = AttemptOutcome::empty();
        let mut first = std::pin::pin!(self.ask(asked, until));
        let (Some(after), Some(spare)) = (hedge_after, &attempt.spare) else {
            return outcome.with_result(asked, first.await);
        };
        if let Ok(result) = tokio::time::timeout(after, &mut first).await {
            return outcome.with_result(asked, result);
        }
        tracing::debug!(slow = %asked.address(), also = %spare.address(), "no answer yet; asking another replica, too");
        let mut second = std::pin::pin!(self.ask(spare, until));
        let (quicker, by, slower, other) = tokio::select! {
            result = &mut first => (result, asked, second, spare),
            result = &mut second => (result, spare, first, asked),
        };
        let waits_on = quicker
            .as_ref()
            .is_err_and(|failed| failed.fault != Fault::Request);
        let mut outcome = outcome.with_result(by, quicker);
        outcome.hedged = true;
        if waits_on {
            outcome = outcome.with_result(other, slower.await);
        } else {
            self.observer.call(Q::METHOD, Fate::Cancelled);
            if outcome.answer.is_some() && Arc::ptr_eq(other, asked) {
                self.overtaken(asked);
            }
        }
        self.observer.hedged(match &outcome.answer {
            None => Hedge::Failed,
            Some((_, by)) if Arc::ptr_eq(by, spare) => Hedge::Won,
            Some(_) => Hedge::Lost,
        });
        outcome
    }

    /// Notes that the spare replica answered before this one. A single case is not a failure. But a cancelled call does not show
    /// whether the replica is slow or hangs, so several in a row evict it.
    fn overtaken(&self, replica: &Replica) {
        if replica.note_overtaken() {
            let reason = format!(
                "{}: other replicas answered first several times in a row",
                replica.url()
            );
            self.replicas.failed(replica, &reason, Evicted::TimedOut);
        }
    }

    /// Waits until no other call sends pieces to this replica. The guard is held while this call sends its own.
    async fn lock_pieces<'r>(
        &self,
        replica: &'r Replica,
        until: Instant,
    ) -> Result<MutexGuard<'r, ()>, Failed> {
        let locked = timeout_at(until, replica.pieces.lock()).await;
        locked.map_err(|_| Failed {
            reason: format!("{}: another call sends it buckets in pieces", replica.url()),
            fault: Fault::Temporary,
            violations: Vec::new(),
            retry_after: None,
        })
    }

    /// Checks that the replica knows what the snapshot needs. A replica is asked for its capabilities once after each probe, and not
    /// for what every version knows.
    async fn check_capabilities(
        &self,
        replica: &Replica,
        snapshot: Option<&v1::Snapshot>,
        until: Instant,
    ) -> Result<(), Failed> {
        let needs = Needs::of(snapshot);
        if needs.is_nothing() {
            return Ok(());
        }
        let known = if let Some(known) = replica.capabilities() {
            known
        } else {
            let asked = self.ask_capabilities(replica, until).await;
            asked.map_err(|status| self.note_failure(replica, Method::GetCapabilities, &status))?
        };
        needs.check(&known, replica.url())
    }

    /// Whether nodes of this snapshot may share labels. The replica is asked if that is not known. They may not if something before it
    /// refuses the question, as a gateway that lets only some methods pass. If the replica does not answer, the call has failed.
    async fn may_share_labels(
        &self,
        replica: &Replica,
        snapshot: Option<&v1::Snapshot>,
        until: Instant,
    ) -> Result<bool, Failed> {
        let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.node_buckets.is_empty()) else {
            return Ok(false);
        };
        let started = Instant::now();
        let known = self.ask_capabilities(replica, until).await;
        let is_refused = |status: &Status| {
            matches!(
                status.code(),
                Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated
            )
        };
        if known.as_ref().is_err_and(is_refused) {
            return Ok(false);
        }
        let known = known.map_err(|status| {
            let kind = kind_of(snapshot).unwrap_or_default();
            Q::failed(self.observer, kind, started.elapsed(), status.code());
            self.note_failure(replica, Q::METHOD, &status)
        });
        Ok(known?.has(SHARED_LABELS_FEATURE))
    }

    fn note_failure(&self, replica: &Replica, method: Method, status: &Status) -> Failed {
        note_failure((self.replicas, self.observer), self.uid, replica, method, status)
    }

    async fn ask_capabilities(&self, replica: &Replica, until: Instant) -> Result<Arc<Capabilities>, Status> {
        let method = Method::GetCapabilities;
        let call = ClientCall::new(method.full_name(), replica.url());
        let request = timed(v1::GetCapabilitiesRequest::default(), until);
        let answer = call.run(request, async |request| {
            bounded(until, replica.client().get_capabilities(request)).await
        });
        let known = Arc::new(Capabilities::from(answer.await?));
        self.observer.call(method, Fate::Answered);
        replica.is_capable_of(Arc::clone(&known));
        Ok(known)
    }

    /// Asks one replica, and repeats the request if the replica lacks buckets.
    async fn ask(&self, replica: &Replica, until: Instant) -> Result<Answered<Q::Answer>, Failed> {
        let mut corrections = 0;
        let mut pieces = Pieces::new(self.piece_bytes);
        let mut lock = None;
        // Not known as long as the replica was not asked.
        let mut shared_labels = if self.shared_labels {
            replica.reads_shared_labels()
        } else {
            Some(false)
        };
        loop {
            let everything = corrections == CORRECTIONS;
            let (number, mut request) = self
                .builder
                .build(replica, everything, shared_labels == Some(true));
            if shared_labels.is_none() {
                let snapshot = request.snapshot();
                let may_share = self.may_share_labels(replica, snapshot, until).await?;
                shared_labels = Some(may_share);
                if may_share {
                    // Build it again, with shared labels.
                    continue;
                }
            }
            self.check_capabilities(replica, request.snapshot(), until)
                .await?;
            let piece = if everything {
                None
            } else {
                pieces.cut(&mut request)
            };
            if let (Some(sent), None) = (&piece, &lock) {
                lock = Some(self.lock_pieces(replica, until).await?);
                if sent.iter().any(|digest| replica.knows(digest)) {
                    // Another call has sent this piece while we waited: build the request again.
                    continue;
                }
            }
            let (size, digests) = (request.encoded_len(), digests(request.snapshot()));
            let sharing = Sharing::of(request.snapshot());
            let kind = request.snapshot().and_then(kind_of).unwrap_or_default();
            let started = Instant::now();
            let status = match call(replica, request, size, until).await {
                Ok(answer) => {
                    Q::answered(self.observer, kind, started.elapsed(), size, &answer);
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
            Q::failed(self.observer, kind, started.elapsed(), status.code());
            let missing = missing(&status);
            let lacks_buckets = status.code() == Code::FailedPrecondition;
            if shared_labels == Some(true) && lacks_buckets && sharing.is_unread(missing.as_ref()) {
                // An earlier version answers behind the same address.
                self.observer.call(Q::METHOD, Fate::LacksBuckets);
                replica.forget_capabilities();
                shared_labels = Some(false);
                continue;
            }
            // The replica may evict further buckets while we send, and a concurrent call for another workload may mark buckets as
            // known that this replica lacks. So the last request has everything inline.
            if !lacks_buckets || everything {
                let failed = self.note_failure(replica, Q::METHOD, &status);
                return Err(if everything {
                    pieces.with_advice(failed, size)
                } else {
                    failed
                });
            }
            self.observer.call(Q::METHOD, Fate::LacksBuckets);
            let Some(missing) = missing else {
                corrections = CORRECTIONS;
                continue;
            };
            let left = missing.node_bucket_indices.len() + missing.pod_bucket_indices.len();
            corrections = match &piece {
                None => corrections + 1,
                Some(sent) if pieces.are_cached(sent.len(), left) => corrections,
                Some(_) => CORRECTIONS,
            };
            replica.learn(piece.into_iter().flatten());
            replica.forget(&missing, &digests);
        }
    }
}

async fn call<Q: SnapshotRequest>(
    replica: &Replica,
    request: Q,
    size: usize,
    until: Instant,
) -> Result<Q::Answer, Status> {
    let call = ClientCall::new(Q::METHOD.full_name(), replica.url());
    call.count("nodewise.request.bytes", size);
    let answer = call.run(timed(request, until), async |request| {
        bounded(until, Q::send(replica.client(), request)).await
    });
    let answer = Q::read(answer.await?)?;
    Q::describe(&call, &answer);
    Ok(answer)
}

/// Wraps a message in a request with the `grpc-timeout` header.
pub(super) fn timed<T>(message: T, until: Instant) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    request
}

/// The digests of the node buckets and of the pod buckets. A bucket without a valid digest gets zeros.
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

/// The MissingBuckets detail of a FAILED_PRECONDITION status.
fn missing(status: &Status) -> Option<v1::MissingBuckets> {
    let status = tonic_types::pb::Status::decode(status.details()).ok()?;
    let detail = status
        .details
        .iter()
        .find(|any| any.type_url.ends_with("nodewise.v1.MissingBuckets"))?;
    v1::MissingBuckets::decode(detail.value.as_slice()).ok()
}
