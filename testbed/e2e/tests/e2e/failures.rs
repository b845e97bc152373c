//! What no executor can be asked to bear, and this one bears.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Event, Pod, ResourceQuota};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams},
};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::eventually;
use serde_json::json;

/// An apiserver takes any time in a status, and serves the last day of the year 9999 and years of five digits as they are: a
/// pod that has one is seen, or nothing would go on for any DaemonSet.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_beyond_all_years_stops_nothing() -> Result<()> {
    let mut rig = Rig::start(RigOptions::nodes(2)).await?;
    for name in ["agent", "neighbour"] {
        rig.create(daemon_set(name).build()).await?;
        rig.rolled_out(name).await?;
    }
    let served = ["9999-12-31T23:59:59Z", "10000-01-01T23:58:59Z"];
    let written = [served[0], "9999-12-31T23:59:59-23:59"];
    for (pod, time) in rig.live_pods("agent").await?.iter().zip(written) {
        let name = pod.metadata.name.as_deref().context("name")?;
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
        let patch = json!({ "status": { "conditions": [ready] } }).to_string();
        // Not by way of the API types, which do not read such a time.
        let request = axum::http::Request::patch(format!("/api/v1/namespaces/default/pods/{name}/status"))
            .header("Content-Type", "application/strategic-merge-patch+json")
            .body(patch.into_bytes())?;
        let answer = rig.client().request_text(request).await?;
        ensure!(served.iter().any(|time| answer.contains(time)), "{answer}");
    }
    // As the list shows them, and before as the watch did.
    rig.stop_executor().await?;
    rig.start_executor().await?;
    for name in ["neighbour", "agent"] {
        rig.patch(name, image_patch(2)).await?;
        rig.rolled_out(name).await?;
    }
    Ok(())
}

/// Creates that a quota refuses are tried again as soon as the quota is raised, and not when the back-off ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_raised_quota_is_heeded_at_once() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2)).await?;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(rig.client());
    let limit = |pods: &str| json!({ "spec": { "hard": { "pods": pods } } });
    // No quota controller runs here: what it would write is written by the test.
    let admitted = |pods: &str| json!({ "status": { "hard": { "pods": pods }, "used": { "pods": "0" } } });
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    quotas
        .create(&PostParams::default(), &serde_json::from_value(quota)?)
        .await?;
    let patching = PatchParams::default();
    quotas
        .patch_status("none", &patching, &Patch::Merge(admitted("0")))
        .await?;

    rig.create(daemon_set("agent").build()).await?;
    // The back-off doubles from 5 ms: after so many failures the next try is 20 s away.
    let failures = "nodewise_reconcile_failures{namespace=\"default\",name=\"agent\"} 13";
    eventually(DEADLINE, "a long back-off", async || {
        let (_, metrics) = rig.executor_get("/metrics").await?;
        ensure!(metrics.contains(failures), "not yet {failures}");
        Ok(())
    })
    .await?;
    expect_each_told_once(&rig.executor().log())?;
    quotas.patch("none", &patching, &Patch::Merge(limit("9"))).await?;
    quotas
        .patch_status("none", &patching, &Patch::Merge(admitted("9")))
        .await?;
    let raised = Instant::now();
    rig.rolled_out("agent").await?;
    let took = raised.elapsed();
    ensure!(took < Duration::from_secs(10), "{took:?}");
    Ok(())
}

/// The log says what began, and of each refused write once how much was done, why it was refused and when the next try is.
fn expect_each_told_once(log: &str) -> Result<()> {
    let began = log.lines().find(|line| line.contains("nodewise-executor begins"));
    let began = began.context("nothing says that it begins")?;
    for what in ["version=", "mode=own", "cluster="] {
        ensure!(began.contains(what), "no {what} in {began}");
    }
    let refused: Vec<_> = log
        .lines()
        .filter(|line| line.contains("exceeded quota"))
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

/// Two controllers that own the same DaemonSets replace each other's pods. Whoever looks at one of them is told.
#[tokio::test(flavor = "multi_thread")]
async fn another_owner_is_told() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(3)).await?;
    let _built_in = rig.cluster().start_upstream().await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    let series = "nodewise_other_owner_writes_total{namespace=\"default\",name=\"agent\",write=";
    let events: Api<Event> = Api::default_namespaced(rig.client());
    let (mut image, mut rolled) = (1, None::<Instant>);
    eventually(DEADLINE, "a word about the other controller", async || {
        // Until both have written something since each of them began. Between two owners no rollout need come to its end.
        if rolled.is_none_or(|at| at.elapsed() > Duration::from_secs(3)) {
            image += 1;
            rig.patch("agent", image_patch(image)).await?;
            rolled = Some(Instant::now());
        }
        let (_, metrics) = rig.executor_get("/metrics").await?;
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

/// The apiserver does not record who deletes a pod: what the executor did not delete itself was deleted by somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn deletes_of_somebody_else_are_told() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(5)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    rig.patch("agent", image_patch(2)).await?;
    rig.rolled_out("agent").await?;
    let before = rig.live_pods("agent").await?;
    let [deleted, evicted, ..] = &before[..] else {
        bail!("{} pods", before.len());
    };
    let pods: Api<Pod> = Api::default_namespaced(rig.client());
    let (deleted, evicted) = (deleted.name_any(), evicted.name_any());
    let (deleting, evicting) = (DeleteParams::default(), EvictParams::default());
    tokio::try_join!(pods.delete(&deleted, &deleting), pods.evict(&evicted, &evicting))?;
    // None of those that the rollout deleted.
    let count = "nodewise_foreign_pod_deletes_total{namespace=\"default\",name=\"agent\"} 2\n";
    let message = "2 pods were deleted by somebody else: ";
    let causes = " (EvictionByEvictionAPI, the apiserver does not tell who)";
    eventually(DEADLINE, "a word about the deletes", async || {
        let (_, metrics) = rig.executor_get("/metrics").await?;
        ensure!(metrics.contains(count), "no {count}");
        let told = rig.events("PodsDeletedByAnother").await?;
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
    ensure!(rig.executor().log().contains(message), "it is in the log");
    rig.settled("agent").await
}
