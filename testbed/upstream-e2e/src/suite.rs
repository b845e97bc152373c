//! One run of the suite: a new control plane, an owner of DaemonSets, and Kubernetes' own test program.

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

/// The specs that run. The suite is of more than seven thousand.
const FOCUS: &str = r"Daemon set \[Serial\]";

/// The specs select among several nodes; more would only make more pods.
const NODES: usize = 5;

/// How long ginkgo lets the specs run. A spec that fails waits for five minutes, and its clean-up may wait as long.
const SUITE_TIMEOUT: &str = "30m";

/// How long the program may take in all: it writes its report after [`SUITE_TIMEOUT`].
const DEADLINE: Duration = Duration::from_mins(35);

/// The file of ginkgo's report, beside the logs.
const REPORT: &str = "report.json";

/// Runs the suite against `owner` on a new control plane, and keeps the logs of all processes and the report in `logs`.
///
/// # Errors
/// A program cannot be started, or it ends before the suite does. A spec that fails is no error.
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

/// The suite, and the kubectl that it calls.
#[derive(Debug)]
pub struct Programs {
    suite: PathBuf,
    kubectl: PathBuf,
}

impl Programs {
    /// Builds them, and also the programs of Nodewise, so that nothing is built any more while specs run. All are compiled for speed,
    /// as kube-controller-manager is, since times are compared.
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

/// What the suite needs of a cluster: pods must have service accounts, and nodes that are not ready must be tainted.
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
        // No settings of the person who runs the suite.
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        // The spec of surges deletes random pods. Go's random numbers must be the same each time, so that it does so at the
        // same moments in both runs.
        .env("GODEBUG", "randautoseed=0")
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .arg("--kubectl-path")
        .arg(&programs.kubectl)
        .args(["--provider=skeleton", "--ginkgo.no-color"])
        // With a seed, the specs run in the same order each time.
        .arg("--ginkgo.seed=1")
        .arg(format!("--ginkgo.focus={FOCUS}"))
        .arg(format!("--ginkgo.timeout={SUITE_TIMEOUT}"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .arg(format!("--e2e-output-dir={}", folder.display()));
    command
}

/// Waits until the suite has ended, which may be with a failed spec; fails at once if something that it needs has ended.
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
