//! Traces and metrics, with a real Collector and a real Prometheus.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{
    DEADLINE, EXECUTOR_USER, daemon_set, deployment, image_patch,
    traces::{CREATE, DELETE, Traces, every_trace_is_one_tree, of},
};
use nodewise_e2e::{OWNER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::{AlertState, Collector, CollectorTls, Prometheus, Span, eventually};
use nodewise_tls::testing::{Authority, write};
use tonic::Code;

const EXECUTOR: &str = "nodewise-executor";
const SERVER: &str = "nodewise-server";

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_update_is_traced_from_the_event_to_etcd() -> Result<()> {
    const NODES: usize = 50;
    let collector = Collector::start().await?;
    let setup = Setup::start(SetupOptions::nodes(NODES).traced(&collector.endpoint())).await?;
    let object = daemon_set("agent").max_unavailable(5).build();
    setup.roll_out("agent", object).await?;
    let before = setup.pod_names("agent").await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_for_rollout("agent").await?;
    let after = setup.pod_names("agent").await?;
    setup.stop_executor().await?;
    setup.server().process().terminate(DEADLINE).await?;

    let traces = Traces::of(&collector, EXECUTOR).await?;
    let reconciles = traces.expect_rollout("agent", &before, &after)?;
    ensure!(
        reconciles >= 20,
        "a rollout of 50 nodes by fives in {reconciles} reconciles"
    );
    // An example for readers, as in docs/operations.md.
    let shown = traces.outline(&traces.first_that_deletes()?);
    println!("{shown}");
    ensure!(shown.lines().count() > 30, "{shown}");
    Ok(())
}

// Reconciles of the Deployment write ReplicaSets, and reconciles of its ReplicaSets write pods.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_of_a_deployment_is_traced() -> Result<()> {
    let collector = Collector::start().await?;
    let options = SetupOptions::nodes(3)
        .controllers("*", OWNER_COMPONENTS)
        .traced(&collector.endpoint());
    let setup = Setup::start(options).await?;
    setup
        .start_deployment(deployment("web", 10).rolling(3, 2).build())
        .await?;
    setup.patch_deployment("web", image_patch(2)).await?;
    setup.wait_for_sizes("web", &[(1, 0), (2, 10)]).await?;
    setup.wait_for_deployment("web").await?;
    setup.stop_executor().await?;
    setup.server().process().terminate(DEADLINE).await?;

    let traces = Traces::of(&collector, EXECUTOR).await?;
    ensure!(
        traces.outline(&traces.first_that_deletes()?).lines().count() > 5,
        "a trace has calls"
    );
    let spans = collector.spans();
    let of_root = |span: &Span, attribute: &str| {
        let root = of(&spans, EXECUTOR, "reconcile").find(|root| root.trace_id == span.trace_id);
        let name = root.and_then(|root| root.attribute(attribute).as_str());
        name.unwrap_or("").to_owned()
    };
    let create_set = "POST /apis/apps/v1/namespaces/{namespace}/replicasets";
    for (name, count) in [(CREATE, 20), (DELETE, 10), (create_set, 2)] {
        let calls: Vec<_> = of(&spans, EXECUTOR, name).collect();
        ensure!(calls.len() == count, "{} of {count} calls: {name}", calls.len());
        for call in calls {
            let names = ["k8s.deployment.name", "k8s.replicaset.name"].map(|name_of| of_root(call, name_of));
            let is_right = if name == create_set {
                names == ["web", ""]
            } else {
                names[0].is_empty() && names[1].starts_with("web-")
            };
            ensure!(is_right, "{name} is in the trace of {names:?}");
        }
    }
    Ok(())
}

// All writes before the end are in the traces, and every log line within a reconcile has its span id.
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_exports_all_spans() -> Result<()> {
    let collector = Collector::start().await?;
    let options = SetupOptions::nodes(20)
        .traced(&collector.endpoint())
        .executor_arg("--log=debug")
        .executor_arg("--trace-annotations")
        // Only the shutdown exports spans.
        .variable("OTEL_BSP_SCHEDULE_DELAY", "600000")
        .variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2048");
    let setup = Setup::start(options).await?;
    setup
        .roll_out("agent", daemon_set("agent").max_unavailable(2).build())
        .await?;
    setup.patch("agent", image_patch(2)).await?;
    eventually(DEADLINE, "the middle of the rollout", async || {
        let updated = setup.count_of_version("agent", 2).await?;
        ensure!(updated >= 5, "{updated} pods are new");
        Ok(())
    })
    .await?;
    ensure!(
        collector.spans().iter().all(|span| span.service != EXECUTOR),
        "nothing was sent before"
    );
    setup.stop_executor().await?;
    let spans = collector.spans();
    let writes = setup
        .audit(|event| event.user == EXECUTOR_USER && event.resource == "pods" && event.is_write())
        .await?;
    let count = |verb: &str| writes.iter().filter(|event| event.verb == verb).count();
    ensure!(
        count("delete") > 0 && count("create") > 20,
        "it was in the middle"
    );
    for (verb, name) in [("create", CREATE), ("delete", DELETE)] {
        let traced = of(&spans, EXECUTOR, name).count();
        ensure!(traced == count(verb), "{traced} of {} calls: {verb}", count(verb));
    }
    let log = setup.executor().log();
    ensure!(!log.contains("spans were not exported"), "{log}");
    let lines = log
        .lines()
        .filter(|line| line.contains("reconcile{key=default/agent}"));
    let unnamed: Vec<_> = lines.filter(|line| !line.contains(" trace_id=")).collect();
    ensure!(unnamed.is_empty() && log.contains(" span_id="), "{unnamed:?}");

    let pods = setup.live_pods("agent").await?;
    let traces: BTreeSet<_> = of(&spans, EXECUTOR, "batch").map(Span::traceparent).collect();
    for pod in pods {
        let annotations = pod.metadata.annotations.unwrap_or_default();
        let named = annotations.get("nodewise.dev/traceparent");
        ensure!(
            named.is_some_and(|context| traces.contains(context)),
            "{named:?} is the batch's"
        );
    }
    let led_back = spans.iter().flat_map(|span| &span.links);
    let mut kinds = led_back.filter_map(|link| link.attributes["nodewise.link"].as_str());
    ensure!(
        kinds.any(|kind| kind == "trigger"),
        "pods that became ready lead back to who created them"
    );
    Ok(())
}

// With the standard environment variables, to a collector that requires client certificates.
#[tokio::test(flavor = "multi_thread")]
async fn spans_go_out_over_tls() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (of_collector, of_senders) = (
        Authority::new("authority of collectors"),
        Authority::new("authority of senders"),
    );
    let [certificate, key] = of_collector
        .issue(&["127.0.0.1"])
        .write(folder.path(), "collector");
    let clients = write(folder.path(), "senders.crt", &of_senders.pem());
    let tls = CollectorTls {
        certificate,
        key,
        clients,
    };
    let collector = Collector::start_with_tls(tls).await?;
    let [certificate, key] = of_senders
        .issue(&["sender.example.com"])
        .write(folder.path(), "sender");
    let authority = write(folder.path(), "collectors.crt", &of_collector.pem());
    let endpoint = collector.endpoint();
    // TLS is the default without a scheme.
    let address = endpoint.strip_prefix("https://").context("an address")?;
    let mut options = SetupOptions::nodes(2).variable("OTEL_EXPORTER_OTLP_ENDPOINT", address);
    for (variable, file) in [
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", authority),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", key),
    ] {
        options = options.variable(variable, &file.display().to_string());
    }
    let setup = Setup::start(options).await?;
    setup.roll_out("agent", daemon_set("agent").build()).await?;
    for service in [EXECUTOR, SERVER] {
        collector
            .wait_for_span(DEADLINE, service, |span| span.service == service)
            .await?;
    }
    Ok(())
}

/// The value of a metric in a scrape.
fn value(scrape: &str, series: &str) -> Result<u64> {
    let line = scrape
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
        .with_context(|| format!("{series} in {scrape}"))?;
    Ok(line.parse()?)
}

// If the collector is away, hangs or rejects spans, spans are dropped and counted, and no reconcile fails.
#[tokio::test(flavor = "multi_thread")]
async fn failing_collector_only_drops_spans() -> Result<()> {
    let collector = Collector::start().await?;
    let options = SetupOptions::nodes(20)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .variable("OTEL_BSP_MAX_QUEUE_SIZE", "256")
        .variable("OTEL_BSP_SCHEDULE_DELAY", "100")
        .variable("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
    let setup = Setup::start(options).await?;
    let object = daemon_set("agent").max_unavailable("100%").build();
    setup.roll_out("agent", object).await?;
    let dropped = async || -> Result<[u64; 2]> {
        let (_, executor) = setup.executor_get("/metrics").await?;
        let (_, server) = setup.server_get("/metrics").await?;
        let series = "nodewise_trace_spans_dropped_total";
        Ok([value(&executor, series)?, value(&server, series)?])
    };
    let mut version = 1;
    for trouble in ["hangs", "refuses", "is away"] {
        let before = dropped().await?;
        match trouble {
            "hangs" => collector.hang()?,
            "refuses" => collector.refuse(Code::InvalidArgument),
            _ => collector.stop()?,
        }
        version += 1;
        setup.patch("agent", image_patch(version)).await?;
        setup.wait_for_rollout("agent").await?;
        eventually(
            DEADLINE,
            format!("dropped spans while it {trouble}"),
            async || {
                let now = dropped().await?;
                ensure!(now[0] > before[0] && now[1] > before[1], "{before:?} to {now:?}");
                Ok(())
            },
        )
        .await?;
        match trouble {
            "hangs" => collector.resume()?,
            "refuses" => collector.accept(),
            _ => collector.start_again().await?,
        }
    }
    let (_, scrape) = setup.executor_get("/metrics").await?;
    for outcome in ["failed", "unreachable"] {
        let series =
            format!("nodewise_reconcile_duration_seconds_count{{kind=\"DaemonSet\",outcome=\"{outcome}\"}}");
        ensure!(value(&scrape, &series)? == 0, "{outcome} reconciles: {scrape}");
    }
    let taken = value(&scrape, "nodewise_trace_spans_exported_total")?;
    version += 1;
    setup.patch("agent", image_patch(version)).await?;
    eventually(DEADLINE, "spans to be taken again", async || {
        let (_, scrape) = setup.executor_get("/metrics").await?;
        ensure!(
            value(&scrape, "nodewise_trace_spans_exported_total")? > taken,
            "not yet"
        );
        Ok(())
    })
    .await
}

// Prometheus scrapes both programs, and exemplars link measurements to traces.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_both_programs_with_exemplars() -> Result<()> {
    let collector = Collector::start().await?;
    let options = SetupOptions::nodes(10)
        .traced(&collector.endpoint())
        .variable("OTEL_BSP_SCHEDULE_DELAY", "100");
    let setup = Setup::start(options).await?;
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/rules.yaml");
    let prometheus = Prometheus::builder()
        .target(EXECUTOR, setup.executor_http())
        .target(SERVER, setup.server().http_address().await?)
        .rules(rules)
        .start()
        .await?;
    prometheus.wait_until_up(DEADLINE).await?;
    setup
        .roll_out("agent", daemon_set("agent").max_unavailable(2).build())
        .await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_for_rollout("agent").await?;
    for (question, least) in [
        (
            r#"nodewise_rollout_nodes{name="agent",state="updated_available"}"#,
            10.0,
        ),
        (r#"sum(nodewise_rollout_nodes{name="agent"})"#, 10.0),
        (
            r#"nodewise_rollout_budget{name="agent",budget="max_unavailable"}"#,
            2.0,
        ),
        (
            r#"sum(nodewise_actions_total{action="CreatePod",result="SUCCEEDED"})"#,
            20.0,
        ),
        (
            r#"sum(nodewise_api_call_duration_seconds_count{verb="create",resource="pods",code="201"})"#,
            20.0,
        ),
        (
            r#"sum(nodewise_reconcile_duration_seconds_count{outcome="settled"})"#,
            5.0,
        ),
        (r#"sum(nodewise_watch_lag_seconds_count{resource="pods"})"#, 20.0),
        (r#"sum(workqueue_adds_total{name="daemonset"})"#, 5.0),
        (
            r#"sum(rpc_server_call_duration_seconds_count{rpc_response_status_code="OK"})"#,
            5.0,
        ),
        (r#"nodewise_planning_capacity{state="running"}"#, 1.0),
        ("sum(nodewise_cache_hits_total)", 1.0),
    ] {
        eventually(
            DEADLINE,
            format!("{question} to be {least} or more"),
            async || {
                let samples = prometheus.query(question).await?;
                ensure!(samples.iter().any(|sample| sample.value >= least), "{samples:?}");
                Ok(())
            },
        )
        .await?;
    }
    for question in [
        "nodewise_reconcile_duration_seconds_bucket",
        "nodewise_api_call_duration_seconds_bucket",
        "rpc_server_call_duration_seconds_bucket",
    ] {
        eventually(DEADLINE, format!("a trace of {question}"), async || {
            let exemplars = prometheus.exemplars(question).await?;
            let exemplar = exemplars.first().context("no exemplar yet")?;
            let trace = collector.trace(&exemplar.labels["trace_id"]);
            let is_it = |span: &Span| span.span_id == exemplar.labels["span_id"];
            ensure!(
                trace.iter().any(is_it),
                "{exemplar:?} leads to {} spans",
                trace.len()
            );
            Ok(())
        })
        .await?;
    }
    let mut alerts = prometheus.alerts().await?;
    // One late scrape makes this one pending for a moment.
    alerts.retain(|alert| alert.state == AlertState::Firing || alert.name() != "NodewiseDown");
    ensure!(
        alerts.is_empty(),
        "a rollout that goes well wakes nobody: {alerts:?}"
    );
    Ok(())
}

/// The demo needs no cluster, and exports its traces if an endpoint is set.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_sends_its_traces() -> Result<()> {
    let collector = Collector::start().await?;
    let demo = async |url: String| -> Result<std::process::Output> {
        let built = tokio::task::spawn_blocking(nodewise_conformance::binaries).await??;
        let mut command = tokio::process::Command::new(&built.cli);
        command
            .args(["demo", "--nodes=5", "--otlp", &url])
            .kill_on_drop(true);
        let ran = tokio::time::timeout(Duration::from_mins(2), command.output());
        Ok(ran.await??)
    };
    let ran = demo(collector.endpoint()).await?;
    ensure!(ran.status.success(), "{ran:?}");
    let spans = collector.spans();
    every_trace_is_one_tree(&spans, "nodewise-demo")?;
    ensure!(
        of(&spans, "nodewise-demo", "reconcile").count() > 5,
        "{} spans",
        spans.len()
    );

    collector.stop()?;
    let ran = demo(collector.endpoint()).await?;
    let (said, complaint) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    ensure!(
        said.contains("Converged: 5 nodes") && ran.status.code() == Some(1),
        "{ran:?}"
    );
    ensure!(
        complaint.contains("spans were not taken by the collector at http"),
        "{complaint}"
    );
    Ok(())
}
