//! The fixtures of cases. Each case has a namespace, nodes, and a proxy between executor and service. A solo case also
//! has its own executor and servers.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Namespace, Node, Pod},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use nodewise_proto::v1;
use nodewise_testbed::{AuditEvent, eventually};

use crate::{
    audit::AuditPosition,
    budget::BudgetWatch,
    cluster::{Cluster, EXECUTOR_USER},
    executor::{Executor, Running},
    proxy::{Call, FaultProxy, Mark},
    server::Server,
    test_namespace::TestNamespace,
    workload_builder::{WorkloadBuilder, daemon_set},
};

/// The label of the nodes of a case. Its value is the id of the case.
const NODE_LABEL: &str = "nodewise.test/case";

/// How long an executor must be inactive to count as idle.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(1);

/// How long the cleanup of a case may take.
const CLEANING: Duration = Duration::from_secs(30);

/// The fixture of every case. It derefs to [`TestNamespace`] for requests about the namespace.
#[derive(Debug)]
pub(crate) struct Fixture {
    test_namespace: TestNamespace,
    cluster: Arc<Cluster>,
    proxy: Arc<FaultProxy>,
    /// The audit position at the start of the case.
    began: AuditPosition,
}

impl Deref for Fixture {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.test_namespace
    }
}

impl Fixture {
    pub(crate) async fn prepare(
        cluster: &Arc<Cluster>,
        proxy: &Arc<FaultProxy>,
        id: &str,
        deadline: Duration,
    ) -> Result<Self> {
        create_namespace(cluster, id).await?;
        let test_namespace =
            TestNamespace::of_nodes_with(cluster.client(), id, NODE_LABEL, id).with_deadline(deadline);
        Ok(Self {
            test_namespace,
            cluster: Arc::clone(cluster),
            proxy: Arc::clone(proxy),
            began: cluster.audit().position(),
        })
    }

    /// The control plane.
    #[must_use]
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The proxy in front of the service.
    #[must_use]
    pub(crate) fn proxy(&self) -> &FaultProxy {
        &self.proxy
    }

    /// Adds nodes for this case and waits until they are ready. Returns their names.
    pub(crate) async fn add_nodes(&self, count: usize) -> Result<Vec<String>> {
        let label = |_, node: &mut Node| {
            let labels = node.metadata.labels.get_or_insert_default();
            labels.insert(NODE_LABEL.to_owned(), self.namespace().to_owned());
        };
        self.cluster.plane().create_nodes_with(count, label).await
    }

    /// Runs kubectl in this namespace as the administrator, and returns what it prints.
    pub(crate) async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let namespace = ["--namespace", self.namespace()];
        self.cluster.plane().kubectl([&namespace, args].concat()).await
    }

    /// Creates another namespace, whose DaemonSets run on the same nodes.
    pub(crate) async fn in_another_namespace(&self, name: &str) -> Result<TestNamespace> {
        create_namespace(&self.cluster, name).await?;
        Ok(self.test_namespace.in_namespace(name))
    }

    /// Adds nodes, creates `agent` and waits until it is rolled out.
    pub(crate) async fn start_agent(&self, nodes: usize) -> Result<DaemonSet> {
        self.start_as(nodes, daemon_set("agent")).await
    }

    /// The same with this specification of `agent`.
    pub(crate) async fn start_as(&self, nodes: usize, agent: WorkloadBuilder) -> Result<DaemonSet> {
        self.add_nodes(nodes).await?;
        self.roll_out("agent", agent.build()).await
    }

    /// The same with maxUnavailable. Returns a watch that checks this budget from then on.
    pub(crate) async fn start_watched(&self, nodes: usize, unavailable: usize) -> Result<BudgetWatch> {
        let watch = self.watch("agent");
        let agent = daemon_set("agent").max_unavailable(unavailable);
        self.start_as(nodes, agent).await?;
        self.wait_until_settled("agent").await?;
        watch.arm().await?;
        Ok(watch)
    }

    /// Waits until `wanted` pods were created in total.
    pub(crate) async fn wait_until_created(&self, watch: &BudgetWatch, wanted: usize) -> Result<()> {
        self.eventually(format!("{wanted} pods ever made"), async || {
            let made = watch.seen_so_far().created.len();
            ensure!(made >= wanted, "{made} so far");
            Ok(())
        })
        .await
    }

    /// The audit position after all requests that were answered before this call.
    pub(crate) async fn audit_position(&self) -> Result<AuditPosition> {
        self.cluster.audit().caught_up(&self.client()).await?;
        Ok(self.cluster.audit().position())
    }

    /// The audit events of this namespace after `since` that `wanted` accepts.
    pub(crate) async fn audited(
        &self,
        since: AuditPosition,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<Vec<AuditEvent>> {
        let namespace = self.namespace();
        self.cluster
            .audited(since, |event| event.namespace == namespace && wanted(event))
            .await
    }

    /// All writes of the executor in this namespace since the case began.
    pub(crate) async fn writes(&self) -> Result<Vec<AuditEvent>> {
        self.writes_since(self.began).await
    }

    /// All writes of the executor in this namespace since then.
    pub(crate) async fn writes_since(&self, since: AuditPosition) -> Result<Vec<AuditEvent>> {
        self.audited(since, is_executors_write).await
    }

    /// All writes of the executor in any namespace since then, except Events and its Lease.
    pub(crate) async fn writes_anywhere(&self, since: AuditPosition) -> Result<Vec<AuditEvent>> {
        self.audit_position().await?;
        let wanted = |event: &AuditEvent| {
            is_executors_write(event) && !["events", "leases"].contains(&event.resource.as_str())
        };
        self.cluster.audited(since, wanted).await
    }

    /// When the executor deleted pods, in ascending order.
    pub(crate) async fn deletes_of_pods(&self) -> Result<Vec<Timestamp>> {
        let writes = self.writes().await?.into_iter();
        let deletes = writes.filter(|event| {
            event.verb == "delete" && event.resource == "pods" && (200..300).contains(&event.code)
        });
        let mut times: Vec<_> = deletes.map(|event| event.received).collect();
        times.sort_unstable();
        Ok(times)
    }

    /// Waits for the first write of the executor in this namespace since then that `wanted` accepts. Returns a few
    /// milliseconds after the apiserver has answered it.
    pub(crate) async fn first_write(
        &self,
        since: AuditPosition,
        what: &str,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<AuditEvent> {
        let wanted = |event: &AuditEvent| {
            event.namespace == self.namespace() && is_executors_write(event) && wanted(event)
        };
        let found = self.cluster.audit().first(since, wanted);
        match tokio::time::timeout(self.deadline(), found).await {
            Ok(found) => found,
            Err(_) => bail!("the executor never wrote this: {what}"),
        }
    }

    /// The calls since then that asked for a plan for this DaemonSet.
    #[must_use]
    pub(crate) fn plan_calls(&self, since: Mark, name: &str) -> Vec<Call> {
        let mut calls = self.proxy.calls_since(since);
        calls.retain(|call| call.is_plan_for(self.namespace(), name));
        calls
    }

    /// The plans that the executor got for this DaemonSet since then.
    #[must_use]
    pub(crate) fn plans(&self, since: Mark, name: &str) -> Vec<v1::Plan> {
        let calls = self.plan_calls(since, name).into_iter();
        calls.filter_map(|call| call.plan).collect()
    }

    /// Waits until the executor has written nothing and called nothing for a second.
    pub(crate) async fn wait_until_idle(&self) -> Result<()> {
        let (mut seen, mut since) = ((0, 0), Instant::now());
        self.eventually("the executor to come to rest", async || {
            let now = (
                self.writes().await?.len(),
                self.proxy.calls_since(Mark::BEGINNING).len(),
            );
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            ensure!(
                since.elapsed() > IDLE_TIME,
                "{} writes and {} calls",
                now.0,
                now.1
            );
            Ok(())
        })
        .await
    }

    /// Deletes the objects of the case, so that they do not disturb other cases.
    pub(crate) async fn clear(&self) -> Result<()> {
        let all = ListParams::default();
        // Owners first, because a controller may still run and replace what it owns.
        let background = DeleteParams::background();
        self.deployment_api().delete_collection(&background, &all).await?;
        self.replica_set_api()
            .delete_collection(&background, &all)
            .await?;
        self.daemon_set_api().delete_collection(&background, &all).await?;
        // Without a grace period: some pods are on deleted nodes, or on none.
        self.pod_api()
            .delete_collection(&DeleteParams::default().grace_period(0), &all)
            .await?;
        eventually(CLEANING, "no pod to be left", async || {
            let left = Api::<Pod>::list_metadata(&self.pod_api(), &all)
                .await?
                .items
                .len();
            ensure!(left == 0, "{left} pods");
            Ok(())
        })
        .await?;
        let label = format!("{NODE_LABEL}={}", self.namespace());
        Api::<Node>::all(self.client())
            .delete_collection(&DeleteParams::default(), &ListParams::default().labels(&label))
            .await?;
        let namespaces: Api<Namespace> = Api::all(self.client());
        // The case may have deleted it.
        if namespaces.get_metadata_opt(self.namespace()).await?.is_some() {
            namespaces
                .delete(self.namespace(), &DeleteParams::default())
                .await?;
        }
        Ok(())
    }
}

async fn create_namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let namespaces = Api::all(cluster.client());
    // A namespace of the same name may still be in deletion: that of the same case with another executor.
    eventually(
        CLEANING,
        format!("the namespace {name} to be created"),
        async || {
            namespaces.create(&PostParams::default(), &namespace).await?;
            Ok(())
        },
    )
    .await
}

fn is_executors_write(event: &AuditEvent) -> bool {
    event.user == EXECUTOR_USER && event.is_write()
}

/// The fixture of a case with its own executor. The case starts and stops the executor. A server runs from the start,
/// behind [`Fixture::proxy`].
#[derive(Debug)]
pub(crate) struct SoloFixture {
    fixture: Fixture,
    server: Server,
    command: Arc<str>,
    executor: Running,
}

impl Deref for SoloFixture {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl SoloFixture {
    pub(crate) async fn prepare(
        cluster: &Arc<Cluster>,
        command: &Arc<str>,
        id: &str,
        deadline: Duration,
    ) -> Result<Self> {
        let server = Server::start(cluster.plane(), "127.0.0.1:0", &[]).await?;
        let proxy = Arc::new(FaultProxy::to(server.address()).await?);
        Ok(Self {
            fixture: Fixture::prepare(cluster, &proxy, id, deadline).await?,
            server,
            command: Arc::clone(command),
            executor: Running::default(),
        })
    }

    /// Starts another server with these flags.
    pub(crate) async fn another_server(&self, flags: &[&str]) -> Result<Server> {
        Server::start(self.cluster().plane(), "127.0.0.1:0", flags).await
    }

    /// Replaces the server by one with these flags, behind a new [`Fixture::proxy`]. The executor must not run yet.
    pub(crate) async fn replace_server(&mut self, flags: &[&str]) -> Result<()> {
        self.server = self.another_server(flags).await?;
        self.fixture.proxy = Arc::new(FaultProxy::to(self.server.address()).await?);
        Ok(())
    }

    /// Kills the server and starts it again on the same address, with an empty cache.
    pub(crate) async fn restart_server(&mut self) -> Result<()> {
        self.server.process().kill9()?;
        self.server.start_again(self.fixture.cluster.plane()).await
    }

    /// Starts the executor.
    pub(crate) fn start(&mut self) -> Result<()> {
        let servers = [self.proxy().url()];
        self.start_with(None, &servers)
    }

    /// Starts the executor with these additional flags.
    pub(crate) fn start_with_flags(&mut self, flags: &str) -> Result<()> {
        let own = self.cluster().executor_kubeconfig()?;
        let (command, servers) = (format!("{} {flags}", self.command), [self.proxy().url()]);
        self.start_command(&command, &own, &servers, &[])
    }

    /// Starts the executor on another control plane, with another server and these environment variables.
    pub(crate) fn start_on(
        &mut self,
        cluster: &Cluster,
        server: &Server,
        environment: &[(String, String)],
    ) -> Result<()> {
        let log = format!("executor-{}", self.namespace());
        let servers = [format!("http://{}", server.address())];
        let kubeconfig = cluster.executor_kubeconfig()?;
        let plane = cluster.plane();
        let started = Executor::start(plane, &log, &self.command, &kubeconfig, &servers, environment)?;
        self.executor.set(Some(started));
        Ok(())
    }

    /// Starts the executor with these servers, and optionally with another kubeconfig.
    pub(crate) fn start_with(&mut self, kubeconfig: Option<&Path>, servers: &[String]) -> Result<()> {
        self.start_in(kubeconfig, servers, &[])
    }

    /// The same with these environment variables.
    pub(crate) fn start_in(
        &mut self,
        kubeconfig: Option<&Path>,
        servers: &[String],
        environment: &[(String, String)],
    ) -> Result<()> {
        let own: PathBuf = self.cluster().executor_kubeconfig()?;
        let command = Arc::clone(&self.command);
        self.start_command(&command, kubeconfig.unwrap_or(&own), servers, environment)
    }

    fn start_command(
        &mut self,
        command: &str,
        kubeconfig: &Path,
        servers: &[String],
        environment: &[(String, String)],
    ) -> Result<()> {
        let log = format!("executor-{}", self.namespace());
        let plane = self.cluster().plane();
        let started = Executor::start(plane, &log, command, kubeconfig, servers, environment)?;
        self.executor.set(Some(started));
        Ok(())
    }

    /// Sends SIGKILL to the executor.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let executor = self.executor.take().context("the case started no executor")?;
        executor.kill()
    }

    /// Sends SIGTERM to the executor. Fails unless it ends as the contract says.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let executor = self.executor.take().context("the case started no executor")?;
        executor.stop().await
    }

    /// Fails unless the executor runs.
    pub(crate) fn expect_running(&self) -> Result<()> {
        let executor = self.executor.get().context("the case started no executor")?;
        executor.check_running()
    }

    /// The executor that should be running, if any.
    pub(crate) fn executor(&self) -> Running {
        self.executor.clone()
    }

    pub(crate) async fn clear(self) -> Result<()> {
        // No executor may create pods during the cleanup.
        self.executor.set(None);
        self.fixture.clear().await
    }
}
