//! Tests of the control plane's own spans.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodewise_testbed::{Collector, ControlPlane, Span, SpanKind, User, eventually};
use serde_json::json;

const DEADLINE: Duration = Duration::from_mins(1);

/// A user whose `traceparent` the apiserver accepts.
const TRACED: &str = "traced";

/// A user with the same rights, but without the group for that.
const STRANGER: &str = "stranger";

async fn start(collector: &Collector, per_million: u32) -> Result<ControlPlane> {
    ControlPlane::builder()
        .tracing(collector.endpoint())
        .traces_per_million(per_million)
        .user(
            User::new(TRACED)
                .group("system:monitoring")
                .cluster_role("cluster-admin"),
        )
        .user(User::new(STRANGER).cluster_role("cluster-admin"))
        .start()
        .await
}

/// A new trace context of a client: trace id and span id.
fn context() -> (String, String) {
    (
        format!("{:032x}", rand::random::<u128>()),
        format!("{:016x}", rand::random::<u64>()),
    )
}

/// Creates a ConfigMap as `user` with this trace context, sampled or not.
async fn create(
    cluster: &ControlPlane,
    user: &str,
    name: &str,
    (trace, span): &(String, String),
    sampled: bool,
) -> Result<()> {
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .header(
            "traceparent",
            format!("00-{trace}-{span}-{:02x}", u8::from(sampled)),
        )
        .body(json!({"metadata": {"name": name}}).to_string().into_bytes())?;
    let client = cluster.client_for(user).await?;
    client.request::<serde_json::Value>(request).await?;
    Ok(())
}

/// The spans of a trace, once it has the apiserver's server span and a span of etcd.
async fn whole_trace(collector: &Collector, trace: &str) -> Result<(Vec<Span>, Span)> {
    eventually(DEADLINE, "the spans of the apiserver and of etcd", async || {
        let spans = collector.trace(trace);
        let services: BTreeSet<_> = spans.iter().map(|span| span.service.as_str()).collect();
        ensure!(services.len() == 2, "{services:?} have sent some");
        let server = spans
            .iter()
            .find(|span| span.service == "apiserver" && span.kind == SpanKind::Server)
            .context("the apiserver has not sent that of the request")?
            .clone();
        Ok((spans, server))
    })
    .await
}

/// Whether `root` is an ancestor of `span` within the trace.
fn is_below(span: &Span, root: &Span, spans: &[Span]) -> bool {
    span.is_child_of(root)
        || spans
            .iter()
            .any(|parent| span.is_child_of(parent) && is_below(parent, root, spans))
}

#[tokio::test]
async fn request_of_a_trusted_user_continues_its_trace() -> Result<()> {
    let collector = Collector::start().await?;
    let cluster = start(&collector, 0).await?;
    let parent = context();
    create(&cluster, TRACED, "one", &parent, true).await?;
    let (spans, server) = whole_trace(&collector, &parent.0).await?;
    assert_eq!(server.parent_id, Some(parent.1));
    assert_eq!(server.name, "POST /api/v1/namespaces/{:namespace}/configmaps");
    assert!(server.links.is_empty(), "{server:?}");
    let etcd = spans
        .iter()
        .find(|span| span.service == "etcd" && span.kind == SpanKind::Server)
        .context("etcd has answered something")?;
    assert!(is_below(etcd, &server, &spans), "{spans:#?}");
    Ok(())
}

#[tokio::test]
async fn unsampled_and_untrusted_requests_have_no_spans() -> Result<()> {
    let collector = Collector::start().await?;
    let cluster = start(&collector, 0).await?;
    let (unsampled, strange) = (context(), context());
    create(&cluster, TRACED, "unsampled", &unsampled, false).await?;
    create(&cluster, STRANGER, "strange", &strange, true).await?;
    // The apiserver exports spans in the order in which they end, so those of the last request arrive last.
    let last = context();
    create(&cluster, TRACED, "last", &last, true).await?;
    whole_trace(&collector, &last.0).await?;
    let traces: BTreeSet<_> = collector.spans().into_iter().map(|span| span.trace_id).collect();
    assert_eq!(traces, BTreeSet::from([last.0]));
    Ok(())
}

#[tokio::test]
async fn request_of_an_untrusted_user_gets_a_linked_trace() -> Result<()> {
    let collector = Collector::start().await?;
    let cluster = start(&collector, 1_000_000).await?;
    let asked = context();
    create(&cluster, STRANGER, "one", &asked, true).await?;
    let server = collector
        .wait_for_span(DEADLINE, "with a link", |span| {
            span.links
                .iter()
                .any(|link| (&link.trace_id, &link.span_id) == (&asked.0, &asked.1))
        })
        .await?;
    assert_eq!(server.service, "apiserver");
    assert_eq!(server.name, "POST /api/v1/namespaces/{:namespace}/configmaps");
    assert_eq!(server.parent_id, None);
    assert_ne!(server.trace_id, asked.0);
    assert!(
        collector.trace(&asked.0).is_empty(),
        "nothing is in the stranger's own trace"
    );
    Ok(())
}

#[tokio::test]
async fn invalid_endpoint_is_an_error() {
    let started = ControlPlane::builder()
        .tracing("https://127.0.0.1:4317")
        .start()
        .await;
    let error = started.expect_err("neither sends by TLS");
    assert!(error.to_string().contains("http://HOST:PORT"), "{error:#}");
}
