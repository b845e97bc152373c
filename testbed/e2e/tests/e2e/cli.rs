//! `nodewise plan` and `nodewise explain` on a live cluster: they say what the executor then does.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use nodewise_conformance::daemon_set;
use nodewise_e2e::{Rig, RigOptions};
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
async fn tells_what_the_executor_would_do_and_why() -> Result<()> {
    // An executor that only observes leaves the cluster as it is.
    let rig = Rig::start(RigOptions::nodes(3).observe()).await?;
    let nodes: Api<Node> = Api::all(rig.client());
    let taint = json!({ "spec": { "taints": [{ "key": "gpu", "value": "only", "effect": "NoSchedule" }] } });
    let names = rig.node_names().await?;
    nodes
        .patch(&names[2], &PatchParams::default(), &Patch::Merge(taint))
        .await?;
    rig.create(daemon_set("agent").build()).await?;

    let here = printed(&rig.nodewise(&["plan", "--detailed-exitcode"]).await?, 2)?;
    ensure!(here.contains("2 pods to create"), "{here}");
    let there = printed(&rig.nodewise(&["plan", "--server", &rig.server_url()]).await?, 0)?;
    assert_eq!(
        here, there,
        "the service answers as the planner in the binary does"
    );

    let plans = printed(&rig.nodewise(&["plan", "--output", "json"]).await?, 0)?;
    let plans: Value = serde_json::from_str(&plans).context("the protocol's JSON")?;
    assert_eq!(plans.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&plans[0]["namespace"], &plans[0]["name"]),
        (&json!("default"), &json!("agent"))
    );

    let why = printed(
        &rig.nodewise(&["explain", "daemonset", "agent", "--node", &names[2]])
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
    let rig = Rig::start(RigOptions::nodes(3)).await?;
    rig.create(daemon_set("agent").build()).await?;
    rig.rolled_out("agent").await?;
    let text = printed(&rig.nodewise(&["plan", "--detailed-exitcode"]).await?, 0)?;
    ensure!(text.contains("nothing to do"), "{text}");
    let strict = ["plan", "--detailed-exitcode", "--profile", "upstream-strict"];
    printed(&rig.nodewise(&strict).await?, 0)?;
    Ok(())
}
