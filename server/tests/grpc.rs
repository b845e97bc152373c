//! Servers over real connections, each on a free port.

mod support;

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::uri::PathAndQuery;
use nodewise_proto::{
    pods,
    v1::{self, plan_stream_response, reconcile_service_client::ReconcileServiceClient},
};
use nodewise_server::{ByteSize, Config, Ended};
use prost::Message as _;
use support::{Cluster, Form, SOON, Server, eventually};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, codec::CompressionEncoding, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt as _;

const PLAN: &str = "/nodewise.v1.ReconcileService/Plan";

fn small() -> v1::PlanRequest {
    Cluster::empty(3).request(1, Form::Inline)
}

/// A call to Plan whose message is sent later. The server has admitted the call and waits for the message.
struct Held {
    message: mpsc::Sender<v1::PlanRequest>,
    call: JoinHandle<Result<v1::PlanResponse, Status>>,
}

impl Held {
    fn start(channel: Channel) -> Self {
        let (message, messages) = mpsc::channel(1);
        let call = tokio::spawn(async move {
            let mut grpc = tonic::client::Grpc::new(channel);
            grpc.ready().await.expect("the connection is up");
            let codec = tonic_prost::ProstCodec::<v1::PlanRequest, v1::PlanResponse>::default();
            let request = Request::new(ReceiverStream::new(messages));
            let answer = grpc
                .client_streaming(request, PathAndQuery::from_static(PLAN), codec)
                .await?;
            Ok(answer.into_inner())
        });
        Self { message, call }
    }

    /// Takes the only permit of a server. Returns the call, and the status that every other call gets.
    async fn the_only_permit_of(server: &Server) -> (Self, Status) {
        let (channel, client) = (server.channel().await, server.client().await);
        let mut held = Self::start(channel.clone());
        let shed = eventually("the permit is held", || {
            if held.call.is_finished() {
                // The probe below had the permit when the call arrived, so the call itself was shed.
                held = Self::start(channel.clone());
            }
            let mut client = client.clone();
            async move { client.plan(small()).await.err() }
        })
        .await;
        (held, shed)
    }

    async fn send(self, request: v1::PlanRequest) -> Result<v1::PlanResponse, Status> {
        self.message.send(request).await.expect("the call waits for it");
        drop(self.message);
        timeout(SOON, self.call)
            .await
            .expect("an answer in time")
            .unwrap()
    }
}

/// A configuration with which one call fills the server.
fn one_permit() -> Config {
    Config {
        max_concurrent_plans: 1,
        max_queued_plans: 0,
        // A test may hold the permit for long.
        transfer_timeout: 10 * SOON,
        ..Config::default()
    }
}

#[tokio::test]
async fn a_plan_is_the_same_for_every_form_of_buckets() {
    let server = Server::start(Config::default()).await;
    let mut client = server.client().await;
    let cluster = Cluster::settled(200);
    let inline = client
        .plan(cluster.request(1, Form::Inline))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(inline.plan.as_ref().unwrap().verdict(), v1::Verdict::Noop);

    let missing = client
        .plan(cluster.request(16, Form::DigestOnly))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::FailedPrecondition);
    let details = tonic_types::pb::Status::decode(missing.details())
        .unwrap()
        .details;
    let missing = v1::MissingBuckets::decode(&details[0].value[..]).unwrap();
    assert_eq!(missing.node_bucket_indices, (0..16).collect::<Vec<_>>());
    let sent = client
        .plan(cluster.request(16, Form::InlineWithDigest))
        .await
        .unwrap()
        .into_inner();
    let by_digest = client
        .plan(cluster.request(16, Form::DigestOnly))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(sent, inline);
    assert_eq!(by_digest, inline);
}

#[tokio::test]
async fn two_servers_answer_with_the_same_bytes() {
    let (one, other) = (
        Server::start(Config::default()).await,
        Server::start(Config::default()).await,
    );
    let mut cluster = Cluster::settled(100);
    cluster.pods.truncate(60);
    let first = one
        .client()
        .await
        .plan(cluster.request(1, Form::Inline))
        .await
        .unwrap()
        .into_inner();
    cluster.pods.reverse();
    cluster.nodes.rotate_left(33);
    let second = other
        .client()
        .await
        .plan(cluster.request(32, Form::InlineWithDigest))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(first.encode_to_vec(), second.encode_to_vec());
    assert_eq!(support::created_nodes(first.plan.as_ref().unwrap()).len(), 40);
}

#[tokio::test]
async fn errors_of_any_size_reach_the_client() {
    let server = Server::start(Config::default()).await;
    let mut client = server.client().await;
    let missing = client
        .plan(Cluster::settled(10).request(1_024, Form::DigestOnly))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::FailedPrecondition, "{missing}");
    assert!(
        missing.details().len() < 5_500,
        "{} bytes, Base64-encoded, in 8 KiB of headers",
        missing.details().len()
    );
    let details = tonic_types::pb::Status::decode(missing.details())
        .unwrap()
        .details;
    let missing = v1::MissingBuckets::decode(&details[0].value[..]).unwrap();
    assert_eq!(
        (
            missing.node_bucket_indices.len(),
            missing.pod_bucket_indices.len()
        ),
        (1_024, 1_024)
    );

    let pods = (0..5_000)
        .map(|_| v1::Pod {
            name: "x".repeat(5_000),
            ..Default::default()
        })
        .collect();
    let mut request = small();
    request.snapshot.as_mut().unwrap().pod_buckets[0].data = Some(pods::sharing(pods).encode_to_vec().into());
    let wrong = client.plan(request).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument, "{wrong}");
    assert!(
        !wrong
            .get_details_bad_request()
            .unwrap()
            .field_violations
            .is_empty()
    );
}

#[tokio::test]
async fn messages_over_the_limit_are_refused_also_after_decompression() {
    let server = Server::start(Config {
        max_message_size: ByteSize(200_000),
        ..Config::default()
    })
    .await;
    let mut large = small();
    large.snapshot.as_mut().unwrap().node_buckets[0].data = Some(Bytes::from(vec![0; 300_000]));
    let plain = server.client().await.plan(large.clone()).await.unwrap_err();
    assert_eq!(plain.code(), Code::ResourceExhausted, "{plain}");
    assert!(plain.get_details_retry_info().is_none());
    let mut zipping = server.client().await.send_compressed(CompressionEncoding::Gzip);
    let bomb = zipping.plan(large.clone()).await.unwrap_err();
    assert_eq!(bomb.code(), Code::ResourceExhausted, "{bomb}");
    assert!(
        zipping.plan(small()).await.is_ok(),
        "a small message may be compressed"
    );

    let question = v1::PlanStreamRequest {
        id: "large".into(),
        request: Some(large),
    };
    let answers = server
        .client()
        .await
        .plan_stream(stream::iter([question]))
        .await
        .unwrap();
    let error = answers.into_inner().message().await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
}

#[tokio::test]
async fn a_full_server_sheds_calls_with_a_retry_delay() {
    let server = Server::start(one_permit()).await;
    let (held, shed) = Held::the_only_permit_of(&server).await;
    assert_eq!(shed.code(), Code::ResourceExhausted);
    assert!(shed.get_details_retry_info().unwrap().retry_delay.unwrap() > Duration::ZERO);
    let mut client = server.client().await;
    assert!(
        client
            .get_capabilities(v1::GetCapabilitiesRequest {})
            .await
            .is_ok(),
        "cheap calls are answered"
    );
    // The admitted call is answered.
    assert!(held.send(small()).await.is_ok());

    // A client that leaves releases its permit.
    let (held, _) = Held::the_only_permit_of(&server).await;
    held.call.abort();
    eventually("the permit is free", || {
        let mut client = client.clone();
        async move { client.plan(small()).await.ok() }
    })
    .await;
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_frees_its_slot() {
    let server = Server::start(one_permit()).await;
    let huge = Cluster::settled(20_000).request(1, Form::InlineWithDigest);
    let mut client = server.client().await;
    let mut request = Request::new(huge);
    request.set_timeout(Duration::from_millis(10));
    let late = client.plan(request).await.unwrap_err();
    // The client's own timer may be the first to notice; it says CANCELLED.
    assert!(
        matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{late}"
    );
    eventually("the slot is free", || {
        let mut client = client.clone();
        async move { client.plan(small()).await.ok() }
    })
    .await;
}

#[tokio::test]
async fn no_call_takes_longer_than_the_longest_call() {
    let server = Server::start(Config {
        longest_call: Duration::from_millis(20),
        ..Config::default()
    })
    .await;
    let held = Held::start(server.channel().await);
    let late = timeout(SOON, held.call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_stalled_message_releases_its_permit() {
    let server = Server::start(Config {
        transfer_timeout: Duration::from_millis(300),
        ..one_permit()
    })
    .await;
    let held = Held::start(server.channel().await);
    let late = timeout(SOON, held.call)
        .await
        .expect("ended long before the longest call")
        .unwrap()
        .unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    assert!(late.message().contains("did not arrive"), "{late}");
    let client = server.client().await;
    eventually("the permit is free", || {
        let mut client = client.clone();
        async move { client.plan(small()).await.ok() }
    })
    .await;
}

/// Sends these requests on a stream. Returns the results by id, and the error with which the stream ended.
async fn stream_of(
    mut client: ReconcileServiceClient<Channel>,
    questions: Vec<(&str, Option<v1::PlanRequest>)>,
) -> (Vec<(String, plan_stream_response::Result)>, Option<Status>) {
    let questions: Vec<_> = questions
        .into_iter()
        .map(|(id, request)| v1::PlanStreamRequest {
            id: id.to_owned(),
            request,
        })
        .collect();
    let mut stream = client
        .plan_stream(stream::iter(questions))
        .await
        .unwrap()
        .into_inner();
    let mut answers = Vec::new();
    loop {
        match timeout(SOON, stream.message()).await.expect("in time") {
            Ok(Some(answer)) => answers.push((answer.id, answer.result.expect("always set"))),
            Ok(None) => break (answers, None),
            Err(status) => break (answers, Some(status)),
        }
    }
}

#[tokio::test]
async fn an_invalid_request_on_a_stream_fails_alone() {
    let server = Server::start(Config::default()).await;
    let mut wrong = small();
    wrong.snapshot.as_mut().unwrap().now = None;
    let by_digest = Cluster::settled(3).request(1, Form::DigestOnly);
    let questions = vec![
        ("good-1", Some(small())),
        ("wrong", Some(wrong.clone())),
        ("missing", Some(by_digest)),
        ("absent", None),
        ("", Some(small())),
        ("good-2", Some(small())),
    ];
    let (answers, end) = stream_of(server.client().await, questions).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(answers.len(), 6);
    let unary = server.client().await.plan(small()).await.unwrap().into_inner();
    for (id, answer) in answers {
        let code = match answer {
            plan_stream_response::Result::Response(response) => {
                assert_eq!(response, unary, "{id}");
                continue;
            }
            plan_stream_response::Result::Error(error) => {
                let status = tonic_types::pb::Status::decode(&error.status[..]).unwrap();
                assert_eq!(status.code, error.code);
                assert!(!error.message.is_empty() && !status.details.is_empty());
                if id == "wrong" {
                    let same = server.client().await.plan(wrong.clone()).await.unwrap_err();
                    assert_eq!(
                        (same.message(), same.details()),
                        (error.message.as_str(), &error.status[..])
                    );
                }
                error.code
            }
        };
        let expected = match id.as_str() {
            "wrong" | "absent" | "" => Code::InvalidArgument,
            "missing" => Code::FailedPrecondition,
            other => panic!("{other} failed with {code}"),
        };
        assert_eq!(code, i32::from(expected), "{id}");
    }
}

#[tokio::test]
async fn a_long_stream_is_answered_with_few_requests_in_progress() {
    let config = Config {
        max_plans_per_stream: 2.try_into().unwrap(),
        ..one_permit()
    };
    let server = Server::start(config).await;
    let ids: Vec<String> = (0..60).map(|index| format!("q{index}")).collect();
    let questions = || ids.iter().map(|id| (id.as_str(), Some(small()))).collect();
    let (one, other) = tokio::join!(
        stream_of(server.client().await, questions()),
        stream_of(server.client().await, questions())
    );
    for (answers, end) in [one, other] {
        assert!(end.is_none());
        let mut answered: Vec<_> = answers.iter().map(|(id, _)| id.clone()).collect();
        answered.sort_by_key(|id| id[1..].parse::<u32>().unwrap());
        assert_eq!(answered, ids, "a stream waits for a slot, it is not shed");
        assert!(
            answers
                .iter()
                .all(|(_, answer)| matches!(answer, plan_stream_response::Result::Response(_)))
        );
    }
}

#[tokio::test]
async fn a_stream_ends_at_its_deadline() {
    let server = Server::start(Config::default()).await;
    let (questions, receiver) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::new(receiver));
    request.set_timeout(Duration::from_secs(3));
    let mut answers = server
        .client()
        .await
        .plan_stream(request)
        .await
        .unwrap()
        .into_inner();
    questions
        .send(v1::PlanStreamRequest {
            id: "early".into(),
            request: Some(small()),
        })
        .await
        .unwrap();
    let mut ended = None;
    while ended.is_none() {
        ended = match timeout(SOON, answers.message())
            .await
            .expect("the stream ends although the client does not end it")
        {
            Ok(Some(answer)) => {
                assert_eq!(answer.id, "early");
                None
            }
            other => Some(other),
        };
    }
    assert_eq!(ended.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn the_number_of_streams_is_limited() {
    let server = Server::start(Config {
        max_streams: 1,
        ..Config::default()
    })
    .await;
    let open = |client: ReconcileServiceClient<Channel>| async move {
        let (questions, receiver) = mpsc::channel::<v1::PlanStreamRequest>(1);
        let mut client = client;
        let answers = client.plan_stream(ReceiverStream::new(receiver)).await?;
        Ok::<_, Status>((questions, answers))
    };
    let first = open(server.client().await).await.expect("there is room for one");
    let shed = open(server.client().await).await.unwrap_err();
    assert_eq!(shed.code(), Code::ResourceExhausted, "{shed}");
    assert!(shed.get_details_retry_info().is_some());
    drop(first);
    eventually("the stream has ended", || {
        let client = server.client();
        async move { open(client.await).await.ok() }
    })
    .await;
}

#[tokio::test]
async fn an_idle_stream_is_evicted_for_another() {
    let server = Server::start(Config {
        max_streams: 1,
        stream_idle_timeout: Duration::from_millis(200),
        ..Config::default()
    })
    .await;
    let open = |client: ReconcileServiceClient<Channel>| async move {
        let (questions, receiver) = mpsc::channel::<v1::PlanStreamRequest>(1);
        let mut client = client;
        let answers = client.plan_stream(ReceiverStream::new(receiver)).await?;
        Ok::<_, Status>((questions, answers.into_inner()))
    };
    let question = |id: &str| v1::PlanStreamRequest {
        id: id.to_owned(),
        request: Some(small()),
    };
    let (questions, mut answers) = open(server.client().await).await.expect("there is room for one");
    questions.send(question("first")).await.expect("it is open");
    let answer = timeout(SOON, answers.message()).await.expect("in time");
    assert_eq!(answer.expect("no error").expect("an answer").id, "first");
    let (newer, mut answers_of_newer) = eventually("the first stream is evicted", || {
        let client = server.client();
        async move { open(client.await).await.ok() }
    })
    .await;
    let ended = timeout(SOON, answers.message()).await.expect("in time");
    let ended = ended.expect_err("the first stream has ended");
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended}");
    assert!(
        ended.message().contains("another stream needs its slot"),
        "{ended}"
    );
    assert!(ended.get_details_retry_info().is_some());
    newer.send(question("newer")).await.expect("it is open");
    let answer = timeout(SOON, answers_of_newer.message()).await.expect("in time");
    assert_eq!(answer.expect("no error").expect("an answer").id, "newer");
}

async fn health(channel: Channel, service: &str) -> Result<ServingStatus, Status> {
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    HealthClient::new(channel)
        .check(request)
        .await
        .map(|response| response.into_inner().status())
}

#[tokio::test]
async fn health_is_served_by_name() {
    let server = Server::start(Config::default()).await;
    let channel = server.channel().await;
    for service in ["", "nodewise.v1.ReconcileService"] {
        assert_eq!(
            health(channel.clone(), service).await.unwrap(),
            ServingStatus::Serving
        );
    }
    assert_eq!(health(channel, "other").await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn reflection_is_served_when_asked_for() {
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let ask = async |reflection| {
        let server = Server::start(Config {
            reflection,
            ..Config::default()
        })
        .await;
        let request = ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..Default::default()
        };
        let mut client = ServerReflectionClient::new(server.channel().await);
        let mut answers = client
            .server_reflection_info(stream::iter([request]))
            .await?
            .into_inner();
        answers.message().await.map(Option::unwrap)
    };
    let Some(MessageResponse::ListServicesResponse(list)) = ask(true).await.unwrap().message_response else {
        panic!("not a list")
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    assert!(
        names.contains(&"nodewise.v1.ReconcileService".to_owned()),
        "{names:?}"
    );
    assert_eq!(ask(false).await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_draining_server_finishes_admitted_calls_and_refuses_new_ones() {
    let mut server = Server::start(one_permit()).await;
    let channel = server.channel().await;
    let request = HealthCheckRequest {
        service: "nodewise.v1.ReconcileService".into(),
    };
    let mut watch = HealthClient::new(channel.clone())
        .watch(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        watch.message().await.unwrap().unwrap().status(),
        ServingStatus::Serving
    );

    // A stream and a plan are in progress.
    let (questions, receiver) = mpsc::channel(1);
    let mut client = server.client().await;
    let mut answers = client
        .plan_stream(ReceiverStream::new(receiver))
        .await
        .unwrap()
        .into_inner();
    questions
        .send(v1::PlanStreamRequest {
            id: "before".into(),
            request: Some(small()),
        })
        .await
        .unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().id, "before");
    let (under_way, _) = Held::the_only_permit_of(&server).await;

    server.stop();
    let health = timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(health.status(), ServingStatus::NotServing);
    let ended = timeout(SOON, answers.message()).await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    assert_eq!(client.plan(small()).await.unwrap_err().code(), Code::Unavailable);
    let address = server.address;
    eventually("nobody listens", || async move {
        tokio::net::TcpStream::connect(address).await.err()
    })
    .await;

    let answer = under_way.send(small()).await;
    assert!(answer.is_ok(), "{answer:?}");
    drop((watch, answers, client, channel));
    assert_eq!(server.ended().await, Ended::Drained);
}

#[tokio::test]
async fn a_drain_ends_at_its_timeout() {
    let mut server = Server::start(Config {
        drain_timeout: Duration::from_millis(50),
        ..one_permit()
    })
    .await;
    let (_held, _) = Held::the_only_permit_of(&server).await;
    server.stop();
    assert_eq!(server.ended().await, Ended::CutOff);
}
