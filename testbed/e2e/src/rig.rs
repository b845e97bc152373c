//! A control plane with the real server and executor on it.

use std::{
    net::SocketAddr,
    ops::Deref,
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use nodewise_conformance::{Cluster, DEADLINE, Place, Server, Space, binaries, http_get};
use nodewise_testbed::{AuditEvent, ControlPlane, Process, eventually};

/// Where the executors' lease is, as in `deploy/`.
const LEASE_NAMESPACE: &str = "nodewise-system";

/// What a rig shall be.
#[derive(Debug, Clone)]
pub struct RigOptions {
    nodes: usize,
    /// The overlay whose rights the executor has.
    overlay: &'static str,
    pub(crate) executor_args: Vec<String>,
    /// Where the control plane's spans go.
    collector: Option<String>,
    /// Variables of the server and of the executor.
    environment: Vec<(String, String)>,
}

impl RigOptions {
    /// So many nodes, and one executor that owns DaemonSets without leader election.
    #[must_use]
    pub fn nodes(nodes: usize) -> Self {
        Self {
            nodes,
            overlay: "own",
            executor_args: vec!["--mode=own".into(), "--leader-elect=false".into()],
            collector: None,
            environment: Vec::new(),
        }
    }

    /// Everybody sends spans to this collector: the server and the executor, and with them the apiserver and etcd.
    #[must_use]
    pub fn traced(mut self, collector: &str) -> Self {
        self.collector = Some(collector.to_owned());
        self.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
    }

    /// A variable in the environment of the server and of the executor.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A flag of the executor.
    #[must_use]
    pub fn executor_arg(mut self, flag: &str) -> Self {
        self.executor_args.push(flag.to_owned());
        self
    }

    /// The executor only observes, with the rights for that.
    #[must_use]
    pub fn observe(mut self) -> Self {
        self.overlay = "observe";
        self.executor_args = vec!["--mode=observe".into(), "--leader-elect=false".into()];
        self
    }

    /// The executor only rolls out what asks for it, beside another controller, with the rights for that and leader election.
    #[must_use]
    pub fn companion(mut self) -> Self {
        self.overlay = "companion";
        self.executor_args = leader_election("companion");
        self
    }

    /// Executors compete for the lease.
    #[must_use]
    pub fn leader_election(mut self) -> Self {
        self.executor_args = leader_election("own");
        self
    }
}

/// The flags of executors that compete for the lease.
fn leader_election(mode: &str) -> Vec<String> {
    vec![
        format!("--mode={mode}"),
        "--leader-elect=true".into(),
        format!("--lease-namespace={LEASE_NAMESPACE}"),
    ]
}

/// A control plane with nodes, a server and an executor. Everything is gone when it is dropped. Questions about namespace
/// `default` are [`Space`]'s.
#[derive(Debug)]
pub struct Rig {
    pub(crate) executor: Process,
    pub(crate) executor_http: SocketAddr,
    server: Server,
    pub(crate) options: RigOptions,
    space: Space,
    pub(crate) cluster: Cluster,
}

impl Deref for Rig {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.space
    }
}

impl Rig {
    /// Starts it all and waits until the executor is ready, or stands by.
    pub async fn start(options: RigOptions) -> Result<Self> {
        tokio::task::spawn_blocking(binaries).await??;
        let cluster = match &options.collector {
            Some(collector) => Cluster::start_traced(collector).await?,
            None => Cluster::start_for(options.overlay).await?,
        };
        let plane = cluster.plane();
        plane.create_nodes(options.nodes).await?;
        let flags = ["--http-listen", "127.0.0.1:0"];
        let server = Server::start_in(plane, "127.0.0.1:0", &flags, &options.environment).await?;
        let kubeconfig = cluster.executor_kubeconfig()?;
        let url = format!("http://{}", server.address());
        let (executor, executor_http) =
            start_executor(plane, "executor", &url, &options, &kubeconfig).await?;
        Ok(Self {
            executor,
            executor_http,
            server,
            options,
            space: Space::of_all_nodes(cluster.client(), "default").with_deadline(DEADLINE),
            cluster,
        })
    }

    /// The control plane.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Runs kubectl in namespace `default` and gives its standard output.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.cluster.plane().kubectl(args).await
    }

    /// Runs `nodewise` as the administrator: exit status and all it printed.
    pub async fn nodewise(&self, args: &[&str]) -> Result<Output> {
        let mut command = tokio::process::Command::new(&binaries()?.cli);
        command
            .args(args)
            .arg("--kubeconfig")
            .arg(self.cluster.plane().kubeconfig());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.output().await.context("running nodewise")
    }

    /// The address of the server, as a URL.
    #[must_use]
    pub fn server_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The requests that the apiserver answered so far and that `wanted` wants.
    pub async fn audit(&self, wanted: impl Fn(&AuditEvent) -> bool) -> Result<Vec<AuditEvent>> {
        self.cluster.audited(Place::BEGINNING, wanted).await
    }

    /// Ends the executor at once.
    pub fn kill_executor(&self) -> Result<()> {
        self.executor.kill9()
    }

    /// Starts the executor again.
    pub async fn start_executor(&mut self) -> Result<()> {
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        self.start_executor_with(&kubeconfig).await
    }

    /// Starts the executor again, with an apiserver of the caller's.
    pub async fn start_executor_with(&mut self, kubeconfig: &Path) -> Result<()> {
        let url = self.server_url();
        let started = start_executor(self.cluster.plane(), "executor", &url, &self.options, kubeconfig);
        (self.executor, self.executor_http) = started.await?;
        Ok(())
    }

    /// Starts one more executor.
    pub async fn spawn_executor(&self, name: &str) -> Result<Process> {
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        let url = self.server_url();
        let started = start_executor(self.cluster.plane(), name, &url, &self.options, &kubeconfig);
        Ok(started.await?.0)
    }

    /// Asks the executor to end and waits until the process is gone.
    pub async fn stop_executor(&self) -> Result<()> {
        self.executor.terminate(DEADLINE).await.map(|_| ())
    }

    /// Ends the server at once.
    pub fn kill_server(&self) -> Result<()> {
        self.server.process().kill9()
    }

    /// Starts the server again, on the same address.
    pub async fn start_server_again(&mut self) -> Result<()> {
        self.server.start_again(self.cluster.plane()).await
    }

    /// Who holds the executors' lease.
    pub async fn lease_holder(&self) -> Result<Option<String>> {
        let leases: Api<Lease> = Api::namespaced(self.client(), LEASE_NAMESPACE);
        let lease = leases.get_opt("nodewise-executor").await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity))
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

    /// Where the executor serves health and metrics.
    #[must_use]
    pub fn executor_http(&self) -> SocketAddr {
        self.executor_http
    }

    /// GETs a path of the server's HTTP server: status and body.
    pub async fn server_get(&self, path: &str) -> Result<(u16, String)> {
        http_get(self.server.http_address().await?, path).await
    }

    /// GETs a path of the executor's HTTP server: status and body.
    pub async fn executor_get(&self, path: &str) -> Result<(u16, String)> {
        http_get(self.executor_http, path).await
    }
}

pub(crate) async fn start_executor(
    plane: &ControlPlane,
    name: &str,
    servers: &str,
    options: &RigOptions,
    kubeconfig: &Path,
) -> Result<(Process, SocketAddr)> {
    let mut command = Command::new(&binaries()?.executor);
    command
        .args(["--server", servers, "--http-listen", "127.0.0.1:0"])
        .args(&options.executor_args);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.envs(options.environment.iter().cloned());
    let process = plane.spawn(name, command)?;
    let address = process.listening_on(DEADLINE).await?;
    eventually(DEADLINE, format!("{name} to be ready"), async || {
        process.check_running()?;
        let (status, body) = http_get(address, "/readyz").await?;
        ensure!(status == 200, "{status}: {body}");
        Ok(())
    })
    .await?;
    Ok((process, address))
}
