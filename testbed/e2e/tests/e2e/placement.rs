//! Which nodes get a pod.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use nodewise_e2e::{DEADLINE, EXECUTOR_USER, Rig, RigOptions, daemon_set, node_of};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

/// S-1, S-3, D-69: 200 nodes, 200 pods, one each, bound by the scheduler and not by us; and D-108: with the rights of
/// upstream's controller, of which none is missing.
#[tokio::test(flavor = "multi_thread")]
async fn creates_one_pod_on_each_of_200_nodes() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(200)).await?;
    let watch = rig.watch("agent");
    rig.create(daemon_set("agent").build()).await?;
    let status = rig.rolled_out("agent").await?;
    assert_eq!(
        (
            status.desired_number_scheduled,
            status.number_ready,
            status.number_misscheduled
        ),
        (200, 200, 0)
    );
    rig.expect_one_pod_per_node("agent").await?;
    assert_eq!(watch.seen().created.len(), 200, "no pod was made in vain");
    assert_eq!(watch.seen().most_live.0, 1);
    let bound = rig
        .audit(|event| event.subresource == "binding" && event.code == 201)
        .await?;
    ensure!(
        bound.len() == 200 && bound.iter().all(|event| event.user == "system:kube-scheduler"),
        "{} bindings",
        bound.len()
    );
    let refused = rig
        .audit(|event| event.user == EXECUTOR_USER && event.code == 403)
        .await?;
    ensure!(refused.is_empty(), "the executor lacks a right: {refused:?}");
    Ok(())
}

async fn patch_node(rig: &Rig, name: &str, patch: Value) -> Result<()> {
    let nodes: Api<Node> = Api::all(rig.client());
    nodes
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// The pods' nodes, sorted, once there are as many as expected.
async fn settled_on(rig: &Rig, name: &str, expected: &[&str]) -> Result<()> {
    eventually(
        DEADLINE,
        format!("pods of {name} exactly on {expected:?}"),
        async || {
            let mut nodes: Vec<String> = rig.live_pods(name).await?.iter().map(node_of).collect();
            nodes.sort();
            ensure!(nodes == expected, "they are on {nodes:?}");
            Ok(())
        },
    )
    .await
}

/// S-13, S-14, S-128, D-20, D-84: NoExecute and a label that is gone remove the pod, NoSchedule keeps it and counts it.
#[tokio::test(flavor = "multi_thread")]
async fn follows_taints_and_labels_of_nodes() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(4)).await?;
    let names = rig.node_names().await?;
    let [a, b, c, d] = [&names[0], &names[1], &names[2], &names[3]].map(String::as_str);
    for node in [a, b, c] {
        patch_node(
            &rig,
            node,
            json!({ "metadata": { "labels": { "agent": "yes" } } }),
        )
        .await?;
    }
    let selector = json!({ "agent": "yes" });
    rig.create(
        daemon_set("agent")
            .set("/spec/template/spec", "nodeSelector", selector)
            .build(),
    )
    .await?;
    settled_on(&rig, "agent", &[a, b, c]).await?;

    patch_node(&rig, d, json!({ "metadata": { "labels": { "agent": "yes" } } })).await?;
    settled_on(&rig, "agent", &[a, b, c, d]).await?;

    patch_node(&rig, a, json!({ "metadata": { "labels": { "agent": null } } })).await?;
    settled_on(&rig, "agent", &[b, c, d]).await?;

    let taint =
        |effect: &str| json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": effect }] } });
    patch_node(&rig, b, taint("NoExecute")).await?;
    settled_on(&rig, "agent", &[c, d]).await?;

    patch_node(&rig, c, taint("NoSchedule")).await?;
    eventually(
        DEADLINE,
        "the tainted node to be counted as misscheduled",
        async || {
            let status = rig.status("agent").await?;
            ensure!(
                status.number_misscheduled == 1 && status.desired_number_scheduled == 1,
                "{status:?}"
            );
            Ok(())
        },
    )
    .await?;
    settled_on(&rig, "agent", &[c, d]).await?;

    patch_node(&rig, b, json!({ "spec": { "taints": null } })).await?;
    settled_on(&rig, "agent", &[b, c, d]).await
}

/// D-36, D-83, Q-19: the pod of a deleted node goes, its count too, and a node that comes gets a pod.
#[tokio::test(flavor = "multi_thread")]
async fn follows_nodes_that_go_and_come() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    let gone = rig.node_names().await?.remove(1);
    let nodes: Api<Node> = Api::all(rig.client());
    nodes.delete(&gone, &DeleteParams::default()).await?;
    eventually(DEADLINE, "status and pods without the deleted node", async || {
        let status = rig.status("agent").await?;
        ensure!(
            status.desired_number_scheduled == 2 && status.current_number_scheduled == 2,
            "{status:?}"
        );
        let left = rig
            .live_pods("agent")
            .await?
            .iter()
            .filter(|pod| node_of(pod) == gone)
            .count();
        ensure!(left == 0, "{left} pods are left for {gone}");
        Ok(())
    })
    .await?;
    rig.add_nodes(2).await?;
    let status = rig.rolled_out("agent").await?;
    assert_eq!(status.desired_number_scheduled, 4);
    rig.expect_one_pod_per_node("agent").await
}
