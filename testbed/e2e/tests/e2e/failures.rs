//! Failures that the contract does not require an executor to handle, and this one handles.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Event, Pod, ResourceQuota};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::json;
use tokio::time::timeout;

/// An apiserver accepts any time in a status, even the last day of the year 9999 and years with five digits. The
/// executor must be able to read such a pod, otherwise it could not reconcile any DaemonSet.
#[tokio::test(flavor = "multi_thread")]
async fn unrepresentable_time_blocks_nothing() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(2)).await?;
    for name in ["agent", "neighbour"] {
        setup.create(daemon_set(name).build()).await?;
        setup.wait_for_rollout(name).await?;
    }
    let served = ["9999-12-31T23:59:59Z", "10000-01-01T23:58:59Z"];
    let written = [served[0], "9999-12-31T23:59:59-23:59"];
    for (pod, time) in setup.live_pods("agent").await?.iter().zip(written) {
        let name = pod.metadata.name.as_deref().context("name")?;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
        let patch = json!({ "status": { "conditions": [ready] } }).to_string();
        // Raw requests, because the API types cannot represent such a time.
        let request = axum::http::Request::patch(format!("/api/v1/namespaces/default/pods/{name}/status"))
            .header("Content-Type", "application/strategic-merge-patch+json")
            .body(patch.into_bytes())?;
        let answer = setup.client().request_text(request).await?;
        ensure!(served.iter().any(|time| answer.contains(time)), "{answer}");
    }
    // First from the watch; after the restart from the list.
    setup.stop_executor().await?;
    setup.start_executor().await?;
    for name in ["neighbour", "agent"] {
        setup.patch(name, image_patch(2)).await?;
        setup.wait_for_rollout(name).await?;
    }
    Ok(())
}

/// When a quota is raised, the executor retries rejected creates at once, without waiting for the back-off.
#[tokio::test(flavor = "multi_thread")]
async fn raised_quota_causes_an_immediate_retry() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(2)).await?;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(setup.client());
    let limit = |pods: &str| json!({ "spec": { "hard": { "pods": pods } } });
    // No quota controller runs here, so the test writes the status of the quota.
    let admitted = |pods: &str| json!({ "status": { "hard": { "pods": pods }, "used": { "pods": "0" } } });
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    quotas
        .create(&PostParams::default(), &serde_json::from_value(quota)?)
        .await?;
    let patching = PatchParams::default();
    quotas
        .patch_status("none", &patching, &Patch::Merge(admitted("0")))
        .await?;

    setup.create(daemon_set("agent").build()).await?;
    // The back-off starts at 5 ms and doubles. After this many failures the next try is 20 s away.
    let failures = "nodewise_reconcile_failures{kind=\"DaemonSet\",namespace=\"default\",name=\"agent\"} 13";
    eventually(DEADLINE, "a long back-off", async || {
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(metrics.contains(failures), "not yet {failures}");
        Ok(())
    })
    .await?;
    expect_log_lines(&setup.executor().log())?;
    eventually(DEADLINE, "the Event about the quota", async || {
        expect_explained(&setup).await
    })
    .await?;
    quotas
        .patch("none", &patching, &Patch::Merge(limit("99")))
        .await?;
    let mut pods = 8;
    // Sooner than the back-off ends.
    eventually(Duration::from_secs(10), "the rollout", async || {
        // The executor may learn of the quota before the apiserver counts with it. Each change is a reason to try again.
        pods += 1;
        let raised = Patch::Merge(admitted(&pods.to_string()));
        quotas.patch_status("none", &patching, &raised).await?;
        timeout(Duration::from_secs(2), setup.wait_for_rollout("agent"))
            .await
            .context("not yet")?
    })
    .await?;
    Ok(())
}

/// `explain` says what refused the pods: of the DaemonSet, of the DaemonSet on one node, and of the node.
async fn expect_explained(setup: &Setup) -> Result<()> {
    let nodes = setup.node_names().await?;
    let node = nodes.first().context("a node")?;
    let entry = format!("node/{node}");
    for command in [
        &["explain", "ds/agent"][..],
        &["explain", "ds/agent", "--node", node],
        &["explain", &entry],
    ] {
        let output = setup.nodewise(command).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = "the apiserver refused to create the pod: ";
        let is_named = text.contains(expected) && text.contains("exceeded quota: none");
        ensure!(output.status.success() && is_named, "{command:?}: {output:?}");
    }
    Ok(())
}

/// Checks the log: a line about the start, and one line per failed reconcile with the progress, the reason and the time
/// of the next try.
fn expect_log_lines(log: &str) -> Result<()> {
    let began = log.lines().find(|line| line.contains("nodewise-executor begins"));
    let began = began.context("nothing says that it begins")?;
    for what in ["version=", "daemonset-controller=own", "cluster="] {
        ensure!(began.contains(what), "no {what} in {began}");
    }
    let refused: Vec<_> = log
        .lines()
        // A line about the rollout has the same cause.
        .filter(|line| line.contains("exceeded quota") && !line.contains("the rollout to revision"))
        .collect();
    ensure!(!refused.is_empty(), "no word about the quota");
    for line in refused {
        let is_whole =
            line.contains(" actions were done, 1 failed, ") && line.contains("the next try is in ");
        ensure!(is_whole, "{line}");
        ensure!(
            line.matches("key=").count() == 1,
            "the key is not there once: {line}"
        );
    }
    Ok(())
}

/// Two controllers that own the same DaemonSets replace each other's pods. The executor must report this.
#[tokio::test(flavor = "multi_thread")]
async fn another_controller_is_reported() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3)).await?;
    let _built_in = setup.cluster().start_upstream().await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    let series =
        "nodewise_other_owner_writes_total{kind=\"DaemonSet\",namespace=\"default\",name=\"agent\",write=";
    let events: Api<Event> = Api::default_namespaced(setup.client());
    let (mut image, mut rolled) = (1, None::<Instant>);
    eventually(DEADLINE, "a word about the other controller", async || {
        // Repeat until both controllers have written since the other one started. With two owners the rollout may never
        // complete.
        if rolled.is_none_or(|at| at.elapsed() > Duration::from_secs(3)) {
            image += 1;
            setup.patch("agent", image_patch(image)).await?;
            rolled = Some(Instant::now());
        }
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(metrics.contains(series), "no {series}");
        let told = events.list(&kube::api::ListParams::default()).await?;
        let about = |event: &Event| {
            let message = event.message.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("AnotherController")
                && message.contains("another controller works on this DaemonSet")
        };
        ensure!(told.iter().any(about), "no Event");
        Ok(())
    })
    .await
}

/// The apiserver does not record who deleted a pod. The executor reports deletes that it did not make itself.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_deletes_are_reported() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(5)).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    setup.patch("agent", image_patch(2)).await?;
    setup.wait_for_rollout("agent").await?;
    let before = setup.live_pods("agent").await?;
    let [deleted, evicted, ..] = &before[..] else {
        bail!("{} pods", before.len());
    };
    let pods: Api<Pod> = Api::default_namespaced(setup.client());
    let (deleted, evicted) = (deleted.name_any(), evicted.name_any());
    let (deleting, evicting) = (DeleteParams::default(), EvictParams::default());
    tokio::try_join!(pods.delete(&deleted, &deleting), pods.evict(&evicted, &evicting))?;
    // Without the deletes of the rollout.
    let count =
        "nodewise_foreign_pod_deletes_total{kind=\"DaemonSet\",namespace=\"default\",name=\"agent\"} 2\n";
    let message = "2 pods were deleted by somebody else: ";
    let causes = " (EvictionByEvictionAPI, the apiserver does not tell who)";
    eventually(DEADLINE, "a word about the deletes", async || {
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(metrics.contains(count), "no {count}");
        let told = setup.events("PodsDeletedByAnother").await?;
        let messages: Vec<_> = told.iter().filter_map(|event| event.message.as_deref()).collect();
        let [told] = messages[..] else {
            bail!("{messages:?}");
        };
        let is_named = told.contains(&deleted) && told.contains(&evicted);
        ensure!(
            is_named && told.starts_with(message) && told.ends_with(causes),
            "{told}"
        );
        Ok(())
    })
    .await?;
    ensure!(setup.executor().log().contains(message), "it is in the log");
    setup.wait_until_settled("agent").await
}
