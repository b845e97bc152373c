//! The plan client: which replica is asked, for how long, what is sent inline, and what happens when one does not answer.
//!
//! A workload's replica is chosen by rendezvous hashing on its uid, so that the replica that has the workload's buckets is
//! asked again, and a replica that goes moves only its own workloads. A replica that fails is put last for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nodewise_proto::v1;
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use nodewise_telemetry::grpc::ClientCall;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::metrics::Metrics;
use crate::service::{BuildRequest, Digest, PlanService, ServiceError};

mod replica;

use replica::Replica;

/// How the client talks to the service.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Deadline of each call. The service abandons a plan whose deadline has passed.
    pub timeout: Duration,
    /// Largest answer that is taken, in bytes.
    pub max_message_bytes: usize,
    /// Fewest attempts before a call fails; there is at least one for each replica.
    pub min_attempts: usize,
    /// Pause after every replica was tried once; doubles with each further round, with jitter.
    pub base_pause: Duration,
    /// Longest pause between two attempts, also when a replica asks for a longer one.
    pub max_pause: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_message_bytes: 64 << 20,
            min_attempts: 3,
            base_pause: Duration::from_millis(100),
            max_pause: Duration::from_secs(2),
        }
    }
}

/// A server address that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not a URL of the form `http://host:port`.
    #[error("{url:?} is not the URL of a planning service (http://host:port)")]
    Url {
        /// What was given.
        url: String,
        /// Why not.
        #[source]
        source: tonic::transport::Error,
    },
    /// No address at all.
    #[error("no planning service is given: at least one URL is needed")]
    NoServer,
}

/// A client of one or more replicas of the service.
#[derive(Debug)]
pub struct PlanClient {
    replicas: Vec<Replica>,
    config: ClientConfig,
    metrics: Metrics,
    reach: Mutex<Reach>,
}

/// Whether the service can be reached, as far as is known.
#[derive(Debug, Default)]
enum Reach {
    #[default]
    Unknown,
    Answers,
    /// The last call failed on every replica, for this reason.
    Away(String),
}

/// How often the service is asked whether it is there.
const PROBE_PERIOD: Duration = Duration::from_secs(5);
/// How long a connection may take, and a probe's answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl PlanClient {
    /// A client of the replicas at these URLs. Connects when it is first used.
    pub fn new(urls: &[String], config: ClientConfig, metrics: Metrics) -> Result<Self, ClientError> {
        if urls.is_empty() {
            return Err(ClientError::NoServer);
        }
        let replicas = urls
            .iter()
            .map(|url| {
                let channel = Endpoint::from_shared(url.clone())
                    .map_err(|source| ClientError::Url {
                        url: url.clone(),
                        source,
                    })?
                    .connect_timeout(CONNECT_TIMEOUT)
                    .tcp_nodelay(true)
                    .http2_keep_alive_interval(Duration::from_secs(10))
                    .keep_alive_timeout(Duration::from_secs(5))
                    .connect_lazy();
                Ok(Replica::new(url, connect(channel, &config)))
            })
            .collect::<Result<_, ClientError>>()?;
        Ok(Self {
            replicas,
            config,
            metrics,
            reach: Mutex::default(),
        })
    }

    /// Why the service cannot be reached, if so, or that it was not tried yet.
    pub fn health(&self) -> Result<(), String> {
        match &*self.reach() {
            Reach::Unknown => Err("the planning service was not asked yet".to_owned()),
            Reach::Answers => Ok(()),
            Reach::Away(reason) => Err(reason.clone()),
        }
    }

    /// Asks the service now and then whether it is there, so that [`Self::health`] is true also while there is nothing to
    /// plan. Never ends.
    pub async fn probe(&self) {
        loop {
            self.probe_once().await;
            tokio::time::sleep(PROBE_PERIOD).await;
        }
    }

    async fn probe_once(&self) {
        let mut last = String::new();
        for replica in &self.replicas {
            let mut request = Request::new(v1::GetCapabilitiesRequest {});
            request.set_timeout(CONNECT_TIMEOUT);
            match bounded(CONNECT_TIMEOUT, replica.client().get_capabilities(request)).await {
                Ok(_) => return self.reached(replica),
                Err(status) => last = failure(replica, &status),
            }
        }
        self.not_reached(&last);
    }

    fn reached(&self, replica: &Replica) {
        replica.answered();
        let before = std::mem::replace(&mut *self.reach(), Reach::Answers);
        if matches!(before, Reach::Away(_)) {
            tracing::info!(url = replica.url(), "the planning service answers again");
        }
    }

    fn not_reached(&self, reason: &str) {
        let reason = format!("no replica of the planning service answers: {reason}");
        let before = std::mem::replace(&mut *self.reach(), Reach::Away(reason.clone()));
        if !matches!(before, Reach::Away(_)) {
            tracing::warn!("{reason}; nothing is written until one does");
        }
    }

    fn reach(&self) -> MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replicas in the order in which a workload asks them: those that failed lately last, else by rendezvous hash.
    fn order(&self, uid: &str) -> Vec<&Replica> {
        let now = Instant::now();
        let mut replicas: Vec<_> = self.replicas.iter().collect();
        replicas.sort_by_cached_key(|replica| (replica.is_evicted(now), rendezvous(uid, replica.url())));
        replicas
    }

    /// How long to wait before the attempt after this failed one.
    fn pause(&self, attempt: usize, status: &Status) -> Duration {
        if let Some(asked) = status.get_details_retry_info().and_then(|info| info.retry_delay) {
            return asked.min(self.config.max_pause);
        }
        let (round, position) = (attempt / self.replicas.len(), attempt % self.replicas.len());
        if position + 1 < self.replicas.len() {
            // Another replica may answer at once.
            return Duration::ZERO;
        }
        let doubled = self.config.base_pause.saturating_mul(1 << round.min(16));
        doubled
            .min(self.config.max_pause)
            .mul_f64(rand::random_range(0.5..1.0))
    }

    fn with_timeout<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.config.timeout);
        request
    }

    /// Asks one replica; a second time when it turns out to lack buckets.
    async fn plan_at(&self, replica: &Replica, build: &mut BuildRequest<'_>) -> Result<v1::Plan, Status> {
        let mut corrections = 0;
        loop {
            let request =
                tracing::debug_span!("snapshot").in_scope(|| build(&|digest| replica.knows(digest)));
            let (size, digests) = (request.encoded_len(), digests(&request));
            let started = Instant::now();
            let call = ClientCall::new("plan", SERVICE_NAME, "Plan", replica.url());
            call.count("nodewise.request.bytes", size);
            let answer = call.run(self.with_timeout(request), async |request| {
                bounded(self.config.timeout, replica.client().plan(request)).await
            });
            match answer.await.and_then(|response| {
                response
                    .plan
                    .ok_or_else(|| Status::internal("an answer without a plan"))
            }) {
                Ok(plan) => {
                    self.metrics.plan_answered(started.elapsed(), size, &plan);
                    describe(&call, &plan);
                    replica.learn(digests.into_iter().flatten());
                    return Ok(plan);
                }
                Err(status) => {
                    self.metrics.plan_failed(started.elapsed(), status.code());
                    // It may lose more while we send: twice is fair, more is a replica whose cache is too small, which
                    // then gets everything.
                    if status.code() != Code::FailedPrecondition || corrections == 3 {
                        return Err(status);
                    }
                    corrections += 1;
                    match missing(&status).filter(|_| corrections < 3) {
                        Some(missing) => replica.forget(&missing, &digests),
                        None => replica.forget_all(),
                    }
                }
            }
        }
    }
}

impl PlanService for PlanClient {
    async fn plan(&self, uid: &str, build: &mut BuildRequest<'_>) -> Result<v1::Plan, ServiceError> {
        let order = self.order(uid);
        let attempts = self.config.min_attempts.max(order.len());
        let mut last = String::new();
        for attempt in 0..attempts {
            let replica = order[attempt % order.len()];
            let status = match self.plan_at(replica, build).await {
                Ok(plan) => {
                    self.reached(replica);
                    return Ok(plan);
                }
                Err(status) => status,
            };
            last = failure(replica, &status);
            if !is_transient(&status) {
                // An answer all the same: the service is there.
                self.reached(replica);
                return Err(ServiceError::Refused(last));
            }
            replica.failed(Instant::now());
            tracing::debug!(attempt, "{last}");
            if attempt + 1 < attempts {
                tokio::time::sleep(self.pause(attempt, &status)).await;
            }
        }
        self.not_reached(&last);
        Err(ServiceError::Unreachable(last))
    }

    async fn report(&self, report: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        let uid = report
            .workload
            .as_ref()
            .map_or("", |workload| &workload.uid)
            .to_owned();
        let mut last = String::new();
        // Once each: a report that is not delivered rides on the next plan.
        for replica in self.order(&uid) {
            let call = ClientCall::new("report", SERVICE_NAME, "Report", replica.url());
            call.count("nodewise.outcomes", report.outcomes.len());
            let answer = call.run(self.with_timeout(report.clone()), async |request| {
                bounded(self.config.timeout, replica.client().report(request)).await
            });
            match answer.await {
                Ok(response) => return Ok(response),
                Err(status) if is_transient(&status) => {
                    replica.failed(Instant::now());
                    last = failure(replica, &status);
                }
                Err(status) => return Err(ServiceError::Refused(failure(replica, &status))),
            }
        }
        Err(ServiceError::Unreachable(last))
    }
}

fn connect(channel: Channel, config: &ClientConfig) -> ReconcileServiceClient<Channel> {
    ReconcileServiceClient::new(channel)
        .max_decoding_message_size(config.max_message_bytes)
        .max_encoding_message_size(usize::MAX)
}

/// Holds a call to its deadline also when the connection hangs before the deadline could be sent.
async fn bounded<T>(
    timeout: Duration,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, Status> {
    match tokio::time::timeout(timeout, call).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {timeout:?}"))),
    }
}

/// Whether the same request may succeed later, or elsewhere.
fn is_transient(status: &Status) -> bool {
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented | Code::PermissionDenied => false,
        // Saturated; without a delay the request itself is too large.
        Code::ResourceExhausted => status.get_details_retry_info().is_some(),
        _ => true,
    }
}

fn failure(replica: &Replica, status: &Status) -> String {
    // Without its causes "tcp connect error" leaves open whether nobody listens or nobody could be found.
    let mut text = format!("{}: {:?}: {}", replica.url(), status.code(), status.message());
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}

/// The weight of a replica for a workload: the replica with the least is asked first.
fn rendezvous(uid: &str, url: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(url)
        .finalize()
        .into()
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

#[cfg(test)]
mod tests;
