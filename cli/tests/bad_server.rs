//! Tests `--server` with services that are saturated, hang, are down, or are other servers.

mod common;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use common::{NOW, Ran, command, data};
use nodewise_proto::v1::{
    self,
    reconcile_service_server::{ReconcileService, ReconcileServiceServer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tonic::{
    Code, Request, Response, Status, Streaming,
    service::Routes,
    transport::{Server, server::TcpIncoming},
};
use tonic_types::{ErrorDetails, StatusExt as _};

/// A service that returns prepared errors first, and then real responses.
#[derive(Clone)]
struct Scripted {
    refusals: Arc<Mutex<VecDeque<Status>>>,
    /// The number of inline buckets in each request.
    inline: Arc<Mutex<Vec<usize>>>,
    /// The responses to `Simulate`.
    played: Vec<v1::SimulateResponse>,
    engine: Arc<nodewise_server::Engine>,
}

impl Scripted {
    fn new(refusals: impl IntoIterator<Item = Status>) -> Self {
        Self {
            refusals: Arc::new(Mutex::new(refusals.into_iter().collect())),
            inline: Arc::default(),
            played: Vec::new(),
            engine: Arc::new(nodewise_server::Engine::new(
                nodewise_server::Limits::default(),
                nodewise_server::ByteSize::mib(1),
            )),
        }
    }

    fn left(&self) -> usize {
        self.refusals.lock().unwrap().len()
    }

    fn next(&self, snapshot: Option<&v1::Snapshot>) -> Result<(), Status> {
        let snapshot = snapshot.expect("a snapshot");
        let buckets = snapshot.node_buckets.iter().chain(&snapshot.pod_buckets);
        let inline = buckets.filter(|bucket| bucket.data.is_some()).count();
        self.inline.lock().unwrap().push(inline);
        let refusal = self.refusals.lock().unwrap().pop_front();
        refusal.map_or(Ok(()), Err)
    }
}

#[tonic::async_trait]
impl ReconcileService for Scripted {
    type PlanStreamStream = futures::stream::Empty<Result<v1::PlanStreamResponse, Status>>;

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Result<Response<v1::PlanResponse>, Status> {
        self.next(request.get_ref().snapshot.as_ref())?;
        let answer = self.engine.plan(request.into_inner(), &nodewise_server::never)?;
        Ok(Response::new(answer))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        self.next(request.get_ref().snapshot.as_ref())?;
        let answer = self
            .engine
            .explain(request.into_inner(), &nodewise_server::never)?;
        Ok(Response::new(answer))
    }

    async fn plan_stream(
        &self,
        _: Request<Streaming<v1::PlanStreamRequest>>,
    ) -> Result<Response<Self::PlanStreamStream>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn evaluate_nodes(
        &self,
        _: Request<v1::EvaluateNodesRequest>,
    ) -> Result<Response<v1::EvaluateNodesResponse>, Status> {
        Err(Status::unimplemented("as a server of an older version"))
    }

    async fn report(&self, _: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    async fn get_capabilities(
        &self,
        _: Request<v1::GetCapabilitiesRequest>,
    ) -> Result<Response<v1::GetCapabilitiesResponse>, Status> {
        Err(Status::unimplemented("not asked here"))
    }

    type SimulateStream = futures::stream::Iter<std::vec::IntoIter<Result<v1::SimulateResponse, Status>>>;

    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<Self::SimulateStream>, Status> {
        let responses: Vec<_> = self.played.iter().cloned().map(Ok).collect();
        Ok(Response::new(futures::stream::iter(responses)))
    }
}

/// Serves gRPC on a free port until the test's runtime ends.
async fn serve(routes: Routes) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = Server::builder().add_routes(routes);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    url
}

async fn serve_scripted(service: &Scripted) -> String {
    serve(Routes::new(ReconcileServiceServer::new(service.clone()))).await
}

/// Runs a command with new.json while the runtime keeps serving.
async fn run(command_line: &[&str], env: &[(&str, &str)]) -> Ran {
    let new = data("new.json");
    let args = [command_line, &["-f", &new]].concat();
    let mut command = command(&args);
    command.envs(env.iter().copied());
    tokio::task::spawn_blocking(move || command.output().expect("the binary starts").into())
        .await
        .unwrap()
}

#[track_caller]
fn refused(ran: &Ran, expected: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    assert_eq!(ran.stderr, format!("error: {expected}\n"));
}

/// Asserts the error of a service that did not answer within the timeout: its URL and its last message.
#[track_caller]
fn unanswered(ran: &Ran, url: &str, said: &str, timeout: &str) {
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{ran:?}");
    let begins = format!(
        "error: DaemonSet monitoring/agent: no replica of the planning service answered: {url}: {said}"
    );
    let ends = format!(" (--server says where to ask, and --server-timeout for how long: {timeout})\n");
    let is_told = ran.stderr.starts_with(&begins) && ran.stderr.ends_with(&ends);
    assert!(is_told && ran.stderr.lines().count() == 1, "{ran:?}");
}

fn saturated(retry_after: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(retry_after));
    Status::with_error_details(Code::ResourceExhausted, "every place is taken", details)
}

const SOON: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_never_answers() {
    // The kernel accepts connections into the backlog, but they are never served.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for command in [&["plan"][..], &["explain", "daemonset", "agent"]] {
        let ran = run(
            &[command, &["--server", &url, "--server-timeout", "300ms"]].concat(),
            &[],
        )
        .await;
        unanswered(&ran, &url, "DeadlineExceeded: no answer within ", "300ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saturated_service_is_asked_again_after_its_retry_delay() {
    let local = run(&["plan", "--now", NOW], &[]).await.ok();
    let delay = Duration::from_millis(200);
    let service = Scripted::new([saturated(delay)]);
    let url = serve_scripted(&service).await;
    let started = Instant::now();
    let ran = run(&["plan", "--now", NOW, "--server", &url], &[]).await;
    assert_eq!(ran.ok(), local);
    assert!(started.elapsed() >= delay, "{:?}", started.elapsed());

    let explain = ["explain", "daemonset", "agent", "--server", &url];
    service.refusals.lock().unwrap().push_back(saturated(SOON));
    run(&explain, &[]).await.ok();
    assert_eq!(service.left(), 0);
}

/// There is one retry, only for saturation, and only if the timeout allows it.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_retried_at_most_once() {
    let too_large = "the request is too large";
    let service = Scripted::new(vec![Status::resource_exhausted(too_large); 2]);
    let url = serve_scripted(&service).await;
    let ran = run(&["plan", "--server", &url], &[]).await;
    refused(
        &ran,
        &format!(
            "DaemonSet monitoring/agent: the planning service refused the request: {url}: ResourceExhausted: {too_large}"
        ),
    );
    assert_eq!(service.left(), 1, "{too_large}");
    for (delay, timeout, left) in [(SOON, "60s", 1), (Duration::from_hours(1), "1s", 2)] {
        let service = Scripted::new(vec![saturated(delay); 3]);
        let url = serve_scripted(&service).await;
        let ran = run(&["plan", "--server", &url, "--server-timeout", timeout], &[]).await;
        unanswered(&ran, &url, "ResourceExhausted: every place is taken", timeout);
        assert_eq!(service.left(), left, "after {delay:?}");
    }
}

/// Buckets that do not change between two requests are sent by digest the second time.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_are_sent_once_for_two_requests() {
    let service = Scripted::new([]);
    let url = serve_scripted(&service).await;
    let local = run(&["explain", "daemonset", "agent", "--now", NOW], &[])
        .await
        .ok();
    let asked = ["explain", "daemonset", "agent", "--now", NOW, "--server", &url];
    assert_eq!(run(&asked, &[]).await.ok(), local);
    let inline = service.inline.lock().unwrap().clone();
    assert!(matches!(inline[..], [first, 0] if first > 0), "{inline:?}");
}

/// An HTTP/1 server that answers the preface of HTTP/2 with an error, as many web servers do.
async fn http1_that_answers_anything() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            // An earlier answer could end the connection before the client has sent its request, which then fails for that.
            let _ = read_request_headers(&mut connection).await;
            let answer = b"HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n";
            let _ = connection.write_all(answer).await;
            // Keep the connection open until the client has read the response and closes it.
            let _ = connection.read_to_end(&mut Vec::new()).await;
        }
    });
    url
}

/// Reads the preface of an HTTP/2 connection, and frames until the first HEADERS frame.
async fn read_request_headers(connection: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    const HEADERS: u8 = 1;
    let mut preface = [0; 24];
    connection.read_exact(&mut preface).await?;
    loop {
        let mut header = [0; 9];
        connection.read_exact(&mut header).await?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length as usize];
        connection.read_exact(&mut payload).await?;
        if header[3] == HEADERS {
            return Ok(());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_are_recognised() {
    let http2 = |status| {
        let answer = move || async move { (status, "<html>Not for you</html>") };
        serve(Routes::from(axum::Router::new().fallback(answer)))
    };
    for url in [
        serve(Routes::default()).await,
        http2(axum::http::StatusCode::OK).await,
        http2(axum::http::StatusCode::NOT_FOUND).await,
        http2(axum::http::StatusCode::SERVICE_UNAVAILABLE).await,
        http1_that_answers_anything().await,
    ] {
        let ran = run(&["plan", "--server", &url], &[]).await;
        unanswered(&ran, &url, "", "60s");
        let told = "; what listens there does not answer as a nodewise-server of this version: check the address and the port";
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
}

/// The server closes the connection before it has read the request. Its response may be lost, so the error need not say that it is
/// another server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_http1_that_closes_the_connection_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, axum::Router::new()).into_future());
    let ran = run(&["plan", "--server", &url], &[]).await;
    unanswered(&ran, &url, "", "60s");
}

/// The variable is the same as the executor's, and may name several replicas. One that can be reached answers.
#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_the_service_and_the_profile() {
    let local = run(&["plan", "--now", NOW], &[]).await.ok();
    let url = serve_scripted(&Scripted::new([])).await;
    // Bound but not listening, so that no other process gets the port.
    let away = tokio::net::TcpSocket::new_v4().unwrap();
    away.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let away_url = format!("http://{}", away.local_addr().unwrap());
    let servers = format!("{away_url},{url}");
    let ran = run(&["plan", "--now", NOW], &[("NODEWISE_SERVER", &servers)]).await;
    assert_eq!(ran.ok(), local);
    let service = Scripted::new(vec![Status::unavailable("asked"); 2]);
    let url = serve_scripted(&service).await;
    let ran = run(&["plan"], &[("NODEWISE_SERVER", &url)]).await;
    unanswered(&ran, &url, "Unavailable: asked", "60s");
    assert_eq!(service.left(), 0);

    let json = ["plan", "--now", NOW, "--output", "json"];
    let by_flag = run(&[&json[..], &["--profile", "upstream-strict"]].concat(), &[]).await;
    let by_variable = run(&json, &[("NODEWISE_PROFILE", "upstream-strict")]).await;
    let by_flag = by_flag.ok();
    assert_eq!(by_variable.ok(), by_flag);
    assert_ne!(run(&json, &[]).await.ok(), by_flag);
}

/// The error names the flag, not a file.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_the_service_refuses() {
    let details = ErrorDetails::with_bad_request_violation("snapshot.now.seconds", "is in the past");
    let service = Scripted::new([Status::with_error_details(
        Code::InvalidArgument,
        "wrong",
        details,
    )]);
    let url = serve_scripted(&service).await;
    let ran = run(&["plan", "--now", NOW, "--server", &url], &[]).await;
    refused(&ran, "--now: is in the past (DaemonSet monitoring/agent)");
}

fn seconds(seconds: i64) -> nodewise_proto::Duration {
    nodewise_proto::Duration { seconds, nanos: 0 }
}

/// A step of a play with some changes.
fn step(at: i64, changes: usize, continues: bool) -> v1::SimulateResponse {
    let step = v1::SimulationStep {
        at: Some(seconds(at)),
        changes: vec![v1::SimulationChange::default(); changes],
        counts: Some(v1::SimulationCounts {
            desired: 3,
            ..v1::SimulationCounts::default()
        }),
        continues,
        ..v1::SimulationStep::default()
    };
    v1::SimulateResponse {
        content: Some(v1::simulate_response::Content::Step(step)),
    }
}

fn end(took: i64) -> v1::SimulateResponse {
    let end = v1::SimulationEnd {
        result: v1::simulation_end::Result::Done.into(),
        took: Some(seconds(took)),
        ..v1::SimulationEnd::default()
    };
    v1::SimulateResponse {
        content: Some(v1::simulate_response::Content::End(end)),
    }
}

/// A play that cannot be, or that is longer than asked for, is an error: no panic, and no memory without bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_play_that_was_not_asked_for() {
    for (played, expected) in [
        (vec![step(0, 1, false), step(9, 1, false), end(9)], None),
        (
            vec![step(60, 1, false), step(9, 1, false), end(60)],
            Some("sent a step at 9s after a step at 1m; steps come in the order of their times"),
        ),
        (
            vec![step(0, 1, false), step(60, 1, false), end(9)],
            Some("sent the end at 9s after a step at 1m; steps come in the order of their times"),
        ),
        (
            vec![step(3_601, 1, false), end(3_601)],
            Some("sent a step at 1h0m1s, later than the 1h that it was asked for (--max-time)"),
        ),
        (
            vec![step(0, 1, false), step(1, 1, false), step(2, 1, false), end(2)],
            Some("sent more steps than the 2 that it was asked for (--max-steps)"),
        ),
        (
            vec![step(0, 0, true); 1_000],
            Some("sent a part of a step without changes"),
        ),
        (
            vec![step(0, 1, true), end(0)],
            Some("ended the play within a step"),
        ),
        (vec![step(0, 1, false)], Some("an answer without an end")),
        (
            vec![v1::SimulateResponse { content: None }],
            Some("sent neither a step nor an end"),
        ),
    ] {
        let url = serve_scripted(&Scripted {
            played,
            ..Scripted::new([])
        })
        .await;
        let ran = tokio::task::spawn_blocking(move || -> Ran {
            let (new, bounds) = (data("new.json"), ["--max-time", "1h", "--max-steps", "2"]);
            let args = [
                "simulate", "ds/agent", "--dump", &new, "--now", NOW, "--server", &url,
            ];
            let output = command(&[&args[..], &bounds].concat()).output();
            output.expect("the binary starts").into()
        })
        .await
        .unwrap();
        let Some(expected) = expected else {
            ran.ok();
            continue;
        };
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let is_told = ran.stderr.starts_with("error: ") && ran.stderr.contains(expected);
        assert!(
            is_told && ran.stderr.lines().count() == 1,
            "{expected} in {ran:?}"
        );
    }
}
