//! The two who can own DaemonSets, upstream's controller and the executor: how each of them goes, and how to know that it has
//! looked at everything after it came.
//!
//! Upstream's DaemonSet controller is a process of its own here, so that it can come and go while everything else of
//! kube-controller-manager (garbage collection, node lifecycle, service accounts) keeps running in another one.

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::{Process, eventually};

use crate::rig::{DEADLINE, Rig};

/// The user that upstream's DaemonSet controller is to the apiserver.
pub const UPSTREAM_USER: &str = "upstream-daemonset-controller";

/// A running DaemonSet controller of upstream; gone when dropped.
#[derive(Debug)]
pub struct Upstream(Process);

impl Rig {
    /// Starts it.
    pub async fn start_upstream(&self) -> Result<Upstream> {
        let mut command = self.plane.daemonset_controller(UPSTREAM_USER).await?;
        // From this level on it says which workloads it has synced.
        command.arg("--v=4");
        Ok(Upstream(self.plane.spawn("upstream", command)?))
    }

    /// Asks the executor to end and waits until the process is gone.
    pub async fn stop_executor(&self) -> Result<()> {
        self.executor.terminate(DEADLINE).await.map(|_| ())
    }

    /// Waits until the executor, since it was started, got a plan for each of these DaemonSets of namespace `default` and has
    /// nothing left to do. Gives the lines of its metrics.
    pub async fn executor_planned(&self, names: &[&str]) -> Result<Vec<String>> {
        self.executor_planned_since(0, names).await
    }

    /// Waits until it got as many plans as there are DaemonSets after the first `plans`, too.
    pub async fn executor_planned_since(&self, plans: u64, names: &[&str]) -> Result<Vec<String>> {
        eventually(DEADLINE, "a plan for each DaemonSet", async || {
            let (_, metrics) = self.executor_get("/metrics").await?;
            for name in names {
                let labels = format!("nodewise_rollout_nodes{{namespace=\"default\",name=\"{name}\"");
                ensure!(metrics.contains(&labels), "no plan for {name} yet");
            }
            let lines: Vec<String> = metrics.lines().map(str::to_owned).collect();
            let since = plan_count(&lines)?.saturating_sub(plans);
            ensure!(since >= u64::try_from(names.len())?, "{since} plans");
            for idle in ["depth", "longest_running_processor_seconds"] {
                let prefix = format!("workqueue_{idle}{{name=\"daemonset\"}} ");
                let value = metrics.lines().find_map(|line| line.strip_prefix(&prefix));
                let value: f64 = value.with_context(|| format!("no {prefix}"))?.parse()?;
                ensure!(value == 0.0, "{prefix}is {value}");
            }
            Ok(lines)
        })
        .await
    }
}

/// How many plans the executor got since it was started, by the lines of its metrics.
pub fn plan_count(metrics: &[String]) -> Result<u64> {
    let counts = metrics
        .iter()
        .filter(|line| line.starts_with("nodewise_plans_total{"))
        .map(|line| {
            let count = line.rsplit(' ').next().unwrap_or_default();
            count.parse::<u64>().with_context(|| line.clone())
        });
    counts.sum()
}

impl Upstream {
    /// Waits until it has synced each of these DaemonSets of namespace `default` at least once. Its workers begin when its
    /// caches are whole, so the first sync is one of everything there is.
    pub async fn synced(&self, names: &[&str]) -> Result<()> {
        for name in names {
            self.synced_since(0, name).await?;
        }
        Ok(())
    }

    /// Waits until it has synced this DaemonSet once more than `syncs` times.
    pub async fn synced_since(&self, syncs: usize, name: &str) -> Result<()> {
        eventually(DEADLINE, format!("upstream to sync {name}"), async || {
            self.0.check_running()?;
            let since = self.syncs(name);
            ensure!(since > syncs, "{since} syncs of {name}, {syncs} of them before");
            Ok(())
        })
        .await
    }

    /// How often it has synced a DaemonSet of namespace `default`.
    #[must_use]
    pub fn syncs(&self, name: &str) -> usize {
        let key = format!("daemonset=\"default/{name}\"");
        let log = self.0.log();
        let synced = |line: &&str| line.contains("\"Finished syncing daemon set\"") && line.contains(&key);
        log.lines().filter(synced).count()
    }

    /// Asks it to end and waits until the process is gone.
    pub async fn stop(self) -> Result<()> {
        self.0.terminate(DEADLINE).await.map(|_| ())
    }
}
