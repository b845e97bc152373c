//! The commands that steer a rollout with a RolloutPolicy, against a real control plane: they write the policy and nothing else.

use std::process::Output;

use anyhow::{Result, ensure};
use kube::{ResourceExt as _, api::PostParams};
use nodewise_conformance::{DEADLINE, daemon_set, image_patch};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

const NODES: usize = 10;
const CANARIES: usize = 2;

/// A cluster on which version 1 runs, with a policy whose second stage needs an approval.
async fn running() -> Result<Setup> {
    let setup = Setup::start(SetupOptions::nodes(NODES).rollout_policies()).await?;
    let agent = daemon_set("agent").max_unavailable(5).build();
    setup.create(agent).await?;
    setup.wait_for_rollout("agent").await?;
    let policy = json!({
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "agents", "namespace": "default"},
        "spec": {
            "targets": {"names": ["agent"]},
            "stages": [
                {"name": "canary", "replicas": CANARIES},
                {"name": "rest", "approval": "Required"},
            ],
        },
    });
    let policy = serde_json::from_value(policy)?;
    setup.policy_api().create(&PostParams::default(), &policy).await?;
    wait_for_state(&setup, "Complete").await?;
    Ok(setup)
}

/// Waits until the status of the policy has this state.
async fn wait_for_state(setup: &Setup, state: &str) -> Result<()> {
    eventually(DEADLINE, &format!("the state {state}"), async || {
        let policy = setup.policy_api().get("agents").await?;
        let target = &policy.data["status"]["targets"][0];
        ensure!(
            target["state"] == state,
            "it is {}: {}",
            target["state"],
            target["message"]
        );
        Ok(())
    })
    .await
}

/// Runs `nodewise rollout VERB ds/agent`, and fails unless it ends with this exit status.
async fn rollout(setup: &Setup, verb: &str, flags: &[&str], code: i32) -> Result<Output> {
    let words = [&["rollout", verb, "ds/agent"][..], flags].concat();
    let output = setup.nodewise(&words).await?;
    ensure!(output.status.code() == Some(code), "{words:?}: {output:?}");
    Ok(output)
}

/// The status of the rollout, for programs.
async fn status(setup: &Setup, code: i32) -> Result<Value> {
    let output = rollout(setup, "status", &["-o", "json"], code).await?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

async fn approval(setup: &Setup) -> Result<Option<String>> {
    let policy = setup.policy_api().get("agents").await?;
    Ok(policy.annotations().get("nodewise.dev/approve").cloned())
}

fn said(output: &Output) -> String {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{stdout}{stderr}")
}

// L-8, L-27, L-28, L-30, L-36.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_paused_approved_rolled_back_and_resumed() -> Result<()> {
    let setup = running().await?;
    let output = rollout(&setup, "approve", &["--yes"], 1).await?;
    ensure!(said(&output).contains("waits for no approval"), "{output:?}");
    setup.patch("agent", image_patch(2)).await?;
    wait_for_state(&setup, "AwaitingApproval").await?;
    assert_eq!(setup.count_of_version("agent", 2).await?, CANARIES);

    // What is shown is what is approved, and nothing else.
    let shown = status(&setup, 2).await?;
    let pending = &shown["policy"]["pendingApproval"];
    assert_eq!(pending["stage"], "rest", "{shown}");
    assert_eq!(pending["nodes"], NODES - CANARIES);
    let digest = pending["digest"].as_str().unwrap_or_default().to_owned();
    let output = rollout(&setup, "approve", &["--yes", "--digest", "outdated"], 1).await?;
    ensure!(
        said(&output).contains("the digest outdated is out of date"),
        "{output:?}"
    );
    let output = rollout(&setup, "approve", &[], 1).await?;
    for part in ["8 nodes: ", "delete", &digest, "nobody can answer"] {
        ensure!(said(&output).contains(part), "no {part:?}: {output:?}");
    }
    rollout(&setup, "approve", &["--dry-run"], 0).await?;
    ensure!(approval(&setup).await?.is_none(), "nothing was approved");

    // The live view follows the policy, and asks for the approval with a key.
    let mut live = setup.nodewise_in_terminal(&["rollout", "status", "ds/agent", "--watch"])?;
    live.shows(&["awaiting approval", "canary", "2/2", "0/8", &digest, "a approve"])
        .await?;
    live.press("a")?;
    live.shows(&["Once it is approved", "kubectl annotate rolloutpolicy", "[y/n]"])
        .await?;
    live.press("n")?;

    // A pause is one of the policy.
    let output = rollout(&setup, "pause", &["--yes"], 0).await?;
    ensure!(
        said(&output).contains("RolloutPolicy default/agents: changed"),
        "{output:?}"
    );
    wait_for_state(&setup, "Paused").await?;
    live.shows(&["agent paused", "p resume"]).await?;
    live.press("q")?;
    let code = live.exit_code().await?;
    ensure!(code == 2, "exit status {code}");
    assert_eq!(status(&setup, 2).await?["state"], "ROLLOUT_STATE_PAUSED");
    rollout(&setup, "resume", &["--yes"], 0).await?;
    wait_for_state(&setup, "AwaitingApproval").await?;

    rollout(&setup, "approve", &["--yes", "--digest", &digest], 0).await?;
    assert_eq!(approval(&setup).await?, Some(digest));
    wait_for_state(&setup, "Complete").await?;
    assert_eq!(setup.count_of_version("agent", 2).await?, NODES);
    status(&setup, 0).await?;

    // A person takes a revision back. The DaemonSet stays as it is.
    let changed = setup.patch("agent", image_patch(3)).await?;
    wait_for_state(&setup, "AwaitingApproval").await?;
    rollout(&setup, "rollback", &["--yes"], 0).await?;
    wait_for_state(&setup, "RolledBack").await?;
    assert_eq!(setup.count_of_version("agent", 2).await?, NODES);
    let now = setup.daemon_set_api().get("agent").await?;
    assert_eq!(now.metadata.generation, changed.metadata.generation);
    let shown = status(&setup, 3).await?;
    assert_eq!(shown["policy"]["rejection"]["reason"], "Requested", "{shown}");
    let row = setup.nodewise(&["status"]).await?;
    ensure!(said(&row).contains("rolled back"), "{row:?}");

    // And lets it go on again: to the canaries, as before.
    rollout(&setup, "resume", &["--yes"], 0).await?;
    wait_for_state(&setup, "AwaitingApproval").await?;
    eventually(DEADLINE, "version 3 on the canaries", async || {
        let count = setup.count_of_version("agent", 3).await?;
        ensure!(count == CANARIES, "{count} nodes have it");
        Ok(())
    })
    .await
}
