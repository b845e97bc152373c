//! `nodewise plan` and `nodewise explain` on a live cluster print what the executor does.

use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use nodewise_conformance::daemon_set;
use nodewise_e2e::{Setup, SetupOptions};
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
