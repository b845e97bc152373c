//! The memory of a server stays bounded when many clients send the longest messages, or do not read long responses.

mod support;

use std::{iter, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::{join, join_all},
    stream,
};
use http_body_util::BodyExt as _;
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::ByteSize;
use prost::Message;
use serde_json::json;
use support::{Cluster, Form, LocalClient, Process, Reader, SOON, call, framed, pod};
use tokio::time::timeout;
use tonic::{Code, Status, body::Body};

const PLAN: &str = "/nodewise.v1.ReconcileService/Plan";
const MIB: u64 = 1 << 20;

/// Memory for requests, in bytes: the least that messages of 64 MiB need.
const REQUESTS: u64 = 643 * MIB;
/// Other memory of the process, in bytes: the program, the buffers of connections, and free memory of the allocator.
const BESIDES: u64 = 192 * MIB;

const ADDRESSES: u8 = 8;
const CONNECTIONS: usize = 2;
const CALLS: usize = 2;

/// A message of nearly 64 MiB.
fn longest() -> Bytes {
    let message = Cluster::settled(120_000).request(1, Form::Inline).encode_to_vec();
    eprintln!("{} MiB", message.len() >> 20);
    framed(message.len(), &message)
}

/// Numbers of calls by how they ended.
#[derive(Debug, Default)]
struct Ends {
    planned: usize,
    refused_for_memory: usize,
    others: usize,
}

/// Sends messages one after the other on one connection, and does not complete every second one.
async fn flood(from: LocalClient, server: SocketAddr, longest: Bytes) -> Ends {
    let mut ends = Ends::default();
    let channel = from.channel(server).await.expect("a connection");
    for count in 0..CALLS {
        let pieces: Vec<_> = longest
            .chunks(1 << 20)
            .map(|piece| longest.slice_ref(piece))
            .collect();
        let whole = count % 2 == 0;
        let sent = pieces.len() - usize::from(!whole);
        let body = stream::iter(pieces.into_iter().take(sent));
        let stall = if whole {
            stream::empty().boxed()
        } else {
            stream::pending().boxed()
        };
        let response = call(channel.clone(), PLAN, body.chain(stall))
            .await
            .expect("an answer");
        match Status::from_header_map(response.headers()) {
            None => {
                response.into_body().collect().await.expect("all of it");
                ends.planned += 1;
            }
            Some(status) if status.message().contains("memory") => ends.refused_for_memory += 1,
            Some(_) => ends.others += 1,
        }
    }
    ends
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_messages_take_bounded_memory() {
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--bucket-cache-size",
        "0B",
        "--transfer-timeout",
        "15s",
    ];
    let requests = ByteSize(REQUESTS).to_string();
    let mut process = Process::start(&[&flags[..], &["--max-request-memory", &requests]].concat(), &[]);
    let url = process.url();
    let server: SocketAddr = url
        .strip_prefix("http://")
        .expect("a URL")
        .parse()
        .expect("an address");
    let before = process.peak_memory();
    let longest = longest();
    let connections =
        (2..2 + ADDRESSES).flat_map(|address| iter::repeat_n(LocalClient(address), CONNECTIONS));
    let flooding = join_all(connections.map(|from| flood(from, server, longest.clone())));
    let small = Cluster::empty(3).request(1, Form::Inline);
    let channel = LocalClient(1).channel(server).await.expect("a connection");
    let mut client = ReconcileServiceClient::new(channel);
    tokio::pin!(flooding);
    let mut answered = 0;
    let started = std::time::Instant::now();
    let flooded = async {
        loop {
            tokio::select! {
                ends = &mut flooding => break ends,
                answer = timeout(SOON, client.plan(small.clone())) => {
                    answer.expect("in time").expect("small requests are answered");
                    answered += 1;
                }
            }
        }
    };
    let ends = flooded.await;
    let peak = process.peak_memory();
    eprintln!(
        "before {} MiB, peak {} MiB, {answered} small plans, {:?}",
        before / MIB,
        peak / MIB,
        started.elapsed()
    );
    assert!(answered > 0);
    let count = |what: fn(&Ends) -> usize| ends.iter().map(what).sum::<usize>();
    assert!(count(|ends| ends.planned) > 0, "some are planned");
    assert!(
        count(|ends| ends.refused_for_memory) > 0,
        "some are refused for memory"
    );
    assert!(peak < REQUESTS + BESIDES, "{} MiB", peak / MIB);
}

/// Bytes of a cache that is too small for all pieces, so that buckets are evicted while requests use them.
const SMALL_CACHE: u64 = 64 * MIB;

/// The buckets of a request in two messages. Each message has half of the buckets inline, and the others by digest.
fn pieces() -> [Bytes; 2] {
    let whole = Cluster::settled(100_000).request(32, Form::InlineWithDigest);
    [0, 1].map(|half| {
        let mut piece = whole.clone();
        let snapshot = piece.snapshot.as_mut().expect("a snapshot");
        for buckets in [&mut snapshot.node_buckets, &mut snapshot.pod_buckets] {
            for bucket in buckets.iter_mut().skip(half).step_by(2) {
                bucket.data = None;
            }
        }
        let message = piece.encode_to_vec();
        eprintln!("{} MiB", message.len() >> 20);
        framed(message.len(), &message)
    })
}

// The inline buckets of a request that lacks others are stored in the cache only.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_in_pieces_take_bounded_memory() {
    let mut process = Process::start(
        &[
            "--listen",
            "127.0.0.1:0",
            "--max-request-memory",
            &ByteSize(REQUESTS).to_string(),
            "--bucket-cache-size",
            &ByteSize(SMALL_CACHE).to_string(),
        ],
        &[],
    );
    let url = process.url();
    let server: SocketAddr = url["http://".len()..].parse().expect("an address");
    let pieces = &pieces();
    let connections = (2..2 + ADDRESSES).map(|address| async move {
        let channel = LocalClient(address).channel(server).await.expect("a connection");
        let mut codes = Vec::new();
        for piece in pieces.iter().cycle().take(2 * CALLS) {
            let sent = call(channel.clone(), PLAN, stream::iter([piece.clone()]));
            let response = timeout(LONG, sent).await.expect("in time").expect("an answer");
            codes.push(Status::from_header_map(response.headers()).map(|status| status.code()));
        }
        codes
    });
    let codes = join_all(connections).await.concat();
    let peak = process.peak_memory();
    let count = |code| codes.iter().filter(|answer| **answer == Some(code)).count();
    let (lacking, refused) = (count(Code::FailedPrecondition), count(Code::ResourceExhausted));
    eprintln!(
        "peak {} MiB, {lacking} lacked buckets, {refused} were refused",
        peak / MIB
    );
    assert!(lacking > 0, "some are admitted");
    assert!(peak < REQUESTS + SMALL_CACHE + BESIDES, "{} MiB", peak / MIB);
}

const EXPLAIN: &str = "/nodewise.v1.ReconcileService/Explain";
/// Pods of a cached bucket. A response that names each of them has twenty to thirty megabytes.
const CACHED_PODS: usize = 60_000;
/// How often each of the three requests is made at the same time.
const TIMES: usize = 20;
/// Memory for requests, in bytes: the least that messages of 12 MiB need.
const SMALLER_REQUESTS: u64 = 123 * MIB;
const CACHE: u64 = 128 * MIB;
/// A timeout that is longer than anything here takes.
const LONG: Duration = Duration::from_mins(5);

/// Pods of the workload, or orphans, on nodes that do not exist.
fn many_pods(are_orphans: bool) -> Cluster {
    let mut cluster = Cluster::empty(0);
    // Two workloads: the buckets of one would replace those of the other in the cache.
    let uid = format!("{}-2222-3333-4444-555555555555", u8::from(are_orphans));
    cluster.daemon_set["metadata"]["uid"] = uid.as_str().into();
    cluster.pods = (0..CACHED_PODS).map(|index| pod(index, "hash")).collect();
    for pod in &mut cluster.pods {
        if are_orphans {
            pod.controller = None;
        } else {
            pod.controller.as_mut().expect("an owner").uid.clone_from(&uid);
            // Not bound, so that the plan deletes it.
            pod.target_node_name = std::mem::take(&mut pod.node_name);
        }
    }
    cluster
}

/// Sends the buckets of a cluster to the server, and returns a request with their digests.
async fn cached(server: SocketAddr, cluster: &Cluster) -> v1::PlanRequest {
    let channel = LocalClient(9).channel(server).await.expect("a connection");
    let inline = cluster.request(1, Form::InlineWithDigest);
    let mut client = ReconcileServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    client.plan(inline).await.expect("a plan");
    let mut request = cluster.request(1, Form::DigestOnly);
    // A large burst allows a long plan.
    request.options = Some(v1::PlanOptions {
        burst: Some(5_000),
        ..Default::default()
    });
    request
}

/// Makes a call on its own connection, and reads only the beginning of the response.
async fn unread(from: LocalClient, server: SocketAddr, path: &str, message: Bytes) -> http::Response<Body> {
    let reader = Reader::with_window(64 << 10);
    let channel = from.channel_of(server, &reader).await.expect("a connection");
    let asked = call(channel, path, stream::iter([message]));
    timeout(LONG, asked).await.expect("in time").expect("an answer")
}

fn whole(message: &impl Message) -> Bytes {
    let bytes = message.encode_to_vec();
    assert!(
        bytes.len() < 4 << 10,
        "a request by digest is short: {} bytes",
        bytes.len()
    );
    framed(bytes.len(), &bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_long_responses_take_bounded_memory() {
    let mut process = Process::start(
        &[
            "--listen",
            "127.0.0.1:0",
            "--max-message-size",
            "12MiB",
            "--max-request-memory",
            &ByteSize(SMALLER_REQUESTS).to_string(),
            "--bucket-cache-size",
            &ByteSize(CACHE).to_string(),
            "--max-queued-plans",
            "200",
            "--transfer-timeout",
            "5m",
            "--longest-call",
            "5m",
        ],
        &[],
    );
    let url = process.url();
    let server: SocketAddr = url["http://".len()..].parse().expect("an address");
    let orphans = cached(server, &many_pods(true)).await;
    let owned = cached(server, &many_pods(false)).await;
    let explained = v1::ExplainRequest {
        snapshot: owned.snapshot.clone(),
        ..Default::default()
    };
    let (orphans, owned, explained) = (whole(&orphans), whole(&owned), whole(&explained));
    let before = process.peak_memory();
    let questions = (0..TIMES).flat_map(|_| [(PLAN, &orphans), (PLAN, &owned), (EXPLAIN, &explained)]);
    let asked = (0..).zip(questions).map(|(number, (path, message))| {
        let from = LocalClient(2 + u8::try_from(number % 6).expect("six"));
        unread(from, server, path, message.clone())
    });
    // The responses stay open, and are not read further.
    let answers = join_all(asked).await;
    let peak = process.peak_memory();
    let refused = answers
        .iter()
        .filter_map(|answer| Status::from_header_map(answer.headers()));
    let refused: Vec<_> = refused.collect();
    for status in &refused {
        assert!(status.message().contains("memory"), "{status}");
    }
    let answered = answers.len() - refused.len();
    eprintln!(
        "before {} MiB, peak {} MiB, {answered} responses are unread, {} were refused",
        before / MIB,
        peak / MIB,
        refused.len()
    );
    assert!(answered > 0, "some are answered");
    assert!(!refused.is_empty(), "some are refused for memory");
    assert!(peak < SMALLER_REQUESTS + CACHE + BESIDES, "{} MiB", peak / MIB);
    // Dropping the responses releases their memory, and a small request is answered.
    drop(answers);
    let channel = LocalClient(1).channel(server).await.expect("a connection");
    let small = Cluster::empty(3).request(1, Form::Inline);
    let answer = timeout(SOON, ReconcileServiceClient::new(channel).plan(small)).await;
    answer.expect("in time").expect("an answer");
}

/// The number of labels that a template names: about as many as it may.
const NAMED_LABELS: usize = 1_000;

/// Nodes that all differ in one label, and a template that requires this label and names many others.
fn distinct_nodes(nodes: u32) -> Cluster {
    let mut cluster = Cluster::empty(0);
    let hostname = json!({"key": "kubernetes.io/hostname", "operator": "Exists"});
    let others =
        (1..NAMED_LABELS).map(|number| json!({"key": format!("label-{number}"), "operator": "DoesNotExist"}));
    let expressions: Vec<_> = others.chain([hostname]).collect();
    cluster.daemon_set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]},
    }});
    let node = |number: u32| v1::Node {
        name: format!("node-{number}"),
        labels: vec![v1::Label {
            key: "kubernetes.io/hostname".to_owned(),
            value: format!("node-{number}"),
        }],
        ..Default::default()
    };
    cluster.nodes = (0..nodes).map(node).collect();
    cluster
}

// The memory for the labels that a template names is not multiplied by the number of nodes, even if all nodes differ.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_all_differ_take_bounded_memory() {
    const NODES: u32 = 20_000;
    let mut process = Process::start(
        &[
            "--listen",
            "127.0.0.1:0",
            "--max-message-size",
            "12MiB",
            "--max-request-memory",
            &ByteSize(SMALLER_REQUESTS).to_string(),
            "--bucket-cache-size",
            "0B",
            "--longest-call",
            "5m",
        ],
        &[],
    );
    let url = process.url();
    let server: SocketAddr = url["http://".len()..].parse().expect("an address");
    let plan = distinct_nodes(NODES).request(1, Form::Inline);
    let explain = v1::ExplainRequest {
        snapshot: plan.snapshot.clone(),
        ..Default::default()
    };
    let ask = async |from| {
        let channel = LocalClient(from).channel(server).await.expect("a connection");
        ReconcileServiceClient::new(channel).max_decoding_message_size(usize::MAX)
    };
    let (mut one, mut other) = (ask(2).await, ask(3).await);
    let (planned, explained) = join(
        timeout(LONG, one.plan(plan)),
        timeout(LONG, other.explain(explain)),
    )
    .await;
    let plan = planned.expect("in time").expect("an answer").into_inner().plan;
    let explained = explained.expect("in time").expect("an answer").into_inner();
    let peak = process.peak_memory();
    eprintln!("peak {} MiB", peak / MIB);
    let rollout = plan.expect("a plan").rollout.expect("a rollout");
    assert_eq!(rollout.desired, NODES);
    assert!(explained.nodes.iter().all(|node| node.should_run));
    assert!(peak < SMALLER_REQUESTS + BESIDES, "{} MiB", peak / MIB);
}
