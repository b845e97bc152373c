//! Observing beside another controller.

use anyhow::{Result, ensure};
use nodewise_conformance::{DEADLINE, EXECUTOR_USER, daemon_set};
use nodewise_e2e::{Rig, RigOptions};
use nodewise_testbed::eventually;

/// Observe mode says what it would do and writes nothing at all, as the apiserver's own audit log has it.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_writes_nothing() -> Result<()> {
    let rig = Rig::start(RigOptions::nodes(5).observe()).await?;
    rig.create(daemon_set("agent").build()).await?;
    eventually(DEADLINE, "the executor to have planned the creates", async || {
        let (_, metrics) = rig.executor_get("/metrics").await?;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("nodewise_actions_total{action=\"CreatePod\""));
        ensure!(line.is_some(), "no create in its metrics");
        Ok(())
    })
    .await?;
    ensure!(rig.live_pods("agent").await?.is_empty(), "it made pods");
    let reads = rig.audit(|event| event.user == EXECUTOR_USER).await?;
    ensure!(!reads.is_empty(), "the audit log knows the executor at all");
    let writes = rig
        .audit(|event| event.user == EXECUTOR_USER && event.is_write())
        .await?;
    ensure!(writes.is_empty(), "it wrote: {writes:?}");
    Ok(())
}
