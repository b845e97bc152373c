//! Nodes that are not ready.

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{create, expect_versions, only_pod};
use crate::{
    budget::{is_ready, node_of},
    case::{Case, shared},
    fixture::Fixture,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[shared!(
    "policy-notready-before-and-after",
    "A node that was not ready before it got the new template is left alone until it is ready. One that became so afterwards fails, \
     and stops the rollout.",
    policy_notready_before_and_after
)];

/// Waits until the clock is in a later second. Times in objects have whole seconds.
pub(super) async fn next_second(fixture: &Fixture) -> Result<()> {
    let now = Timestamp::now().as_second();
    fixture
        .eventually("the next second", async || {
            ensure!(now < Timestamp::now().as_second(), "it is still the same");
            Ok(())
        })
        .await
}

// L-20, L-21, L-25, L-27
async fn policy_notready_before_and_after(fixture: &Fixture) -> Result<()> {
    let plane = fixture.cluster().plane();
    let stages = |soak: &str| json!([{ "name": "canary", "replicas": 1, "soak": soak }, { "name": "rest" }]);
    let policy = json!({
        "stages": stages("1h"), "nodes": { "maxExempt": 1 }, "progressDeadlineSeconds": 600, "onFailure": "Pause",
    });
    // As most agents: otherwise a node that is not ready should run no pod, because it has taints for that.
    let tolerations = json!([{ "operator": "Exists" }]);
    let agent = daemon_set("agent")
        .max_unavailable(2)
        .set("/spec/template/spec", "tolerations", tolerations);
    let watch = fixture.watch("agent");
    fixture.start_as(4, agent).await?;
    fixture.wait_until_settled("agent").await?;
    watch.arm().await?;
    create(fixture, policy).await?;
    let nodes = fixture.node_names().await?;
    let ill = nodes.first().context("a node")?;
    let of_ill = async || {
        let pods = fixture.live_pods("agent").await?;
        let found = pods.iter().find(|pod| node_of(pod) == *ill);
        found.and_then(kube::ResourceExt::uid).context("its pod")
    };
    let old = of_ill().await?;
    plane.set_node_ready(ill, false).await?;
    wait_for_readiness(fixture, ill, "False").await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_state(2, "Soaking").await?;
    let canary = only_pod(fixture, 2).await?;
    let node = node_of(&canary);
    ensure!(node != *ill, "the canary is on {ill}, which is not ready");

    // The kubelet of the canary's node dies. As the node lifecycle controller does after missed heartbeats, which fake kubelets do
    // not send, its pod is marked as not ready.
    next_second(fixture).await?;
    plane.set_node_silent(&node, true).await?;
    let now = Timestamp::now().to_string();
    let ready = json!({ "type": "Ready", "status": "False", "lastTransitionTime": now });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [ready] } }));
    // Until the fake kubelet knows that it is dead, it marks the pod as ready again.
    let mut unready = 0;
    fixture
        .eventually("the pod to stay unready", async || {
            let pod = fixture.pod_api().get(&canary.name_any()).await?;
            unready = if is_ready(&pod) { 0 } else { unready + 1 };
            if unready == 0 {
                let params = PatchParams::default();
                fixture
                    .pod_api()
                    .patch_status(&canary.name_any(), &params, &patch)
                    .await?;
            }
            ensure!(unready >= 5, "it was so at {unready} looks");
            Ok(())
        })
        .await?;
    let deadline = json!({ "spec": { "progressDeadlineSeconds": 2 } });
    fixture.patch_policy("agents", deadline).await?;
    let target = fixture.wait_for_state(2, "Rejected").await?;
    let blocking = &target["blocking"];
    ensure!(
        blocking.as_array().is_some_and(|all| all.len() == 1) && blocking[0]["node"] == node.as_str(),
        "only {node} failed, but the status names {blocking}"
    );
    expect_versions(fixture, 3, 1).await?;

    // Another template begins anew, on the nodes that are ready.
    plane.set_node_silent(&node, false).await?;
    wait_for_readiness(fixture, &node, "True").await?;
    let patch = json!({ "spec": { "stages": stages("0s"), "progressDeadlineSeconds": 600 } });
    fixture.patch_policy("agents", patch).await?;
    fixture.patch("agent", image_patch(3)).await?;
    fixture.wait_for_state(3, "Complete").await?;
    let third = fixture.count_of_version("agent", 3).await?;
    ensure!(third == 3, "{third} of the 3 nodes that are ready have version 3");
    ensure!(of_ill().await? == old, "the pod of {ill} was replaced");
    plane.set_node_ready(ill, true).await?;
    fixture.wait_until_settled("agent").await?;
    ensure!(of_ill().await? != old, "{ill} did not get its turn");
    // One node is without an available pod by its kubelet's doing, so at most one more by the rollout's.
    watch.seen().await?.expect_rollout(2, 4 + 1 + 4)
}

/// Waits until the Ready condition of a node has this status.
async fn wait_for_readiness(fixture: &Fixture, node: &str, status: &str) -> Result<()> {
    let nodes = kube::Api::<k8s_openapi::api::core::v1::Node>::all(fixture.client());
    fixture
        .eventually(format!("{node} to be {status}"), async || {
            let found = nodes.get(node).await?;
            let conditions = found.status.and_then(|status| status.conditions);
            let is_so = conditions
                .into_iter()
                .flatten()
                .any(|one| one.type_ == "Ready" && one.status == status);
            ensure!(is_so, "it is not");
            Ok(())
        })
        .await
}
