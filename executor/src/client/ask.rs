//! A plan from one replica, or from the quicker of two.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use nodewise_telemetry::grpc::ClientCall;
use prost::Message as _;
use tokio::time::Instant;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::replica::Replica;
use super::replicas::Replicas;
use super::tries::Turn;
use super::{bounded, failure};
use crate::metrics::{Evicted, Fate, Hedge, Method, Metrics};
use crate::service::{Answer, BuildRequest, Digest};

/// Why a replica did not do as it was asked.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) reason: String,
    /// Whether the same request may succeed later, or elsewhere.
    pub(super) is_transient: bool,
    /// When it asked to come back.
    pub(super) retry_after: Option<Duration>,
}

/// Builds requests for several replicas, and numbers them.
pub(super) struct Builder<'a, 'b>(Mutex<(usize, &'a mut BuildRequest<'b>)>);

impl<'a, 'b> Builder<'a, 'b> {
    pub(super) fn new(build: &'a mut BuildRequest<'b>) -> Self {
        Self(Mutex::new((0, build)))
    }

    /// A request for this replica, and which one it is.
    fn build(&self, replica: &Replica) -> (usize, v1::PlanRequest) {
        let mut builder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = builder.0;
        builder.0 += 1;
        let span = tracing::debug_span!("snapshot");
        (
            number,
            span.in_scope(|| builder.1(&|digest| replica.knows(digest))),
        )
    }
}

/// What asking needs.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a, 'b, 'c> {
    pub(super) replicas: &'a Replicas,
    pub(super) metrics: &'a Metrics,
    pub(super) builder: &'a Builder<'b, 'c>,
}

/// What became of a turn.
#[derive(Debug)]
pub(super) struct Taken<'t> {
    pub(super) result: Result<Answer, Failed>,
    /// Who said so.
    pub(super) by: &'t Replica,
    /// Whether the spare replica was asked, too.
    pub(super) hedged: bool,
}

impl Asking<'_, '_, '_> {
    /// Asks the replica whose turn it is. When `hedge_after` has passed without an answer, a spare one is asked as well; the
    /// first plan is taken, and the other call is cancelled. A plan changes nothing, so that it may be asked for twice.
    pub(super) async fn take_turn(self, turn: &Turn, hedge_after: Option<Duration>) -> Taken<'_> {
        let (by, until) = (&*turn.replica, turn.until);
        let mut first = std::pin::pin!(self.ask(by, until));
        let (Some(after), Some(spare)) = (hedge_after, turn.spare.as_deref()) else {
            let (result, hedged) = (first.await, false);
            return Taken { result, by, hedged };
        };
        if let Ok(result) = tokio::time::timeout(after, &mut first).await {
            let hedged = false;
            return Taken { result, by, hedged };
        }
        tracing::debug!(slow = %by.address(), also = %spare.address(), "no answer yet; asking another replica, too");
        let mut second = std::pin::pin!(self.ask(spare, until));
        let (quicker, by, slower, its) = tokio::select! {
            result = &mut first => (result, by, second, spare),
            result = &mut second => (result, spare, first, by),
        };
        let (result, by) = match quicker {
            Err(failed) if failed.is_transient => (slower.await, its),
            decided => {
                self.metrics.call(Method::Plan, Fate::Cancelled);
                (decided, by)
            }
        };
        self.metrics.hedged(match &result {
            Err(_) => Hedge::Failed,
            Ok(_) if std::ptr::eq(by, spare) => Hedge::Won,
            Ok(_) => Hedge::Lost,
        });
        let hedged = true;
        Taken { result, by, hedged }
    }

    /// Asks one replica; again when it turns out to lack buckets.
    async fn ask(self, replica: &Replica, until: Instant) -> Result<Answer, Failed> {
        let mut corrections = 0;
        loop {
            let (number, request) = self.builder.build(replica);
            let (size, digests) = (request.encoded_len(), digests(&request));
            let started = Instant::now();
            let status = match call(replica, request, size, until).await {
                Ok(plan) => {
                    self.metrics.plan_answered(started.elapsed(), size, &plan);
                    self.metrics.call(Method::Plan, Fate::Answered);
                    self.replicas.answered(replica);
                    replica.learn(digests.into_iter().flatten());
                    return Ok(Answer {
                        plan,
                        request: number,
                    });
                }
                Err(status) => status,
            };
            self.metrics.plan_failed(started.elapsed(), status.code());
            // It may lose more while we send: twice is fair, more is a replica whose cache is too small, which then gets
            // everything.
            if status.code() != Code::FailedPrecondition || corrections == 3 {
                return Err(note_failure(
                    self.replicas,
                    self.metrics,
                    replica,
                    Method::Plan,
                    &status,
                ));
            }
            self.metrics.call(Method::Plan, Fate::LacksBuckets);
            corrections += 1;
            match missing(&status).filter(|_| corrections < 3) {
                Some(missing) => replica.forget(&missing, &digests),
                None => replica.forget_all(),
            }
        }
    }
}

/// Counts a failed call and draws the consequences for the replica.
pub(super) fn note_failure(
    replicas: &Replicas,
    metrics: &Metrics,
    replica: &Replica,
    method: Method,
    status: &Status,
) -> Failed {
    let reason = failure(replica, status);
    let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
    let (fate, is_transient) = match status.code() {
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented | Code::PermissionDenied => {
            (Fate::Refused, false)
        }
        // Saturated; without a delay the request itself is too large.
        Code::ResourceExhausted if retry_after.is_some() => (Fate::Saturated, true),
        Code::ResourceExhausted => (Fate::Refused, false),
        Code::DeadlineExceeded => (Fate::TimedOut, true),
        _ => (Fate::Failed, true),
    };
    metrics.call(method, fate);
    match fate {
        // An answer all the same: it is there. One that has too much to do has not failed, and would not have less to do if
        // all of its workloads went elsewhere with cold caches.
        Fate::Refused | Fate::Saturated => replicas.answered(replica),
        Fate::TimedOut => replicas.failed(replica, &reason, Evicted::TimedOut),
        _ => replicas.failed(replica, &reason, Evicted::Failed),
    }
    Failed {
        reason,
        is_transient,
        retry_after,
    }
}

async fn call(
    replica: &Replica,
    request: v1::PlanRequest,
    size: usize,
    until: Instant,
) -> Result<v1::Plan, Status> {
    let call = ClientCall::new("plan", SERVICE_NAME, "Plan", replica.url());
    call.count("nodewise.request.bytes", size);
    let answer = call.run(timed(request, until), async |request| {
        bounded(until, replica.client().plan(request)).await
    });
    let plan = answer
        .await?
        .plan
        .ok_or_else(|| Status::internal("an answer without a plan"))?;
    describe(&call, &plan);
    Ok(plan)
}

/// A request that tells its deadline.
pub(super) fn timed<T>(message: T, until: Instant) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(until.saturating_duration_since(Instant::now()));
    request
}

/// The digests of a request's node and pod buckets.
fn digests(request: &v1::PlanRequest) -> [Vec<Digest>; 2] {
    let read = |buckets: &[v1::Bucket]| {
        buckets
            .iter()
            .map(|bucket| bucket.digest.as_ref().try_into().unwrap_or_default())
            .collect()
    };
    let snapshot = request.snapshot.as_ref();
    [
        snapshot
            .map(|snapshot| read(&snapshot.node_buckets))
            .unwrap_or_default(),
        snapshot
            .map(|snapshot| read(&snapshot.pod_buckets))
            .unwrap_or_default(),
    ]
}

/// What a trace shows of a plan.
fn describe(call: &ClientCall, plan: &v1::Plan) {
    let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    call.count(
        "nodewise.plan.actions",
        batches.map(|batch| batch.actions.len()).sum(),
    );
    call.tell("nodewise.plan.verdict", plan.verdict().as_str_name());
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
