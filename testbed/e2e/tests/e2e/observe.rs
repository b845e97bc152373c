//! Observe mode next to another controller.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::{ListParams, PatchParams, PostParams};
use nodewise_conformance::{
    Controllers, DEADLINE, EXECUTOR_USER, daemon_set, deployment, image_patch, replica_set,
    rights::{self, Right},
};
use nodewise_e2e::{OBSERVER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::{AuditEvent, eventually, manifests};
use serde_json::{Value, json};

/// An executor that observes all kinds, for which it has the rights to read.
async fn observing_all_kinds() -> Result<Setup> {
    let options = SetupOptions::nodes(3).observe();
    Setup::start(options.controllers("*", OBSERVER_COMPONENTS)).await
}

/// The executor's requests so far. Fails if one of them was a write, or was forbidden.
async fn reads(setup: &Setup) -> Result<Vec<AuditEvent>> {
    let requests = setup.executor_requests().await?;
    let writes: Vec<_> = requests.iter().filter(|event| event.is_write()).collect();
    ensure!(writes.is_empty(), "it wrote: {writes:?}");
    Ok(requests)
}

/// Fails unless the executor only reads, and has used each of these rights.
async fn only_reads_with_these_rights(setup: &Setup, objects: &[Value]) -> Result<()> {
    let requests = reads(setup).await?;
    let given = Right::given_by(objects)?;
    let unused: Vec<_> = rights::unused(&given, &requests)
        .map(ToString::to_string)
        .collect();
    ensure!(
        unused.is_empty(),
        "the executor has not used these rights: {unused:?}"
    );
    Ok(())
}

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
    setup
        .wait_for_planned(&[
            ("DaemonSet", "CreatePod", "NODE_WITHOUT_POD"),
            ("DaemonSet", "AdoptPod", "SELECTOR_MATCHES"),
        ])
        .await?;
    let pods = setup.live_pods("agent").await?;
    ensure!(
        pods.iter()
            .all(|pod| pod.metadata.name.as_deref() == Some("orphan")),
        "it made pods"
    );
    let objects = tokio::task::spawn_blocking(|| rights::objects("observe")).await??;
    only_reads_with_these_rights(&setup, &objects).await?;
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

/// The same with Deployments and ReplicaSets, for which other components have the rights to read.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_writes_no_deployment_and_no_replica_set() -> Result<()> {
    let setup = observing_all_kinds().await?;
    let orphan = replica_set("orphan", 3)
        .set("/metadata", "labels", json!({ "app": "agent" }))
        .build();
    let _: ReplicaSet = setup.create_as(orphan).await?;
    // The ReplicaSet adopts this pod and creates the others.
    let pod = json!({ "metadata": { "name": "orphan", "labels": { "app": "orphan" } },
        "spec": { "nodeName": "node-0000", "containers": [{ "name": "c", "image": "i" }] } });
    setup
        .pod_api()
        .create(&PostParams::default(), &serde_json::from_value(pod)?)
        .await?;
    // The Deployment adopts the ReplicaSet and creates one with its own template.
    let _: Deployment = setup.create_as(deployment("agent", 3).build()).await?;
    setup
        .wait_for_planned(&[
            ("ReplicaSet", "AdoptPod", "SELECTOR_MATCHES"),
            ("ReplicaSet", "CreatePod", "TOO_FEW_PODS"),
            ("Deployment", "PatchObject", "SELECTOR_MATCHES"),
            ("Deployment", "CreateObject", "NEW_TEMPLATE"),
        ])
        .await?;
    let sets = setup.replica_set_api().list(&ListParams::default()).await?;
    let pods = setup.pod_api().list(&ListParams::default()).await?;
    let counts = (sets.items.len(), pods.items.len());
    ensure!(counts == (1, 1), "ReplicaSets and pods: {counts:?}");
    let added = || {
        OBSERVER_COMPONENTS
            .iter()
            .map(|component| rights::added_by(component))
    };
    let objects: Vec<_> = tokio::task::spawn_blocking(move || added().collect::<Result<_>>()).await??;
    only_reads_with_these_rights(&setup, &objects.concat()).await
}

/// Waits until the metric of divergences has this workload, or has it no more. The report is made on request, and the
/// metric with the next plan, so either may come first.
async fn shows_divergence(setup: &Setup, kind: &str, name: &str, expected: bool) -> Result<()> {
    let gauge = format!("nodewise_divergence{{kind=\"{kind}\",namespace=\"default\",name=\"{name}\"}}");
    eventually(DEADLINE, "the metric of divergences", async || {
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(
            metrics.contains(&gauge) == expected,
            "{gauge} should be there: {expected}"
        );
        Ok(())
    })
    .await
}

/// An action that no controller takes is reported after some time, until the built-in controller has taken it.
#[tokio::test(flavor = "multi_thread")]
async fn missing_actions_of_the_other_controller_are_reported() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).observe()).await?;
    setup.create(daemon_set("agent").build()).await?;
    let told = setup.divergences("1 of 1 workloads diverge").await?;
    ensure!(
        told.contains("default/agent, for") && told.contains("CreatePod NODE_WITHOUT_POD"),
        "{told}"
    );
    shows_divergence(&setup, "DaemonSet", "agent", true).await?;

    let _built_in = setup.cluster().start_upstream().await?;
    setup.wait_for_rollout("agent").await?;
    setup.divergences("0 of 1 workloads diverge").await?;
    shows_divergence(&setup, "DaemonSet", "agent", false).await
}

/// The same for a Deployment and a ReplicaSet. A rollout of the built-in controllers, which ended a moment before, is not
/// reported.
#[tokio::test(flavor = "multi_thread")]
async fn missing_actions_for_a_deployment_and_a_replica_set_are_reported() -> Result<()> {
    let setup = observing_all_kinds().await?;
    let built_in = Controllers::Deployments.names();
    let running = setup.cluster().start_built_in(built_in).await?;
    let rolled = deployment("rolled", 10).rolling(3, 2).build();
    setup.start_deployment(rolled).await?;
    setup.patch_deployment("rolled", image_patch(2)).await?;
    setup.wait_for_sizes("rolled", &[(1, 0), (2, 10)]).await?;
    setup.wait_for_deployment("rolled").await?;
    running.stop().await?;

    let _: Deployment = setup.create_as(deployment("agent", 2).build()).await?;
    let _: ReplicaSet = setup.create_as(replica_set("single", 2).build()).await?;
    // By then, whatever the rollout had left to do would be reported too.
    let told = setup.divergences("2 of 5 workloads diverge").await?;
    for part in [
        "Deployment default/agent, for",
        "CreateObject NEW_TEMPLATE: ",
        "ReplicaSet default/single, for",
        "CreatePod TOO_FEW_PODS: ",
    ] {
        ensure!(told.contains(part), "{told}");
    }
    let diverging = [("Deployment", "agent"), ("ReplicaSet", "single")];
    for (kind, name) in diverging {
        shows_divergence(&setup, kind, name, true).await?;
    }

    let _running = setup.cluster().start_built_in(built_in).await?;
    setup.wait_for_deployment("agent").await?;
    setup.wait_for_replica_set("single").await?;
    setup.divergences("0 of 6 workloads diverge").await?;
    for (kind, name) in diverging {
        shows_divergence(&setup, kind, name, false).await?;
        // The report is empty for a while whatever the controllers do. This line says that nothing is left to do.
        eventually(DEADLINE, format!("agreement about {name}"), async || {
            let of = format!("kind=\"{kind}\" key=default/{name}");
            let log = setup.executor().log();
            let agrees = log
                .lines()
                .any(|line| line.contains(&of) && line.contains("agrees with the other controller again"));
            ensure!(agrees, "the log has no word of it");
            Ok(())
        })
        .await?;
    }
    reads(&setup).await?;
    Ok(())
}
