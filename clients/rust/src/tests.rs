//! Tests the client against scripted replicas, over gRPC on loopback.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
use nodewise_proto::v1::reconcile_service_server::{ReconcileService, ReconcileServiceServer};
use nodewise_proto::workload::ROLLOUT_POLICIES_FEATURE;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpSocket};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Response, Streaming};
use tonic_health::server::HealthReporter;
use tonic_types::{ErrorDetails, StatusExt as _};

use super::replica::ReplicaState;
use super::*;
use crate::service::Digest;

mod evaluate_nodes;
mod explain;
mod faults;
mod hedging;
mod lookup;
mod pieces;
mod plaintext;
mod replica_state;
mod shared_labels;

type Scripted = Box<dyn Fn() -> Result<v1::Plan, Status> + Send>;

/// The scripted behaviour of a replica, and the requests that it received.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a behaviour of its own")]
struct Script {
    /// The next answers. When they are used up, an empty plan.
    answers: VecDeque<Scripted>,
    /// Never answer.
    hang: bool,
    /// Delay every answer by this time.
    slow: Duration,
    /// The number of calls that the client cancelled.
    abandoned: usize,
    /// Fail every report.
    fail_reports: bool,
    /// Kinds that it plans for besides DaemonSet.
    kinds: Vec<String>,
    /// Features that it has.
    features: Vec<String>,
    /// Refuse the question what it is capable of.
    hides_capabilities: bool,
    /// Planning ends with an earlier version, which does not know shared labels, although the features have them.
    is_earlier: bool,
    requests: Vec<v1::PlanRequest>,
    timeouts: Vec<String>,
    reports: usize,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Script>>);

impl Server {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().expect("no panic")
    }

    fn then(&self, answer: impl Fn() -> Result<v1::Plan, Status> + Send + 'static) {
        self.script().answers.push_back(Box::new(answer));
    }

    fn asked(&self) -> usize {
        self.script().requests.len()
    }

    /// As an earlier version, which has cached nothing: a bucket without data is missing.
    fn look_for_buckets(&self) -> Result<(), Status> {
        let script = self.script();
        let request = script.requests.last().expect("it was just received");
        let Some(snapshot) = request.snapshot.as_ref().filter(|_| script.is_earlier) else {
            return Ok(());
        };
        let missing = (0..).zip(&snapshot.node_buckets);
        let missing: Vec<u32> = missing
            .filter(|(_, bucket)| bucket.data.is_none())
            .map(|(index, _)| index)
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(lacking(&missing, &[]))
        }
    }

    /// For each node bucket and pod bucket of the request, whether it was inline.
    fn inline(&self, request: usize) -> [Vec<bool>; 2] {
        let script = self.script();
        let snapshot = script.requests[request].snapshot.as_ref().expect("a snapshot");
        [&snapshot.node_buckets, &snapshot.pod_buckets]
            .map(|buckets| buckets.iter().map(|bucket| bucket.data.is_some()).collect())
    }
}

/// Counts a call that is dropped before it has ended.
struct UnderWay(Option<Server>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            server.script().abandoned += 1;
        }
    }
}

impl Server {
    async fn take_time(&self) {
        let (hang, slow) = {
            let script = self.script();
            (script.hang, script.slow)
        };
        let mut under_way = UnderWay(Some(self.clone()));
        if hang {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(slow).await;
        under_way.0 = None;
    }
}

#[tonic::async_trait]
impl ReconcileService for Server {
    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanResponse>, Status> {
        {
            let mut script = self.script();
            let timeout = request
                .metadata()
                .get("grpc-timeout")
                .and_then(|value| value.to_str().ok());
            script.timeouts.push(timeout.unwrap_or_default().to_owned());
            script.requests.push(request.into_inner());
        }
        self.take_time().await;
        self.look_for_buckets()?;
        let answer = self.script().answers.pop_front();
        let plan = answer.map_or_else(|| Ok(v1::Plan::default()), |answer| answer())?;
        Ok(Response::new(v1::PlanResponse { plan: Some(plan) }))
    }

    type PlanStreamStream = tokio_stream::Empty<Result<v1::PlanStreamResponse, Status>>;

    async fn plan_stream(
        &self,
        _: Request<Streaming<v1::PlanStreamRequest>>,
    ) -> Result<Response<Self::PlanStreamStream>, Status> {
        Err(Status::unimplemented("not part of this script"))
    }

    async fn report(&self, _: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        self.script().reports += 1;
        self.take_time().await;
        if self.script().fail_reports {
            return Err(Status::internal("a defect"));
        }
        Ok(Response::new(v1::ReportResponse::default()))
    }

    async fn get_capabilities(
        &self,
        _: Request<v1::GetCapabilitiesRequest>,
    ) -> Result<Response<v1::GetCapabilitiesResponse>, Status> {
        self.take_time().await;
        let script = self.script();
        if script.hides_capabilities {
            return Err(Status::permission_denied(
                "as a gateway that lets only some methods pass",
            ));
        }
        Ok(Response::new(v1::GetCapabilitiesResponse {
            workload_kinds: [vec!["DaemonSet".to_owned()], script.kinds.clone()].concat(),
            features: script.features.clone(),
            ..Default::default()
        }))
    }

    async fn evaluate_nodes(
        &self,
        request: Request<v1::EvaluateNodesRequest>,
    ) -> Result<Response<v1::EvaluateNodesResponse>, Status> {
        self.take_time().await;
        let nodes = request.into_inner().nodes.len();
        if nodes == 0 {
            return Err(Status::unimplemented("as a server of an older version"));
        }
        Ok(Response::new(v1::EvaluateNodesResponse {
            node_evaluations: vec![0; nodes],
            ..Default::default()
        }))
    }

    // Uses the script for plans.
    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let (
            metadata,
            extensions,
            v1::ExplainRequest {
                snapshot, options, ..
            },
        ) = request.into_parts();
        let asked = v1::PlanRequest {
            snapshot,
            options,
            ..Default::default()
        };
        self.plan(Request::from_parts(metadata, extensions, asked))
            .await?;
        let node = v1::NodeExplanation {
            node_name: "n1".to_owned(),
            ..Default::default()
        };
        Ok(Response::new(v1::ExplainResponse {
            nodes: vec![node],
            workload: None,
        }))
    }

    type SimulateStream = tokio_stream::Empty<Result<v1::SimulateResponse, Status>>;

    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<Self::SimulateStream>, Status> {
        Err(Status::unimplemented("not part of this script"))
    }
}

/// A replica that serves until it is dropped.
struct Serving {
    server: Server,
    url: String,
    health: HealthReporter,
    _stop: DropGuard,
}

impl std::ops::Deref for Serving {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Serving {
    async fn serves(&self, serves: bool) {
        let status = if serves {
            tonic_health::ServingStatus::Serving
        } else {
            tonic_health::ServingStatus::NotServing
        };
        self.health.set_service_status(SERVICE_NAME, status).await;
    }

    fn target(&self) -> Target {
        self.url.parse().expect("a URL")
    }

    fn address(&self) -> Address {
        match self.target() {
            Target::Fixed(address) => address,
            other => panic!("{other} is fixed"),
        }
    }
}

async fn serve_on(listener: TcpListener) -> Serving {
    let (health, health_service) = tonic_health::server::health_reporter();
    let server = Server::default();
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let stop = CancellationToken::new();
    let serving = tonic::transport::Server::builder()
        .add_service(ReconcileServiceServer::new(server.clone()))
        .add_service(health_service)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop.clone().cancelled_owned());
    tokio::spawn(serving);
    let serving = Serving {
        server,
        url,
        health,
        _stop: stop.drop_guard(),
    };
    serving.serves(true).await;
    serving
}

async fn serve() -> Serving {
    serve_on(TcpListener::bind("127.0.0.1:0").await.expect("a free port")).await
}

/// An address without a listener. The port is reserved while the socket is held.
fn dead() -> (String, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    (
        format!("http://{}", socket.local_addr().expect("an address")),
        socket,
    )
}

fn quick() -> ClientConfig {
    ClientConfig {
        timeout: Duration::from_secs(20),
        base_pause: Duration::from_millis(1),
        max_pause: Duration::from_millis(20),
        ..ClientConfig::default()
    }
}

/// A client and the events that it sent to its observer.
struct Watched {
    client: Arc<PlanClient>,
    recorder: Arc<Recorder>,
}

impl Watched {
    fn new(made: impl FnOnce(Arc<dyn Observer>) -> Result<PlanClient, ClientError>) -> Self {
        let recorder = Arc::new(Recorder::default());
        let client = made(recorder.clone()).expect("good targets");
        Self {
            client: Arc::new(client),
            recorder,
        }
    }
}

impl Deref for Watched {
    type Target = Arc<PlanClient>;

    fn deref(&self) -> &Arc<PlanClient> {
        &self.client
    }
}

fn client(urls: &[String], config: ClientConfig) -> Watched {
    Watched::new(|observer| PlanClient::new(urls, config, observer))
}

fn client_of(replicas: &[&Serving], config: ClientConfig) -> Watched {
    let urls: Vec<_> = replicas.iter().map(|replica| replica.url.clone()).collect();
    client(&urls, config)
}

/// Runs `PlanClient::tend` until it is dropped.
fn tended(client: &Arc<PlanClient>) -> AbortOnDropHandle<()> {
    let client = Arc::clone(client);
    AbortOnDropHandle::new(tokio::spawn(async move { client.tend().await }))
}

fn member(client: &PlanClient, replica: &Serving) -> Arc<Replica> {
    let members = client.replicas.members();
    let is = |member: &&Arc<Replica>| *member.address() == replica.address();
    Arc::clone(members.iter().find(is).expect("a replica"))
}

/// Uids of workloads whose first replica is this one.
fn workloads_of(client: &PlanClient, replica: &Serving) -> impl Iterator<Item = String> {
    let home = member(client, replica);
    let uids = (0..).map(|index| format!("uid-{index}"));
    uids.filter(move |uid| client.replicas.is_home(uid, &home))
}

/// The uid of a workload whose first replica is this one.
fn workload_of(client: &PlanClient, replica: &Serving) -> String {
    workloads_of(client, replica).next().expect("endless")
}

fn state_of(client: &PlanClient, replica: &Serving) -> ReplicaState {
    member(client, replica).state()
}

/// Waits until a condition is true; panics after a while.
async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "never happened: {what}");
}

/// Counts the events of a client.
#[derive(Debug, Default)]
struct Recorder(Mutex<BTreeMap<String, usize>>);

impl Recorder {
    fn told(&self) -> BTreeMap<String, usize> {
        self.0.lock().expect("no panic").clone()
    }

    fn count(&self, what: &str, name: &str) {
        *self
            .0
            .lock()
            .expect("no panic")
            .entry(format!("{what} {name}"))
            .or_default() += 1;
    }
}

impl Observer for Recorder {
    fn call(&self, method: Method, outcome: Fate) {
        self.count(method.name(), outcome.name());
    }

    fn replicas(&self, counts: &ReplicaCounts) {
        let mut told = self.0.lock().expect("no panic");
        for (state, count) in [
            ("ready", counts.ready),
            ("evicted", counts.evicted),
            ("draining", counts.draining),
        ] {
            told.insert(format!("replicas {state}"), count);
        }
    }

    fn replica_evicted(&self, cause: Evicted) {
        self.count("evicted", cause.name());
    }

    fn hedged(&self, outcome: Hedge) {
        self.count("hedge", outcome.name());
    }

    fn planned_elsewhere(&self) {
        self.count("planned", "elsewhere");
    }
}

/// The number of events with this name.
fn count(client: &Watched, what: &str) -> usize {
    client.recorder.told().get(what).copied().unwrap_or(0)
}

/// The number of events whose name begins like this.
fn counts(client: &Watched, what: &str) -> usize {
    let told = client.recorder.told();
    let those = told.iter().filter(|(name, _)| name.starts_with(what));
    those.map(|(_, count)| count).sum()
}

fn bucket(content: &'static str, receiver: &Receiver<'_>) -> v1::Bucket {
    let digest: Digest = Sha256::digest(content).into();
    v1::Bucket {
        data: (!receiver.has(&digest)).then(|| Bytes::from_static(content.as_bytes())),
        digest: Bytes::copy_from_slice(&digest),
        ..v1::Bucket::default()
    }
}

/// A request with two node and two pod buckets.
fn request(receiver: &Receiver<'_>) -> v1::PlanRequest {
    v1::PlanRequest {
        snapshot: Some(v1::Snapshot {
            node_buckets: vec![bucket("n0", receiver), bucket("n1", receiver)],
            pod_buckets: vec![bucket("p0", receiver), bucket("p1", receiver)],
            ..Default::default()
        }),
        ..Default::default()
    }
}

async fn plan(client: &PlanClient) -> Result<Answer, ServiceError> {
    client.plan("uid", &mut request).await
}

async fn plan_for(client: &PlanClient, uid: &str) -> Result<Answer, ServiceError> {
    client.plan(uid, &mut request).await
}

fn lacking(nodes: &[u32], pods: &[u32]) -> Status {
    let missing = v1::MissingBuckets {
        node_bucket_indices: nodes.to_vec(),
        pod_bucket_indices: pods.to_vec(),
        digests: Vec::new(),
    };
    let mut details = tonic_types::pb::Status {
        code: Code::FailedPrecondition.into(),
        ..Default::default()
    };
    details.details.resize_with(1, Default::default);
    details.details[0].type_url = "type.googleapis.com/nodewise.v1.MissingBuckets".into();
    details.details[0].value = missing.encode_to_vec();
    Status::with_details(
        Code::FailedPrecondition,
        "buckets are missing",
        details.encode_to_vec().into(),
    )
}

// A bucket that the replica has is sent by digest. A bucket that the replica lacks is sent inline in the same attempt.
#[tokio::test]
async fn buckets_go_by_digest_until_the_replica_lacks_them() {
    let server = serve().await;
    let url = server.url.clone();
    let client = client(&[url], quick());
    plan(&client).await.expect("a plan");
    plan(&client).await.expect("a plan");
    server.then(|| Err(lacking(&[1], &[0])));
    plan(&client).await.expect("a plan");
    assert_eq!(server.inline(0), [vec![true, true], vec![true, true]]);
    assert_eq!(server.inline(1), [vec![false, false], vec![false, false]]);
    assert_eq!(server.inline(2), [vec![false, false], vec![false, false]]);
    assert_eq!(server.inline(3), [vec![false, true], vec![true, false]]);
    assert_eq!(server.asked(), 4);
}

#[tokio::test]
async fn a_replica_that_always_lacks_buckets_gets_everything_inline() {
    let server = serve().await;
    let url = server.url.clone();
    let client = client(&[url], quick());
    plan(&client).await.expect("a plan");
    for _ in 0..3 {
        server.then(|| Err(lacking(&[0], &[])));
    }
    plan(&client).await.expect("a plan");
    assert_eq!(server.inline(4), [vec![true, true], vec![true, true]]);
}

// Before each request a concurrent call marks all buckets as known, although the replica lacks them.
#[tokio::test]
async fn the_last_request_has_everything_inline_whatever_other_calls_learn() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    let replica = member(&client, &server);
    for _ in 0..3 {
        server.then(|| Err(lacking(&[0, 1], &[0, 1])));
    }
    let mut build = |receiver: &Receiver<'_>| {
        replica.learn(["n0", "n1", "p0", "p1"].map(|content| Sha256::digest(content).into()));
        request(receiver)
    };
    client.plan("uid", &mut build).await.expect("a plan");
    assert_eq!(server.asked(), 4);
    assert_eq!(server.inline(2), [vec![false, false], vec![false, false]]);
    assert_eq!(server.inline(3), [vec![true, true], vec![true, true]]);
}

// A replica whose cache is too small still answers, so it is not evicted: other replicas would have cold caches.
#[tokio::test]
async fn a_replica_that_lacks_buckets_in_every_request_is_skipped_but_not_evicted() {
    let (server, other) = (serve().await, serve().await);
    let client = client_of(&[&server, &other], quick());
    let uid = workload_of(&client, &server);
    for _ in 0..4 {
        server.then(|| Err(lacking(&[0], &[])));
    }
    plan_for(&client, &uid).await.expect("a plan");
    assert_eq!((server.asked(), other.asked()), (4, 1));
    assert_eq!(state_of(&client, &server), ReplicaState::Ready);
    assert_eq!(counts(&client, "evicted "), 0);
}

#[tokio::test]
async fn only_temporary_failures_are_retried() {
    let retry = |delay| {
        let details = ErrorDetails::with_retry_info(Some(delay));
        move || {
            Err(Status::with_error_details(
                Code::ResourceExhausted,
                "saturated",
                details.clone(),
            ))
        }
    };
    for (case, answer, attempts) in [
        (
            "draining",
            Box::new(|| Err(Status::unavailable("draining"))) as Scripted,
            2,
        ),
        ("saturated", Box::new(retry(Duration::from_millis(5))), 2),
        (
            "too large",
            Box::new(|| Err(Status::resource_exhausted("too large"))),
            1,
        ),
        (
            "too large for tonic",
            Box::new(|| Err(Status::out_of_range("too large"))),
            1,
        ),
        (
            "wrong",
            Box::new(|| Err(Status::invalid_argument("snapshot.now: is missing"))),
            1,
        ),
    ] {
        let server = serve().await;
        let url = server.url.clone();
        server.script().answers.push_back(answer);
        let client = client(&[url], quick());
        let answer = plan(&client).await;
        assert_eq!(server.asked(), attempts, "{case}");
        match answer {
            Ok(_) => assert_eq!(attempts, 2, "{case}"),
            Err(error) => assert!(matches!(error, ServiceError::Refused(_)), "{case}: {error}"),
        }
        assert_eq!(client.health(), Ok(()), "{case}: it answers, so it is there");
    }
}

// The deadline of an attempt is sent to the service, and it ends the attempt if the replica hangs.
#[tokio::test]
async fn calls_end_at_their_deadline() {
    let server = serve().await;
    server.script().hang = true;
    let config = ClientConfig {
        timeout: Duration::from_millis(900),
        ..quick()
    };
    let client = client_of(&[&server], config);
    let started = std::time::Instant::now();
    let error = plan(&client).await.expect_err("it hangs");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));
    let timeouts = server.script().timeouts.clone();
    let told = |timeout: &String| {
        timeout
            .trim_end_matches('u')
            .parse::<u64>()
            .expect("microseconds")
    };
    assert!(
        !timeouts.is_empty() && told(&timeouts[0]) <= 300_000,
        "{timeouts:?}"
    );
    // The cause may be the workload, until a call for another workload fails as well.
    plan_for(&client, "another").await.expect_err("it hangs");
    let reason = client.health().expect_err("nobody answers");
    assert!(reason.contains("no answer within"), "{reason}");
}

#[tokio::test]
async fn a_report_goes_to_a_replica_that_answers() {
    let server = serve().await;
    let url = server.url.clone();
    let ((before, _reserved), (after, _too)) = (dead(), dead());
    let client = client(&[before, url, after], quick());
    client
        .report(v1::ReportRequest::default())
        .await
        .expect("delivered");
    assert_eq!(server.script().reports, 1);
}

#[tokio::test]
async fn a_replica_that_answers_says_what_it_can_do() {
    let server = serve().await;
    let url = server.url.clone();
    let ((before, _reserved), (after, _too)) = (dead(), dead());
    let client = client(&[before, url, after], quick());
    let capabilities = client.capabilities().await.expect("an answer");
    assert_eq!(capabilities.workload_kinds, ["DaemonSet"]);
    assert_eq!(count(&client, "get_capabilities answered"), 1);
}

// During an upgrade a replica may not know the kind yet.
#[tokio::test]
async fn only_a_replica_that_plans_for_the_kind_is_asked() {
    let (old, new) = (serve().await, serve().await);
    new.script().kinds.push("Deployment".to_owned());
    let ask = async |client: &PlanClient| {
        let mut build = |_: &Receiver<'_>| v1::PlanRequest {
            snapshot: Some(v1::Snapshot {
                workload: Some(v1::Workload {
                    kind: Some(v1::workload::Kind::Deployment(v1::Deployment::default())),
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        client.plan("uid", &mut build).await
    };
    let both = client_of(&[&old, &new], quick());
    for _ in 0..3 {
        ask(&both).await.expect("one of them plans for it");
    }
    assert_eq!((old.script().requests.len(), new.script().requests.len()), (0, 3));
    let alone = client_of(&[&old], quick());
    let Err(ServiceError::Unreachable(reason)) = ask(&alone).await else {
        panic!("it plans for DaemonSets only");
    };
    assert!(
        reason.contains("plans for DaemonSet, and not for Deployment; upgrade it"),
        "{reason}"
    );
    assert_eq!(old.script().requests.len(), 0);
}

// L-44: a replica that does not know policies would ignore them.
#[tokio::test]
async fn only_a_replica_that_knows_policies_is_asked_about_a_workload_that_has_one() {
    let (old, new) = (serve().await, serve().await);
    new.script().features.push(ROLLOUT_POLICIES_FEATURE.to_owned());
    let request = |policies: usize| v1::PlanRequest {
        snapshot: Some(v1::Snapshot {
            workload: Some(v1::Workload {
                kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                    rollout_policies: vec![v1::RolloutPolicy::default(); policies],
                    ..Default::default()
                })),
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let ask = async |client: &PlanClient, policies| {
        let mut build = |_: &Receiver<'_>| request(policies);
        client.plan("uid", &mut build).await
    };
    let both = client_of(&[&old, &new], quick());
    for _ in 0..3 {
        ask(&both, 1).await.expect("one of them knows policies");
    }
    assert_eq!((old.script().requests.len(), new.script().requests.len()), (0, 3));
    let alone = client_of(&[&old], quick());
    let Err(ServiceError::Refused(refusal)) = ask(&alone, 2).await else {
        panic!("it does not know policies");
    };
    assert_eq!(refusal.lacks, Some(ROLLOUT_POLICIES_FEATURE));
    assert!(
        refusal.reason.starts_with(&old.url)
            && refusal.reason.ends_with(
                "its version does not know RolloutPolicies, and the workload has a RolloutPolicy; upgrade it"
            ),
        "{refusal}"
    );
    assert!(!refusal.may_be_of("snapshot.state"), "the state is not the cause");
    assert_eq!(old.script().requests.len(), 0);
    assert!(member(&alone, &old).is_eligible(), "the replica works");
    // The same service plans for a workload without a policy, also after it was found too old.
    ask(&alone, 0).await.expect("every version knows DaemonSets");
    assert_eq!(old.script().requests.len(), 1);
    // Upgraded at the same address.
    old.script().features.push(ROLLOUT_POLICIES_FEATURE.to_owned());
    let replica = member(&alone, &old);
    replica.serves(replica.failures());
    ask(&alone, 1).await.expect("it knows policies now");
}

#[tokio::test]
async fn a_question_for_capabilities_ends_at_its_deadline() {
    let server = serve().await;
    server.script().hang = true;
    let config = ClientConfig {
        timeout: Duration::from_millis(300),
        ..quick()
    };
    let client = client_of(&[&server], config);
    let Err(ServiceError::Unreachable(reason)) = client.capabilities().await else {
        panic!("it hangs");
    };
    assert!(reason.contains("no answer within"), "{reason}");
}

#[tokio::test]
async fn addresses_are_checked() {
    let error = PlanClient::new(&[], quick(), Arc::new(Recorder::default())).expect_err("nobody to ask");
    assert!(matches!(error, ClientError::NoServer));
    let error =
        PlanClient::new(&["not a url".into()], quick(), Arc::new(Recorder::default())).expect_err("no URL");
    assert!(error.to_string().contains("not a url"), "{error}");
    let service = ["kubernetes:///planner.tools:grpc".to_owned()];
    let error = PlanClient::new(&service, quick(), Arc::new(Recorder::default())).expect_err("no cluster");
    assert!(
        error.to_string().contains("kubernetes:///planner.tools:grpc"),
        "{error}"
    );
}
