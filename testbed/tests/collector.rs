//! Tests of the Collector.

use std::time::Duration;

use anyhow::Result;
use nodewise_testbed::{Collector, SpanKind};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, trace_service_client::TraceServiceClient,
};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};

/// How long a sender waits for a response that must arrive.
const DEADLINE: Duration = Duration::from_mins(1);

/// How long a sender waits for a response that must not arrive.
const HANGING: Duration = Duration::from_millis(300);

/// Exports one span with this name over a new connection, as an SDK does.
async fn send(collector: &Collector, name: &str, timeout: Duration) -> Result<(), Status> {
    let channel = Endpoint::from_shared(collector.endpoint())
        .expect("an endpoint is a URL")
        .timeout(timeout)
        .connect()
        .await
        .map_err(|error| Status::unavailable(format!("connecting: {error}")))?;
    let span = otlp::Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: name.to_owned(),
        kind: otlp::span::SpanKind::Internal.into(),
        ..Default::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![otlp::ResourceSpans {
            scope_spans: vec![otlp::ScopeSpans {
                spans: vec![span],
                ..Default::default()
            }],
            ..Default::default()
        }],
    };
    let mut client = TraceServiceClient::new(channel);
    client.export(Request::new(request)).await.map(drop)
}

fn names(collector: &Collector) -> Vec<String> {
    collector.spans().into_iter().map(|span| span.name).collect()
}

#[tokio::test]
async fn accepted_spans_are_available_at_once() -> Result<()> {
    let collector = Collector::start().await?;
    send(&collector, "first", DEADLINE).await?;
    let spans = collector.trace(&"01".repeat(16));
    assert_eq!(names(&collector), ["first"]);
    assert_eq!(
        (spans[0].kind, spans[0].parent_id.as_deref()),
        (SpanKind::Internal, None)
    );
    assert!(collector.trace(&"02".repeat(16)).is_empty());
    let found = collector
        .wait_for_span(DEADLINE, "first", |span| span.name == "first")
        .await?;
    assert_eq!(found, spans[0]);
    Ok(())
}

#[tokio::test]
async fn stopped_collector_refuses_connections_and_restarts_on_its_port() -> Result<()> {
    let collector = Collector::start().await?;
    send(&collector, "before", DEADLINE).await?;
    collector.stop()?;
    assert!(collector.stop().is_err(), "it no longer runs");
    let refused = send(&collector, "meanwhile", DEADLINE)
        .await
        .expect_err("nobody listens");
    assert!(refused.message().starts_with("connecting"), "{refused}");
    collector.start_again().await?;
    assert!(collector.start_again().await.is_err(), "it runs");
    send(&collector, "after", DEADLINE).await?;
    assert_eq!(names(&collector), ["before", "after"]);
    Ok(())
}

#[tokio::test]
async fn paused_collector_accepts_connections_without_responding() -> Result<()> {
    let collector = Collector::start().await?;
    collector.hang()?;
    let waited = tokio::time::timeout(HANGING, send(&collector, "meanwhile", DEADLINE)).await;
    assert!(waited.is_err(), "it answered: {waited:?}");
    assert_eq!(names(&collector), [""; 0]);
    collector.resume()?;
    send(&collector, "after", DEADLINE).await?;
    assert!(names(&collector).contains(&"after".to_owned()));
    Ok(())
}

#[tokio::test]
async fn refusing_collector_answers_with_the_code() -> Result<()> {
    let collector = Collector::start().await?;
    for code in [
        Code::Unavailable,
        Code::ResourceExhausted,
        Code::InvalidArgument,
        Code::PermissionDenied,
    ] {
        collector.refuse(code);
        let refused = send(&collector, "meanwhile", DEADLINE)
            .await
            .expect_err("it takes nothing");
        assert_eq!(refused.code(), code, "{refused}");
    }
    collector.accept();
    send(&collector, "after", DEADLINE).await?;
    assert_eq!(names(&collector), ["after"]);
    Ok(())
}

/// The drop must not wait for the open connections of a paused process.
#[tokio::test]
async fn paused_collector_can_be_dropped() -> Result<()> {
    let collector = Collector::start().await?;
    send(&collector, "before", DEADLINE).await?;
    collector.hang()?;
    tokio::time::timeout(DEADLINE, tokio::task::spawn_blocking(move || drop(collector))).await??;
    Ok(())
}
