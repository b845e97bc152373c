//! Observe mode next to another controller.

use anyhow::{Result, ensure};
use kube::api::{PatchParams, PostParams};
use nodewise_conformance::{
    DEADLINE, EXECUTOR_USER, daemon_set,
    rights::{self, Right},
};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::{eventually, manifests};
use serde_json::json;

/// In observe mode the executor reports its plans and writes nothing, according to the audit log. It has no right to
/// write, and uses all rights that it has.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_writes_nothing() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(5).observe()).await?;
    // No DaemonSet selects the revision yet, so the executor does not cache its data and reads it when the DaemonSet
    // appears.
    let revision = json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {},
        "metadata": { "name": "orphan", "namespace": "default", "labels": { "app": "agent" } } });
    let admin = setup.cluster().plane().client();
    manifests::apply(&admin, &revision, &PatchParams::apply("test")).await?;
    // A Service is configured too, but has no endpoints.
    let servers = format!(
        "{},kubernetes:///nodewise-server.nodewise-system:grpc",
        setup.server_url()
    );
    setup.start_executor_for(&servers, &["--plaintext"]).await?;
    let orphan = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "orphan", "labels": { "app": "agent" } },
        "spec": { "nodeName": "node-0000", "containers": [{ "name": "c", "image": "i" }] } });
    setup
        .pod_api()
        .create(&PostParams::default(), &serde_json::from_value(orphan)?)
        .await?;
    setup.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "the executor to have planned", async || {
        let (_, metrics) = setup.executor_get("/metrics").await?;
        for action in ["CreatePod", "AdoptPod"] {
            let series = format!("nodewise_actions_total{{kind=\"DaemonSet\",action=\"{action}\"");
            let is_planned = metrics.lines().any(|line| line.starts_with(&series));
            ensure!(is_planned, "no {action} in its metrics");
        }
        Ok(())
    })
    .await?;
    let pods = setup.live_pods("agent").await?;
    ensure!(
        pods.iter()
            .all(|pod| pod.metadata.name.as_deref() == Some("orphan")),
        "it made pods"
    );
    let requests = setup.audit(|event| event.user == EXECUTOR_USER).await?;
    let writes: Vec<_> = requests.iter().filter(|event| event.is_write()).collect();
    ensure!(writes.is_empty(), "it wrote: {writes:?}");
    let refused: Vec<_> = requests.iter().filter(|event| event.is_forbidden).collect();
    ensure!(refused.is_empty(), "a right is missing: {refused:?}");

    let objects = tokio::task::spawn_blocking(|| rights::objects("observe")).await??;
    let given = Right::given_by(&objects)?;
    let unused: Vec<_> = rights::unused(&given, &requests)
        .map(ToString::to_string)
        .collect();
    ensure!(unused.is_empty(), "nobody uses these rights: {unused:?}");
    let executor = setup.cluster().plane().client_for(EXECUTOR_USER).await?;
    let labelled = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "orphan", "namespace": "default", "labels": { "x": "y" } } });
    let dry_run = PatchParams::apply("test").dry_run();
    let error = manifests::apply(&executor, &labelled, &dry_run).await.err();
    ensure!(
        error.is_some_and(|error| format!("{error:#}").contains("cannot patch")),
        "it could write"
    );
    Ok(())
}

/// Waits until the executor's divergence report starts with `beginning`, and returns it.
async fn report(setup: &Setup, beginning: &str) -> Result<String> {
    eventually(DEADLINE, "the report of divergences", async || {
        let (status, report) = setup.executor_get("/divergence").await?;
        ensure!(
            status == 200 && report.starts_with(beginning),
            "{status}: {report}"
        );
        Ok(report)
    })
    .await
}

/// An action that no controller takes is reported after some time, until the built-in controller has taken it.
#[tokio::test(flavor = "multi_thread")]
async fn missing_actions_of_the_other_controller_are_reported() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).observe()).await?;
    setup.create(daemon_set("agent").build()).await?;
    let told = report(&setup, "1 of 1 workloads diverge").await?;
    ensure!(
        told.contains("default/agent, for") && told.contains("CreatePod NODE_WITHOUT_POD"),
        "{told}"
    );
    // The report is made on request, the metric with the next plan, so either may come first.
    let gauge = "nodewise_divergence{kind=\"DaemonSet\",namespace=\"default\",name=\"agent\"}";
    let is_among_metrics = async |expected: bool| {
        eventually(DEADLINE, "the metric of divergences", async || {
            let (_, metrics) = setup.executor_get("/metrics").await?;
            ensure!(
                metrics.contains(gauge) == expected,
                "{gauge} should be there: {expected}"
            );
            Ok(())
        })
        .await
    };
    is_among_metrics(true).await?;

    let _built_in = setup.cluster().start_upstream().await?;
    setup.wait_for_rollout("agent").await?;
    report(&setup, "0 of 1 workloads diverge").await?;
    is_among_metrics(false).await
}
