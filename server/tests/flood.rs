//! What a server takes when clients send the longest messages, many at a time.

mod support;

use std::{iter, net::SocketAddr};

use bytes::Bytes;
use futures::{StreamExt as _, future::join_all, stream};
use http_body_util::BodyExt as _;
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_server::ByteSize;
use prost::Message as _;
use support::{Cluster, Form, From, Process, SOON, call, framed};
use tokio::time::timeout;
use tonic::Status;

const PLAN: &str = "/nodewise.v1.ReconcileService/Plan";
const MIB: u64 = 1 << 20;

/// What the server is given for requests: the least that messages of 64 MiB need.
const REQUESTS: u64 = 643 * MIB;
/// What it may take besides: itself, what is on its way in each connection, and what its allocator keeps.
const BESIDES: u64 = 192 * MIB;

const ADDRESSES: u8 = 8;
const CONNECTIONS: usize = 2;
const CALLS: usize = 2;

/// A message of nearly 64 MiB that takes as much memory as one may.
fn longest() -> Bytes {
    let message = Cluster::settled(120_000).request(1, Form::Inline).encode_to_vec();
    eprintln!("{} MiB", message.len() >> 20);
    framed(message.len(), &message)
}

/// How calls ended.
#[derive(Debug, Default)]
struct Ends {
    planned: usize,
    refused_for_memory: usize,
    others: usize,
}

/// Sends them one after the other from a connection, every second of them not to its end.
async fn flood(from: From, server: SocketAddr, longest: Bytes) -> Ends {
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
async fn memory_is_held_under_a_bound() {
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--bucket-cache-size",
        "0B",
        "--transfer-timeout",
        "5s",
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
    let connections = (2..2 + ADDRESSES).flat_map(|address| iter::repeat_n(From(address), CONNECTIONS));
    let flooding = join_all(connections.map(|from| flood(from, server, longest.clone())));
    let small = Cluster::empty(3).request(1, Form::Inline);
    let channel = From(1).channel(server).await.expect("a connection");
    let mut client = ReconcileServiceClient::new(channel);
    tokio::pin!(flooding);
    let mut answered = 0;
    let started = std::time::Instant::now();
    let flooded = async {
        loop {
            tokio::select! {
                ends = &mut flooding => break ends,
                answer = timeout(SOON, client.plan(small.clone())) => {
                    answer.expect("in time").expect("who asks for little is answered");
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
    assert!(count(|ends| ends.planned) > 0, "some are let in");
    assert!(
        count(|ends| ends.refused_for_memory) > 0,
        "and there is no memory for all of them"
    );
    assert!(peak < REQUESTS + BESIDES, "{} MiB", peak / MIB);
}
