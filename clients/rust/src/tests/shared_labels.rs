//! Requests whose nodes share labels, to replicas that read them and to others.

use super::*;
use nodewise_proto::workload::SHARED_LABELS_FEATURE;

fn sharing() -> ClientConfig {
    ClientConfig {
        shared_labels: true,
        ..quick()
    }
}

/// Asks for a plan with two node buckets. In the first, nodes share labels if the replica reads that.
async fn ask(client: &PlanClient) -> Result<Answer, ServiceError> {
    let mut build = |receiver: &Receiver<'_>| {
        let mut request = request(receiver);
        let snapshot = request.snapshot.as_mut().expect("a snapshot");
        if receiver.reads_shared_labels() {
            let content = b"shared";
            let digest: Digest = Sha256::digest(content).into();
            snapshot.node_buckets[0] = v1::Bucket {
                data_with_shared_labels: (!receiver.has(&digest)).then(|| Bytes::from_static(content)),
                digest: Bytes::copy_from_slice(&digest),
                data: None,
            };
        }
        request
    };
    client.plan("uid", &mut build).await
}

/// For each request: whether the first node bucket had data, and data with shared labels.
fn forms(server: &Server) -> Vec<(bool, bool)> {
    let script = server.script();
    let form = |request: &v1::PlanRequest| {
        let bucket = &request.snapshot.as_ref().expect("a snapshot").node_buckets[0];
        (bucket.data.is_some(), bucket.data_with_shared_labels.is_some())
    };
    script.requests.iter().map(form).collect()
}

const PLAIN: (bool, bool) = (true, false);
const SHARED: (bool, bool) = (false, true);
const BY_DIGEST: (bool, bool) = (false, false);

fn reading_shared_labels(server: &Server) {
    server.script().features = vec![SHARED_LABELS_FEATURE.to_owned()];
}

#[tokio::test]
async fn only_a_replica_that_announces_it_gets_shared_labels() {
    let (old, new) = (serve().await, serve().await);
    reading_shared_labels(&new);
    for (server, forms_expected) in [(&old, [PLAIN, BY_DIGEST]), (&new, [SHARED, BY_DIGEST])] {
        let client = client_of(&[server], sharing());
        for _ in 0..2 {
            ask(&client).await.expect("a plan");
        }
        assert_eq!(forms(server), forms_expected);
        assert_eq!(count(&client, "get_capabilities answered"), 1, "once");
    }
}

#[tokio::test]
async fn without_the_setting_no_replica_is_asked_what_it_reads() {
    let server = serve().await;
    reading_shared_labels(&server);
    let client = client_of(&[&server], quick());
    ask(&client).await.expect("a plan");
    assert_eq!(forms(&server), [PLAIN]);
    assert_eq!(count(&client, "get_capabilities answered"), 0);
}

// Every version reads the plain form, so a gateway that refuses the question stops nothing.
#[tokio::test]
async fn a_replica_that_may_not_be_asked_gets_the_plain_form() {
    let server = serve().await;
    server.script().hides_capabilities = true;
    let client = client_of(&[&server], sharing());
    for _ in 0..2 {
        ask(&client).await.expect("a plan");
    }
    assert_eq!(forms(&server), [PLAIN, BY_DIGEST]);
}

// A probe forgets what the replica is capable of. It would be asked again after each failed call.
#[tokio::test]
async fn a_replica_that_was_away_is_not_asked_again() {
    let server = serve().await;
    reading_shared_labels(&server);
    let client = client_of(&[&server], sharing());
    ask(&client).await.expect("a plan");
    server.then(|| Err(Status::unavailable("a fault")));
    ask(&client).await.expect("a plan after the next probe");
    ask(&client).await.expect("a plan");
    assert_eq!(count(&client, "get_capabilities answered"), 1);
    assert_eq!(forms(&server).last(), Some(&BY_DIGEST));
}

// During an upgrade an earlier version may answer behind the address of a newer one.
#[tokio::test]
async fn a_replica_that_does_not_read_shared_labels_gets_the_plain_form() {
    let server = serve().await;
    reading_shared_labels(&server);
    server.script().is_earlier = true;
    let client = client_of(&[&server], sharing());
    ask(&client).await.expect("a plan");
    assert_eq!(forms(&server), [SHARED, PLAIN]);
    assert_eq!(count(&client, "plan lacks_buckets"), 1);
    // What it announced was forgotten.
    server.script().features.clear();
    ask(&client).await.expect("a plan");
    assert_eq!(count(&client, "get_capabilities answered"), 2);
    // It has cached nothing.
    assert_eq!(forms(&server)[2..], [BY_DIGEST, PLAIN]);
}

// Buckets that were evicted do not mean that the version is another one.
#[tokio::test]
async fn a_replica_that_lacks_other_buckets_still_gets_shared_labels() {
    let server = serve().await;
    reading_shared_labels(&server);
    let client = client_of(&[&server], sharing());
    ask(&client).await.expect("a plan");
    server.then(|| Err(lacking(&[0], &[1])));
    ask(&client).await.expect("a plan");
    assert_eq!(forms(&server), [SHARED, BY_DIGEST, SHARED]);
    server.then(|| Err(lacking(&[1], &[])));
    ask(&client).await.expect("a plan");
    assert_eq!(count(&client, "get_capabilities answered"), 1);
}

#[tokio::test]
async fn buckets_with_shared_labels_are_sent_in_pieces() {
    let server = serve().await;
    reading_shared_labels(&server);
    let config = ClientConfig {
        max_piece_bytes: 200,
        ..sharing()
    };
    let client = client_of(&[&server], config);
    let mut build = |receiver: &Receiver<'_>| {
        let content = |number: u8| vec![number; 150];
        let bucket = |number| {
            let digest: Digest = Sha256::digest(content(number)).into();
            v1::Bucket {
                data_with_shared_labels: (!receiver.has(&digest)).then(|| content(number).into()),
                digest: Bytes::copy_from_slice(&digest),
                data: None,
            }
        };
        v1::PlanRequest {
            snapshot: Some(v1::Snapshot {
                node_buckets: vec![bucket(1), bucket(2)],
                ..Default::default()
            }),
            ..Default::default()
        }
    };
    server.then(|| Err(lacking(&[1], &[])));
    client.plan("uid", &mut build).await.expect("a plan");
    let requests = &server.script().requests;
    let inline = |request: &v1::PlanRequest| {
        let buckets = &request.snapshot.as_ref().expect("a snapshot").node_buckets;
        buckets
            .iter()
            .map(|bucket| bucket.data_with_shared_labels.is_some())
            .collect::<Vec<_>>()
    };
    let inline: Vec<_> = requests.iter().map(inline).collect();
    assert_eq!(inline, [[true, false], [false, true]]);
}
