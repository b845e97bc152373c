//! What clients may do to a server, and to each other.

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
use support::{Cluster, Form, From, Process, Reader, SOON, Server, call, eventually, framed, get};
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

/// These bytes, and then nothing, and no end.
fn stalled(bytes: Bytes) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    stream::iter([bytes]).chain(stream::pending())
}

/// How a call ended that was answered without a message.
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
async fn an_address_has_a_part_of_the_connections() {
    let server = Server::start(Config {
        max_connections: 8,
        ..Config::default()
    })
    .await;
    let mut noisy = Vec::new();
    while let Ok(channel) = From(2).channel(server.address).await {
        // A connection that was closed shows it when it is used.
        if plan(channel.clone()).await.is_err() {
            break;
        }
        noisy.push(channel);
        assert!(noisy.len() < 8, "one address has them all");
    }
    assert_eq!(noisy.len(), 2, "a quarter");
    let quiet = From(3).channel(server.address).await.expect("a connection");
    plan(quiet).await.expect("another address has its own");
    noisy.pop();
    eventually("the connection has ended, and there may be another", || async {
        plan(From(2).channel(server.address).await.ok()?).await.ok()
    })
    .await;
}

#[tokio::test]
async fn who_begins_slowly_is_cut_off() {
    let server = Server::start(Config::default()).await;
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut slow = TcpStream::connect(server.address).await.expect("a connection");
        slow.write_all(said).await.expect("it is open");
        let mut heard = Vec::new();
        // The server says its settings first, and then it is over.
        let end = timeout(SOON, slow.read_to_end(&mut heard)).await;
        let _ = end.expect("the connection is closed");
    }
    plan(server.channel().await).await.expect("the server goes on");
}

/// Settings with which a message has little time.
fn impatient() -> Config {
    Config {
        transfer_timeout: Duration::from_millis(300),
        ..Config::default()
    }
}

#[tokio::test]
async fn messages_that_stall_are_given_up() {
    let server = Server::start(impatient()).await;
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
async fn nobody_asks_for_the_health_forever() {
    let server = Server::start(Config {
        longest_call: Duration::from_millis(100),
        ..impatient()
    })
    .await;
    let call = call(server.channel().await, HEALTH, stalled(framed(100, b"begins")));
    let response = timeout(SOON, call).await.expect("given up").expect("an answer");
    let status = status(&response);
    // The transport's own words.
    assert_eq!(status.code(), Code::Cancelled, "{status}");
}

#[tokio::test]
async fn streams_that_stall_are_cut() {
    let server = Server::start(impatient()).await;
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

    // One that asks nothing for longer than that may go on.
    let question = v1::PlanStreamRequest {
        id: "late".into(),
        request: Some(small()),
    };
    let late = async move {
        tokio::time::sleep(2 * impatient().transfer_timeout).await;
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
async fn what_nothing_is_asked_in_is_short() {
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
async fn a_message_does_not_say_alone_that_it_is_compressed() {
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
async fn a_call_has_one_message() {
    let server = Server::start(Config::default()).await;
    let message = small().encode_to_vec();
    let twice = [framed(message.len(), &message), framed(message.len(), &message)].concat();
    let call = call(server.channel().await, PLAN, stream::iter([Bytes::from(twice)]));
    let response = timeout(SOON, call).await.expect("in time").expect("an answer");
    assert_eq!(status(&response).code(), Code::Internal);
}

/// All of a message, and the end.
fn whole(message: &impl Message) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    let bytes = message.encode_to_vec();
    stream::iter([framed(bytes.len(), &bytes)])
}

/// A question whose answer is some megabytes long.
fn explain_all() -> v1::ExplainRequest {
    v1::ExplainRequest {
        snapshot: Cluster::empty(5_000).request(1, Form::Inline).snapshot,
        ..Default::default()
    }
}

/// Settings by which an address has one connection, and soon loses it when it takes no answers.
fn one_connection() -> Config {
    Config {
        max_connections: 4,
        transfer_timeout: Duration::from_secs(3),
        ..Config::default()
    }
}

/// Waits until the connection that an address has is gone: it may have another one then.
async fn is_cut_off(address: From, server: &Server) {
    eventually("the connection is cut", || async {
        plan(address.channel(server.address).await.ok()?).await.ok()
    })
    .await;
}

#[tokio::test]
async fn who_takes_no_answer_is_cut_off() {
    let server = Server::start(one_connection()).await;
    // Of a long answer what fits into the window has gone; of a short one nothing has.
    for (window, path, body) in [
        (64 << 10, EXPLAIN, whole(&explain_all()).left_stream()),
        (0, PLAN, whole(&small()).right_stream()),
    ] {
        let reader = Reader::with_window(window);
        let channel = From(2)
            .channel_of(server.address, &reader)
            .await
            .expect("a connection");
        let asked = timeout(SOON, call(channel, path, body)).await;
        let response = asked.expect("in time").expect("an answer");
        is_cut_off(From(2), &server).await;
        let read = timeout(SOON, response.into_body().collect())
            .await
            .expect("it ends");
        read.expect_err("the answer was cut off");
    }
}

#[tokio::test]
async fn a_client_that_takes_an_answer_little_by_little_is_cut_off() {
    let server = Server::start(Config {
        longest_call: Duration::from_secs(2),
        transfer_timeout: Duration::from_secs(2),
        ..one_connection()
    })
    .await;
    let reader = Reader::with_window(16 << 10);
    let channel = From(2)
        .channel_of(server.address, &reader)
        .await
        .expect("a connection");
    let asked = call(channel, EXPLAIN, whole(&explain_all()));
    let response = timeout(SOON, asked).await.expect("in time").expect("an answer");
    // A piece at a time, each long before the server is tired of waiting for it; for all of them it takes a minute.
    let mut body = response.into_body();
    let taken = async {
        while let Some(piece) = body.frame().await {
            piece?;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok::<_, Status>(())
    };
    let taken = timeout(SOON, taken).await.expect("it ends");
    taken.expect_err("the answer was cut off");
    is_cut_off(From(2), &server).await;
}

#[tokio::test]
async fn who_reads_nothing_is_cut_off() {
    let server = Server::start(one_connection()).await;
    let reader = Reader::with_window(1 << 30);
    let channel = From(2)
        .channel_of(server.address, &reader)
        .await
        .expect("a connection");
    // The connection is there; from now on nothing comes from it.
    plan(channel.clone()).await.expect("an answer");
    reader.is_deaf.store(true, Ordering::Relaxed);
    // More than the operating system takes for it.
    let _asked: Vec<_> = (0..8)
        .map(|_| tokio::spawn(call(channel.clone(), EXPLAIN, whole(&explain_all()))))
        .collect();
    is_cut_off(From(2), &server).await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_holds_no_thread() {
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
    let unread = From(2).channel(server.address).await.expect("a connection");
    let _answers = timeout(SOON, call(unread, PLAN_STREAM, questions))
        .await
        .expect("a stream");
    let other = From(3).channel(server.address).await.expect("a connection");
    for _ in 0..40 {
        let answer = timeout(SOON, plan(other.clone()))
            .await
            .expect("there is a thread for others");
        answer.expect("a plan");
    }
}

#[tokio::test]
async fn streams_are_divided() {
    let server = Server::start(Config {
        max_streams: 5,
        ..Config::default()
    })
    .await;
    let noisy = From(2).channel(server.address).await.expect("a connection");
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
    let quiet = From(3).channel(server.address).await.expect("a connection");
    open(quiet).await.expect("there is one for others");
}

/// Makes so many calls at once that say no more than these bytes, of which `held` are let in, and gives those.
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
async fn a_noisy_client_leaves_places_to_others() {
    let server = Server::start(Config {
        max_concurrent_plans: 2,
        max_queued_plans: 3,
        transfer_timeout: 10 * SOON,
        ..Config::default()
    })
    .await;
    let noisy = From(2).channel(server.address).await.expect("a connection");
    // Four fifths of the places.
    let mut held = held_of(&noisy, &Bytes::new(), 8, 4).await;
    let quiet = From(3).channel(server.address).await.expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is a place for others");
    }
    assert!(
        futures::poll!(select_all(&mut held)).is_pending(),
        "the others have their places"
    );
}

/// Nodes, and a template whose affinity is evaluated for each of them, since it names a node, and takes long.
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

/// How many requests are planned for at the moment.
async fn running(http: &str) -> usize {
    let metrics = get(http, "/metrics").await;
    let prefix = "nodewise_planning{state=\"running\"} ";
    let running = metrics.lines().find_map(|line| line.strip_prefix(prefix));
    running.expect("the metric").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_take_long_leave_threads_to_others() {
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
    let noisy = From(2).channel(server).await.expect("a connection");
    let quiet = From(3).channel(server).await.expect("a connection");
    // The nodes are known to the server, so that the questions are short and nothing but plans takes long.
    let mut cluster = slow(100_000);
    let planted = Cluster {
        daemon_set: Cluster::empty(0).daemon_set,
        ..cluster.clone()
    };
    let planted = planted.request(1, Form::InlineWithDigest);
    let mut client = ReconcileServiceClient::new(noisy).max_decoding_message_size(usize::MAX);
    client.plan(planted).await.expect("a plan");
    // As many as the client has places for.
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
        ended = &mut asked => panic!("it takes too little time, or is refused: {:?}", ended.0.map(drop)),
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
        ended = asked => panic!("another client had to wait for its end: {:?}", ended.0.map(drop)),
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
    let noisy = From(2).channel(server.address).await.expect("a connection");
    // Half of the memory: each is expected to take six times its length.
    let held = held_of(&noisy, &framed(512 << 10, b"begins"), 6, 2).await;
    let quiet = From(3).channel(server.address).await.expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is memory for others");
    }
    // A question on a stream waits for memory instead.
    let long = vec![0; 1 << 20];
    let waits = call(noisy, PLAN_STREAM, stream::iter([framed(long.len(), &long)]));
    let waits = timeout(SOON, waits).await.expect("a stream").expect("a stream");
    let mut end = waits.into_body().collect().boxed();
    assert!(futures::poll!(&mut end).is_pending());
    drop(held);
    // It is no message, which can be said once it was read.
    let end = timeout(SOON, end)
        .await
        .expect("the others have gone")
        .expect("in order");
    let trailers = end.trailers().cloned().expect("a status");
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::Internal, "{status}");
}

#[tokio::test]
async fn a_stream_that_waits_is_read_four_mebibytes_ahead() {
    const LONGEST: usize = 12 << 20;
    const CHUNK: usize = 64 << 10;
    let server = Server::start(Config {
        max_message_size: ByteSize::mib(12),
        max_request_memory: ByteSize::mib(123),
        transfer_timeout: 10 * SOON,
        ..Config::default()
    })
    .await;
    // Somebody has most of the memory, so that a question on a stream waits for it.
    let noisy = From(2).channel(server.address).await.expect("a connection");
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
    let waiting = From(3).channel(server.address).await.expect("a connection");
    let answers = timeout(SOON, call(waiting, PLAN_STREAM, chunks)).await;
    let answers = answers.expect("a stream").expect("a stream");
    eventually("as much is read as there is room for", || async {
        (sent.load(Ordering::Relaxed) >= 4 << 20).then_some(())
    })
    .await;
    for _ in 0..20 {
        plan(server.channel().await).await.expect("others are answered");
    }
    // The sender has a few more under way.
    let ahead = sent.load(Ordering::Relaxed);
    assert!(ahead <= (4 << 20) + (1 << 20), "{ahead} bytes");
    drop(held);
    let end = timeout(SOON, answers.into_body().collect())
        .await
        .expect("it is read");
    end.expect("in order");
    assert!(sent.load(Ordering::Relaxed) > LONGEST, "to its end");
}

#[tokio::test]
async fn memory_for_less_than_the_longest_message_is_refused_at_the_start() {
    let mut process = Process::start(&["--listen", "127.0.0.1:0", "--max-request-memory", "64MiB"], &[]);
    assert!(!process.ended().await.success());
    let log = process.rest_of_log();
    assert!(log.contains("--max-request-memory"), "{log}");
}
