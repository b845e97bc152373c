//! A control plane with the real server and executor.

use std::{
    net::SocketAddr,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use nodewise_conformance::{
    AuditPosition, Cluster, Controllers, DEADLINE, EXECUTOR_USER, Server, TestNamespace, binaries, http_get,
    rights, rollout_policies,
};
use nodewise_testbed::{AuditEvent, Builder, ControlPlane, Process, eventually};
use serde_json::json;

use crate::Terminal;

/// The namespace of the executors' Lease, as in `deploy/`.
const LEASE_NAMESPACE: &str = "nodewise-system";
/// The name of this Lease.
const LEASE: &str = "nodewise-executor";

/// The components of `deploy/` with the rights to observe Deployments and ReplicaSets, as in docs/install.md.
pub const OBSERVER_COMPONENTS: &[&str] = &["deployment-controller", "replicaset-controller"];

/// The components of `deploy/` with the rights to own them.
pub const OWNER_COMPONENTS: &[&str] = &["deployment-controller-own", "replicaset-controller-own"];

/// The options of a test environment.
#[derive(Debug, Clone)]
pub struct SetupOptions {
    nodes: usize,
    control_plane: Builder,
    /// The overlay with the RBAC rights of the executor.
    overlay: &'static str,
    /// The components that add rights to it.
    components: &'static [&'static str],
    pub(crate) executor_args: Vec<String>,
    /// The collector for the spans of the control plane.
    collector: Option<String>,
    /// Environment variables of the server and the executor.
    environment: Vec<(String, String)>,
    /// The program of the server, if it is not that of this workspace.
    server_program: Option<PathBuf>,
    /// The program of the executors, if it is not that of this workspace.
    executor_program: Option<PathBuf>,
    /// Whether to wait until an executor is ready.
    awaits_readiness: bool,
    /// Whether RolloutPolicies are installed.
    has_policies: bool,
}

impl SetupOptions {
    /// `nodes` nodes, and one executor in mode `own` without leader election.
    #[must_use]
    pub fn nodes(nodes: usize) -> Self {
        Self {
            nodes,
            control_plane: Controllers::DaemonSets.control_plane(),
            overlay: "own",
            components: &[],
            executor_args: vec!["--mode=own".into(), "--leader-elect=false".into()],
            collector: None,
            environment: Vec::new(),
            server_program: None,
            executor_program: None,
            awaits_readiness: true,
            has_policies: false,
        }
    }

    /// The CustomResourceDefinition of RolloutPolicy is installed.
    #[must_use]
    pub fn rollout_policies(mut self) -> Self {
        self.has_policies = true;
        self
    }

    /// The server is this program, for example of an earlier version.
    #[must_use]
    pub fn server_program(mut self, path: PathBuf) -> Self {
        self.server_program = Some(path);
        self
    }

    /// The executors are this program.
    #[must_use]
    pub fn executor_program(mut self, path: PathBuf) -> Self {
        self.executor_program = Some(path);
        self
    }

    /// Executors that are not expected to become ready.
    #[must_use]
    pub fn never_ready(mut self) -> Self {
        self.awaits_readiness = false;
        self
    }

    /// The server, the executor, the apiserver and etcd export their spans to this collector.
    #[must_use]
    pub fn traced(mut self, collector: &str) -> Self {
        self.collector = Some(collector.to_owned());
        self.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
    }

    /// Adds an environment variable of the server and the executor.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a flag of the executor.
    #[must_use]
    pub fn executor_arg(mut self, flag: &str) -> Self {
        self.executor_args.push(flag.to_owned());
        self
    }

    /// The executor runs these controllers (in the form of `--controllers`), with the rights of these components of
    /// `deploy/` too. The built-in controllers of DaemonSets, ReplicaSets and Deployments do not run.
    #[must_use]
    pub fn controllers(mut self, list: &str, components: &'static [&'static str]) -> Self {
        self.control_plane = Controllers::Deployments.control_plane();
        self.components = components;
        self.executor_arg(&format!("--controllers={list}"))
    }

    /// The executor runs in mode `observe`, with the rights for that.
    #[must_use]
    pub fn observe(mut self) -> Self {
        self.overlay = "observe";
        self.executor_args = vec!["--mode=observe".into(), "--leader-elect=false".into()];
        self
    }

    /// The built-in controllers run all workloads. The executor observes.
    #[must_use]
    pub fn built_in_controllers(mut self) -> Self {
        self.control_plane = ControlPlane::builder().controllers("*");
        self.observe()
    }

    /// The executor runs in mode `companion`, with the rights for that and leader election.
    #[must_use]
    pub fn companion(mut self) -> Self {
        self.overlay = "companion";
        self.executor_args = leader_election("companion");
        self
    }

    /// As [`Self::companion`], without leader election: an executor that is killed is followed by the next one at once.
    #[must_use]
    pub fn companion_without_lease(self) -> Self {
        let mut options = self.companion();
        options.executor_args = vec!["--mode=companion".into(), "--leader-elect=false".into()];
        options
    }

    /// The executor runs in mode `own` with leader election.
    #[must_use]
    pub fn leader_election(mut self) -> Self {
        self.executor_args = leader_election("own");
        self
    }
}

/// The flags of executors with leader election.
fn leader_election(mode: &str) -> Vec<String> {
    vec![
        format!("--mode={mode}"),
        "--leader-elect=true".into(),
        format!("--lease-namespace={LEASE_NAMESPACE}"),
    ]
}

/// A control plane with nodes, a server and an executor. Everything ends when the value is dropped. It derefs to
/// [`TestNamespace`] for requests about the namespace `default`.
#[derive(Debug)]
pub struct Setup {
    pub(crate) executor: Process,
    pub(crate) executor_http: SocketAddr,
    server: Server,
    pub(crate) options: SetupOptions,
    test_namespace: TestNamespace,
    pub(crate) cluster: Cluster,
}

impl Deref for Setup {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.test_namespace
    }
}

impl Setup {
    /// Starts everything and waits until the executor is ready.
    pub async fn start(options: SetupOptions) -> Result<Self> {
        tokio::task::spawn_blocking(binaries).await??;
        let (control_plane, overlay) = (options.control_plane.clone(), options.overlay);
        let cluster = match &options.collector {
            Some(collector) => Cluster::start_traced(control_plane, overlay, collector).await?,
            None => Cluster::start_with(control_plane, overlay).await?,
        };
        for component in options.components {
            let added = tokio::task::spawn_blocking(|| rights::added_by(component)).await??;
            cluster.give_rights(&added).await?;
        }
        let plane = cluster.plane();
        if options.has_policies {
            rollout_policies::install(cluster.plane()).await?;
        }
        plane.create_nodes(options.nodes).await?;
        let flags = ["--http-listen", "127.0.0.1:0"];
        let built = &binaries()?.server;
        let program = options.server_program.as_ref().unwrap_or(built);
        let server =
            Server::start_program(program, plane, "127.0.0.1:0", &flags, &options.environment).await?;
        let kubeconfig = cluster.executor_kubeconfig()?;
        let url = format!("http://{}", server.address());
        let (executor, executor_http) =
            start_executor(plane, "executor", &url, &options, &kubeconfig).await?;
        Ok(Self {
            executor,
            executor_http,
            server,
            options,
            test_namespace: TestNamespace::of_all_nodes(cluster.client(), "default").with_deadline(DEADLINE),
            cluster,
        })
    }

    /// The control plane.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Runs kubectl in the namespace `default` and returns its standard output.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.cluster.plane().kubectl(args).await
    }

    /// Runs `nodewise` as the administrator. Returns its exit status and output.
    pub async fn nodewise(&self, args: &[&str]) -> Result<Output> {
        let mut command = tokio::process::Command::new(&binaries()?.cli);
        command
            .args(args)
            .arg("--kubeconfig")
            .arg(self.cluster.plane().kubeconfig());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.output().await.context("running nodewise")
    }

    /// Starts `nodewise` as the administrator in a terminal.
    pub fn nodewise_in_terminal(&self, args: &[&str]) -> Result<Terminal> {
        let kubeconfig = self.cluster.plane().kubeconfig().to_string_lossy().into_owned();
        let mut all = args.to_vec();
        all.extend(["--kubeconfig", &kubeconfig]);
        Terminal::start(&binaries()?.cli, &all)
    }

    /// The URL of the server.
    #[must_use]
    pub fn server_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The audit events so far that `wanted` accepts.
    pub async fn audit(&self, wanted: impl Fn(&AuditEvent) -> bool) -> Result<Vec<AuditEvent>> {
        self.cluster.audited(AuditPosition::BEGINNING, wanted).await
    }

    /// The executor's requests so far. Fails if the apiserver forbade one of them.
    pub async fn executor_requests(&self) -> Result<Vec<AuditEvent>> {
        let requests = self.audit(|event| event.user == EXECUTOR_USER).await?;
        let refused: Vec<_> = requests.iter().filter(|event| event.is_forbidden).collect();
        ensure!(refused.is_empty(), "a right is missing: {refused:?}");
        Ok(requests)
    }

    /// Waits until the executor's plans have had actions of these kinds for these reasons, by the kind of the workload.
    pub async fn wait_for_planned(&self, actions: &[(&str, &str, &str)]) -> Result<()> {
        eventually(DEADLINE, "the executor to have planned", async || {
            let (_, metrics) = self.executor_get("/metrics").await?;
            for (kind, action, reason) in actions {
                let series = format!(
                    "nodewise_actions_total{{kind=\"{kind}\",action=\"{action}\",reason=\"{reason}\","
                );
                let is_planned = metrics.lines().any(|line| line.starts_with(&series));
                ensure!(is_planned, "no {series} in its metrics");
            }
            Ok(())
        })
        .await
    }

    /// Waits until the executor's report of divergences starts with `beginning`, and returns it.
    pub async fn divergences(&self, beginning: &str) -> Result<String> {
        eventually(DEADLINE, "the report of divergences", async || {
            let (status, report) = self.executor_get("/divergence").await?;
            ensure!(
                status == 200 && report.starts_with(beginning),
                "{status}: {report}"
            );
            Ok(report)
        })
        .await
    }

    /// Kills the executor.
    pub fn kill_executor(&self) -> Result<()> {
        self.executor.kill9()
    }

    /// Starts the executor again.
    pub async fn start_executor(&mut self) -> Result<()> {
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        self.start_executor_with(&kubeconfig).await
    }

    /// Starts the executor again with another kubeconfig.
    pub async fn start_executor_with(&mut self, kubeconfig: &Path) -> Result<()> {
        let url = self.server_url();
        let started = start_executor(self.cluster.plane(), "executor", &url, &self.options, kubeconfig);
        (self.executor, self.executor_http) = started.await?;
        Ok(())
    }

    /// Starts another executor.
    pub async fn spawn_executor(&self, name: &str) -> Result<Process> {
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        let url = self.server_url();
        let started = start_executor(self.cluster.plane(), name, &url, &self.options, &kubeconfig);
        Ok(started.await?.0)
    }

    /// Sends SIGTERM to the executor and waits until it has ended.
    pub async fn stop_executor(&self) -> Result<()> {
        self.executor.terminate(DEADLINE).await.map(|_| ())
    }

    /// Kills the server.
    pub fn kill_server(&self) -> Result<()> {
        self.server.process().kill9()
    }

    /// Starts the server again on the same address.
    pub async fn start_server_again(&mut self) -> Result<()> {
        self.server.start_again(self.cluster.plane()).await
    }

    /// The holder of the executors' Lease.
    pub async fn lease_holder(&self) -> Result<Option<String>> {
        let lease = self.leases().get_opt(LEASE).await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity))
    }

    /// Waits until an executor holds the lease.
    pub async fn wait_for_leader(&self) -> Result<()> {
        eventually(DEADLINE, "an executor to lead", async || {
            ensure!(
                self.lease_holder().await?.is_some(),
                "no executor holds the lease"
            );
            Ok(())
        })
        .await
    }

    /// Makes somebody who is no executor the holder of the Lease, for a day.
    pub async fn hold_lease(&self, holder: &str) -> Result<()> {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 86_400});
        let patch = Patch::Merge(json!({ "spec": spec }));
        let params = PatchParams::default();
        self.leases().patch(LEASE, &params, &patch).await?;
        Ok(())
    }

    /// Deletes the Lease.
    pub async fn delete_lease(&self) -> Result<()> {
        self.leases().delete(LEASE, &DeleteParams::default()).await?;
        Ok(())
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client(), LEASE_NAMESPACE)
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The executor.
    #[must_use]
    pub fn executor(&self) -> &Process {
        &self.executor
    }

    /// The address of the executor's health and metrics.
    #[must_use]
    pub fn executor_http(&self) -> SocketAddr {
        self.executor_http
    }

    /// GETs a path from the server's HTTP server. Returns status and body.
    pub async fn server_get(&self, path: &str) -> Result<(u16, String)> {
        http_get(self.server.http_address().await?, path).await
    }

    /// GETs a path from the executor's HTTP server. Returns status and body.
    pub async fn executor_get(&self, path: &str) -> Result<(u16, String)> {
        http_get(self.executor_http, path).await
    }
}

pub(crate) async fn start_executor(
    plane: &ControlPlane,
    name: &str,
    servers: &str,
    options: &SetupOptions,
    kubeconfig: &Path,
) -> Result<(Process, SocketAddr)> {
    let built = &binaries()?.executor;
    let mut command = Command::new(options.executor_program.as_ref().unwrap_or(built));
    command
        .args(["--server", servers, "--http-listen", "127.0.0.1:0"])
        .args(&options.executor_args);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.envs(options.environment.iter().cloned());
    let process = plane.spawn(name, command)?;
    let address = process.listening_on(DEADLINE).await?;
    let is_ready = async || {
        process.check_running()?;
        let (status, body) = http_get(address, "/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    };
    if options.awaits_readiness {
        eventually(DEADLINE, format!("{name} to be ready"), is_ready).await?;
    }
    Ok((process, address))
}
