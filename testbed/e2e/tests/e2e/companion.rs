//! Rollouts next to the built-in controller, in clusters in which it cannot be turned off.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nodewise_conformance::{
    BudgetWatch, DEADLINE, EXECUTOR_USER, WorkloadBuilder, daemon_set, image_patch, is_ready,
    rights::{self, Right},
};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::{AuditEvent, PodBehaviour, eventually};
use serde_json::json;

const NODES: usize = 8;

/// How many nodes may be without an available pod.
const BUDGET: usize = 2;

/// Rights of the base role that this test may not use. An observer reads a DaemonSet before an adoption. Whether it
/// reads revisions depends on what arrives first, the DaemonSet or its revisions. Both rights show no more than `list`
/// does.
const OF_BASE: [&str; 2] = ["get controllerrevisions.apps", "get daemonsets.apps"];

/// A DaemonSet whose rollouts are managed, with this budget.
fn managed(name: &str, max_unavailable: &str) -> WorkloadBuilder {
    let annotations = json!({
        "nodewise.dev/rollout": "managed",
        "nodewise.dev/max-unavailable": max_unavailable,
    });
    daemon_set(name)
        .on_delete()
        .set("/metadata", "annotations", annotations)
}

/// Waits until every node has a ready pod of this version.
async fn wait_for_version(setup: &Setup, name: &str, version: u32) -> Result<()> {
    eventually(DEADLINE, "a ready pod of the version on every node", async || {
        expect_ready(setup, name, version, NODES).await
    })
    .await
}

/// Fails unless every node has a ready pod, and `wanted` pods are of this version.
async fn expect_ready(setup: &Setup, name: &str, version: u32, wanted: usize) -> Result<()> {
    let status = setup.observed_status(name).await?;
    let count = setup.count_of_version(name, version).await?;
    let ready = usize::try_from(status.number_ready)?;
    ensure!(
        (count, ready) == (wanted, NODES),
        "{count} of the version, {ready} ready"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn companion_deletes_old_pods_within_the_budget() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(NODES).companion()).await?;
    // A Service is configured too, but has no endpoints.
    let servers = format!(
        "{},kubernetes:///nodewise-server.nodewise-system:grpc",
        setup.server_url()
    );
    setup.start_executor_for(&servers, &["--plaintext"]).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    let (managed_name, own_rollout, manual) = ("managed", "own-rollout", "manual");
    setup.create(managed(managed_name, "25%").build()).await?;
    setup
        .create(daemon_set(own_rollout).max_unavailable(1).build())
        .await?;
    setup.create(daemon_set(manual).on_delete().build()).await?;
    for name in [managed_name, own_rollout, manual] {
        wait_for_version(&setup, name, 1).await?;
    }
    let manual_pods = setup.uids(manual).await?;

    let watch = setup.watch(managed_name);
    watch.arm().await?;
    for name in [managed_name, own_rollout, manual] {
        setup.patch(name, image_patch(2)).await?;
    }
    wait_for_version(&setup, managed_name, 2).await?;
    wait_for_version(&setup, own_rollout, 2).await?;
    let seen = watch.seen().await?;
    seen.expect_rollout(2, 2 * NODES)?;
    ensure!(
        seen.most_unavailable == 2,
        "it went one by one where two may be away"
    );
    ensure!(
        setup.uids(manual).await? == manual_pods,
        "nobody asked for this one"
    );

    // A rollback: the built-in controller reuses the old revision, so its pods are current again.
    setup.patch(managed_name, image_patch(1)).await?;
    wait_for_version(&setup, managed_name, 1).await?;
    ensure!(
        setup.revisions(managed_name).await? == [2, 3],
        "the first revision became the third"
    );

    // The executor also writes Events about these deletes, and the Lease.
    let wanted = |event: &AuditEvent| {
        event.user == EXECUTOR_USER
            && event.is_write()
            && !["events", "leases"].contains(&event.resource.as_str())
    };
    let writes = setup.audit(wanted).await?;
    for write in &writes {
        let of_managed = write.name.starts_with(managed_name);
        ensure!(
            write.verb == "delete" && write.resource == "pods" && of_managed,
            "it wrote: {write:?}"
        );
    }
    ensure!(writes.len() == 2 * NODES, "{} deletes", writes.len());
    let refused = setup
        .audit(|event| event.user == EXECUTOR_USER && event.is_forbidden)
        .await?;
    ensure!(refused.is_empty(), "a right is missing: {refused:?}");
    every_right_is_used(&setup).await
}

/// Waits until every right was used, because some are used only after certain events.
async fn every_right_is_used(setup: &Setup) -> Result<()> {
    let objects = tokio::task::spawn_blocking(|| rights::objects("companion")).await??;
    let given = Right::given_by(&objects)?;
    eventually(DEADLINE, "the executor to use its rights", async || {
        let requests = setup.audit(|event| event.user == EXECUTOR_USER).await?;
        let unused: Vec<_> = rights::unused(&given, &requests)
            .map(ToString::to_string)
            .collect();
        let are_of_base = unused.iter().all(|right| OF_BASE.contains(&&**right));
        ensure!(are_of_base, "nobody uses these rights: {unused:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_annotations_are_reported() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(2).companion()).await?;
    setup.create(managed("agent", "none").build()).await?;
    eventually(DEADLINE, "an event about the annotation", async || {
        let events = setup.events("InvalidRollout").await?;
        let said: Vec<_> = events
            .iter()
            .filter_map(|event| event.message.as_deref())
            .collect();
        ensure!(
            said.iter()
                .any(|text| text.contains("nodewise.dev/max-unavailable")),
            "{said:?}"
        );
        Ok(())
    })
    .await
}

/// Brings a rollout to a state without progress: pods of version 2 use the whole budget, because they become ready only
/// when the test says so.
async fn start_stuck_rollout(setup: &Setup, name: &str) -> Result<BudgetWatch> {
    setup.create(managed(name, &BUDGET.to_string()).build()).await?;
    wait_for_version(setup, name, 1).await?;
    let watch = setup.watch(name);
    watch.arm().await?;
    setup.patch(name, setup.never_ready_patch(2)).await?;
    eventually(DEADLINE, "the budget to be used", async || {
        let (pods, status) = (setup.live_pods(name).await?, setup.observed_status(name).await?);
        let running = pods.iter().filter(|pod| is_running(pod)).count();
        let updated = status.updated_number_scheduled.unwrap_or(0);
        ensure!(
            (running, usize::try_from(updated)?) == (NODES, BUDGET),
            "{running} pods run, {updated} of version 2"
        );
        Ok(())
    })
    .await?;
    Ok(watch)
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// Makes all unready pods ready.
async fn make_pods_ready(setup: &Setup, name: &str) -> Result<()> {
    let plane = setup.cluster().plane();
    for pod in setup.live_pods(name).await?.iter().filter(|pod| !is_ready(pod)) {
        let name = pod.name_any();
        plane
            .set_pod_behaviour(setup.namespace(), &name, PodBehaviour::Ready)
            .await?;
    }
    Ok(())
}

/// Waits until the rollout is complete. Fails if it exceeded its budget at any time.
async fn ends_within_budget(setup: &Setup, name: &str, watch: &BudgetWatch) -> Result<()> {
    eventually(DEADLINE, "the end of the rollout", async || {
        make_pods_ready(setup, name).await?;
        expect_ready(setup, name, 2, NODES).await
    })
    .await?;
    watch.seen().await?.expect_rollout(BUDGET, 2 * NODES)
}

/// Makes the executor reconcile a DaemonSet again with the present state. One reconcile is not enough, because another
/// may be in progress.
async fn wait_for_reconcile(setup: &Setup, name: &str) -> Result<()> {
    let series = "nodewise_reconcile_duration_seconds_count{kind=\"DaemonSet\",outcome=\"settled\"}";
    let (before, mut changes) = (setup.executor_metric(series).await?, 0);
    eventually(DEADLINE, "the executor to reconcile again", async || {
        changes += 1;
        let label = json!({ "example.com/nudge": changes.to_string() });
        setup
            .patch(name, json!({ "metadata": { "labels": label } }))
            .await?;
        let reconciled = setup.executor_metric(series).await? - before;
        ensure!(reconciled >= 3, "{reconciled} reconciles after {changes} changes");
        Ok(())
    })
    .await
}

/// The number of deleted pods so far. Fails if the number grows when the executor reconciles again.
async fn expect_no_more_deletes(setup: &Setup, name: &str, watch: &BudgetWatch) -> Result<usize> {
    wait_for_reconcile(setup, name).await?;
    let before = watch.seen().await?.deleted.len();
    wait_for_reconcile(setup, name).await?;
    let after = watch.seen().await?.deleted.len();
    ensure!(before == after, "{before} pods were deleted, and then {after}");
    Ok(after)
}

#[tokio::test(flavor = "multi_thread")]
async fn companion_alone_deletes_no_more_than_the_budget() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(NODES).companion()).await?;
    let built_in = setup.cluster().start_upstream().await?;
    let watch = start_stuck_rollout(&setup, "agent").await?;
    built_in.stop().await?;

    // The rollout may continue with the next nodes, but no controller creates new pods for them.
    make_pods_ready(&setup, "agent").await?;
    eventually(DEADLINE, "a node without a pod", async || {
        let pods = setup.pods("agent").await?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        ensure!(
            ready == pods.len() && ready < NODES,
            "{} pods, {ready} ready",
            pods.len()
        );
        Ok(())
    })
    .await?;
    let without_pod = expect_no_more_deletes(&setup, "agent", &watch).await? - BUDGET;
    ensure!(
        (1..=BUDGET).contains(&without_pod),
        "{without_pod} nodes are without a pod"
    );

    let _built_in = setup.cluster().start_upstream().await?;
    ends_within_budget(&setup, "agent", &watch).await
}

/// Waits until the metrics have exactly these node states.
async fn shows_nodes(setup: &Setup, name: &str, states: &[(&str, usize)]) -> Result<()> {
    let series =
        format!("nodewise_rollout_nodes{{kind=\"DaemonSet\",namespace=\"default\",name=\"{name}\",state=");
    let expected: BTreeSet<_> = states
        .iter()
        .map(|(state, count)| format!("{series}\"{state}\"}} {count}"))
        .collect();
    eventually(DEADLINE, "the states of the nodes", async || {
        let (_, scrape) = setup.executor_get("/metrics").await?;
        let lines = scrape.lines().filter(|line| line.starts_with(&series));
        let shown: BTreeSet<_> = lines.map(str::to_owned).collect();
        ensure!(shown == expected, "{shown:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_pauses_without_the_annotation() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(NODES).companion()).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    let watch = start_stuck_rollout(&setup, "agent").await?;
    let without_pod = ("without_pod", 0);
    let outdated = ("outdated", NODES - BUDGET);
    let unavailable = ("updated_unavailable", BUDGET);
    let available = ("updated_available", 0);
    shows_nodes(&setup, "agent", &[without_pod, outdated, unavailable, available]).await?;
    let asked = |value| json!({ "metadata": { "annotations": { "nodewise.dev/rollout": value } } });
    setup.patch("agent", asked(None)).await?;
    wait_for_reconcile(&setup, "agent").await?;
    // The metrics of the last plan must disappear.
    shows_nodes(&setup, "agent", &[]).await?;

    // Only the missing annotation keeps the next pods from being deleted.
    make_pods_ready(&setup, "agent").await?;
    eventually(DEADLINE, "ready pods of both versions", async || {
        expect_ready(&setup, "agent", 2, BUDGET).await
    })
    .await?;
    let deleted = expect_no_more_deletes(&setup, "agent", &watch).await?;
    ensure!(deleted == BUDGET, "{deleted} pods were deleted");

    setup.patch("agent", asked(Some("managed"))).await?;
    ends_within_budget(&setup, "agent", &watch).await
}
