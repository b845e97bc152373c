//! The plan client: which replica is asked, for how long, what is sent inline, and what happens when one does not answer.
//!
//! A workload's replica is chosen by rendezvous hashing on its uid, so that the replica that has the workload's buckets is
//! asked again, and a replica that goes moves only its own workloads. Who fails or is about to end is asked last.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use nodewise_proto::v1;
use nodewise_telemetry::{grpc::ClientCall, in_short, with_causes};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

#[cfg(test)]
#[allow(
    dead_code,
    reason = "shared with the executor's tests, which use another part"
)]
#[path = "../../../executor/src/testing/api.rs"]
mod api;
#[cfg(feature = "clap")]
pub mod args;
mod ask;
mod dial;
mod discovery;
mod fault;
mod health;
mod observer;
mod pieces;
mod question;
mod rendezvous;
mod replica;
mod replicas;
mod service;
pub mod target;
mod tls;
mod tries;

pub use dial::connect;
pub use observer::{Evicted, Fate, Hedge, Method, Observer, ReplicaCounts};
pub use service::{Answer, BuildRequest, Digest, PlanService, Refusal, ServiceError};
pub use tls::ClientTls;
pub use tonic_types::FieldViolation;

use ask::{Answered, Asking, Builder, timed};
use discovery::{Discovery, Lookup};
use fault::{Opinions, note_failure};
use question::Question;
use replica::Replica;
use replicas::Replicas;
use target::{Address, Mismatch, Target, TargetError};
use tries::Tries;

/// How the client talks to the service.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Longest wait for a plan, whoever is asked in that time. Each attempt has a share of it, which the service is told:
    /// it abandons a plan whose deadline has passed.
    pub timeout: Duration,
    /// Ask one more replica when a plan has not come after this time; `None`: never.
    pub hedge_after: Option<Duration>,
    /// Largest answer that is taken, in bytes.
    pub max_message_bytes: usize,
    /// Longest request, in bytes, that is sent in one message whatever the replica lacks. The buckets of a longer one are sent in
    /// several calls ([the protocol](https://github.com/nodewise/nodewise/blob/main/docs/protocol.md#buckets)).
    pub max_piece_bytes: usize,
    /// Fewest attempts before a call fails; there is at least one for each replica.
    pub min_attempts: usize,
    /// Pause after every replica was tried once; doubles with each further round, with jitter.
    pub base_pause: Duration,
    /// Longest pause between two attempts, also when a replica asks for a longer one.
    pub max_pause: Duration,
    /// TLS. With it, replicas that are looked up are spoken to over TLS; without it, those at `https://` are, believing the
    /// authorities of the system.
    pub tls: Option<ClientTls>,
    /// Speak plain text also off loopback. Without TLS other servers are refused: whoever stands in between could answer.
    pub plaintext: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            hedge_after: None,
            max_message_bytes: 64 << 20,
            max_piece_bytes: 32 << 20,
            min_attempts: 3,
            base_pause: Duration::from_millis(100),
            max_pause: Duration::from_secs(2),
            tls: None,
            plaintext: false,
        }
    }
}

impl ClientConfig {
    /// Whether this target can be asked.
    fn suits(&self, target: &Target) -> Result<(), ClientError> {
        match (&self.tls, self.plaintext) {
            (Some(_), true) => Err(ClientError::Contradiction),
            // What is written as http is refused where names are made of targets.
            (Some(_), false) => Ok(()),
            (None, plaintext) => target.can_be_asked(plaintext).map_err(|mismatch| match mismatch {
                Mismatch::Unprotected => ClientError::Unprotected(target.clone()),
                Mismatch::Encrypted => ClientError::Encrypted(target.clone()),
            }),
        }
    }
}

/// A server that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not something that replicas can be found by.
    #[error("{text:?} is not the address of a planning service")]
    Target {
        /// What was given.
        text: String,
        /// Why not.
        #[source]
        source: TargetError,
    },
    /// An address that no connection can be made to.
    #[error("connecting to the planning service at {address}")]
    Address {
        /// The address.
        address: Address,
        /// Why not.
        #[source]
        source: tonic::transport::Error,
    },
    /// A name that no certificate can have.
    #[error("{0:?} is no name that a server could prove to have: it must be a DNS name or an IP address")]
    ServerName(String),
    /// Somebody meant it to be encrypted.
    #[error("{0} asks for plain text, but TLS is set up: write https:// instead, or leave TLS out")]
    PlainText(Target),
    /// Others could read along, and answer.
    #[error(
        "{0} is not on loopback, and would be asked in plain text: {advice} where something else protects it",
        advice = advice(.0)
    )]
    Unprotected(Target),
    /// Somebody meant it to be plain text.
    #[error("{0} asks for TLS, but ClientConfig::plaintext means none: leave that out, or write http://")]
    Encrypted(Target),
    /// TLS, and plain text.
    #[error("ClientConfig::tls means TLS, and ClientConfig::plaintext means none: leave one of them out")]
    Contradiction,
    /// Services are a cluster's.
    #[error("{0} is a Service of a cluster, and there is no cluster to ask")]
    NoCluster(Target),
    /// No address at all.
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

/// How long a connection may take, and the answer to a probe.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a call waits for the first address.
const FIRST_ADDRESS: Duration = Duration::from_secs(3);

impl PlanClient {
    /// A client of the replicas at these addresses. Connects when it is first used.
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

    /// A client of the replicas that these targets lead to; Services are looked up in the cluster. What is not an address is
    /// looked up by [`Self::tend`].
    pub fn discovering(
        targets: Vec<Target>,
        cluster: Option<Client>,
        config: ClientConfig,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ClientError> {
        Self::looking_up(targets, cluster, discovery::system_lookup(), config, observer)
    }

    fn looking_up(
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
        targets.iter().try_for_each(|target| config.suits(target))?;
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

    /// Why the service cannot be reached, if so, or that it was not tried yet.
    pub fn health(&self) -> Result<(), String> {
        self.replicas.health()
    }

    /// Follows where the replicas are and how they stand, so that [`Self::health`] is true also while there is nothing to
    /// plan, and those that failed come back before they are needed. Never ends.
    pub async fn tend(&self) {
        tokio::join!(
            self.discovery.follow(&self.replicas),
            health::look_after(&self.replicas)
        );
    }

    /// Asks why a workload runs, or does not run, on nodes. As for [`PlanService::plan`] the request is built anew for each replica.
    pub async fn explain(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_, v1::ExplainRequest>,
    ) -> Result<v1::ExplainResponse, ServiceError> {
        Ok(self.ask(uid, build).await?.answer)
    }

    /// Asks replicas in turn until one answers.
    async fn ask<Q: Question>(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_, Q>,
    ) -> Result<Answered<Q::Answer>, ServiceError> {
        let builder = Builder::new(build);
        let asking = Asking {
            uid,
            replicas: &self.replicas,
            observer: &*self.observer,
            builder: &builder,
            piece_bytes: self.config.max_piece_bytes,
        };
        let (mut tries, mut opinions) = (Tries::new(&self.config), Opinions::new(&self.replicas));
        loop {
            let order = self.order(uid, &tries).await;
            let Some(turn) = tries.turn(&order) else { break };
            let taken = Box::pin(asking.take_turn(&turn, self.config.hedge_after)).await;
            for (replica, failed) in taken.failed {
                opinions.failed(replica, failed);
            }
            if let Some((answer, by)) = taken.answer {
                opinions.answered(by);
                if !self.replicas.is_home(uid, by) {
                    self.observer.planned_elsewhere();
                }
                return Ok(answer);
            }
            opinions.so_far(order.len())?;
            if let Some(spare) = turn.spare.as_ref().filter(|_| taken.hedged) {
                tries.also(spare);
            }
            let Some(pause) = tries.pause(&order, opinions.retry_after()) else {
                break;
            };
            tokio::time::sleep(pause).await;
        }
        Err(self.unreachable(opinions))
    }

    /// The replicas in the order in which a workload asks them. Waits a little for the first.
    async fn order(&self, uid: &str, tries: &Tries<'_>) -> Vec<Arc<Replica>> {
        let until = tries.deadline().min(Instant::now() + FIRST_ADDRESS);
        self.replicas.order(uid, until).await
    }

    /// Nobody answered, or nobody was asked.
    fn unreachable(&self, opinions: Opinions<'_>) -> ServiceError {
        let nobody = || self.health().err().unwrap_or_default();
        ServiceError::Unreachable(opinions.reason().unwrap_or_else(nobody))
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
        // Once each: a report that is not delivered rides on the next plan.
        let config = ClientConfig {
            min_attempts: 1,
            ..self.config.clone()
        };
        let (mut tries, mut opinions) = (Tries::new(&config), Opinions::new(&self.replicas));
        let order = self.order(&uid, &tries).await;
        while let Some(turn) = tries.turn(&order) {
            let (replica, until) = (&*turn.replica, turn.until);
            let call = ClientCall::new(Method::Report.full_name(), replica.url());
            call.count("nodewise.outcomes", report.outcomes.len());
            let answer = call.run(timed(report.clone(), until), async |request| {
                bounded(until, replica.client().report(request)).await
            });
            match answer.await {
                Ok(response) => {
                    self.observer.call(Method::Report, Fate::Answered);
                    self.replicas.answered(replica);
                    opinions.answered(&turn.replica);
                    return Ok(response);
                }
                Err(status) => {
                    let of = (&self.replicas, &*self.observer);
                    let failed = note_failure(of, &uid, replica, Method::Report, &status);
                    opinions.failed(&turn.replica, failed);
                    opinions.so_far(order.len())?;
                }
            }
        }
        Err(self.unreachable(opinions))
    }
}

/// Holds a call to its deadline also when the connection hangs before the deadline could be sent.
async fn bounded<T>(
    until: Instant,
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, Status> {
    let began = Instant::now();
    let answer = match timeout_at(until, call).await {
        // The transport counts as well, and may be the first to notice.
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

/// One sentence on one line: which replica failed a call, how, and what to change if that can be told.
fn failure(replica: &Replica, status: &Status) -> String {
    // Without its causes "tcp connect error" leaves open whether nobody listens or nobody could be found.
    let said = with_causes(status.message().to_owned(), status);
    let mut text = format!("{}: {:?}: {}", replica.url(), status.code(), in_short(&said));
    if is_foreign(status, &said) {
        text.push_str(
            "; what listens there does not answer as a nodewise-server of this version: check the address and the port, and whether it speaks TLS",
        );
    }
    text
}

/// Whether the answer is none that a nodewise-server gives: a gRPC server of something else says UNIMPLEMENTED, and what tonic says of
/// one that speaks no gRPC, or no HTTP/2, is known by its words only. A connection that breaks says nothing of who was there.
fn is_foreign(status: &Status, said: &str) -> bool {
    let is_no_grpc = ["grpc-status header missing", "protocol error: "]
        .iter()
        .any(|words| said.starts_with(words));
    let is_no_http2 = said.contains("frame with invalid size");
    status.code() == Code::Unimplemented || is_no_grpc || is_no_http2
}

#[cfg(test)]
mod tests;
