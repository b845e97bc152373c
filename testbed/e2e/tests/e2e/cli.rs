//! `nodewise plan` and `nodewise explain` on a live cluster print what the executor does.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use nodewise_conformance::{DEADLINE, daemon_set, deployment, image_patch};
use nodewise_e2e::{OWNER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

fn printed(output: &Output, code: i32) -> Result<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(code),
        "{}, expected {code}: {text}{errors}",
        output.status
    );
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_what_the_executor_would_do_and_why() -> Result<()> {
    // An executor in observe mode does not change the cluster.
    let setup = Setup::start(SetupOptions::nodes(3).observe()).await?;
    let nodes: Api<Node> = Api::all(setup.client());
    let taint = json!({ "spec": { "taints": [{ "key": "gpu", "value": "only", "effect": "NoSchedule" }] } });
    let names = setup.node_names().await?;
    nodes
        .patch(&names[2], &PatchParams::default(), &Patch::Merge(taint))
        .await?;
    setup.create(daemon_set("agent").build()).await?;

    let here = printed(&setup.nodewise(&["plan", "--detailed-exitcode"]).await?, 2)?;
    ensure!(here.contains("2 pods to create"), "{here}");
    let there = printed(
        &setup.nodewise(&["plan", "--server", &setup.server_url()]).await?,
        0,
    )?;
    assert_eq!(
        here, there,
        "the service answers as the planner in the binary does"
    );

    let plans = printed(&setup.nodewise(&["plan", "--output", "json"]).await?, 0)?;
    let plans: Value = serde_json::from_str(&plans).context("the protocol's JSON")?;
    assert_eq!(plans.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&plans[0]["namespace"], &plans[0]["name"]),
        (&json!("default"), &json!("agent"))
    );

    let why = printed(
        &setup
            .nodewise(&["explain", "daemonset", "agent", "--node", &names[2]])
            .await?,
        0,
    )?;
    ensure!(
        why.contains("must not run") && why.contains("gpu=only:NoSchedule"),
        "{why}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_nothing_to_do_after_a_rollout() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3)).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.wait_for_rollout("agent").await?;
    let text = printed(&setup.nodewise(&["plan", "--detailed-exitcode"]).await?, 0)?;
    ensure!(text.contains("nothing to do"), "{text}");
    let strict = ["plan", "--detailed-exitcode", "--profile", "upstream-strict"];
    printed(&setup.nodewise(&strict).await?, 0)?;
    Ok(())
}

/// A Deployment whose new pods fit on no node: `explain` names the ReplicaSets, their pods and the cause.
#[tokio::test(flavor = "multi_thread")]
async fn explains_why_a_deployment_is_not_done() -> Result<()> {
    let options = SetupOptions::nodes(2).controllers("*", OWNER_COMPONENTS);
    let setup = Setup::start(options).await?;
    let web = deployment("web", 3).rolling(1, 0).build();
    setup.start_deployment(web).await?;
    let mut fits_nowhere = image_patch(2);
    fits_nowhere["spec"]["template"]["spec"]["nodeSelector"] = json!({ "gpu": "yes" });
    setup.patch_deployment("web", fits_nowhere).await?;
    setup.wait_for_sizes("web", &[(1, 3), (2, 1)]).await?;
    eventually(
        DEADLINE,
        "the explanation of the executor's last plan",
        async || {
            let why = printed(&setup.nodewise(&["explain", "deployment/web"]).await?, 0)?;
            for part in [
                "the rollout waits until 1 pod of web-",
                "2 node(s) didn't match Pod's node affinity/selector",
                "(revision 2): 1 replica, 0 ready, 0 available",
                "(revision 1): 3 replicas, 3 ready, 3 available",
            ] {
                ensure!(why.contains(part), "no {part:?} in: {why}");
            }
            Ok(())
        },
    )
    .await?;
    // The status of the Deployment follows that of its ReplicaSet.
    let args = ["plan", "--detailed-exitcode", "deployment/web"];
    let plan = eventually(DEADLINE, "a settled Deployment", async || {
        printed(&setup.nodewise(&args).await?, 0)
    })
    .await?;
    ensure!(plan.contains("nothing to do"), "{plan}");
    Ok(())
}
