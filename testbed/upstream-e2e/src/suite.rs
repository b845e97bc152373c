//! Runs the suite once: a new control plane, an owner of DaemonSets, and Kubernetes' own test program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use nodewise_conformance::{Cluster, release_binaries};
use nodewise_testbed::{ControlPlane, Process, Tool, eventually};

use crate::{
    owner::{Owner, RunningOwner},
    report::SuiteRun,
};

/// The specs to run, of more than seven thousand in the suite.
const FOCUS: &str = r"Daemon set \[Serial\]";

/// The specs need several nodes. More nodes would only mean more pods.
const NODES: usize = 5;

/// Ginkgo's timeout for all specs. A failed spec waits for five minutes, and its clean-up may take as long.
const SUITE_TIMEOUT: &str = "30m";

/// The timeout for the whole program. It writes its report after [`SUITE_TIMEOUT`].
const DEADLINE: Duration = Duration::from_mins(35);

/// The file of ginkgo's report, next to the logs.
const REPORT: &str = "report.json";

/// Runs the suite with `owner` on a new control plane, and keeps all logs and the report in `logs`.
///
/// # Errors
/// A program cannot be started, or ends before the suite. A failed spec is not an error.
pub async fn run(
    owner: Owner,
    executor_flags: &[String],
    programs: &Programs,
    logs: &Path,
) -> Result<SuiteRun> {
    let cluster = start_cluster().await?;
    let result = run_on(&cluster, owner, executor_flags, programs).await;
    cluster.keep_logs(logs)?;
    result
}

/// The suite, and the kubectl that it runs.
#[derive(Debug)]
pub struct Programs {
    suite: PathBuf,
    kubectl: PathBuf,
}

impl Programs {
    /// Builds these and the programs of Nodewise, so that no build runs during the specs. The programs of Nodewise are
    /// release builds, because times are compared.
    ///
    /// # Errors
    /// A build fails.
    pub fn build() -> Result<Self> {
        release_binaries()?;
        Ok(Self {
            suite: Tool::KubernetesE2e.path()?,
            kubectl: Tool::Kubectl.path()?,
        })
    }
}

/// Starts a cluster with the admission plugins that the suite needs: pods get service accounts, and nodes that are not
/// ready are tainted.
async fn start_cluster() -> Result<Cluster> {
    let builder = ControlPlane::builder()
        .admission("ServiceAccount")
        .admission("TaintNodesByCondition");
    let cluster = Cluster::start_with(builder, "own").await?;
    cluster.plane().create_nodes(NODES).await?;
    Ok(cluster)
}

async fn run_on(
    cluster: &Cluster,
    owner: Owner,
    executor_flags: &[String],
    programs: &Programs,
) -> Result<SuiteRun> {
    let running = owner.start(cluster, executor_flags).await?;
    let report = report_file(cluster.plane());
    let suite = cluster
        .plane()
        .spawn("e2e.test", command(cluster.plane(), programs, &report))?;
    wait_for_end(&suite, cluster.plane(), &running).await?;
    let json = fs::read_to_string(&report).with_context(|| {
        format!(
            "the suite left no {}; the end of its log:\n{}",
            report.display(),
            suite.log_tail()
        )
    })?;
    SuiteRun::parse(&json)
}

fn report_file(plane: &ControlPlane) -> PathBuf {
    plane.workdir().logs().join(REPORT)
}

fn command(plane: &ControlPlane, programs: &Programs, report: &Path) -> Command {
    let folder = plane.workdir().path();
    let mut command = Command::new(&programs.suite);
    command
        .current_dir(folder)
        // Without the user's own settings.
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        // The surge spec deletes random pods. A fixed random sequence makes it delete at the same times in both runs.
        .env("GODEBUG", "randautoseed=0")
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .arg("--kubectl-path")
        .arg(&programs.kubectl)
        .args(["--provider=skeleton", "--ginkgo.no-color"])
        // With a fixed seed, the specs run in the same order each time.
        .arg("--ginkgo.seed=1")
        .arg(format!("--ginkgo.focus={FOCUS}"))
        .arg(format!("--ginkgo.timeout={SUITE_TIMEOUT}"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .arg(format!("--e2e-output-dir={}", folder.display()));
    command
}

/// Waits until the suite has ended, with or without failed specs. Fails at once if a process that it needs has ended.
async fn wait_for_end(suite: &Process, plane: &ControlPlane, owner: &RunningOwner) -> Result<()> {
    let log = suite.log_path().display();
    let lost = eventually(DEADLINE, "the end of the suite", async || {
        if suite.exit_status()?.is_some() {
            return Ok(None);
        }
        if let Err(error) = plane.check_running().and_then(|()| owner.check_running()) {
            return Ok(Some(error));
        }
        bail!("it still runs; its log is {log}")
    })
    .await?;
    lost.map_or(Ok(()), Err)
}
