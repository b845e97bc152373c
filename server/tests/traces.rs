//! The traces that the binary and an executor send to a collector.

mod support;

use std::{
    collections::BTreeSet,
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use nodewise_client::{ClientConfig, PlanClient};
use nodewise_executor::{
    DaemonSets, Manager, controller, manager,
    metrics::Metrics,
    sim::{SimCluster, SimConfig},
};
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_telemetry::{LogFormat, Settings, Traces};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde_json::json;
use support::{Cluster, Collector, Form, Process, SOON, Spans, attributes, eventually};
use tokio_util::sync::CancellationToken;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const PLAN: &str = "nodewise.v1.ReconcileService/Plan";
const REPORT: &str = "nodewise.v1.ReconcileService/Report";
/// The steps of a plan on the server.
const STEPS: [&str; 3] = ["parse", "decide", "render"];
const LISTEN: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// Runs an executor in this process, on a simulated cluster of `nodes` nodes, until each node has a pod.
async fn roll_out(url: String, nodes: u64) {
    let cluster = SimCluster::new(SimConfig::default(), Timestamp::now());
    for number in 0..nodes {
        cluster.add_node(&format!("node-{number}"), &[]);
    }
    let metrics = Metrics::new();
    let client =
        PlanClient::new(&[url], ClientConfig::default(), Arc::new(metrics.clone())).expect("a good URL");
    let stop = CancellationToken::new();
    let manager = Manager::new(manager::Config::default(), metrics, stop.clone()).with::<DaemonSets>(
        controller::Config::default(),
        Arc::new(cluster.actuator()),
        Arc::new(client),
    );
    let running = tokio::spawn(manager.run(cluster.watch()));
    let labels = json!({"app": "agent"});
    let key = cluster
        .create_daemon_set(json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"namespace": "demo", "name": "agent"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
                },
            },
        }))
        .expect("a DaemonSet");
    eventually("each node has a pod", || {
        let created = cluster.counts(&key).created;
        async move { (created == nodes).then_some(()) }
    })
    .await;
    stop.cancel();
    running.await.unwrap().expect("the controller drains");
}

fn named<'a>(spans: &'a Spans, service: &'a str, name: &'a str) -> impl Iterator<Item = &'a Span> {
    spans
        .iter()
        .filter(move |(of, span)| of == service && span.name == name)
        .map(|(_, span)| span)
}

fn child<'a>(spans: &'a Spans, service: &'a str, name: &'a str, parent: &Span) -> &'a Span {
    named(spans, service, name)
        .find(|span| span.trace_id == parent.trace_id && span.parent_span_id == parent.span_id)
        .unwrap_or_else(|| panic!("{} has a child {name} of {service} in {spans:#?}", parent.name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_connects_a_reconcile_with_the_servers_plan() {
    const NODES: u64 = 40;
    let collector = Collector::start().await;
    let telemetry = nodewise_telemetry::init(Settings {
        service: "nodewise-executor",
        log_format: LogFormat::Human,
        log_filter: "error".to_owned(),
        traces: Traces::to(&collector.url, |_| None),
    })
    .expect("a good filter");
    let mut process = Process::start(&LISTEN, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    roll_out(process.url(), NODES).await;
    // Batches are exported every five seconds. Shutting down exports the rest.
    telemetry.shutdown().await;
    process.terminate();
    assert!(process.ended().await.success());
    let spans = collector.spans();

    let reconcile = named(&spans, "nodewise-executor", "reconcile")
        .find(|reconcile| {
            named(&spans, "nodewise-executor", "apply").any(|span| {
                span.parent_span_id == reconcile.span_id
                    && attributes(span)["nodewise.apply.actions"].parse::<u64>().unwrap() > NODES
            })
        })
        .expect("a reconcile that made the pods");
    assert!(reconcile.parent_span_id.is_empty(), "the reconcile is the root");
    child(&spans, "nodewise-executor", "snapshot", reconcile);
    child(&spans, "nodewise-executor", REPORT, reconcile);
    let asked = child(&spans, "nodewise-executor", PLAN, reconcile);
    let answered = child(&spans, "nodewise-server", PLAN, asked);
    assert_eq!(
        (asked.kind(), answered.kind()),
        (SpanKind::Client, SpanKind::Server)
    );
    assert!(asked.start_time_unix_nano <= answered.start_time_unix_nano);
    for span in [asked, answered] {
        let attributes = attributes(span);
        for (name, value) in [
            ("rpc.system.name", "grpc"),
            ("rpc.method", PLAN),
            ("rpc.response.status_code", "OK"),
        ] {
            assert_eq!(attributes[name], value, "{name}");
        }
    }
    assert_eq!(attributes(asked)["nodewise.plan.verdict"], "APPLY");
    let counted = attributes(answered);
    assert_eq!(counted["nodewise.nodes"], NODES.to_string());
    for step in STEPS {
        let took: f64 = counted[format!("nodewise.{step}.duration").as_str()]
            .parse()
            .expect("seconds");
        assert!(took > 0.0, "{step} took {took} s");
        // A step of a millisecond or more also has a span.
        for span in named(&spans, "nodewise-server", step) {
            let parent = named(&spans, "nodewise-server", PLAN)
                .find(|parent| parent.span_id == span.parent_span_id)
                .expect("a step is part of a plan");
            assert!(
                parent.start_time_unix_nano <= span.start_time_unix_nano
                    && span.end_time_unix_nano <= parent.end_time_unix_nano
            );
        }
    }

    let mut names: BTreeSet<_> = spans.iter().map(|(_, span)| span.name.as_str()).collect();
    for step in STEPS {
        names.remove(step);
    }
    let ours = ["apply", "batch", PLAN, REPORT, "reconcile", "snapshot"];
    assert_eq!(names, ours.into(), "no spans of libraries");
    let in_trace = spans
        .iter()
        .filter(|(_, span)| span.trace_id == reconcile.trace_id);
    assert!(in_trace.count() < 30, "no span per node");
}

/// Requests a plan for two nodes, with a sampled trace context.
async fn ask(url: String, change: impl FnOnce(&mut v1::PlanRequest)) -> Result<v1::Plan, tonic::Status> {
    let mut client = ReconcileServiceClient::connect(url).await.expect("a connection");
    let mut message = Cluster::empty(2).request(1, Form::Inline);
    change(&mut message);
    let mut request = tonic::Request::new(message);
    request
        .metadata_mut()
        .insert("traceparent", PARENT.parse().unwrap());
    let response = client.plan(request).await?.into_inner();
    Ok(response.plan.expect("a plan"))
}

/// Runs a server for one plan. Returns its log after the listening line.
async fn asked_once(environment: &[(&str, &str)]) -> String {
    let mut process = Process::start(&LISTEN, environment);
    ask(process.url(), |_| {}).await.expect("a plan");
    process.terminate();
    assert!(process.ended().await.success());
    process.rest_of_log()
}

#[tokio::test]
async fn traces_are_off_by_default_and_can_be_disabled() {
    // If traces were on, the log would warn that the export failed.
    let log = asked_once(&[]).await;
    assert!(!log.contains("WARN") && log.contains("drained"), "{log}");

    let collector = Collector::start().await;
    let named = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
    for off in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ] {
        asked_once(&[named, off]).await;
        assert_eq!(collector.spans(), [], "{off:?}");
    }
    let log = asked_once(&[named, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).await;
    assert_eq!(collector.spans(), [], "another protocol: {log}");
}

// The images of Nodewise contain no certificate authorities.
#[test]
fn without_certificate_authorities_the_log_names_the_variable_to_set() {
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("SSL_CERT_FILE", "/dev/null"),
        ("SSL_CERT_DIR", ""),
    ];
    let mut process = Process::start(&LISTEN, &environment);
    let said = process.line(|line| Some(line.split("traces are not exported: ").nth(1)?.to_owned()));
    for part in ["https://collector:4317", "OTEL_EXPORTER_OTLP_CERTIFICATE"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    process.line(|line| line.contains("listening on").then_some(()));
}

#[tokio::test]
async fn variables_set_the_service_name_and_the_callers_span_is_the_parent() {
    let collector = Collector::start().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.url.as_str()),
        ("OTEL_SERVICE_NAME", "planner-of-mine"),
        // Sampling is parent-based, and the caller's trace is sampled.
        ("OTEL_TRACES_SAMPLER", "parentbased_always_off"),
    ];
    let mut process = Process::start(&LISTEN, &environment);
    let url = process.url();
    ask(url.clone(), |_| {}).await.expect("a plan");
    let refused = ask(url, |request| request.snapshot = None).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    process.terminate();
    assert!(process.ended().await.success());

    let spans = collector.spans();
    let plans: Vec<_> = named(&spans, "planner-of-mine", PLAN).collect();
    let ends: BTreeSet<_> = plans
        .iter()
        .map(|span| attributes(span)["rpc.response.status_code"].clone())
        .collect();
    assert_eq!(
        ends,
        BTreeSet::from(["OK".to_owned(), "INVALID_ARGUMENT".to_owned()])
    );
    for plan in plans {
        let trace = u128::from_be_bytes(plan.trace_id.clone().try_into().unwrap());
        let caller = u64::from_be_bytes(plan.parent_span_id.clone().try_into().unwrap());
        let parent = format!("00-{trace:032x}-{caller:016x}-01");
        assert_eq!(parent, PARENT);
        let status = plan.status.clone().unwrap_or_default();
        assert_eq!(
            status.code(),
            StatusCode::Unset,
            "a bad request is the client's error"
        );
    }
}

#[tokio::test]
async fn an_unreachable_or_hanging_collector_delays_nothing() {
    // Bound but not listening, so that no other process gets the port.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // The backlog accepts connections, but the collector never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [closed.local_addr().unwrap(), hanging.local_addr().unwrap()] {
        let url = format!("http://{address}");
        let mut process = Process::start(&LISTEN, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
        let start = Instant::now();
        let server = process.url();
        ask(server, |_| {}).await.expect("a plan");
        assert!(start.elapsed() < SOON / 4, "started and answered at once");
        let start = Instant::now();
        process.terminate();
        assert!(process.ended().await.success());
        // The export itself may take ten seconds, but the shutdown waits for three at most.
        let took = start.elapsed();
        assert!(took < Duration::from_secs(7), "{took:?} to end");
        let log = process.rest_of_log();
        assert!(log.contains("spans were not exported"), "{log}");
    }
}
