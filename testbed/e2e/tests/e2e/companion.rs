//! Rollouts beside the built-in controller, where that cannot be switched off.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nodewise_conformance::{
    BudgetWatch, DEADLINE, DaemonSetBuilder, EXECUTOR_USER, daemon_set, image_patch, is_ready,
    rights::{self, Right},
};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::{AuditEvent, PodBehaviour, eventually};
use serde_json::json;

const NODES: usize = 8;

/// How many nodes may be without an available pod.
const BUDGET: usize = 2;

/// Adopting wants the one, which an observer would do; and the other depends on what comes first, the DaemonSet or its revisions. They let nobody
/// see more than `list`.
const OF_BASE: [&str; 2] = ["get controllerrevisions.apps", "get daemonsets.apps"];

/// One that gives its rollouts away, with this budget.
fn managed(name: &str, max_unavailable: &str) -> DaemonSetBuilder {
    let annotations = json!({
        "nodewise.dev/rollout": "managed",
        "nodewise.dev/max-unavailable": max_unavailable,
    });
    daemon_set(name)
        .on_delete()
        .set("/metadata", "annotations", annotations)
}

/// All pods are of this version, one on each node.
async fn runs_version(rig: &Rig, name: &str, version: u32) -> Result<()> {
    eventually(DEADLINE, "a ready pod of the version on every node", async || {
        expect_ready(rig, name, version, NODES).await
    })
    .await
}

/// Fails unless every node has a ready pod, and so many of them are of this version.
async fn expect_ready(rig: &Rig, name: &str, version: u32, wanted: usize) -> Result<()> {
    let status = rig.observed_status(name).await?;
    let count = rig.count_of_version(name, version).await?;
    let ready = usize::try_from(status.number_ready)?;
    ensure!(
        (count, ready) == (wanted, NODES),
        "{count} of the version, {ready} ready"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn old_pods_go_within_the_budget_and_the_built_in_controller_does_the_rest() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(NODES).companion()).await?;
    // The service is looked up besides; nobody is there.
    let servers = format!(
        "{},kubernetes:///nodewise-server.nodewise-system:grpc",
        rig.server_url()
    );
    rig.start_executor_for(&servers, &["--plaintext"]).await?;
    let _built_in = rig.cluster().start_upstream().await?;
    let (managed_name, own_rollout, manual) = ("managed", "own-rollout", "manual");
    rig.create(managed(managed_name, "25%").build()).await?;
    rig.create(daemon_set(own_rollout).max_unavailable(1).build())
        .await?;
    rig.create(daemon_set(manual).on_delete().build()).await?;
    for name in [managed_name, own_rollout, manual] {
        runs_version(&rig, name, 1).await?;
    }
    let manual_pods = rig.uids(manual).await?;

    let watch = rig.watch(managed_name);
    watch.arm().await?;
    for name in [managed_name, own_rollout, manual] {
        rig.patch(name, image_patch(2)).await?;
    }
    runs_version(&rig, managed_name, 2).await?;
    runs_version(&rig, own_rollout, 2).await?;
    let seen = watch.seen().await?;
    seen.expect_rollout(2, 2 * NODES)?;
    ensure!(
        seen.most_unavailable == 2,
        "it went one by one where two may be away"
    );
    ensure!(
        rig.uids(manual).await? == manual_pods,
        "nobody asked for this one"
    );

    // Back again: the built-in controller takes up the old revision, and its pods are the right ones then.
    rig.patch(managed_name, image_patch(1)).await?;
    runs_version(&rig, managed_name, 1).await?;
    ensure!(
        rig.revisions(managed_name).await? == [2, 3],
        "the first revision became the third"
    );

    // Events about these deletes besides, and the lease.
    let wanted = |event: &AuditEvent| {
        event.user == EXECUTOR_USER
            && event.is_write()
            && !["events", "leases"].contains(&event.resource.as_str())
    };
    let writes = rig.audit(wanted).await?;
    for write in &writes {
        let of_managed = write.name.starts_with(managed_name);
        ensure!(
            write.verb == "delete" && write.resource == "pods" && of_managed,
            "it wrote: {write:?}"
        );
    }
    ensure!(writes.len() == 2 * NODES, "{} deletes", writes.len());
    let refused = rig
        .audit(|event| event.user == EXECUTOR_USER && event.is_forbidden)
        .await?;
    ensure!(refused.is_empty(), "a right is missing: {refused:?}");
    every_right_is_used(&rig).await
}

/// Sooner or later: events come in their own time.
async fn every_right_is_used(rig: &Rig) -> Result<()> {
    let objects = tokio::task::spawn_blocking(|| rights::objects("companion")).await??;
    let given = Right::given_by(&objects)?;
    eventually(DEADLINE, "the executor to use its rights", async || {
        let requests = rig.audit(|event| event.user == EXECUTOR_USER).await?;
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
async fn annotations_of_no_use_are_told() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2).companion()).await?;
    rig.create(managed("agent", "none").build()).await?;
    eventually(DEADLINE, "an event about the annotation", async || {
        let events = rig.events("InvalidRollout").await?;
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

/// A rollout that is half way, and nothing happens any more: pods of version 2 use the whole budget, since they become ready only when
/// they are told to.
async fn half_way(rig: &Rig, name: &str) -> Result<BudgetWatch> {
    rig.create(managed(name, &BUDGET.to_string()).build()).await?;
    runs_version(rig, name, 1).await?;
    let watch = rig.watch(name);
    watch.arm().await?;
    rig.patch(name, rig.never_ready_patch(2)).await?;
    eventually(DEADLINE, "the budget to be used", async || {
        let (pods, status) = (rig.live_pods(name).await?, rig.observed_status(name).await?);
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

/// Tells all pods that are not ready to become so.
async fn let_pods_be_ready(rig: &Rig, name: &str) -> Result<()> {
    let plane = rig.cluster().plane();
    for pod in rig.live_pods(name).await?.iter().filter(|pod| !is_ready(pod)) {
        let name = pod.name_any();
        plane
            .set_pod_behaviour(rig.namespace(), &name, PodBehaviour::Ready)
            .await?;
    }
    Ok(())
}

/// The rollout comes to its end, within the budget from its beginning on.
async fn ends_within_budget(rig: &Rig, name: &str, watch: &BudgetWatch) -> Result<()> {
    eventually(DEADLINE, "the end of the rollout", async || {
        let_pods_be_ready(rig, name).await?;
        expect_ready(rig, name, 2, NODES).await
    })
    .await?;
    watch.seen().await?.expect_rollout(BUDGET, 2 * NODES)
}

/// The executor looks at a DaemonSet again, and knows what was so before: since a look may have been under way, one is not enough.
async fn looks_again(rig: &Rig, name: &str) -> Result<()> {
    let looks = "nodewise_reconcile_duration_seconds_count{outcome=\"settled\"}";
    let (before, mut nudges) = (rig.executor_metric(looks).await?, 0);
    eventually(DEADLINE, "the executor to look again", async || {
        nudges += 1;
        let label = json!({ "example.com/nudge": nudges.to_string() });
        rig.patch(name, json!({ "metadata": { "labels": label } }))
            .await?;
        let looked = rig.executor_metric(looks).await? - before;
        ensure!(looked >= 3, "{looked} looks after {nudges} nudges");
        Ok(())
    })
    .await
}

/// How many pods were deleted so far. Fails unless that stays so, though the executor looks again.
async fn stands_still(rig: &Rig, name: &str, watch: &BudgetWatch) -> Result<usize> {
    looks_again(rig, name).await?;
    let before = watch.seen().await?.deleted.len();
    looks_again(rig, name).await?;
    let after = watch.seen().await?.deleted.len();
    ensure!(before == after, "{before} pods were deleted, and then {after}");
    Ok(after)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_built_in_controller_no_more_pods_go_than_the_budget_allows() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(NODES).companion()).await?;
    let built_in = rig.cluster().start_upstream().await?;
    let watch = half_way(&rig, "agent").await?;
    built_in.stop().await?;

    // It is the next nodes' turn, and nobody makes new pods for them.
    let_pods_be_ready(&rig, "agent").await?;
    eventually(DEADLINE, "a node without a pod", async || {
        let pods = rig.pods("agent").await?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        ensure!(
            ready == pods.len() && ready < NODES,
            "{} pods, {ready} ready",
            pods.len()
        );
        Ok(())
    })
    .await?;
    let without_pod = stands_still(&rig, "agent", &watch).await? - BUDGET;
    ensure!(
        (1..=BUDGET).contains(&without_pod),
        "{without_pod} nodes are without a pod"
    );

    let _built_in = rig.cluster().start_upstream().await?;
    ends_within_budget(&rig, "agent", &watch).await
}

/// Waits until a scrape has these states of nodes, and no others.
async fn shows_nodes(rig: &Rig, name: &str, states: &[(&str, usize)]) -> Result<()> {
    let series = format!("nodewise_rollout_nodes{{namespace=\"default\",name=\"{name}\",state=");
    let expected: BTreeSet<_> = states
        .iter()
        .map(|(state, count)| format!("{series}\"{state}\"}} {count}"))
        .collect();
    eventually(DEADLINE, "the states of the nodes", async || {
        let (_, scrape) = rig.executor_get("/metrics").await?;
        let lines = scrape.lines().filter(|line| line.starts_with(&series));
        let shown: BTreeSet<_> = lines.map(str::to_owned).collect();
        ensure!(shown == expected, "{shown:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_rests_while_nobody_asks_for_it() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(NODES).companion()).await?;
    let _built_in = rig.cluster().start_upstream().await?;
    let watch = half_way(&rig, "agent").await?;
    let without_pod = ("without_pod", 0);
    let outdated = ("outdated", NODES - BUDGET);
    let unavailable = ("updated_unavailable", BUDGET);
    let available = ("updated_available", 0);
    shows_nodes(&rig, "agent", &[without_pod, outdated, unavailable, available]).await?;
    let asked = |value| json!({ "metadata": { "annotations": { "nodewise.dev/rollout": value } } });
    rig.patch("agent", asked(None)).await?;
    looks_again(&rig, "agent").await?;
    // What the last plan said does not stay for ever.
    shows_nodes(&rig, "agent", &[]).await?;

    // Nothing but the annotation keeps the next pods from going.
    let_pods_be_ready(&rig, "agent").await?;
    eventually(DEADLINE, "ready pods of both versions", async || {
        expect_ready(&rig, "agent", 2, BUDGET).await
    })
    .await?;
    let deleted = stands_still(&rig, "agent", &watch).await?;
    ensure!(deleted == BUDGET, "{deleted} pods were deleted");

    rig.patch("agent", asked(Some("managed"))).await?;
    ends_within_budget(&rig, "agent", &watch).await
}
