//! The client against scripted replicas over real gRPC on loopback.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::v1::reconcile_service_server::{ReconcileService, ReconcileServiceServer};
use tokio::net::{TcpListener, TcpSocket};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Response, Streaming};
use tonic_types::ErrorDetails;

use super::*;

type Answer = Box<dyn Fn() -> Result<v1::Plan, Status> + Send>;

/// What a replica does and was asked.
#[derive(Default)]
struct Script {
    /// The next answers; when they are used up, NOOP.
    answers: VecDeque<Answer>,
    /// Answer to nothing at all.
    hang: bool,
    /// Say that it is draining when asked what it is.
    down: bool,
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

    /// Which of the request's node and pod buckets came inline.
    fn inline(&self, request: usize) -> [Vec<bool>; 2] {
        let script = self.script();
        let snapshot = script.requests[request].snapshot.as_ref().expect("a snapshot");
        [&snapshot.node_buckets, &snapshot.pod_buckets]
            .map(|buckets| buckets.iter().map(|bucket| bucket.data.is_some()).collect())
    }
}

#[tonic::async_trait]
impl ReconcileService for Server {
    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanResponse>, Status> {
        let hangs = {
            let mut script = self.script();
            let timeout = request
                .metadata()
                .get("grpc-timeout")
                .and_then(|value| value.to_str().ok());
            script.timeouts.push(timeout.unwrap_or_default().to_owned());
            script.requests.push(request.into_inner());
            script.hang
        };
        if hangs {
            std::future::pending::<()>().await;
        }
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
        Ok(Response::new(v1::ReportResponse::default()))
    }

    async fn get_capabilities(
        &self,
        _: Request<v1::GetCapabilitiesRequest>,
    ) -> Result<Response<v1::GetCapabilitiesResponse>, Status> {
        if self.script().hang {
            std::future::pending::<()>().await;
        }
        if self.script().down {
            return Err(Status::unavailable("draining"));
        }
        Ok(Response::new(v1::GetCapabilitiesResponse::default()))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented("not part of this script"))
    }
}

/// Serves until the guard is dropped.
fn serve_on(listener: TcpListener, server: &Server) -> DropGuard {
    let stop = CancellationToken::new();
    let serving = tonic::transport::Server::builder()
        .add_service(ReconcileServiceServer::new(server.clone()))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop.clone().cancelled_owned());
    tokio::spawn(serving);
    stop.drop_guard()
}

async fn serve(server: &Server) -> (String, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (url, serve_on(listener, server))
}

/// An address where nobody listens, reserved as long as the socket is held.
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

fn client(urls: &[String], config: ClientConfig) -> PlanClient {
    PlanClient::new(urls, config, Metrics::new()).expect("good URLs")
}

fn bucket(content: &'static str, known: &dyn Fn(&Digest) -> bool) -> v1::Bucket {
    let digest: Digest = Sha256::digest(content).into();
    v1::Bucket {
        data: (!known(&digest)).then(|| Bytes::from_static(content.as_bytes())),
        digest: Bytes::copy_from_slice(&digest),
    }
}

/// A request with two node and two pod buckets.
fn request(known: &dyn Fn(&Digest) -> bool) -> v1::PlanRequest {
    v1::PlanRequest {
        snapshot: Some(v1::Snapshot {
            node_buckets: vec![bucket("n0", known), bucket("n1", known)],
            pod_buckets: vec![bucket("p0", known), bucket("p1", known)],
            ..Default::default()
        }),
        ..Default::default()
    }
}

async fn plan(client: &PlanClient) -> Result<v1::Plan, ServiceError> {
    client.plan("uid", &mut request).await
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

// Rule 9 of the protocol: what a replica has goes by digest, what it turns out to lack comes inline at once.
#[tokio::test]
async fn buckets_go_by_digest_until_the_replica_lacks_them() {
    let server = Server::default();
    let (url, _guard) = serve(&server).await;
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
async fn a_replica_that_forgets_all_the_time_gets_everything_inline() {
    let server = Server::default();
    let (url, _guard) = serve(&server).await;
    let client = client(&[url], quick());
    plan(&client).await.expect("a plan");
    for _ in 0..3 {
        server.then(|| Err(lacking(&[0], &[])));
    }
    plan(&client).await.expect("a plan");
    assert_eq!(server.inline(4), [vec![true, true], vec![true, true]]);
}

// A replica that is not there costs nothing but a moment; it is asked last until it has answered again.
#[tokio::test]
async fn the_next_replica_answers_for_one_that_is_gone() {
    let server = Server::default();
    let (url, _guard) = serve(&server).await;
    // Whichever comes first for this workload: half of these orders start with the dead one.
    for _ in 0..4 {
        let (dead, _socket) = dead();
        let client = client(&[dead, url.clone()], quick());
        plan(&client).await.expect("a plan");
        let order: Vec<_> = client.order("uid").into_iter().map(Replica::url).collect();
        if client.replicas[0].is_evicted(Instant::now()) {
            assert_eq!(order, [url.as_str(), client.replicas[0].url()], "evicted: last");
        }
        assert_eq!(client.health(), Ok(()));
    }
    assert_eq!(server.asked(), 4);
}

// Fail static: an absent service is told apart from one that refuses, is unhealthy, and recovers by itself.
#[tokio::test]
async fn an_absent_service_is_noticed_and_so_is_its_return() {
    let (dead, _socket) = dead();
    let gone = client(std::slice::from_ref(&dead), quick());
    let reason = gone
        .health()
        .expect_err("not ready before it is known that somebody answers");
    assert!(reason.contains("not asked yet"), "{reason}");
    let error = plan(&gone).await.expect_err("nobody there");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    let reason = gone.health().expect_err("unreachable");
    assert!(reason.contains(&dead), "{reason}");

    let server = Server::default();
    let (url, _guard) = serve(&server).await;
    let client = client(&[url], quick());
    server.script().down = true;
    client.probe_once().await;
    let reason = client.health().expect_err("down");
    assert!(reason.contains("draining"), "{reason}");
    server.script().down = false;
    client.probe_once().await;
    assert_eq!(client.health(), Ok(()));
    plan(&client).await.expect("a plan");
}

#[tokio::test]
async fn only_what_may_pass_is_tried_again() {
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
            Box::new(|| Err(Status::unavailable("draining"))) as Answer,
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
        let server = Server::default();
        let (url, _guard) = serve(&server).await;
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

// The service is told the deadline, and a replica that hangs does not hold up the workload for longer.
#[tokio::test]
async fn calls_are_bounded() {
    let server = Server::default();
    server.script().hang = true;
    let (url, _guard) = serve(&server).await;
    let config = ClientConfig {
        timeout: Duration::from_secs(1),
        min_attempts: 1,
        ..quick()
    };
    let client = client(&[url], config);
    client.probe_once().await;
    let reason = client.health().expect_err("a probe is bounded, too");
    assert!(reason.contains("no replica"), "{reason}");
    let started = std::time::Instant::now();
    let error = plan(&client).await.expect_err("it hangs");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    assert!(started.elapsed() < Duration::from_secs(15));
    let timeouts = server.script().timeouts.clone();
    assert!(
        matches!(&timeouts[..], [told] if !told.is_empty()),
        "{timeouts:?}"
    );
}

#[tokio::test]
async fn a_report_goes_to_whoever_is_there() {
    let server = Server::default();
    let (url, _guard) = serve(&server).await;
    let ((before, _reserved), (after, _too)) = (dead(), dead());
    let client = client(&[before, url, after], quick());
    client
        .report(v1::ReportRequest::default())
        .await
        .expect("delivered");
    assert_eq!(server.script().reports, 1);
}

// Rendezvous hashing: every replica has its share, and one that goes moves only its own workloads.
#[tokio::test]
async fn workloads_stick_to_their_replica() {
    let urls: Vec<String> = (0..5)
        .map(|index| format!("http://replica-{index}:7443"))
        .collect();
    let uids: Vec<String> = (0..500).map(|index| format!("uid-{index}")).collect();
    let first = |client: &PlanClient, uid: &str| client.order(uid)[0].url().to_owned();
    let all = client(&urls, quick());
    let without_last = client(&urls[..4], quick());
    let mut shares = std::collections::BTreeMap::<String, usize>::new();
    for uid in &uids {
        let chosen = first(&all, uid);
        if chosen != urls[4] {
            assert_eq!(first(&without_last, uid), chosen, "{uid} moved without need");
        }
        let order: BTreeSet<_> = all.order(uid).into_iter().map(Replica::url).collect();
        assert_eq!(order.len(), 5, "every replica is a fallback");
        *shares.entry(chosen).or_default() += 1;
    }
    assert!(
        shares.len() == 5 && shares.values().all(|share| (60..=140).contains(share)),
        "{shares:?}"
    );
}

#[test]
fn addresses_are_checked() {
    let error = PlanClient::new(&[], quick(), Metrics::new()).expect_err("nobody to ask");
    assert!(matches!(error, ClientError::NoServer));
    let error = PlanClient::new(&["not a url".into()], quick(), Metrics::new()).expect_err("no URL");
    assert!(error.to_string().contains("not a url"), "{error}");
}
