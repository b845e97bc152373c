//! Tests requests that are sent in pieces.

use super::*;

/// The size in bytes of a bucket of [`large`].
const BUCKET: usize = 1_000;

/// A request with this number of node buckets and an empty pod bucket.
pub(super) fn large(buckets: u8) -> impl FnMut(&Receiver<'_>) -> v1::PlanRequest + Send {
    move |receiver| {
        let bucket = |content: Vec<u8>| {
            let digest: Digest = Sha256::digest(&content).into();
            v1::Bucket {
                data: (!receiver.has(&digest)).then(|| content.into()),
                digest: Bytes::copy_from_slice(&digest),
                ..v1::Bucket::default()
            }
        };
        v1::PlanRequest {
            snapshot: Some(v1::Snapshot {
                node_buckets: (0..buckets).map(|number| bucket(vec![number; BUCKET])).collect(),
                pod_buckets: vec![bucket(Vec::new())],
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

/// As [`quick`], with pieces that have room for this number of buckets of [`large`].
pub(super) fn in_pieces_of(buckets: usize) -> ClientConfig {
    ClientConfig {
        max_piece_bytes: buckets * BUCKET + BUCKET / 2,
        ..quick()
    }
}

fn too_large() -> Result<v1::Plan, Status> {
    Err(Status::resource_exhausted("a message is too large"))
}

/// For each request, the node buckets that were inline.
pub(super) fn brought(server: &Server) -> Vec<Vec<usize>> {
    let positions = |[nodes, _]: [Vec<bool>; 2]| {
        let inline = nodes.iter().enumerate().filter(|(_, inline)| **inline);
        inline.map(|(index, _)| index).collect()
    };
    (0..server.asked())
        .map(|request| positions(server.inline(request)))
        .collect()
}

#[tokio::test]
async fn a_request_that_is_too_large_for_one_message_is_sent_in_pieces() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3, 4, 5, 6, 7, 8, 9], &[])));
    server.then(|| Err(lacking(&[4, 5, 6, 7, 8, 9], &[])));
    server.then(|| Err(lacking(&[6, 7, 8, 9], &[])));
    server.then(|| Err(lacking(&[8, 9], &[])));
    let answer = client.plan("uid", &mut large(10)).await.expect("a plan");
    assert_eq!(answer.request, 4);
    assert_eq!(
        brought(&server),
        [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]],
        "more of them than there may be corrections"
    );
    client.plan("uid", &mut large(10)).await.expect("a plan");
    assert!(brought(&server)[5].is_empty(), "it has them all");
}

#[tokio::test]
async fn a_bucket_that_is_larger_than_a_piece_is_sent_alone() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(0));
    server.then(|| Err(lacking(&[1], &[])));
    client.plan("uid", &mut large(2)).await.expect("a plan");
    assert_eq!(brought(&server), [[0], [1]]);
}

// After a restart of the replica the client still expects it to have all buckets.
#[tokio::test]
async fn a_restarted_replica_gets_all_buckets_in_pieces() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    member(&client, &server).learn((0..4).map(|number| Sha256::digest([number; BUCKET]).into()));
    server.then(|| Err(lacking(&[0, 1, 2, 3], &[])));
    server.then(|| Err(lacking(&[2, 3], &[])));
    client.plan("uid", &mut large(4)).await.expect("a plan");
    assert_eq!(brought(&server), [vec![], vec![0, 1], vec![2, 3]]);
}

// Pieces that the replica has cached are not sent again, neither by the next attempt nor for another workload.
#[tokio::test]
async fn an_attempt_continues_where_the_last_one_ended() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3, 4, 5], &[])));
    server.then(|| Err(Status::unavailable("the connection broke")));
    server.then(|| Err(lacking(&[4, 5], &[])));
    client.plan("uid", &mut large(6)).await.expect("a plan");
    assert_eq!(brought(&server), [[0, 1], [2, 3], [2, 3], [4, 5]]);
}

#[tokio::test]
async fn a_replica_without_a_cache_gets_everything_in_one_message() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3, 4, 5], &[])));
    server.then(|| Err(lacking(&[0, 1, 4, 5], &[0])));
    client.plan("uid", &mut large(6)).await.expect("a plan");
    assert_eq!(brought(&server), [vec![0, 1], vec![2, 3], (0..6).collect()]);
}

// The replica's cache has room for one piece only.
#[tokio::test]
async fn a_request_that_fits_neither_a_message_nor_the_cache_is_an_error_with_advice() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3, 4, 5, 6, 7], &[])));
    server.then(|| Err(lacking(&[4, 5, 6, 7], &[])));
    server.then(|| Err(lacking(&[0, 1, 6, 7], &[0])));
    server.then(too_large);
    let error = client
        .plan("uid", &mut large(8))
        .await
        .expect_err("there is no way");
    assert_eq!(server.asked(), 4);
    assert!(matches!(error, ServiceError::Refused(_)), "{error}");
    let reason = error.to_string();
    for said in [
        "a message is too large (all buckets take 83",
        "in pieces of 2500 bytes",
        "--bucket-cache-size",
        "--max-message-size",
    ] {
        assert!(reason.contains(said), "{said}: {reason}");
    }
}

// Calls for several workloads with the same nodes reach a replica with an empty cache at the same time.
#[tokio::test]
async fn concurrent_calls_do_not_send_the_same_pieces() {
    let server = serve().await;
    server.script().slow = Duration::from_millis(20);
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3, 4, 5], &[])));
    server.then(|| Err(lacking(&[4, 5], &[])));
    let (mut first, mut second) = (large(6), large(6));
    let (first, second) = tokio::join!(
        client.plan("uid", &mut first),
        client.plan("another", &mut second)
    );
    first.expect("a plan");
    second.expect("a plan");
    assert_eq!(brought(&server), [vec![0, 1], vec![2, 3], vec![4, 5], vec![]]);
}

#[tokio::test]
async fn a_call_that_times_out_waiting_for_another_one_says_so() {
    let server = serve().await;
    let config = ClientConfig {
        timeout: Duration::from_millis(300),
        ..in_pieces_of(2)
    };
    let client = client_of(&[&server], config);
    let replica = member(&client, &server);
    let _other = replica.pieces.lock().await;
    let error = client
        .plan("uid", &mut large(6))
        .await
        .expect_err("the other call never ends");
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    assert!(
        error.to_string().contains("another call sends it buckets"),
        "{error}"
    );
    assert_eq!((server.asked(), counts(&client, "evicted ")), (0, 0));
}

// A bucket without a digest is always inline.
#[tokio::test]
async fn buckets_without_digests_are_sent_in_one_message() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    let mut build = |_: &Receiver<'_>| {
        let mut request = large(4)(&Receiver::EMPTY);
        for bucket in &mut request.snapshot.as_mut().expect("a snapshot").node_buckets {
            bucket.digest.clear();
        }
        request
    };
    client.plan("uid", &mut build).await.expect("a plan");
    assert_eq!(brought(&server), [[0, 1, 2, 3]]);
}
