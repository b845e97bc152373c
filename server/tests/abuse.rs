//! What clients may do to a server, and to each other.

mod support;

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::{ByteSize, Config};
use prost::Message as _;
use support::{Cluster, Form, From, Process, SOON, Server, call, eventually, framed};
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
async fn a_call_has_one_message() {
    let server = Server::start(Config::default()).await;
    let message = small().encode_to_vec();
    let twice = [framed(message.len(), &message), framed(message.len(), &message)].concat();
    let call = call(server.channel().await, PLAN, stream::iter([Bytes::from(twice)]));
    let response = timeout(SOON, call).await.expect("in time").expect("an answer");
    assert_eq!(status(&response).code(), Code::Internal);
}

#[tokio::test]
async fn who_takes_no_answer_is_cut_off() {
    let server = Server::start(impatient()).await;
    let all = v1::ExplainRequest {
        snapshot: Cluster::empty(5_000).request(1, Form::Inline).snapshot,
        ..Default::default()
    };
    let message = all.encode_to_vec();
    let (channel, connects) = From(1).counted(server.address).await.expect("a connection");
    let asked = call(
        channel.clone(),
        EXPLAIN,
        stream::iter([framed(message.len(), &message)]),
    );
    let response = timeout(SOON, asked).await.expect("in time").expect("an answer");
    // Nothing of it is read, so that no more than a window of it can be sent.
    eventually("the connection is cut", || {
        let (channel, connects) = (channel.clone(), &connects);
        async move {
            let _ = plan(channel).await;
            (connects.load(Ordering::Relaxed) > 1).then_some(())
        }
    })
    .await;
    let read = timeout(SOON, response.into_body().collect())
        .await
        .expect("it ends");
    read.expect_err("the answer was cut off");
    plan(server.channel().await).await.expect("the server goes on");
}

/// Calls from an address that were let in and say nothing, of so many that were made.
async fn places_of(address: From, server: &Server, calls: usize) -> Vec<tokio::task::JoinHandle<()>> {
    let channel = address.channel(server.address).await.expect("a connection");
    let mut held = Vec::new();
    for _ in 0..calls {
        let mut asked = tokio::spawn(call(channel.clone(), PLAN, stalled(Bytes::new())));
        // Who is shed hears at once; nobody else is answered.
        let shed = timeout(Duration::from_millis(200), &mut asked).await;
        match shed {
            Ok(shed) => {
                let status = status(&shed.expect("no panic").expect("an answer"));
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                assert!(status.get_details_retry_info().is_some());
            }
            Err(_) => held.push(tokio::spawn(async move { drop(asked.await) })),
        }
    }
    held
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
    let noisy = places_of(From(2), &server, 6).await;
    assert_eq!(noisy.len(), 4, "four fifths of the places");
    let quiet = From(3).channel(server.address).await.expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is a place for others");
    }
}

/// Settings with the least memory for requests.
fn little_memory() -> Config {
    Config {
        max_message_size: ByteSize::mib(1),
        max_request_memory: ByteSize::mib(13),
        transfer_timeout: 10 * SOON,
        max_queued_plans: 100,
        ..Config::default()
    }
}

#[tokio::test]
async fn a_noisy_client_leaves_memory_to_others() {
    let server = Server::start(little_memory()).await;
    let noisy = From(2).channel(server.address).await.expect("a connection");
    let mut held = Vec::new();
    let shed = loop {
        let mut asked = tokio::spawn(call(noisy.clone(), PLAN, stalled(framed(1 << 20, b"begins"))));
        match timeout(Duration::from_millis(200), &mut asked).await {
            Ok(shed) => break status(&shed.expect("no panic").expect("an answer")),
            Err(_) => held.push(asked),
        }
    };
    assert_eq!(held.len(), 6, "half of the memory");
    assert_eq!(shed.code(), Code::ResourceExhausted, "{shed}");
    assert!(shed.message().contains("memory"), "{shed}");
    assert!(shed.get_details_retry_info().is_some());
    let quiet = From(3).channel(server.address).await.expect("a connection");
    for _ in 0..20 {
        plan(quiet.clone()).await.expect("there is memory for others");
    }
    // A question on a stream waits for memory instead.
    let question = v1::PlanStreamRequest {
        id: "waits".into(),
        request: Some(small()),
    };
    let mut client = ReconcileServiceClient::new(noisy);
    let answers = client
        .plan_stream(stream::iter([question]))
        .await
        .expect("a stream");
    let mut answers = answers.into_inner();
    let answer = answers.message();
    tokio::pin!(answer);
    // What a small message takes may still be there: then it is answered at once.
    for call in held {
        call.abort();
    }
    let answer = timeout(SOON, answer).await.expect("the others have gone");
    assert_eq!(answer.expect("no error").expect("an answer").id, "waits");
}

#[tokio::test]
async fn memory_for_less_than_the_longest_message_is_refused_at_the_start() {
    let mut process = Process::start(&["--listen", "127.0.0.1:0", "--max-request-memory", "64MiB"], &[]);
    assert!(!process.ended().await.success());
    let log = process.rest_of_log();
    assert!(log.contains("--max-request-memory"), "{log}");
}
