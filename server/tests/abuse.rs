//! Clients that misuse a server: its limits and timeouts hold, and other clients are still served.

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, select_all},
    stream,
};
use http_body_util::BodyExt as _;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::{ByteSize, Config};
use prost::Message;
use serde_json::json;
use support::{Cluster, Form, LocalClient, Process, Reader, SOON, Server, call, eventually, framed, get};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::{Code, Request, Status, body::Body, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_types::StatusExt as _;

const PLAN: &str = "/nodewise.v1.ReconcileService/Plan";
const EXPLAIN: &str = "/nodewise.v1.ReconcileService/Explain";
const PLAN_STREAM: &str = "/nodewise.v1.ReconcileService/PlanStream";
const GET_CAPABILITIES: &str = "/nodewise.v1.ReconcileService/GetCapabilities";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

fn small() -> v1::PlanRequest {
    Cluster::empty(3).request(1, Form::Inline)
}

async fn plan(channel: Channel) -> Result<v1::PlanResponse, Status> {
    let mut client = ReconcileServiceClient::new(channel);
    Ok(client.plan(small()).await?.into_inner())
}

/// A body of these bytes that never ends.
fn stalled(bytes: Bytes) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    stream::iter([bytes]).chain(stream::pending())
}

/// The status of a call that was answered without a message.
fn status(response: &http::Response<Body>) -> Status {
    Status::from_header_map(response.headers()).expect("the status is among the headers")
}

#[tokio::test]
async fn headers_are_bounded() {
    let server = Server::start(Config::default()).await;
    let channel = server.channel().await;
    let mut request = Request::new(small());
    let long = "x".repeat(20_000).parse().expect("ASCII");
    request.metadata_mut().insert("long", long);
    let mut client = ReconcileServiceClient::new(channel.clone());
    client.plan(request).await.expect_err("too many bytes of headers");
    plan(channel).await.expect("the connection goes on");
}

#[tokio::test]
async fn calls_of_a_connection_are_bounded() {
    let server = Server::start(Config {
        max_calls_per_connection: 2,
        ..Config::default()
    })
    .await;
    let channel = server.channel().await;
    let mut health = HealthClient::new(channel.clone());
    let mut watch = async || {
        let watch = health.watch(HealthCheckRequest::default()).await;
        watch.expect("there is room").into_inner()
    };
    let (first, _second) = (watch().await, watch().await);
    let third = plan(channel);
    tokio::pin!(third);
    let waits = timeout(Duration::from_millis(50), &mut third).await;
    assert!(waits.is_err(), "{waits:?}");
    plan(server.channel().await).await.expect("others have their own");
    drop(first);
    let third = timeout(SOON, third).await.expect("there is room again");
    third.expect("an answer");
}

#[tokio::test]
async fn an_address_may_have_a_quarter_of_the_connections() {
    let server = Server::start(Config {
        max_connections: 8,
        ..Config::default()
    })
    .await;
    let mut noisy = Vec::new();
    while let Ok(channel) = LocalClient(2).channel(server.address).await {
        // Only a call shows that the server has closed the connection.
        if plan(channel.clone()).await.is_err() {
            break;
        }
        noisy.push(channel);
        assert!(noisy.len() < 8, "one address has them all");
    }
    assert_eq!(noisy.len(), 2, "a quarter");
    let quiet = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    plan(quiet).await.expect("another address has its own");
    noisy.pop();
    eventually("the connection has ended, and there may be another", || async {
        plan(LocalClient(2).channel(server.address).await.ok()?)
            .await
            .ok()
    })
    .await;
}

#[tokio::test]
async fn a_connection_without_a_preface_is_closed() {
    let server = Server::start(Config::default()).await;
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut slow = TcpStream::connect(server.address).await.expect("a connection");
        slow.write_all(said).await.expect("the connection is open");
        let mut received = Vec::new();
        // The server sends its settings before it closes the connection.
        let end = timeout(SOON, slow.read_to_end(&mut received)).await;
        let _ = end.expect("the connection is closed");
    }
    plan(server.channel().await).await.expect("the server goes on");
}

// A frame is read into memory as a whole, and a connection needs no call for that.
#[tokio::test]
async fn frames_are_bounded() {
    const FRAME: u32 = 128 << 10;
    /// An empty SETTINGS frame, and a HEADERS frame of this length for the first stream.
    fn frames(headers: u32) -> Vec<u8> {
        let [_, length @ ..] = headers.to_be_bytes();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
            &settings,
            &length,
            &[1, 4, 0, 0, 0, 1],
        ]
        .concat()
    }
    let server = Server::start(Config::default()).await;
    let mut client = TcpStream::connect(server.address).await.expect("a connection");
    client
        .write_all(&frames(FRAME + 1))
        .await
        .expect("the connection is open");
    let mut received = Vec::new();
    let end = timeout(SOON, client.read_to_end(&mut received)).await;
    let _ = end.expect("the connection is closed");
    // SETTINGS_MAX_FRAME_SIZE has the number 5.
    let announced = [&[0, 5][..], &FRAME.to_be_bytes()].concat();
    assert!(
        received.windows(announced.len()).any(|bytes| bytes == announced),
        "{received:?}"
    );
    plan(server.channel().await).await.expect("the server goes on");
}

/// A configuration with a short transfer timeout.
fn short_transfers() -> Config {
    Config {
        transfer_timeout: Duration::from_millis(300),
        ..Config::default()
    }
}

#[tokio::test]
async fn calls_whose_message_stalls_end() {
    let server = Server::start(short_transfers()).await;
    for path in [PLAN, GET_CAPABILITIES] {
        for bytes in [
            Bytes::new(),
            framed(1_000, b"")[..3].to_vec().into(),
            framed(1_000, b"begins"),
        ] {
            let call = call(server.channel().await, path, stalled(bytes));
            let response = timeout(SOON, call).await.expect("given up").expect("an answer");
            let status = status(&response);
            assert_eq!(status.code(), Code::DeadlineExceeded, "{path}: {status}");
        }
    }
}

#[tokio::test]
async fn health_checks_whose_message_stalls_end() {
    let server = Server::start(Config {
        longest_call: Duration::from_millis(100),
        ..short_transfers()
    })
    .await;
    let call = call(server.channel().await, HEALTH, stalled(framed(100, b"begins")));
    let response = timeout(SOON, call).await.expect("given up").expect("an answer");
    let status = status(&response);
    // The code that tonic's own timeout gives.
    assert_eq!(status.code(), Code::Cancelled, "{status}");
}

#[tokio::test]
async fn streams_whose_message_stalls_end() {
    let server = Server::start(short_transfers()).await;
    let begins = call(
        server.channel().await,
        PLAN_STREAM,
        stalled(framed(1_000, b"begins")),
    );
    let response = timeout(SOON, begins).await.expect("a stream").expect("a stream");
    let end = timeout(SOON, response.into_body().collect())
        .await
        .expect("it ends");
    let trailers = end.expect("in order").trailers().cloned().expect("a status");
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");

    // A stream without a message in transit may be idle for longer.
    let question = v1::PlanStreamRequest {
        id: "late".into(),
        request: Some(small()),
    };
    let late = async move {
        tokio::time::sleep(2 * short_transfers().transfer_timeout).await;
        question
    };
    let mut client = server.client().await;
    let answers = client.plan_stream(stream::once(late)).await.expect("a stream");
    let answer = timeout(SOON, answers.into_inner().message())
        .await
        .expect("in time");
    assert_eq!(answer.expect("no error").expect("an answer").id, "late");
}

#[tokio::test]
async fn messages_of_cheap_calls_are_short() {
    let server = Server::start(Config::default()).await;
    for path in [GET_CAPABILITIES, HEALTH] {
        let long = stalled(framed(1 << 20, b"begins"));
        let call = call(server.channel().await, path, long);
        let response = timeout(SOON, call)
            .await
            .expect("refused at once")
            .expect("an answer");
        let status = status(&response);
        assert!(status.message().contains("too large"), "{path}: {status}");
    }
}

#[tokio::test]
async fn a_compressed_message_needs_an_encoding_header() {
    let server = Server::start(Config::default()).await;
    let message = small().encode_to_vec();
    let mut compressed = framed(message.len(), &message).to_vec();
    compressed[0] = 1;
    let call = call(
        server.channel().await,
        PLAN,
        stream::iter([Bytes::from(compressed)]),
    );
    let response = timeout(SOON, call).await.expect("in time").expect("an answer");
    let status = status(&response);
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("grpc-encoding"), "{status}");
}

#[tokio::test]
async fn a_unary_call_with_two_messages_fails() {
    let server = Server::start(Config::default()).await;
    let message = small().encode_to_vec();
    let twice = [framed(message.len(), &message), framed(message.len(), &message)].concat();
    let call = call(server.channel().await, PLAN, stream::iter([Bytes::from(twice)]));
    let response = timeout(SOON, call).await.expect("in time").expect("an answer");
    assert_eq!(status(&response).code(), Code::Internal);
}

/// A body of one complete message.
fn whole(message: &impl Message) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    let bytes = message.encode_to_vec();
    stream::iter([framed(bytes.len(), &bytes)])
}

/// A request whose response has some megabytes.
fn explain_all() -> v1::ExplainRequest {
    v1::ExplainRequest {
        snapshot: Cluster::empty(5_000).request(1, Form::Inline).snapshot,
        ..Default::default()
    }
}

/// A configuration in which an address may have one connection, and soon loses it if it does not read responses.
fn one_connection() -> Config {
    Config {
        max_connections: 4,
        transfer_timeout: Duration::from_secs(3),
        ..Config::default()
    }
}

/// Waits until the connection of an address is closed, so that the address may open another one.
async fn is_cut_off(address: LocalClient, server: &Server) {
    eventually("the connection is cut", || async {
        plan(address.channel(server.address).await.ok()?).await.ok()
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_a_response_is_cut_off() {
    let server = Server::start(one_connection()).await;
    // Of the long response the server has sent what fits into the window, of the short one nothing.
    for (window, path, body) in [
        (64 << 10, EXPLAIN, whole(&explain_all()).left_stream()),
        (0, PLAN, whole(&small()).right_stream()),
    ] {
        let reader = Reader::with_window(window);
        let channel = LocalClient(2)
            .channel_of(server.address, &reader)
            .await
            .expect("a connection");
        let asked = timeout(SOON, call(channel, path, body)).await;
        let response = asked.expect("in time").expect("an answer");
        is_cut_off(LocalClient(2), &server).await;
        let read = timeout(SOON, response.into_body().collect())
            .await
            .expect("it ends");
        read.expect_err("the answer was cut off");
    }
}

#[tokio::test]
async fn a_client_that_reads_a_response_slowly_is_cut_off() {
    let server = Server::start(Config {
        longest_call: Duration::from_secs(8),
        transfer_timeout: Duration::from_secs(2),
        ..one_connection()
    })
    .await;
    let reader = Reader::with_window(16 << 10);
    let channel = LocalClient(2)
        .channel_of(server.address, &reader)
        .await
        .expect("a connection");
    let asked = call(channel, EXPLAIN, whole(&explain_all()));
    let response = timeout(SOON, asked).await.expect("in time").expect("an answer");
    // The client reads each chunk long before its timeout, but all of them would take a minute.
    let mut body = response.into_body();
    let taken = async {
        while let Some(chunk) = body.frame().await {
            chunk?;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok::<_, Status>(())
    };
    let taken = timeout(SOON, taken).await.expect("it ends");
    taken.expect_err("the answer was cut off");
    is_cut_off(LocalClient(2), &server).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_cut_off() {
    let server = Server::start(one_connection()).await;
    let reader = Reader::with_window(1 << 30);
    let channel = LocalClient(2)
        .channel_of(server.address, &reader)
        .await
        .expect("a connection");
    // From now on the client reads nothing from the connection.
    plan(channel.clone()).await.expect("an answer");
    reader.is_stopped.store(true, Ordering::Relaxed);
    // More than the socket buffers hold.
    let _asked: Vec<_> = (0..8)
        .map(|_| tokio::spawn(call(channel.clone(), EXPLAIN, whole(&explain_all()))))
        .collect();
    is_cut_off(LocalClient(2), &server).await;
}

#[tokio::test]
async fn an_unread_stream_holds_no_thread() {
    let server = Server::start(Config {
        max_concurrent_plans: 1,
        max_queued_plans: 29,
        longest_call: 10 * SOON,
        ..Config::default()
    })
    .await;
    let question = v1::PlanStreamRequest {
        id: "unread".into(),
        request: Some(Cluster::empty(300).request(1, Form::Inline)),
    };
    let bytes = question.encode_to_vec();
    let questions = stream::repeat(framed(bytes.len(), &bytes))
        .take(20)
        .chain(stream::pending());
    let unread = LocalClient(2)
        .channel(server.address)
        .await
        .expect("a connection");
    let _answers = timeout(SOON, call(unread, PLAN_STREAM, questions))
        .await
        .expect("a stream");
    let other = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    for _ in 0..40 {
        let answer = timeout(SOON, plan(other.clone()))
            .await
            .expect("there is a thread for others");
        answer.expect("a plan");
    }
}

#[tokio::test]
async fn a_noisy_client_leaves_streams_to_others() {
    let server = Server::start(Config {
        max_streams: 5,
        ..Config::default()
    })
    .await;
    let noisy = LocalClient(2)
        .channel(server.address)
        .await
        .expect("a connection");
    let open = async |channel: Channel| {
        let questions = stream::pending::<v1::PlanStreamRequest>();
        ReconcileServiceClient::new(channel).plan_stream(questions).await
    };
    let mut streams = Vec::new();
    let shed = loop {
        match open(noisy.clone()).await {
            Ok(stream) => streams.push(stream),
            Err(shed) => break shed,
        }
    };
    assert_eq!(
        (streams.len(), shed.code()),
        (4, Code::ResourceExhausted),
        "{shed}"
    );
    let quiet = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    open(quiet).await.expect("there is one for others");
}

/// Makes `calls` concurrent calls that send these bytes and then stall. Returns the `held` calls that are admitted.
async fn held_of<'a>(
    channel: &Channel,
    said: &Bytes,
    calls: usize,
    held: usize,
) -> Vec<BoxFuture<'a, Result<http::Response<Body>, tonic::transport::Error>>> {
    let mut asked: Vec<_> = (0..calls)
        .map(|_| call(channel.clone(), PLAN, stalled(said.clone())).boxed())
        .collect();
    for _ in held..calls {
        let (shed, _, others) = timeout(SOON, select_all(asked))
            .await
            .expect("too many are refused");
        let status = status(&shed.expect("an answer"));
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.get_details_retry_info().is_some());
        asked = others;
    }
    asked
}

#[tokio::test]
async fn a_noisy_client_leaves_permits_to_others() {
    let server = Server::start(Config {
        max_concurrent_plans: 2,
        max_queued_plans: 3,
        transfer_timeout: 10 * SOON,
        ..Config::default()
    })
    .await;
    let noisy = LocalClient(2)
        .channel(server.address)
        .await
        .expect("a connection");
    // Four fifths of the permits.
    let mut held = held_of(&noisy, &Bytes::new(), 8, 4).await;
    let quiet = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is a permit for others");
    }
    assert!(
        futures::poll!(select_all(&mut held)).is_pending(),
        "the held calls still have their permits"
    );
}

/// Nodes, and a template whose affinity takes long to evaluate. It names a node, so it is evaluated for each node.
fn slow(nodes: usize) -> Cluster {
    let mut cluster = Cluster::empty(0);
    let values: Vec<_> = (0..16).map(|number| format!("zone-{number}")).collect();
    let other_zone = json!({"key": "zone", "operator": "NotIn", "values": values});
    let other_name = json!({"key": "metadata.name", "operator": "NotIn", "values": ["another"]});
    cluster.daemon_set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": vec![other_zone; 1_000], "matchFields": [other_name]},
        ]},
    }});
    let node = |number: usize| v1::Node {
        name: format!("node-{number}"),
        labels: vec![v1::Label {
            key: "zone".to_owned(),
            value: "zone-99".to_owned(),
        }],
        ..Default::default()
    };
    cluster.nodes = (0..nodes).map(node).collect();
    cluster
}

/// The number of plans that run now.
async fn running(http: &str) -> usize {
    let metrics = get(http, "/metrics").await;
    let prefix = "nodewise_planning{state=\"running\"} ";
    let running = metrics.lines().find_map(|line| line.strip_prefix(prefix));
    running.expect("the metric").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_plans_leave_threads_to_others() {
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--max-concurrent-plans",
        "4",
        "--max-queued-plans",
        "6",
        "--max-request-memory",
        "8GiB",
        "--longest-call",
        "5m",
    ];
    let mut process = Process::start(&flags, &[]);
    let http = process.http();
    let server = process.url()["http://".len()..].parse().expect("an address");
    let noisy = LocalClient(2).channel(server).await.expect("a connection");
    let quiet = LocalClient(3).channel(server).await.expect("a connection");
    // The nodes are cached first, so that the requests are short and only the plans take long.
    let mut cluster = slow(100_000);
    let planted = Cluster {
        daemon_set: Cluster::empty(0).daemon_set,
        ..cluster.clone()
    };
    let planted = planted.request(1, Form::InlineWithDigest);
    let mut client = ReconcileServiceClient::new(noisy).max_decoding_message_size(usize::MAX);
    client.plan(planted).await.expect("a plan");
    // As many as one client has permits for.
    let mut asked: Vec<_> = (0..8)
        .map(|number| {
            cluster.daemon_set["metadata"]["uid"] = json!(format!("uid-{number}"));
            let (mut client, request) = (client.clone(), cluster.request(1, Form::DigestOnly));
            async move { client.plan(request).await }.boxed()
        })
        .collect();
    let mut asked = select_all(&mut asked);
    let part = eventually("the client has its part of the threads", || async {
        (running(&http).await >= 3).then_some(())
    });
    tokio::select! {
        ended = &mut asked => panic!("a plan ended too early, or was refused: {:?}", ended.0.map(drop)),
        () = part => {}
    }
    let answered = async {
        for _ in 0..20 {
            let answer = timeout(SOON, plan(quiet.clone())).await;
            answer.expect("in time").expect("a plan");
        }
    };
    tokio::select! {
        biased;
        ended = asked => panic!("another client had to wait for a slow plan: {:?}", ended.0.map(drop)),
        () = answered => {}
    }
}

#[tokio::test]
async fn a_noisy_client_leaves_memory_to_others() {
    // The least that messages of 1 MiB need.
    let server = Server::start(Config {
        max_message_size: ByteSize::mib(1),
        max_request_memory: ByteSize::mib(13),
        transfer_timeout: 10 * SOON,
        max_queued_plans: 100,
        ..Config::default()
    })
    .await;
    let noisy = LocalClient(2)
        .channel(server.address)
        .await
        .expect("a connection");
    // Two calls take half of the memory: the server holds six times the length of a message.
    let held = held_of(&noisy, &framed(512 << 10, b"begins"), 6, 2).await;
    let quiet = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is memory for others");
    }
    // A request on a stream waits for memory instead.
    let long = vec![0; 1 << 20];
    let waits = call(noisy, PLAN_STREAM, stream::iter([framed(long.len(), &long)]));
    let waits = timeout(SOON, waits).await.expect("a stream").expect("a stream");
    let mut end = waits.into_body().collect().boxed();
    assert!(futures::poll!(&mut end).is_pending());
    drop(held);
    // Once the bytes are read, decoding fails.
    let end = timeout(SOON, end)
        .await
        .expect("the held calls have ended")
        .expect("in order");
    let trailers = end.trailers().cloned().expect("a status");
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::Internal, "{status}");
}

#[tokio::test]
async fn at_most_four_mebibytes_of_a_stream_that_waits_are_buffered() {
    const LONGEST: usize = 12 << 20;
    const CHUNK: usize = 64 << 10;
    let server = Server::start(Config {
        max_message_size: ByteSize::mib(12),
        max_request_memory: ByteSize::mib(123),
        transfer_timeout: 10 * SOON,
        ..Config::default()
    })
    .await;
    // Another client holds most of the memory, so that the request on the stream waits.
    let noisy = LocalClient(2)
        .channel(server.address)
        .await
        .expect("a connection");
    let held = held_of(&noisy, &framed(LONGEST, b"begins"), 2, 1).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let message = framed(LONGEST, &vec![0; LONGEST]);
    let chunks: Vec<_> = message
        .chunks(CHUNK)
        .map(|chunk| message.slice_ref(chunk))
        .collect();
    let chunks = stream::iter(chunks).inspect(move |chunk| {
        counted.fetch_add(chunk.len(), Ordering::Relaxed);
    });
    let waiting = LocalClient(3)
        .channel(server.address)
        .await
        .expect("a connection");
    let answers = timeout(SOON, call(waiting, PLAN_STREAM, chunks)).await;
    let answers = answers.expect("a stream").expect("a stream");
    eventually("the flow-control window is full", || async {
        (sent.load(Ordering::Relaxed) >= 4 << 20).then_some(())
    })
    .await;
    for _ in 0..20 {
        plan(server.channel().await).await.expect("others are answered");
    }
    // The client buffers a few chunks more.
    let ahead = sent.load(Ordering::Relaxed);
    assert!(ahead <= (4 << 20) + (1 << 20), "{ahead} bytes");
    drop(held);
    let end = timeout(SOON, answers.into_body().collect())
        .await
        .expect("it is read");
    end.expect("in order");
    assert!(
        sent.load(Ordering::Relaxed) > LONGEST,
        "the whole message is read"
    );
}

#[tokio::test]
async fn the_server_does_not_start_with_less_memory_than_the_longest_message_needs() {
    let mut process = Process::start(&["--listen", "127.0.0.1:0", "--max-request-memory", "64MiB"], &[]);
    assert!(!process.ended().await.success());
    let log = process.rest_of_log();
    assert!(log.contains("--max-request-memory"), "{log}");
}
