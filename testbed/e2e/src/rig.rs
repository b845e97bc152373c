//! A control plane with the real server and executor on it.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetStatus},
    coordination::v1::Lease,
    core::v1::{Node, Pod},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use nodewise_testbed::{AuditEvent, ControlPlane, POD_ANNOTATION, PodBehaviour, Process, User, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    binaries::binaries,
    budget::{BudgetWatch, is_live, node_of},
    owners::UPSTREAM_USER,
};

/// How long a condition may take. Generous: it is reached only by a test that fails.
pub const DEADLINE: Duration = Duration::from_mins(2);

/// The user that the executor is to the apiserver.
pub const EXECUTOR_USER: &str = "nodewise-executor";

/// What a rig shall be.
#[derive(Debug, Clone)]
pub struct RigOptions {
    nodes: usize,
    pub(crate) executor_args: Vec<String>,
}

impl RigOptions {
    /// So many nodes, and one executor that owns DaemonSets without leader election.
    #[must_use]
    pub fn nodes(nodes: usize) -> Self {
        Self {
            nodes,
            executor_args: vec!["--mode=own".into(), "--leader-elect=false".into()],
        }
    }

    /// The executor only observes.
    #[must_use]
    pub fn observe(mut self) -> Self {
        self.executor_args = vec!["--mode=observe".into(), "--leader-elect=false".into()];
        self
    }

    /// Executors compete for the lease.
    #[must_use]
    pub fn leader_election(mut self) -> Self {
        self.executor_args = vec!["--mode=own".into(), "--leader-elect=true".into()];
        self
    }
}

/// A control plane with nodes, a server and an executor. Everything is gone when it is dropped.
#[derive(Debug)]
pub struct Rig {
    pub(crate) executor: Process,
    pub(crate) executor_http: SocketAddr,
    server: Process,
    server_address: SocketAddr,
    pub(crate) options: RigOptions,
    pub(crate) plane: ControlPlane,
}

impl Rig {
    /// Starts it all and waits until the executor is ready, or stands by.
    pub async fn start(options: RigOptions) -> Result<Self> {
        tokio::task::spawn_blocking(binaries).await??;
        let executor = User::new(EXECUTOR_USER).cluster_role(EXECUTOR_USER);
        let plane = ControlPlane::builder()
            .whole_cluster()
            .user(executor)
            .user(User::new(UPSTREAM_USER).group("system:masters"))
            .start()
            .await?;
        Api::<ClusterRole>::all(plane.client())
            .create(&PostParams::default(), &executor_role()?)
            .await?;
        plane.create_nodes(options.nodes).await?;
        let (server, server_address) = start_server(&plane, "127.0.0.1:0").await?;
        let kubeconfig = plane.kubeconfig_for(EXECUTOR_USER)?;
        let url = format!("http://{server_address}");
        let (executor, executor_http) =
            start_executor(&plane, "executor", &url, &options, &kubeconfig).await?;
        Ok(Self {
            executor,
            executor_http,
            server,
            server_address,
            options,
            plane,
        })
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.plane.client()
    }

    /// The pods of namespace `default`.
    #[must_use]
    pub fn pod_api(&self) -> Api<Pod> {
        Api::namespaced(self.client(), "default")
    }

    /// The DaemonSets of namespace `default`.
    #[must_use]
    pub fn daemon_set_api(&self) -> Api<DaemonSet> {
        Api::namespaced(self.client(), "default")
    }

    /// Runs kubectl in namespace `default` and gives its standard output.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.plane.kubectl(args).await
    }

    /// Runs `nodewise` as the administrator: exit status and all it printed.
    pub async fn nodewise(&self, args: &[&str]) -> Result<Output> {
        let mut command = tokio::process::Command::new(&binaries()?.cli);
        command
            .args(args)
            .arg("--kubeconfig")
            .arg(self.plane.kubeconfig());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.output().await.context("running nodewise")
    }

    /// The address of the server, as a URL.
    #[must_use]
    pub fn server_url(&self) -> String {
        format!("http://{}", self.server_address)
    }

    /// Starts watching the pods with label `app: name`.
    #[must_use]
    pub fn watch(&self, name: &str) -> BudgetWatch {
        BudgetWatch::start(self.client(), name)
    }

    /// Creates a DaemonSet.
    pub async fn create(&self, object: Value) -> Result<DaemonSet> {
        // As it is: a typed object would lose what its type does not know, or spells in another way.
        let object: DynamicObject = serde_json::from_value(object).context("the test's DaemonSet")?;
        let resource = ApiResource::erase::<DaemonSet>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), "default", &resource);
        let created = api.create(&PostParams::default(), &object).await?;
        Ok(created.try_parse()?)
    }

    /// Changes a DaemonSet with a strategic merge patch.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<DaemonSet> {
        Ok(self
            .daemon_set_api()
            .patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await?)
    }

    /// A patch to an image version whose pods never become ready.
    #[must_use]
    pub fn never_ready_patch(&self, version: u32) -> Value {
        behaviour_patch(version, Some(PodBehaviour::Unready))
    }

    /// A patch back to an image version whose pods become ready.
    #[must_use]
    pub fn ready_again_patch(&self, version: u32) -> Value {
        behaviour_patch(version, None)
    }

    /// The DaemonSet's status.
    pub async fn status(&self, name: &str) -> Result<DaemonSetStatus> {
        Ok(self.daemon_set_api().get(name).await?.status.unwrap_or_default())
    }

    /// The DaemonSet's status, once it is of the present generation.
    pub async fn observed_status(&self, name: &str) -> Result<DaemonSetStatus> {
        let object = self.daemon_set_api().get(name).await?;
        let status = object.status.unwrap_or_default();
        ensure!(
            status.observed_generation == object.metadata.generation,
            "the spec is not observed: {status:?}"
        );
        Ok(status)
    }

    /// Waits until every node that should has an available pod of the present template, and gives the status.
    pub async fn rolled_out(&self, name: &str) -> Result<DaemonSetStatus> {
        eventually(DEADLINE, format!("the rollout of {name}"), async || {
            let status = self.observed_status(name).await?;
            let desired = status.desired_number_scheduled;
            let (updated, available) = (status.updated_number_scheduled, status.number_available);
            ensure!(
                desired > 0 && updated == Some(desired) && available == Some(desired),
                "{status:?}"
            );
            Ok(status)
        })
        .await
    }

    /// The pods with label `app: name` that are neither finished nor being deleted.
    pub async fn live_pods(&self, name: &str) -> Result<Vec<Pod>> {
        let pods = self
            .pod_api()
            .list(&ListParams::default().labels(&format!("app={name}")))
            .await?;
        Ok(pods.items.into_iter().filter(is_live).collect())
    }

    /// Their uids.
    pub async fn uids(&self, name: &str) -> Result<BTreeSet<String>> {
        Ok(self
            .live_pods(name)
            .await?
            .into_iter()
            .filter_map(|pod| pod.metadata.uid)
            .collect())
    }

    /// The images of their first containers.
    pub async fn images(&self, name: &str) -> Result<Vec<String>> {
        let images = self.live_pods(name).await?.into_iter().map(|pod| {
            let container = pod.spec.and_then(|spec| spec.containers.into_iter().next());
            container
                .and_then(|container| container.image)
                .context("a pod has a container with an image")
        });
        images.collect()
    }

    /// Fails unless each node of the cluster has exactly one live pod with label `app: name`.
    pub async fn expect_one_pod_per_node(&self, name: &str) -> Result<()> {
        let mut on: Vec<String> = self.live_pods(name).await?.iter().map(node_of).collect();
        on.sort();
        let nodes = self.node_names().await?;
        ensure!(
            on == nodes,
            "{} live pods on {} nodes: {on:?}",
            on.len(),
            nodes.len()
        );
        Ok(())
    }

    /// The names of all nodes, sorted.
    pub async fn node_names(&self) -> Result<Vec<String>> {
        let nodes = Api::<Node>::all(self.client())
            .list_metadata(&ListParams::default())
            .await?;
        let mut names: Vec<String> = nodes
            .items
            .into_iter()
            .filter_map(|node| node.metadata.name)
            .collect();
        names.sort();
        Ok(names)
    }

    /// Adds nodes and waits until they are ready.
    pub async fn add_nodes(&self, count: usize) -> Result<Vec<String>> {
        self.plane.create_nodes(count).await
    }

    /// Gives a label of the first node another value, one that nothing looks at.
    pub async fn label_a_node(&self) -> Result<()> {
        let node = self.node_names().await?.into_iter().next().context("a node")?;
        let api: Api<Node> = Api::all(self.client());
        let version = api.get_metadata(&node).await?.metadata.resource_version;
        let patch = json!({ "metadata": { "labels": { "example.com/seen": version } } });
        api.patch_metadata(&node, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Makes a pod fail.
    pub async fn fail_pod(&self, name: &str) -> Result<()> {
        self.plane
            .set_pod_behaviour("default", name, PodBehaviour::Failed)
            .await
    }

    /// The requests that the apiserver answered so far and that `wanted` wants.
    pub async fn audit(&self, wanted: impl Fn(&AuditEvent) -> bool) -> Result<Vec<AuditEvent>> {
        Ok(self
            .plane
            .audit_events()
            .await?
            .into_iter()
            .filter(wanted)
            .collect())
    }

    /// Ends the executor at once.
    pub fn kill_executor(&self) -> Result<()> {
        self.executor.kill9()
    }

    /// Starts the executor again.
    pub async fn start_executor(&mut self) -> Result<()> {
        let kubeconfig = self.plane.kubeconfig_for(EXECUTOR_USER)?;
        self.start_executor_with(&kubeconfig).await
    }

    /// Starts the executor again, with an apiserver of the caller's.
    pub async fn start_executor_with(&mut self, kubeconfig: &Path) -> Result<()> {
        let url = self.server_url();
        let started = start_executor(&self.plane, "executor", &url, &self.options, kubeconfig);
        (self.executor, self.executor_http) = started.await?;
        Ok(())
    }

    /// Starts one more executor.
    pub async fn spawn_executor(&self, name: &str) -> Result<Process> {
        let kubeconfig = self.plane.kubeconfig_for(EXECUTOR_USER)?;
        let url = self.server_url();
        let started = start_executor(&self.plane, name, &url, &self.options, &kubeconfig);
        Ok(started.await?.0)
    }

    /// Ends the server at once.
    pub fn kill_server(&self) -> Result<()> {
        self.server.kill9()
    }

    /// Starts the server again, on the same address.
    pub async fn start_server_again(&mut self) -> Result<()> {
        self.server = start_server(&self.plane, &self.server_address.to_string())
            .await?
            .0;
        Ok(())
    }

    /// Who holds the executors' lease.
    pub async fn lease_holder(&self) -> Result<Option<String>> {
        let leases: Api<Lease> = Api::namespaced(self.client(), "kube-system");
        let lease = leases.get_opt("nodewise-executor").await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity))
    }

    /// GETs a path of the executor's HTTP server: status and body.
    pub async fn executor_get(&self, path: &str) -> Result<(u16, String)> {
        http_get(self.executor_http, path).await
    }
}

fn behaviour_patch(version: u32, behaviour: Option<PodBehaviour>) -> Value {
    let container = json!({ "name": "main", "image": format!("registry.example/agent:{version}") });
    let annotations = json!({ POD_ANNOTATION: behaviour.map(PodBehaviour::value) });
    json!({ "spec": { "template": { "metadata": { "annotations": annotations }, "spec": { "containers": [container] } } } })
}

/// D-108: the rights that users give it.
fn executor_role() -> Result<ClusterRole> {
    let role = include_str!("../../../deploy/executor-clusterrole.yaml");
    serde_saphyr::from_str(role).context("deploy/executor-clusterrole.yaml")
}

pub(crate) async fn start_server(plane: &ControlPlane, listen: &str) -> Result<(Process, SocketAddr)> {
    let mut command = Command::new(&binaries()?.server);
    command.args(["--listen", listen]);
    let process = plane.spawn("nodewise-server", command)?;
    let address = process.listening_on(DEADLINE).await?;
    Ok((process, address))
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

async fn http_get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .context("connecting to the executor")?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .context("no HTTP status line")?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned())
        .unwrap_or_default();
    Ok((status, body))
}
