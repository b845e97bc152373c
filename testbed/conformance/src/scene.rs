//! What a case has to itself: a namespace, nodes, and the way between the executor and the service; and for a case that
//! disturbs others, the executor and the servers too.

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
    audit::Place,
    budget::BudgetWatch,
    cluster::{Cluster, EXECUTOR_USER},
    daemon_set::{DaemonSetBuilder, daemon_set},
    executor::{Executor, Running},
    proxy::{Call, FaultProxy, Mark},
    server::Server,
    space::Space,
};

/// The label of a case's nodes; its value is the case's id.
const NODE_LABEL: &str = "nodewise.test/case";

/// How long nothing happens when an executor is at rest.
const REST: Duration = Duration::from_secs(1);

/// How long what a case leaves may take to go.
const CLEANING: Duration = Duration::from_secs(30);

/// What every case has; questions about its namespace are [`Space`]'s.
#[derive(Debug)]
pub(crate) struct Scene {
    space: Space,
    cluster: Arc<Cluster>,
    proxy: Arc<FaultProxy>,
    /// When the case began.
    began: Place,
}

impl Deref for Scene {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.space
    }
}

impl Scene {
    pub(crate) async fn set(
        cluster: &Arc<Cluster>,
        proxy: &Arc<FaultProxy>,
        id: &str,
        deadline: Duration,
    ) -> Result<Self> {
        create_namespace(cluster, id).await?;
        let space = Space::of_nodes_with(cluster.client(), id, NODE_LABEL, id).with_deadline(deadline);
        Ok(Self {
            space,
            cluster: Arc::clone(cluster),
            proxy: Arc::clone(proxy),
            began: cluster.audit().place(),
        })
    }

    /// The control plane.
    #[must_use]
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The way to the service.
    #[must_use]
    pub(crate) fn proxy(&self) -> &FaultProxy {
        &self.proxy
    }

    /// Adds nodes for this case and waits until they are ready. Gives their names.
    pub(crate) async fn add_nodes(&self, count: usize) -> Result<Vec<String>> {
        let label = |_, node: &mut Node| {
            let labels = node.metadata.labels.get_or_insert_default();
            labels.insert(NODE_LABEL.to_owned(), self.namespace().to_owned());
        };
        self.cluster.plane().create_nodes_with(count, label).await
    }

    /// One more namespace, whose DaemonSets are for the same nodes.
    pub(crate) async fn in_another_namespace(&self, name: &str) -> Result<Space> {
        create_namespace(&self.cluster, name).await?;
        Ok(self.space.in_namespace(name))
    }

    /// Adds nodes, creates `agent` and waits until it is rolled out.
    pub(crate) async fn start_agent(&self, nodes: usize) -> Result<DaemonSet> {
        self.start_as(nodes, daemon_set("agent")).await
    }

    /// The same with more to say about it.
    pub(crate) async fn start_as(&self, nodes: usize, agent: DaemonSetBuilder) -> Result<DaemonSet> {
        self.add_nodes(nodes).await?;
        self.roll_out("agent", agent.build()).await
    }

    /// The same on so many nodes, so many of which may be unavailable from then on: that is watched.
    pub(crate) async fn start_watched(&self, nodes: usize, unavailable: usize) -> Result<BudgetWatch> {
        let watch = self.watch("agent");
        let agent = daemon_set("agent").max_unavailable(unavailable);
        self.start_as(nodes, agent).await?;
        self.settled("agent").await?;
        watch.arm().await?;
        Ok(watch)
    }

    /// Waits until so many pods were ever made.
    pub(crate) async fn made(&self, watch: &BudgetWatch, wanted: usize) -> Result<()> {
        self.eventually(format!("{wanted} pods ever made"), async || {
            let made = watch.seen_so_far().created.len();
            ensure!(made >= wanted, "{made} so far");
            Ok(())
        })
        .await
    }

    /// The place in the audit log after all that was answered before this call.
    pub(crate) async fn place(&self) -> Result<Place> {
        self.cluster.audit().caught_up(&self.client()).await?;
        Ok(self.cluster.audit().place())
    }

    /// The requests about this namespace since then that `wanted` wants.
    pub(crate) async fn audited(
        &self,
        since: Place,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<Vec<AuditEvent>> {
        let namespace = self.namespace();
        self.cluster
            .audited(since, |event| event.namespace == namespace && wanted(event))
            .await
    }

    /// All writes about this namespace that the executor asked for since the case began.
    pub(crate) async fn writes(&self) -> Result<Vec<AuditEvent>> {
        self.writes_since(self.began).await
    }

    /// All writes about this namespace that the executor asked for since then.
    pub(crate) async fn writes_since(&self, since: Place) -> Result<Vec<AuditEvent>> {
        self.audited(since, is_executors_write).await
    }

    /// All writes since then that the executor asked for, in any namespace, but for Events and its Lease.
    pub(crate) async fn writes_anywhere(&self, since: Place) -> Result<Vec<AuditEvent>> {
        self.place().await?;
        let wanted = |event: &AuditEvent| {
            is_executors_write(event) && !["events", "leases"].contains(&event.resource.as_str())
        };
        self.cluster.audited(since, wanted).await
    }

    /// When the executor had pods deleted, in order.
    pub(crate) async fn deletes_of_pods(&self) -> Result<Vec<Timestamp>> {
        let writes = self.writes().await?.into_iter();
        let deletes = writes.filter(|event| {
            event.verb == "delete" && event.resource == "pods" && (200..300).contains(&event.code)
        });
        let mut times: Vec<_> = deletes.map(|event| event.received).collect();
        times.sort_unstable();
        Ok(times)
    }

    /// Waits for the first answer about this namespace since then, to a write of the executor that `wanted` wants; returns a
    /// few milliseconds after the apiserver has given it.
    pub(crate) async fn first_write(
        &self,
        since: Place,
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

    /// The calls since then that were about plans for this DaemonSet.
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

    /// Waits until the executor has written nothing and asked nothing for a second.
    pub(crate) async fn at_rest(&self) -> Result<()> {
        let (mut seen, mut since) = ((0, 0), Instant::now());
        self.eventually("the executor to come to rest", async || {
            let now = (
                self.writes().await?.len(),
                self.proxy.calls_since(Mark::BEGINNING).len(),
            );
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            ensure!(since.elapsed() > REST, "{} writes and {} calls", now.0, now.1);
            Ok(())
        })
        .await
    }

    /// Takes away what the case leaves, so that it disturbs no other.
    pub(crate) async fn clear(&self) -> Result<()> {
        let all = ListParams::default();
        self.daemon_set_api()
            .delete_collection(&DeleteParams::background(), &all)
            .await?;
        // At once: some are on nodes that are gone, or on none.
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
        // A case may have taken it away.
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
    Api::all(cluster.client())
        .create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("creating the namespace {name}"))?;
    Ok(())
}

fn is_executors_write(event: &AuditEvent) -> bool {
    event.user == EXECUTOR_USER && event.is_write()
}

/// What a case has that is alone with an executor: it starts it, and ends it as it likes. A server runs from the beginning,
/// behind [`Scene::proxy`].
#[derive(Debug)]
pub(crate) struct Solo {
    scene: Scene,
    server: Server,
    command: Arc<str>,
    executor: Running,
}

impl Deref for Solo {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl Solo {
    pub(crate) async fn set(
        cluster: &Arc<Cluster>,
        command: &Arc<str>,
        id: &str,
        deadline: Duration,
    ) -> Result<Self> {
        let server = Server::start(cluster.plane(), "127.0.0.1:0", &[]).await?;
        let proxy = Arc::new(FaultProxy::to(server.address()).await?);
        Ok(Self {
            scene: Scene::set(cluster, &proxy, id, deadline).await?,
            server,
            command: Arc::clone(command),
            executor: Running::default(),
        })
    }

    /// Starts one more server, with these flags.
    pub(crate) async fn another_server(&self, flags: &[&str]) -> Result<Server> {
        Server::start(self.cluster().plane(), "127.0.0.1:0", flags).await
    }

    /// Puts another server, with these flags, behind a new [`Scene::proxy`]. The executor must not run yet.
    pub(crate) async fn replace_server(&mut self, flags: &[&str]) -> Result<()> {
        self.server = self.another_server(flags).await?;
        self.scene.proxy = Arc::new(FaultProxy::to(self.server.address()).await?);
        Ok(())
    }

    /// Ends the server, as a crash would, and starts it again on the same address: it has forgotten everything.
    pub(crate) async fn restart_server(&mut self) -> Result<()> {
        self.server.process().kill9()?;
        self.server.start_again(self.scene.cluster.plane()).await
    }

    /// Starts the executor.
    pub(crate) fn start(&mut self) -> Result<()> {
        let servers = [self.proxy().url()];
        self.start_with(None, &servers)
    }

    /// Starts the executor with these flags besides.
    pub(crate) fn start_with_flags(&mut self, flags: &str) -> Result<()> {
        let own = self.cluster().executor_kubeconfig()?;
        let (command, servers) = (format!("{} {flags}", self.command), [self.proxy().url()]);
        self.start_command(&command, &own, &servers, &[])
    }

    /// Starts the executor on another control plane, with another server, and with these variables in its environment.
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

    /// Starts the executor with these servers, and perhaps with an apiserver of the caller's.
    pub(crate) fn start_with(&mut self, kubeconfig: Option<&Path>, servers: &[String]) -> Result<()> {
        self.start_in(kubeconfig, servers, &[])
    }

    /// The same with these variables in its environment.
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

    /// Ends the executor at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let executor = self.executor.take().context("the case started no executor")?;
        executor.kill()
    }

    /// Asks the executor to end; fails unless it does as the contract says.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let executor = self.executor.take().context("the case started no executor")?;
        executor.stop().await
    }

    /// Fails unless the executor runs.
    pub(crate) fn expect_running(&self) -> Result<()> {
        let executor = self.executor.get().context("the case started no executor")?;
        executor.check_running()
    }

    /// The executor, if one should run.
    pub(crate) fn executor(&self) -> Running {
        self.executor.clone()
    }

    pub(crate) async fn clear(self) -> Result<()> {
        // Nobody makes pods again while they are cleared.
        self.executor.set(None);
        self.scene.clear().await
    }
}
