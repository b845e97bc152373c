//! `nodewise status` and `nodewise rollout status` name what holds up rollouts, whichever controller makes them.

use std::{process::Output, time::Instant};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{DEADLINE, daemon_set, deployment};
use nodewise_e2e::{Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

use crate::live::PROMISED;

fn lines(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).context("a line of JSON"));
    lines.collect()
}

/// A patch of the image of the container.
pub(crate) fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

/// Changes the images of both workloads, and waits until the table of `status --watch` has the causes.
async fn gets_stuck_in_the_table(setup: &Setup) -> Result<()> {
    let mut table = setup.nodewise_in_terminal(&["status", "--watch"])?;
    table
        .shows(&["daemonset/agent", "deployment/web", "6/6", "3/3", "q quit"])
        .await?;
    let changed = Instant::now();
    setup.patch("agent", image("registry.example/missing:2")).await?;
    table.shows(&["stuck", "ImagePullBackOff on 1"]).await?;
    let took = changed.elapsed();
    println!("from the change to the cause in the table: {took:?}");
    ensure!(took <= PROMISED, "the cause was shown after {took:?}");
    setup
        .patch_deployment("web", image("registry.example/crashing:2"))
        .await?;
    table.shows(&["CrashLoopBackOff on"]).await?;
    table.press("q")?;
    let code = table.exit_code().await?;
    ensure!(code == 0, "exit status {code}:\n{}", table.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_rollout_names_its_cause_until_it_is_undone() -> Result<()> {
    // The executor owns DaemonSets; the built-in controllers own Deployments and ReplicaSets.
    let setup = Setup::start(SetupOptions::nodes(6)).await?;
    setup.create(daemon_set("agent").build()).await?;
    setup.start_deployment(deployment("web", 3).build()).await?;
    let complete = ["rollout", "status", "ds/agent", "--watch", "--timeout", "60s"];
    let output = setup.nodewise(&complete).await?;
    ensure!(output.status.code() == Some(0), "{output:?}");

    gets_stuck_in_the_table(&setup).await?;
    let stuck = eventually(DEADLINE, "the cause of the stuck rollout", async || {
        let output = setup
            .nodewise(&["rollout", "status", "ds/agent", "-o", "json"])
            .await?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(status["state"] == "ROLLOUT_STATE_STUCK", "{status}");
        ensure!(output.status.code() == Some(3), "{output:?}");
        Ok(status)
    })
    .await?;
    assert_eq!(stuck["causes"][0]["reason"], "ImagePullBackOff");
    assert_eq!(stuck["counts"]["blocked"], 1, "maxUnavailable is 1");
    assert_eq!(stuck["writers"][0]["manager"], "nodewise-executor");

    let rows = eventually(DEADLINE, "both rollouts are stuck", async || {
        let output = setup.nodewise(&["status", "-o", "json"]).await?;
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        let is_stuck = |row: &Value| row["state"] == "ROLLOUT_STATE_STUCK";
        ensure!(rows.len() == 2 && rows.iter().all(is_stuck), "{rows:?}");
        Ok(rows)
    })
    .await?;
    let crashing = rows
        .iter()
        .find(|row| row["name"] == "web")
        .context("the Deployment")?;
    assert_eq!(crashing["causes"][0]["reason"], "CrashLoopBackOff");
    assert_eq!(crashing["writers"][0]["manager"], "kube-controller-manager");
    assert_eq!(crashing["causes"][0]["lastExit"], "exit code 1, Error");

    // The exit status after --timeout tells the state. Elsewhere than in a terminal, each change is a line.
    let limited = ["--watch", "-o", "json", "--timeout", "10s"];
    let one = [&["rollout", "status", "ds/agent"][..], &limited].concat();
    let all = [&["status"][..], &limited].concat();
    let (output, tables) = tokio::join!(setup.nodewise(&one), setup.nodewise(&all));
    let (output, tables) = (output?, tables?);
    ensure!(output.status.code() == Some(3), "{output:?}");
    assert_eq!(lines(&output)?[0]["state"], "ROLLOUT_STATE_STUCK");
    ensure!(tables.status.code() == Some(0), "{tables:?}");
    let tables = lines(&tables)?;
    let first = tables.first().context("at least one table")?;
    assert_eq!(first.as_array().map(Vec::len), Some(2), "{first}");

    // Nobody can be asked, so nothing is changed.
    let output = setup.nodewise(&["rollout", "undo", "ds/agent"]).await?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    let dry_run = ["rollout", "undo", "ds/agent", "--dry-run"];
    let output = setup.nodewise(&dry_run).await?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    assert_eq!(
        image_of(&setup, "daemonset/agent").await?,
        "registry.example/missing:2"
    );

    let follow = "rollout status ds/agent --watch -o json --timeout 60s";
    let follow: Vec<&str> = follow.split(' ').collect();
    let undo = ["rollout", "undo", "ds/agent", "--yes"];
    let (output, undone) = tokio::join!(setup.nodewise(&follow), setup.nodewise(&undo));
    let (output, undone) = (output?, undone?);
    ensure!(undone.status.code() == Some(0), "{undone:?}");
    ensure!(output.status.code() == Some(0), "{output:?}");
    let states = lines(&output)?;
    let last = states.last().context("at least one line")?;
    assert_eq!(last["state"], "ROLLOUT_STATE_COMPLETE");
    assert_eq!(last["counts"]["done"], 6);
    assert_eq!(
        image_of(&setup, "daemonset/agent").await?,
        "registry.example/agent:1"
    );

    for (verb, paused) in [("pause", "true"), ("resume", "")] {
        let output = setup.nodewise(&["rollout", verb, "deploy/web", "--yes"]).await?;
        ensure!(output.status.code() == Some(0), "{output:?}");
        let path = ["get", "deployment/web", "-o", "jsonpath={.spec.paused}"];
        let found = setup.kubectl(&path).await?;
        assert_eq!(found.trim().trim_start_matches("false"), paused, "after {verb}");
    }
    let retry = ["rollout", "retry", "deploy/web", "--yes"];
    let output = setup.nodewise(&retry).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.code() == Some(0) && text.contains("deleted"),
        "{output:?}"
    );
    Ok(())
}

/// `nodewise rollout undo` of a Deployment leaves it as the kubectl command does that it prints.
#[tokio::test(flavor = "multi_thread")]
async fn an_undo_of_a_deployment_does_what_kubectl_does() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(2)).await?;
    for name in ["web", "api"] {
        setup.start_deployment(deployment(name, 1).build()).await?;
        let workload = format!("deployment/{name}");
        for (number, cause) in [("2", "the second"), ("3", "the third")] {
            let change = format!("main=registry.example/agent:{number}");
            setup.kubectl(&["set", "image", &workload, &change]).await?;
            let mut annotations = vec![format!("kubernetes.io/change-cause={cause}")];
            if number == "3" {
                annotations.push("only-in=the-third".to_owned());
            }
            let mut words = vec!["annotate", "--overwrite", &workload];
            words.extend(annotations.iter().map(String::as_str));
            setup.kubectl(&words).await?;
            let status = ["rollout", "status", &workload, "--timeout=60s"];
            setup.kubectl(&status).await?;
            // The controller copies the annotations to the ReplicaSet.
            eventually(DEADLINE, "the annotations of the ReplicaSet", async || {
                let causes = setup.kubectl(&["rollout", "history", &workload]).await?;
                ensure!(causes.contains(cause), "{causes}");
                Ok(())
            })
            .await?;
        }
    }
    setup
        .kubectl(&["rollout", "undo", "deployment/web", "--to-revision=2"])
        .await?;
    let undo = ["rollout", "undo", "deploy/api", "--to-revision=2", "--yes"];
    let output = setup.nodewise(&undo).await?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    let of = async |name: &str| -> Result<(Value, Value)> {
        let workload = format!("deployment/{name}");
        let object = eventually(DEADLINE, "the controller has seen it", async || {
            let text = setup.kubectl(&["get", &workload, "-o", "json"]).await?;
            let object: Value = serde_json::from_str(&text)?;
            let revision = &object["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
            ensure!(revision == "4", "revision {revision}");
            Ok(object)
        });
        let object = object.await?;
        Ok((
            object["metadata"]["annotations"].clone(),
            object["spec"]["template"]["spec"].clone(),
        ))
    };
    let (by_kubectl, by_nodewise) = (of("web").await?, of("api").await?);
    assert_eq!(by_kubectl, by_nodewise);
    assert_eq!(by_nodewise.0["kubernetes.io/change-cause"], "the second");
    assert_eq!(by_nodewise.0["only-in"], Value::Null);
    Ok(())
}

async fn image_of(setup: &Setup, workload: &str) -> Result<String> {
    let path = "jsonpath={.spec.template.spec.containers[0].image}";
    setup.kubectl(&["get", workload, "-o", path]).await
}
