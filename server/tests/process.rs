//! The binary: flags, environment variables, log and signals.

mod support;

use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use serde_json::Value;
use support::{Cluster, Form, Process, get};

#[tokio::test]
async fn a_server_listens_on_a_free_port_and_ends_on_sigterm() {
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
async fn an_open_stream_does_not_prevent_the_end_of_the_server() {
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
async fn an_address_in_use_is_an_error_of_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut process = Process::start(&["--listen", &address], &[]);
    let line = process.line(|line| line.strip_prefix("nodewise-server: ").map(str::to_owned));
    assert!(line.starts_with(&format!("listening on {address}: ")), "{line}");
    assert!(!process.ended().await.success());
}

#[tokio::test]
async fn health_and_metrics_are_served_over_http() {
    let flags = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"];
    let mut process = Process::start(&flags, &[]);
    let http = process.http();
    let mut client = ReconcileServiceClient::connect(process.url()).await.unwrap();
    for form in [Form::InlineWithDigest, Form::DigestOnly] {
        client.plan(Cluster::settled(9).request(4, form)).await.unwrap();
    }
    assert!(get(&http, "/readyz").await.ends_with("\r\nok"));
    let metrics = get(&http, "/metrics").await;
    for line in [
        "nodewise_cache_hits_total{kind=\"nodes\"} 4",
        "nodewise_cache_misses_total{kind=\"pods\"} 4",
        "nodewise_cache_hits_total{kind=\"plans\"} 1",
        "nodewise_cache_evictions_total{kind=\"plans\"} 0",
        "nodewise_cache_entries 9",
        "nodewise_planned_buckets_total{step=\"eligibility\",source=\"computed\"} 4",
        "nodewise_planned_buckets_total{step=\"summary\",source=\"cache\"} 4",
        "nodewise_planned_buckets_total{step=\"summary\",source=\"computed\"} 4",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in:\n{metrics}"
        );
    }
    let bytes = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nodewise_cache_bytes "));
    assert!(bytes.unwrap().parse::<u32>().unwrap() > 1_000, "{metrics}");
}
