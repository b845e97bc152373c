//! The binary: flags, environment, log, signals.

mod support;

use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use serde_json::Value;
use support::{Cluster, Form, Process};

#[tokio::test]
async fn a_server_takes_a_free_port_serves_and_ends_on_sigterm() {
    let mut process = Process::start(&["--listen", "127.0.0.1:0"], &[]);
    let url = process.url();
    let mut client = ReconcileServiceClient::connect(url).await.unwrap();
    assert!(
        client
            .plan(Cluster::empty(3).request(1, Form::Inline))
            .await
            .unwrap()
            .into_inner()
            .plan
            .is_some()
    );
    process.terminate();
    assert!(process.ended().await.success());
}

#[tokio::test]
async fn flags_may_come_from_the_environment_and_the_log_may_be_json() {
    let environment = [
        ("NODEWISE_LISTEN", "127.0.0.1:0"),
        ("NODEWISE_LOG_FORMAT", "json"),
        ("NODEWISE_MAX_NODES", "2"),
    ];
    let mut process = Process::start(&[], &environment);
    let (message, address) = process.line(|line| {
        let line: Value = serde_json::from_str(line).expect("every line is an object");
        Some((
            line["message"].as_str()?.to_owned(),
            line["addr"].as_str()?.to_owned(),
        ))
    });
    assert_eq!(message, format!("listening on {address}"));
    let mut client = ReconcileServiceClient::connect(format!("http://{address}"))
        .await
        .unwrap();
    let refused = client
        .plan(Cluster::empty(3).request(1, Form::Inline))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
}

#[tokio::test]
async fn a_client_that_never_ends_does_not_hold_a_server_that_must() {
    let mut process = Process::start(&["--listen", "127.0.0.1:0", "--drain-timeout", "50ms"], &[]);
    let url = process.url();
    let mut client = ReconcileServiceClient::connect(url).await.unwrap();
    let (_questions, receiver) = tokio::sync::mpsc::channel(1);
    let stream = client
        .plan_stream(tokio_stream::wrappers::ReceiverStream::new(receiver))
        .await
        .unwrap();
    process.terminate();
    assert!(process.ended().await.success());
    drop(stream);
}

#[tokio::test]
async fn an_address_that_is_taken_is_one_clear_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut process = Process::start(&["--listen", &address], &[]);
    let line = process.line(|line| line.strip_prefix("nodewise-server: ").map(str::to_owned));
    assert!(line.starts_with(&format!("listening on {address}: ")), "{line}");
    assert!(!process.ended().await.success());
}
