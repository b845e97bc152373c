//! Tests `PlanClient::explain`.

use super::pieces::{brought, in_pieces_of, large};
use super::*;

/// As [`large`], for an explanation.
fn question(buckets: u8) -> impl FnMut(&Receiver<'_>) -> v1::ExplainRequest + Send {
    let mut large = large(buckets);
    move |receiver| v1::ExplainRequest {
        snapshot: large(receiver).snapshot,
        ..Default::default()
    }
}

/// The error of an Explain call.
async fn explain_error(client: &PlanClient) -> String {
    let answer = client.explain("uid", &mut question(1)).await;
    answer.expect_err("no answer").to_string()
}

#[tokio::test]
async fn a_large_request_is_sent_in_pieces() {
    let server = serve().await;
    let client = client_of(&[&server], in_pieces_of(2));
    server.then(|| Err(lacking(&[2, 3], &[])));
    let answer = client.explain("uid", &mut question(4)).await.expect("an answer");
    assert_eq!(answer.nodes[0].node_name, "n1");
    assert_eq!(brought(&server), [[0, 1], [2, 3]]);
    client.plan("uid", &mut large(4)).await.expect("a plan");
    assert!(
        brought(&server)[2].is_empty(),
        "a plan for the same snapshot needs none again"
    );
    assert_eq!(client.recorder.told()["explain answered"], 1);
    assert_eq!(client.recorder.told()["explain lacks_buckets"], 1);
}

#[tokio::test]
async fn another_replica_is_asked_if_one_is_down() {
    let (url, _reserved) = dead();
    let server = serve().await;
    let client = client(&[url, server.url.clone()], quick());
    for workload in 0..8 {
        let uid = format!("uid-{workload}");
        client.explain(&uid, &mut question(1)).await.expect("an answer");
    }
    assert_eq!(server.asked(), 8);
}

#[tokio::test]
async fn a_refusal_names_the_wrong_field() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    server.then(|| {
        let details = ErrorDetails::with_bad_request_violation("snapshot.now", "is missing");
        Err(Status::with_error_details(
            Code::InvalidArgument,
            "wrong",
            details,
        ))
    });
    let refused = client.explain("uid", &mut question(1)).await;
    let Err(ServiceError::Refused(refusal)) = refused else {
        panic!("{refused:?}");
    };
    let [violation] = &refusal.violations[..] else {
        panic!("{refusal:?}");
    };
    assert_eq!(
        (&*violation.field, &*violation.description),
        ("snapshot.now", "is missing")
    );
    assert_eq!(refusal.reason, format!("{}: InvalidArgument: wrong", server.url));
}

#[tokio::test]
async fn the_error_says_that_another_server_answered() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    for _ in 0..3 {
        server.then(|| Err(Status::unimplemented("unknown method")));
    }
    let error = explain_error(&client).await;
    assert!(
        error.contains("does not answer as a nodewise-server of this version: check the address"),
        "{error}"
    );
}

// A broken connection does not mean that another server listens there.
#[tokio::test]
async fn a_broken_connection_is_not_reported_as_another_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    // Speaks HTTP/2 until the first call, then closes the connection.
    let dying = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
            drop(connection.accept().await);
        }
    });
    let client = client(&[url], quick());
    let error = explain_error(&client).await;
    assert!(!error.contains("does not answer as"), "{error}");
    dying.abort();
}

#[tokio::test]
async fn error_texts_of_servers_are_cut_and_on_one_line() {
    let server = serve().await;
    let client = client_of(&[&server], quick());
    server.then(|| Err(Status::invalid_argument("one\nlevel=INFO two".repeat(200))));
    let error = explain_error(&client).await;
    assert!(
        error.len() < 1_400 && error.contains("one\\nlevel=INFO two"),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}
