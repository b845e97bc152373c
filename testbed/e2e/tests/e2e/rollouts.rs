//! What the executor tells about rollouts: lines of its log, Events and a metric.

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{DEADLINE, daemon_set, deployment};
use nodewise_e2e::{OWNER_COMPONENTS, Setup, SetupOptions};
use nodewise_testbed::eventually;
use serde_json::{Value, json};

const BLOCKED: &str =
    "nodewise_blocked_nodes{kind=\"DaemonSet\",namespace=\"default\",name=\"agent\",reason=\"";

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

/// How many lines of the log an error shows.
const SHOWN: usize = 15;

/// Waits until a line of the executor's log has all of these words, and returns it. The error has the last lines about the workload in
/// the words, which is written `namespace/name`.
async fn log_line(setup: &Setup, words: &[&str]) -> Result<String> {
    let workload = words.iter().find(|word| word.contains('/')).unwrap_or(&"");
    eventually(DEADLINE, &format!("a line with {words:?}"), async || {
        let log = setup.executor().log();
        let mut lines = log.lines();
        let line = lines.find(|line| words.iter().all(|word| line.contains(word)));
        line.map(str::to_owned).with_context(|| {
            let lines: Vec<_> = log.lines().filter(|line| line.contains(workload)).collect();
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            format!("no line with {words:?}; the last ones with {workload:?} are:\n{last}")
        })
    })
    .await
}

/// The time in the message of a stuck rollout.
fn since(message: &str) -> Result<&str> {
    let (_, rest) = message.split_once("is stuck since ").context("no time")?;
    let (since, _) = rest.split_once("Z: ").context("no cause")?;
    Ok(since)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_cannot_pull_its_image_is_told_once() -> Result<()> {
    let mut setup = Setup::start(SetupOptions::nodes(8)).await?;
    log_line(
        &setup,
        &[
            "the apiserver answers",
            "cluster=",
            "kubernetes=",
            "daemonset-controller=own",
        ],
    )
    .await?;
    setup
        .create(daemon_set("agent").max_unavailable(2).build())
        .await?;
    setup.wait_for_rollout("agent").await?;
    for part in ["has begun: ", "is complete after "] {
        log_line(&setup, &["default/agent", part]).await?;
    }

    setup.patch("agent", image("registry.example/missing:2")).await?;
    let cause = "container main: ImagePullBackOff";
    let stuck = log_line(&setup, &["WARN", "default/agent", "is stuck since ", cause]).await?;
    let first = since(&stuck)?.to_owned();
    let told = async |setup: &Setup| {
        eventually(DEADLINE, "the Event and the metric", async || {
            let (_, metrics) = setup.executor_get("/metrics").await?;
            let series = format!("{BLOCKED}ImagePullBackOff\"}} 2\n");
            ensure!(metrics.contains(&series), "no {series}");
            let events = setup.events("RolloutStuck").await?;
            ensure!(events.len() == 1, "{} Events", events.len());
            let message = events[0].message.clone().unwrap_or_default();
            ensure!(message.contains(cause) && since(&message)? == first, "{message}");
            ensure!(events[0].type_.as_deref() == Some("Warning"), "{events:?}");
            ensure!(events[0].count == Some(1), "{events:?}");
            Ok(())
        })
        .await
    };
    told(&setup).await?;

    // The next process finds the times in the cluster, and the Event.
    setup.stop_executor().await?;
    setup.start_executor().await?;
    let stuck = log_line(&setup, &["WARN", "default/agent", "is stuck since ", cause]).await?;
    assert_eq!(since(&stuck)?, first);
    eventually(DEADLINE, "the Event was sent again, and found", async || {
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(
            metrics.contains("nodewise_events_total{fate=\"filtered\"} 1\n"),
            "not yet"
        );
        Ok(())
    })
    .await?;
    told(&setup).await?;

    setup.patch("agent", image("registry.example/agent:1")).await?;
    setup.wait_for_rollout("agent").await?;
    log_line(
        &setup,
        &["INFO", "default/agent", "is complete after ", "all 8 nodes"],
    )
    .await?;
    eventually(DEADLINE, "the Event about the end", async || {
        let events = setup.events("RolloutComplete").await?;
        // One is about the first rollout.
        ensure!(events.len() == 2, "{} Events", events.len());
        let (_, metrics) = setup.executor_get("/metrics").await?;
        ensure!(!metrics.contains(BLOCKED), "{BLOCKED} is left");
        Ok(())
    })
    .await
}

/// All three kinds, with the executor as the owner of all.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_whose_containers_crash_is_told() -> Result<()> {
    let setup = Setup::start(SetupOptions::nodes(3).controllers("*", OWNER_COMPONENTS)).await?;
    setup.start_deployment(deployment("web", 3).build()).await?;
    log_line(
        &setup,
        &["kind=\"Deployment\"", "default/web", "is complete after "],
    )
    .await?;
    setup
        .patch_deployment("web", image("registry.example/crashing:2"))
        .await?;
    log_line(
        &setup,
        &["WARN", "kind=\"Deployment\"", "default/web", "CrashLoopBackOff"],
    )
    .await?;
    eventually(DEADLINE, "the Event and the metric", async || {
        let events = setup.events("RolloutStuck").await?;
        ensure!(events.len() == 1, "{} Events", events.len());
        assert_eq!(events[0].involved_object.kind.as_deref(), Some("Deployment"));
        let (_, metrics) = setup.executor_get("/metrics").await?;
        let series = "nodewise_blocked_nodes{kind=\"Deployment\",namespace=\"default\",name=\"web\",reason=\"CrashLoopBackOff\"}";
        ensure!(metrics.contains(series), "no {series}");
        Ok(())
    })
    .await
}
