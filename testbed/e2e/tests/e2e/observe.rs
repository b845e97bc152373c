//! Observing beside another controller.

use anyhow::{Result, ensure};
use kube::api::{PatchParams, PostParams};
use nodewise_conformance::{
    DEADLINE, EXECUTOR_USER, daemon_set,
    rights::{self, Right},
};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::{eventually, manifests};
use serde_json::json;

/// Observe mode says what it would do and writes nothing at all, as the apiserver's own audit log has it. It may not, either, and
/// whatever it may it does.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_writes_nothing() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(5).observe()).await?;
    // Nobody selects it yet, so its data is not kept, and is read when the DaemonSet comes.
    let revision = json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {},
        "metadata": { "name": "orphan", "namespace": "default", "labels": { "app": "agent" } } });
    let admin = rig.cluster().plane().client();
    manifests::apply(&admin, &revision, &PatchParams::apply("test")).await?;
    // The service is looked up besides; nobody is there.
    let servers = format!(
        "{},kubernetes:///nodewise-server.nodewise-system:grpc",
        rig.server_url()
    );
    rig.start_executor_for(&servers, &["--plaintext"]).await?;
    let orphan = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "orphan", "labels": { "app": "agent" } },
        "spec": { "nodeName": "node-0000", "containers": [{ "name": "c", "image": "i" }] } });
    rig.pod_api()
        .create(&PostParams::default(), &serde_json::from_value(orphan)?)
        .await?;
    rig.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "the executor to have planned", async || {
        let (_, metrics) = rig.executor_get("/metrics").await?;
        for action in ["CreatePod", "AdoptPod"] {
            let series = format!("nodewise_actions_total{{action=\"{action}\"");
            let is_planned = metrics.lines().any(|line| line.starts_with(&series));
            ensure!(is_planned, "no {action} in its metrics");
        }
        Ok(())
    })
    .await?;
    let pods = rig.live_pods("agent").await?;
    ensure!(
        pods.iter()
            .all(|pod| pod.metadata.name.as_deref() == Some("orphan")),
        "it made pods"
    );
    let requests = rig.audit(|event| event.user == EXECUTOR_USER).await?;
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
    let executor = rig.cluster().plane().client_for(EXECUTOR_USER).await?;
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

/// Waits until the executor's report of divergences begins like this, and gives it.
async fn report(rig: &Rig, beginning: &str) -> Result<String> {
    eventually(DEADLINE, "the report of divergences", async || {
        let (status, report) = rig.executor_get("/divergence").await?;
        ensure!(
            status == 200 && report.starts_with(beginning),
            "{status}: {report}"
        );
        Ok(report)
    })
    .await
}

/// What nobody does is told after a while, and no more once the built-in controller has done it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_other_controller_does_not_do_is_reported() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(3).observe()).await?;
    rig.create(daemon_set("agent").build()).await?;
    let told = report(&rig, "1 of 1 DaemonSets diverge").await?;
    ensure!(
        told.contains("default/agent, for") && told.contains("CreatePod NODE_WITHOUT_POD"),
        "{told}"
    );
    // The report is made when it is asked for, the metric with the next plan: each may be the first.
    let gauge = "nodewise_divergence{namespace=\"default\",name=\"agent\"}";
    let is_among_metrics = async |expected: bool| {
        eventually(DEADLINE, "the metric of divergences", async || {
            let (_, metrics) = rig.executor_get("/metrics").await?;
            ensure!(
                metrics.contains(gauge) == expected,
                "{gauge} should be there: {expected}"
            );
            Ok(())
        })
        .await
    };
    is_among_metrics(true).await?;

    let _built_in = rig.cluster().start_upstream().await?;
    rig.rolled_out("agent").await?;
    report(&rig, "0 of 1 DaemonSets diverge").await?;
    is_among_metrics(false).await
}
