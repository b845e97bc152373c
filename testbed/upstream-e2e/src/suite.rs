//! Runs the suite once: a new control plane, an owner of all kinds, and Kubernetes' own test program for each group of specs.

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

/// Specs that one run of the test program runs.
struct Group {
    /// The name, for the files of logs and reports.
    name: &'static str,
    /// A regular expression for the texts of the specs.
    focus: &'static str,
}

/// The specs to run, of more than seven thousand in the suite. Those of DaemonSets have a run of their own: one of them deletes pods
/// that Go's random sequence chooses, and with other specs before it, it would choose others each time that the specs change.
const GROUPS: [Group; 2] = [
    Group {
        name: "daemon-sets",
        focus: r"\[sig-apps\] Daemon set \[Serial\]",
    },
    Group {
        name: "others",
        focus: r"\[sig-apps\] (Deployment|ReplicaSet|ControllerRevision)",
    },
];

/// Specs that need a real kubelet, because they ask the container for its answer, or a cloud provider with load balancers. The
/// latter skips itself here.
const SKIP: &str = "should serve a basic image on each replica|cloud load-balancer's connectivity";

/// The specs need several nodes. More nodes would only mean more pods.
const NODES: usize = 5;

/// Ginkgo's timeout for the specs of a group. A failed spec waits for five minutes, and its clean-up may take as long.
const SUITE_TIMEOUT: &str = "30m";

/// The timeout for the whole program. It writes its report after [`SUITE_TIMEOUT`].
const DEADLINE: Duration = Duration::from_mins(35);

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
        .admission("TaintNodesByCondition")
        .controllers("*,-daemonset-controller,-deployment-controller,-replicaset-controller");
    let cluster = Cluster::start_with(builder, "own-all-controllers").await?;
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
    let mut run = SuiteRun::default();
    for group in &GROUPS {
        run.append(run_group(group, cluster.plane(), &running, programs).await?);
    }
    Ok(run)
}

async fn run_group(
    group: &Group,
    plane: &ControlPlane,
    owner: &RunningOwner,
    programs: &Programs,
) -> Result<SuiteRun> {
    let name = format!("e2e.test-{}", group.name);
    // Next to the logs.
    let report = plane.workdir().logs().join(format!("{name}.json"));
    let suite = plane.spawn(&name, command(group, plane, programs, &report))?;
    wait_for_end(&suite, plane, owner).await?;
    let json = fs::read_to_string(&report).with_context(|| {
        format!(
            "the suite left no {}; the end of its log:\n{}",
            report.display(),
            suite.log_tail()
        )
    })?;
    SuiteRun::parse(&json)
}

fn command(group: &Group, plane: &ControlPlane, programs: &Programs, report: &Path) -> Command {
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
        .arg(format!("--ginkgo.focus={}", group.focus))
        .arg(format!("--ginkgo.skip={SKIP}"))
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
