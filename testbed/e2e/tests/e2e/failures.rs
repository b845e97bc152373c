//! Pods that fail and creates that are refused.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use nodewise_e2e::{DEADLINE, Rig, RigOptions, daemon_set, image_patch, node_of};
use nodewise_testbed::eventually;
use serde_json::json;

async fn events(rig: &Rig, reason: &str) -> Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(rig.client(), "default");
    let events = api
        .list(&ListParams::default().fields(&format!("reason={reason}")))
        .await?;
    Ok(events.items)
}

/// S-48, S-50, S-51, D-95, D-97, D-100: a failed pod is deleted and replaced; one that fails again waits longer each time.
#[tokio::test(flavor = "multi_thread")]
async fn replaces_failed_pods_with_back_off() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(2)).await?;
    let watch = rig.watch("agent");
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    let node = rig.node_names().await?.remove(0);
    let mut deleted = Vec::new();
    for round in 1..=4 {
        let pods = rig.live_pods("agent").await?;
        let pod = pods
            .iter()
            .find(|pod| node_of(pod) == node)
            .context("the node has a pod")?;
        let (name, uid) = (
            pod.metadata.name.clone().context("name")?,
            pod.metadata.uid.clone().context("uid")?,
        );
        rig.fail_pod(&name).await?;
        let at = eventually(DEADLINE, format!("replacement {round} on {node}"), async || {
            let seen = watch.seen();
            let at = seen.deleted.get(&uid).context("the failed pod is still there")?;
            rig.expect_one_pod_per_node("agent").await?;
            Ok(*at)
        })
        .await?;
        deleted.push(at);
    }
    // The first goes at once; each next one waits for 1, 2 and 4 s since the one before. The watch may show a delete a
    // little late, so a gap may look a little shorter than it was.
    for (gap, least) in deleted.windows(2).zip([1.0, 2.0, 4.0]) {
        let seconds = (gap[1] - gap[0]).as_secs_f64();
        ensure!(
            seconds > least - 0.3,
            "a delay of {least} s was cut to {seconds} s"
        );
    }
    eventually(DEADLINE, "the event FailedDaemonPod", async || {
        let events = events(&rig, "FailedDaemonPod").await?;
        let message = events
            .first()
            .and_then(|event| event.message.clone())
            .context("no such event")?;
        ensure!(
            message.contains(&format!("on node {node}, will try to kill it")),
            "{message}"
        );
        Ok(())
    })
    .await
}

/// S-63, S-68, D-78, D-79: a quota lets a few pods through; slow start stops; raising it heals.
#[tokio::test(flavor = "multi_thread")]
async fn a_quota_stops_slow_start_and_raising_it_heals() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(60)).await?;
    let quota = |pods: u32| -> Result<ResourceQuota> {
        Ok(serde_json::from_value(json!({
            "metadata": { "name": "few-pods" }, "spec": { "hard": { "pods": pods.to_string() } },
        }))?)
    };
    let quotas: Api<ResourceQuota> = Api::namespaced(rig.client(), "default");
    quotas.create(&PostParams::default(), &quota(5)?).await?;
    eventually(DEADLINE, "the quota to be in force", async || {
        let status = quotas
            .get("few-pods")
            .await?
            .status
            .and_then(|status| status.hard);
        ensure!(status.is_some(), "it has no status yet");
        Ok(())
    })
    .await?;
    rig.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "five pods and a FailedCreate event", async || {
        let pods = rig.live_pods("agent").await?.len();
        ensure!(pods == 5, "{pods} pods");
        let status = rig.observed_status("agent").await?;
        ensure!(
            status.desired_number_scheduled == 60 && status.current_number_scheduled == 5,
            "{status:?}"
        );
        let refused = events(&rig, "FailedCreate").await?;
        let message = refused
            .first()
            .and_then(|event| event.message.as_deref())
            .context("no event")?;
        ensure!(
            message.starts_with("Error creating: ") && message.contains("exceeded quota"),
            "{message}"
        );
        Ok(())
    })
    .await?;
    // 1 + 2 + 4 in the first plan; later plans try one. Without slow start it would have been 60 at once.
    let refused = rig
        .audit(|event| event.verb == "create" && event.resource == "pods" && event.code == 403)
        .await?;
    ensure!(
        refused.len() < 30,
        "{} creates were refused: slow start did not stop",
        refused.len()
    );
    quotas
        .patch(
            "few-pods",
            &PatchParams::default(),
            &Patch::Merge(json!({ "spec": { "hard": { "pods": "500" } } })),
        )
        .await?;
    let status = rig.rolled_out("agent").await?;
    assert_eq!(status.desired_number_scheduled, 60);
    rig.expect_one_pod_per_node("agent").await
}

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
