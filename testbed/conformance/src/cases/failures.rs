//! Pods that fail, and creates that are refused.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    budget::node_of,
    case::{Case, shared, solo},
    daemon_set::{daemon_set, image_patch},
    scene::{Scene, Solo},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "failed-pod-back-off",
        "A failed pod is deleted and replaced, with an event; one that fails again waits longer each time.",
        failed_pod_back_off
    ),
    shared!(
        "quota-then-raised",
        "Where a quota refuses creates, slow start stops and an event says why; raising the quota heals.",
        quota_then_raised
    ),
    solo!(
        "terminating-namespace",
        "In a namespace that is going no storm of creates breaks loose, it can go, and others are not held up.",
        terminating_namespace
    ),
];

// S-48, S-50, S-51, D-95, D-97, D-100
async fn failed_pod_back_off(scene: &Scene) -> Result<()> {
    scene.start_agent(2).await?;
    let node = scene.node_names().await?.remove(0);
    for round in 1..=3 {
        let pods = scene.live_pods("agent").await?;
        let pod = pods
            .iter()
            .find(|pod| node_of(pod) == node)
            .context("the node has a pod")?;
        let uid = pod.uid();
        scene.fail_pod(&pod.name_any()).await?;
        scene
            .eventually(format!("replacement {round} on {node}"), async || {
                let pods = scene.live_pods("agent").await?;
                let there = pods.iter().any(|pod| pod.uid() == uid);
                ensure!(!there, "the failed pod is still there");
                scene.expect_one_pod_per_node("agent").await
            })
            .await?;
    }
    let deleted = scene.deletes_of_pods().await?;
    ensure!(deleted.len() == 3, "{} pods were deleted", deleted.len());
    // The first goes at once; each next one waits for 1 and 2 s since the one before. On a busy machine a request comes in late, and
    // the gap after it looks shorter than it was.
    for (gap, least) in deleted.windows(2).zip([1.0, 2.0]) {
        let seconds = gap[1].duration_since(gap[0]).as_secs_f64();
        ensure!(
            seconds > least / 2.0,
            "a delay of {least} s was cut to {seconds} s"
        );
    }
    scene
        .eventually("the event FailedDaemonPod", async || {
            let events = scene.events("FailedDaemonPod").await?;
            let message = events.iter().find_map(|event| event.message.clone());
            let message = message.context("no such event")?;
            ensure!(
                message.contains(&format!("on node {node}, will try to kill it")),
                "{message}"
            );
            Ok(())
        })
        .await
}

/// Creates a quota and waits until it is in force.
pub(super) async fn limit(scene: &Scene, spec: Value) -> Result<Api<ResourceQuota>> {
    let quotas: Api<ResourceQuota> = scene.api();
    let quota = serde_json::from_value(json!({ "metadata": { "name": "few-pods" }, "spec": spec }))?;
    quotas.create(&PostParams::default(), &quota).await?;
    scene
        .eventually("the quota to be in force", async || {
            let status = quotas
                .get("few-pods")
                .await?
                .status
                .and_then(|status| status.hard);
            ensure!(status.is_some(), "it has no status yet");
            Ok(())
        })
        .await?;
    Ok(quotas)
}

// S-63, S-68, D-78, D-79
async fn quota_then_raised(scene: &Scene) -> Result<()> {
    scene.add_nodes(40).await?;
    let quotas = limit(scene, json!({ "hard": { "pods": "5" } })).await?;
    scene.create(daemon_set("agent").build()).await?;
    scene
        .eventually("five pods and a FailedCreate event", async || {
            let pods = scene.live_pods("agent").await?.len();
            ensure!(pods == 5, "{pods} pods");
            let status = scene.observed_status("agent").await?;
            ensure!(
                status.desired_number_scheduled == 40 && status.current_number_scheduled == 5,
                "{status:?}"
            );
            let events = scene.events("FailedCreate").await?;
            let message = events.iter().find_map(|event| event.message.clone());
            let message = message.context("no event")?;
            ensure!(
                message.starts_with("Error creating: ") && message.contains("exceeded quota"),
                "{message}"
            );
            Ok(())
        })
        .await?;
    // 1 + 2 + 4 in the first plan; later plans try one. Without slow start it would have been all at once.
    let creates = scene.writes().await?;
    let refused = creates
        .iter()
        .filter(|event| event.resource == "pods" && event.code == 403)
        .count();
    ensure!(
        refused < 25,
        "{refused} creates were refused: slow start did not stop"
    );
    let more = Patch::Merge(json!({ "spec": { "hard": { "pods": "500" } } }));
    quotas.patch("few-pods", &PatchParams::default(), &more).await?;
    let status = scene.rolled_out("agent").await?;
    ensure!(status.desired_number_scheduled == 40, "{status:?}");
    scene.expect_one_pod_per_node("agent").await
}

/// Creates of pods in a namespace that is going, above which it is a storm.
const STORM: usize = 60;

// D-80: a pod that does not go keeps the namespace, and the DaemonSet in it, while its pods are taken away.
async fn terminating_namespace(solo: &mut Solo) -> Result<()> {
    solo.start()?;
    solo.start_agent(4).await?;
    let holding: Pod = serde_json::from_value(json!({
        "metadata": { "name": "holding", "labels": { "app": "holding" }, "finalizers": ["nodewise.test/hold"] },
        "spec": { "schedulerName": "nobody", "containers": [{ "name": "main", "image": "registry.example/holding:1" }] },
    }))?;
    solo.pod_api().create(&PostParams::default(), &holding).await?;
    let namespaces: Api<Namespace> = Api::all(solo.client());
    namespaces
        .delete(solo.namespace(), &DeleteParams::default())
        .await?;
    let place = solo.place().await?;
    solo.first_write(place, "a create that is refused", |event| {
        event.resource == "pods" && event.code == 403
    })
    .await?;
    solo.at_rest().await?;
    let tried = solo.writes_since(place).await?;
    let tried = tried
        .iter()
        .filter(|event| event.resource == "pods" && event.verb == "create")
        .count();
    ensure!(tried < STORM, "{tried} creates were tried");

    let elsewhere = solo
        .in_another_namespace("terminating-namespace-neighbour")
        .await?;
    elsewhere.roll_out("agent", daemon_set("agent").build()).await?;
    elsewhere.patch("agent", image_patch(2)).await?;
    elsewhere.rolled_out("agent").await?;
    elsewhere.delete("agent").await?;

    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    solo.pod_api()
        .patch("holding", &PatchParams::default(), &release)
        .await?;
    solo.eventually("the namespace to be gone", async || {
        let left = namespaces.get_opt(solo.namespace()).await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await?;
    solo.expect_running()
}
