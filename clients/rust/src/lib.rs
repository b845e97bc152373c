//! A client of the planning service with one or more replicas.
//!
//! [`PlanClient`] finds the replicas, chooses one for each call, sets deadlines, retries on other replicas, and sends only the
//! buckets that the replica lacks. Rendezvous hashing on the workload's uid chooses the replica, so the calls of a workload go to
//! the replica that has cached its buckets. Replicas that failed or are draining are asked last.
//!
//! The client does not build snapshots and does not apply plans. `nodewise-executor` does both.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use nodewise_client::{ClientConfig, Digest, PlanClient, PlanService as _, Receiver};
//! use nodewise_proto::v1;
//!
//! # async fn example(uid: &str, snapshot: v1::Snapshot) -> Result<(), Box<dyn std::error::Error>> {
//! let servers = ["http://127.0.0.1:7443".to_owned()];
//! let client = Arc::new(PlanClient::new(&servers, ClientConfig::default(), Arc::new(()))?);
//!
//! // Look up names and watch the replicas' health in the background.
//! let background = Arc::clone(&client);
//! tokio::spawn(async move { background.tend().await });
//!
//! // Builds the request for one replica. A bucket that the replica is expected to have goes by its digest alone.
//! let mut build = |receiver: &Receiver<'_>| {
//!     let mut snapshot = snapshot.clone();
//!     for bucket in snapshot.node_buckets.iter_mut().chain(&mut snapshot.pod_buckets) {
//!         if Digest::try_from(&*bucket.digest).is_ok_and(|digest| receiver.has(&digest)) {
//!             bucket.data = None;
//!         }
//!     }
//!     v1::PlanRequest { snapshot: Some(snapshot), ..Default::default() }
//! };
//! let answer = client.plan(uid, &mut build).await?;
//! println!("{}", answer.plan.verdict().as_str_name());
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_telemetry::{grpc::ClientCall, in_short, with_causes};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status, transport::Channel};

#[cfg(feature = "clap")]
pub mod args;
mod attempt;
mod capabilities;
mod dial;
mod discovery;
mod fault;
mod health;
mod needs;
mod observer;
mod pieces;
mod rendezvous;
mod replica;
mod replicas;
mod schedule;
mod service;
mod sharing;
mod simulation;
mod snapshot_request;
pub mod target;
mod tls;

pub use dial::connect;
pub use observer::{Evicted, Fate, Hedge, Method, Observer, ReplicaCounts};
pub use service::{Answer, BuildRequest, Digest, PlanService, Receiver, Refusal, ServiceError};
pub use simulation::Simulation;
pub use tls::ClientTls;
pub use tonic_types::FieldViolation;

use attempt::{Answered, Caller, RequestBuilder, timed};
use discovery::{Discovery, Lookup};
use fault::{CallFailures, note_failure};
use replica::Replica;
use replicas::Replicas;
use schedule::AttemptSchedule;
use snapshot_request::{SnapshotRequest, or_too_old};
use target::{Address, Mismatch, Target, TargetError};

/// The settings of a [`PlanClient`].
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The longest time of a call, over all attempts. Each attempt gets a share of it and sends that as its gRPC deadline, at which
    /// the service stops planning.
    pub timeout: Duration,
    /// Send the request to a second replica if the first has not answered after this time. `None`: never.
    pub hedge_after: Option<Duration>,
    /// The largest response that the client accepts, in bytes.
    pub max_message_bytes: usize,
    /// The largest request, in bytes, that is sent as one message. The buckets of a larger request are sent in several calls ([the
    /// protocol](https://github.com/nodewise/nodewise/blob/main/docs/protocol.md#buckets)).
    pub max_piece_bytes: usize,
    /// Whether requests for a replica that reads shared labels have them ([`Receiver::reads_shared_labels`]). Each replica is asked for
    /// its capabilities before the first plan with nodes then, and again after each probe. If false, no request may have them.
    pub shared_labels: bool,
    /// The number of attempts before a call fails, or the number of replicas if that is larger.
    pub min_attempts: usize,
    /// The pause after every replica was asked once. It doubles with each further round, with jitter.
    pub base_pause: Duration,
    /// The longest pause between two attempts, even if a replica asks for a longer one.
    pub max_pause: Duration,
    /// TLS settings. If set, all replicas are called over TLS, and `http://` targets are errors. If `None`, only `https://` targets
    /// are called over TLS, with the system's certificate authorities.
    pub tls: Option<ClientTls>,
    /// Allow plain text to servers that are not on loopback. Without it such targets are errors, because anyone on the network path
    /// could answer with a plan.
    pub plaintext: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            hedge_after: None,
            max_message_bytes: 64 << 20,
            max_piece_bytes: 32 << 20,
            shared_labels: false,
            min_attempts: 3,
            base_pause: Duration::from_millis(100),
            max_pause: Duration::from_secs(2),
            tls: None,
            plaintext: false,
        }
    }
}

impl ClientConfig {
    /// Checks that these settings allow calls to this target.
    fn check_target(&self, target: &Target) -> Result<(), ClientError> {
        match (&self.tls, self.plaintext) {
            (Some(_), true) => Err(ClientError::Contradiction),
            // `ClientTls::server_name_of` rejects http:// targets.
            (Some(_), false) => Ok(()),
            (None, plaintext) => target
                .check_security(plaintext)
                .map_err(|mismatch| match mismatch {
                    Mismatch::Unprotected => ClientError::Unprotected(target.clone()),
                    Mismatch::Encrypted => ClientError::Encrypted(target.clone()),
                }),
        }
    }
}

/// A target or a setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not a target.
    #[error("{text:?} is not the address of a planning service")]
    Target {
        /// The text.
        text: String,
        /// The cause.
        #[source]
        source: TargetError,
    },
    /// The connection to this address cannot be set up.
    #[error("connecting to the planning service at {address}")]
    Address {
        /// The address.
        address: Address,
        /// The cause.
        #[source]
        source: tonic::transport::Error,
    },
    /// Not a name that a certificate can have.
    #[error("{0:?} is no name that a server could prove to have: it must be a DNS name or an IP address")]
    ServerName(String),
    /// The target is `http://`, but `ClientConfig::tls` is set.
    #[error("{0} asks for plain text, but TLS is set up: write https:// instead, or leave TLS out")]
    PlainText(Target),
    /// The target is not on loopback and would be called in plain text.
    #[error(
        "{0} is not on loopback, and would be asked in plain text: {advice} where something else protects it",
        advice = advice(.0)
    )]
    Unprotected(Target),
    /// The target is `https://`, but `ClientConfig::plaintext` is set.
    #[error("{0} asks for TLS, but ClientConfig::plaintext means none: leave that out, or write http://")]
    Encrypted(Target),
    /// `ClientConfig::tls` and `ClientConfig::plaintext` are both set.
    #[error("ClientConfig::tls means TLS, and ClientConfig::plaintext means none: leave one of them out")]
    Contradiction,
    /// The target is a Service, but there is no client for a cluster.
    #[error("{0} is a Service of a cluster, and there is no cluster to ask")]
    NoCluster(Target),
    /// There is no target.
    #[error("no planning service is given: at least one is needed")]
    NoServer,
}

fn advice(target: &Target) -> &'static str {
    match target {
        Target::Fixed(_) => "write https://, or set ClientConfig::plaintext",
        Target::Dns { .. } | Target::Service(_) => "set ClientConfig::tls, or ClientConfig::plaintext",
    }
}

/// A client of one or more replicas of the service.
#[derive(Debug)]
pub struct PlanClient {
    replicas: Replicas,
    discovery: Discovery,
    config: ClientConfig,
    observer: Arc<dyn Observer>,
}

/// The longest time to connect, and to answer a health probe.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest time that a call waits for the first address.
const FIRST_ADDRESS: Duration = Duration::from_secs(3);

impl PlanClient {
    /// A client of the replicas at these targets: `http://HOST:PORT`, `https://HOST:PORT` or `dns:///HOST:PORT`. For Services use
    /// [`Self::discovering`]. The client connects at the first call.
    pub fn new(
        urls: &[String],
        config: ClientConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ClientError> {
        let read = |text: &String| {
            text.parse().map_err(|source| ClientError::Target {
                text: text.clone(),
                source,
            })
        };
        let targets = urls.iter().map(read).collect::<Result<_, _>>()?;
        Self::discovering(targets, None, config, observer)
    }

    /// A client of the replicas of these targets. [`Self::tend`] resolves DNS names, and Services with the `cluster` client.
    pub fn discovering(
        targets: Vec<Target>,
        cluster: Option<Client>,
        config: ClientConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ClientError> {
        Self::with_lookup(targets, cluster, discovery::system_lookup(), config, observer)
    }

    fn with_lookup(
        targets: Vec<Target>,
        cluster: Option<Client>,
        lookup: Lookup,
        config: ClientConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ClientError> {
        if targets.is_empty() {
            return Err(ClientError::NoServer);
        }
        let service = |target: &&Target| matches!(target, Target::Service(_));
        if let Some(service) = targets.iter().find(service).filter(|_| cluster.is_none()) {
            return Err(ClientError::NoCluster(service.clone()));
        }
        targets
            .iter()
            .try_for_each(|target| config.check_target(target))?;
        let connector = config.tls.as_ref().map(|tls| tls.connector.clone());
        let replicas = Replicas::new(config.max_message_bytes, connector, Arc::clone(&observer));
        let discovery = Discovery::new(targets, cluster, config.tls.as_ref(), lookup)?;
        replicas.replace(&discovery.fixed())?;
        Ok(Self {
            replicas,
            discovery,
            config,
            observer,
        })
    }

    /// Ok if a replica is ready. The error says why none is, or that no call was made yet.
    pub fn health(&self) -> Result<(), String> {
        self.replicas.health()
    }

    /// Resolves the targets, watches the replicas' health, and probes evicted replicas. Spawn it as a task: it never returns.
    /// Without it, DNS names and Services have no addresses.
    pub async fn tend(&self) {
        tokio::join!(
            self.discovery.follow(&self.replicas),
            health::watch_replicas(&self.replicas)
        );
    }

    /// Asks why a workload runs, or does not run, on nodes. `build` is called for each request, as for [`PlanService::plan`].
    pub async fn explain(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_, v1::ExplainRequest>,
    ) -> Result<v1::ExplainResponse, ServiceError> {
        Ok(self.ask(uid, build).await?.answer)
    }

    /// Plays the rollout of a workload to its end. `build` is called for each request, as for [`PlanService::plan`]. Another replica
    /// is asked only while none has sent a step. A service that does not have the method is [`ServiceError::Refused`].
    pub async fn simulate(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_, v1::SimulateRequest>,
    ) -> Result<Simulation, ServiceError> {
        Ok(Simulation::new(self.ask(uid, build).await?.answer))
    }

    /// Asks which DaemonSets would run on nodes that need not exist, and what their pods would request there. Each replica is asked
    /// once. A service that does not have the method is [`ServiceError::Refused`].
    pub async fn evaluate_nodes(
        &self,
        request: v1::EvaluateNodesRequest,
    ) -> Result<v1::EvaluateNodesResponse, ServiceError> {
        let nodes = request.nodes.len();
        let send = |mut replica: ReconcileServiceClient<Channel>, request| async move {
            let answer = replica.evaluate_nodes(request).await;
            answer.map_err(|status| or_too_old(status, Method::EvaluateNodes))
        };
        let attribute = Some(("nodewise.nodes", nodes));
        self.ask_each_once("", Method::EvaluateNodes, request, attribute, send)
            .await
    }

    /// Asks for the version, the limits and the features of a replica. Each replica is asked once.
    pub async fn capabilities(&self) -> Result<v1::GetCapabilitiesResponse, ServiceError> {
        let request = v1::GetCapabilitiesRequest::default();
        self.ask_each_once(
            "",
            Method::GetCapabilities,
            request,
            None,
            |mut replica, request| async move { replica.get_capabilities(request).await },
        )
        .await
    }

    /// Asks each replica once until one answers. `send` makes the call. `attribute` is added to the span of each call.
    async fn ask_each_once<Q: Clone, A, F>(
        &self,
        uid: &str,
        method: Method,
        message: Q,
        attribute: Option<(&'static str, usize)>,
        send: impl Fn(ReconcileServiceClient<Channel>, tonic::Request<Q>) -> F,
    ) -> Result<A, ServiceError>
    where
        F: Future<Output = Result<tonic::Response<A>, Status>>,
    {
        let config = ClientConfig {
            min_attempts: 1,
            ..self.config.clone()
        };
        let (mut schedule, mut failures) = (AttemptSchedule::new(&config), CallFailures::new(&self.replicas));
        let order = self.order(uid, &schedule).await;
        while let Some(attempt) = schedule.next_attempt(&order) {
            let (replica, until) = (&*attempt.replica, attempt.until);
            let call = ClientCall::new(method.full_name(), replica.url());
            if let Some((name, count)) = attribute {
                call.count(name, count);
            }
            let answer = call.run(timed(message.clone(), until), async |request| {
                bounded(until, send(replica.client(), request)).await
            });
            match answer.await {
                Ok(response) => {
                    self.observer.call(method, Fate::Answered);
                    self.replicas.answered(replica);
                    failures.answered(&attempt.replica);
                    return Ok(response);
                }
                Err(status) => {
                    let of = (&self.replicas, &*self.observer);
                    let failed = note_failure(of, uid, replica, method, &status);
                    failures.failed(&attempt.replica, failed);
                    failures.check_retry(order.len())?;
                }
            }
        }
        Err(self.unanswered(failures))
    }

    /// Asks one replica after the other until one answers.
    async fn ask<Q: SnapshotRequest>(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_, Q>,
    ) -> Result<Answered<Q::Answer>, ServiceError> {
        let builder = RequestBuilder::new(build);
        let caller = Caller {
            uid,
            replicas: &self.replicas,
            observer: &*self.observer,
            builder: &builder,
            piece_bytes: self.config.max_piece_bytes,
            shared_labels: self.config.shared_labels && Q::METHOD == Method::Plan,
        };
        let (mut schedule, mut failures) = (
            AttemptSchedule::new(&self.config),
            CallFailures::new(&self.replicas),
        );
        loop {
            let order = self.order(uid, &schedule).await;
            let Some(attempt) = schedule.next_attempt(&order) else {
                break;
            };
            let outcome = Box::pin(caller.run_attempt(&attempt, self.config.hedge_after)).await;
            for (replica, failed) in outcome.failed {
                failures.failed(replica, failed);
            }
            if let Some((answer, by)) = outcome.answer {
                failures.answered(by);
                if !self.replicas.is_home(uid, by) {
                    self.observer.planned_elsewhere();
                }
                return Ok(answer);
            }
            failures.check_retry(order.len())?;
            if let Some(spare) = attempt.spare.as_ref().filter(|_| outcome.hedged) {
                schedule.add_hedge(spare);
            }
            let Some(pause) = schedule.pause(&order, failures.retry_after()) else {
                break;
            };
            tokio::time::sleep(pause).await;
        }
        Err(self.unanswered(failures))
    }

    /// The replicas in the order in which a workload asks them. If there are none, waits for the first one.
    async fn order(&self, uid: &str, schedule: &AttemptSchedule<'_>) -> Vec<Arc<Replica>> {
        let until = schedule.deadline().min(Instant::now() + FIRST_ADDRESS);
        self.replicas.order(uid, until).await
    }

    /// The error if no replica answered or none was asked.
    fn unanswered(&self, failures: CallFailures<'_>) -> ServiceError {
        let health = || ServiceError::Unreachable(self.health().err().unwrap_or_default());
        failures.error().unwrap_or_else(health)
    }
}

impl PlanService for PlanClient {
    async fn plan(&self, uid: &str, build: &mut BuildRequest<'_>) -> Result<Answer, ServiceError> {
        let Answered { answer, request } = self.ask(uid, build).await?;
        Ok(Answer {
            plan: answer,
            request,
        })
    }

    async fn report(&self, report: v1::ReportRequest) -> Result<v1::ReportResponse, ServiceError> {
        let workload = report.workload.as_ref();
        let uid = workload.map_or("", |workload| &workload.uid).to_owned();
        let attribute = ("nodewise.outcomes", report.outcomes.len());
        // A report that is not delivered is sent with the next PlanRequest.
        self.ask_each_once(
            &uid,
            Method::Report,
            report,
            Some(attribute),
            |mut replica, request| async move { replica.report(request).await },
        )
        .await
    }
}

/// Ends a call at its deadline, also if the connection hangs before the request is sent.
async fn bounded<T>(
    until: Instant,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, Status> {
    let began = Instant::now();
    let answer = match timeout_at(until, call).await {
        // tonic has a timer for the same deadline, which may fire first.
        Ok(Err(status)) if has_expired(&status) => None,
        Ok(answer) => Some(answer),
        Err(_) => None,
    };
    match answer {
        Some(answer) => answer.map(tonic::Response::into_inner),
        None => Err(Status::deadline_exceeded(format!(
            "no answer within {:.1?}",
            began.elapsed()
        ))),
    }
}

fn has_expired(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The error of a call in one line: the replica, the code, the message, and advice if another server answered.
fn failure(replica: &Replica, status: &Status) -> String {
    // The causes tell why: "tcp connect error" alone may be a refused connection or an unknown host.
    let message = with_causes(status.message().to_owned(), status);
    let mut text = format!("{}: {:?}: {}", replica.url(), status.code(), in_short(&message));
    if is_other_server(status, &message) {
        text.push_str(
            "; what listens there does not answer as a nodewise-server of this version: check the address and the port, and whether it speaks TLS",
        );
    }
    text
}

/// Whether the status comes from another kind of server. A gRPC server without this service returns UNIMPLEMENTED. Servers without
/// gRPC or HTTP/2 are recognised by tonic's error texts. A broken connection does not count.
fn is_other_server(status: &Status, message: &str) -> bool {
    let is_no_grpc = ["grpc-status header missing", "protocol error: "]
        .iter()
        .any(|words| message.starts_with(words));
    let is_no_http2 = message.contains("frame with invalid size");
    status.code() == Code::Unimplemented || is_no_grpc || is_no_http2
}

#[cfg(test)]
mod tests;
