//! Pods that fail, and creates that the apiserver rejects.

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
    fixture::{Fixture, SoloFixture},
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "failed-pod-back-off",
        "A failed pod is deleted and replaced, with an event. If its replacements fail too, each deletion is delayed longer.",
        failed_pod_back_off
    ),
    shared!(
        "quota-then-raised",
        "When a quota rejects creates, slow start stops and an event gives the reason. Once the quota is raised, the pods are \
         created.",
        quota_then_raised
    ),
    solo!(
        "terminating-namespace",
        "In a terminating namespace the executor does not retry creates without limit, the namespace can be deleted, and other \
         namespaces are not blocked.",
        terminating_namespace
    ),
];

// D-95, D-97, D-100
async fn failed_pod_back_off(fixture: &Fixture) -> Result<()> {
    fixture.start_agent(2).await?;
    let node = fixture.node_names().await?.remove(0);
    for round in 1..=3 {
        let pods = fixture.live_pods("agent").await?;
        let pod = pods
            .iter()
            .find(|pod| node_of(pod) == node)
            .context("the node has a pod")?;
        let uid = pod.uid();
        fixture.fail_pod(&pod.name_any()).await?;
        fixture
            .eventually(format!("replacement {round} on {node}"), async || {
                let pods = fixture.live_pods("agent").await?;
                let there = pods.iter().any(|pod| pod.uid() == uid);
                ensure!(!there, "the failed pod is still there");
                fixture.expect_one_pod_per_node("agent").await
            })
            .await?;
    }
    let deleted = fixture.deletes_of_pods().await?;
    ensure!(deleted.len() == 3, "{} pods were deleted", deleted.len());
    // The first failed pod is deleted at once. The next ones wait 1 s and 2 s after the delete before. On a busy
    // machine a request can arrive late, so that the next gap looks shorter than it was.
    for (gap, least) in deleted.windows(2).zip([1.0, 2.0]) {
        let seconds = gap[1].duration_since(gap[0]).as_secs_f64();
        ensure!(
            seconds > least / 2.0,
            "a delay of {least} s was cut to {seconds} s"
        );
    }
    fixture
        .eventually("the event FailedDaemonPod", async || {
            let events = fixture.events("FailedDaemonPod").await?;
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

/// Creates a quota and waits until the apiserver enforces it.
pub(super) async fn create_quota(fixture: &Fixture, spec: Value) -> Result<Api<ResourceQuota>> {
    let quotas: Api<ResourceQuota> = fixture.api();
    let quota = serde_json::from_value(json!({ "metadata": { "name": "few-pods" }, "spec": spec }))?;
    quotas.create(&PostParams::default(), &quota).await?;
    fixture
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

// D-78, D-79
async fn quota_then_raised(fixture: &Fixture) -> Result<()> {
    fixture.add_nodes(40).await?;
    let quotas = create_quota(fixture, json!({ "hard": { "pods": "5" } })).await?;
    fixture.create(daemon_set("agent").build()).await?;
    fixture
        .eventually("five pods and a FailedCreate event", async || {
            let pods = fixture.live_pods("agent").await?.len();
            ensure!(pods == 5, "{pods} pods");
            let status = fixture.observed_status("agent").await?;
            ensure!(
                status.desired_number_scheduled == 40 && status.current_number_scheduled == 5,
                "{status:?}"
            );
            let events = fixture.events("FailedCreate").await?;
            let message = events.iter().find_map(|event| event.message.clone());
            let message = message.context("no event")?;
            ensure!(
                message.starts_with("Error creating: ") && message.contains("exceeded quota"),
                "{message}"
            );
            Ok(())
        })
        .await?;
    // Slow start creates 1 + 2 + 4 pods in the first plan and one in each later plan. Without slow start all 40 creates
    // would have been tried at once.
    let creates = fixture.writes().await?;
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
    let status = fixture.wait_for_rollout("agent").await?;
    ensure!(status.desired_number_scheduled == 40, "{status:?}");
    fixture.expect_one_pod_per_node("agent").await
}

/// The limit of tried creates in a terminating namespace.
const STORM: usize = 60;

// D-80: a pod with a finalizer keeps the namespace and the DaemonSet alive, while the pods of the DaemonSet are
// deleted.
async fn terminating_namespace(solo: &mut SoloFixture) -> Result<()> {
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
    let position = solo.audit_position().await?;
    solo.first_write(position, "a create that is refused", |event| {
        event.resource == "pods" && event.code == 403
    })
    .await?;
    solo.wait_until_idle().await?;
    let tried = solo.writes_since(position).await?;
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
    elsewhere.wait_for_rollout("agent").await?;
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
