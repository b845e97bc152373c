//! A control plane for executors: with the users, the rights and the audit log that they are judged by.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api, Client,
    api::{PatchParams, PostParams},
};
use nodewise_testbed::{AuditEvent, Builder, Component, ControlPlane, Process, User, eventually, manifests};

use crate::{
    audit::{Audit, Place},
    rights::{self, Right},
    space::DEADLINE,
};

/// The user that an executor is to the apiserver: the ServiceAccount of `deploy/`.
pub const EXECUTOR_USER: &str = "system:serviceaccount:nodewise-system:nodewise-executor";

/// The namespace and the name of that ServiceAccount.
const EXECUTOR_ACCOUNT: (&str, &str) = ("nodewise-system", "nodewise-executor");

/// Wants of whoever makes objects that hold up the deletion of their DaemonSet that he may do so. Some clusters have it on.
const OWNER_ADMISSION: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";

/// The user that upstream's DaemonSet controller is to the apiserver.
pub const UPSTREAM_USER: &str = "upstream-daemonset-controller";

/// A control plane with everything that a DaemonSet meets in a cluster but its controller. All is gone when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    // It reads a file of the plane, so it ends first.
    audit: Audit,
    plane: ControlPlane,
}

impl Cluster {
    /// Starts it, without nodes. D-108: an executor has the rights that `deploy/kustomize/overlays/own` gives it.
    pub async fn start() -> Result<Self> {
        Self::start_for("own").await
    }

    /// The same with the rights that this overlay gives.
    pub async fn start_for(overlay: &str) -> Result<Self> {
        Self::start_with(ControlPlane::builder(), overlay).await
    }

    /// The same on a control plane with what `builder` adds, such as admission plugins.
    pub async fn start_with(builder: Builder, overlay: &str) -> Result<Self> {
        let cluster = Self::start_as(builder, overlay).await?;
        let (namespace, name) = EXECUTOR_ACCOUNT;
        cluster.plane.let_in(namespace, name).await?;
        Ok(cluster)
    }

    /// The same with the apiserver and etcd sending the spans of traced calls to a collector. The executor is of a group whose traces
    /// the apiserver goes on with, as a ServiceAccount with a token of its own cannot be.
    pub async fn start_traced(collector: &str) -> Result<Self> {
        let executor = User::new(EXECUTOR_USER).group("system:monitoring");
        Self::start_as(ControlPlane::builder().tracing(collector).user(executor), "own").await
    }

    async fn start_as(builder: Builder, overlay: &str) -> Result<Self> {
        let plane = builder
            .whole_cluster()
            .arg(Component::Apiserver, OWNER_ADMISSION)
            .user(User::new(UPSTREAM_USER).group("system:masters"))
            .start()
            .await?;
        let audit = Audit::of(&plane)?;
        let cluster = Self { audit, plane };
        cluster.give_rights(overlay).await?;
        Ok(cluster)
    }

    /// Applies what says who may do what, and waits until the apiserver acts on it, which learns of it by watching.
    async fn give_rights(&self, overlay: &str) -> Result<()> {
        let overlay = overlay.to_owned();
        let objects = tokio::task::spawn_blocking(move || rights::objects(&overlay)).await??;
        let (client, params) = (self.client(), PatchParams::apply("nodewise-conformance"));
        for object in &objects {
            manifests::apply(&client, object, &params).await?;
        }
        let reviews = Api::<SubjectAccessReview>::all(client);
        for right in Right::given_by(&objects)? {
            eventually(DEADLINE, format!("the right to {right}"), async || {
                let review = right.review(EXECUTOR_USER);
                let answer = reviews.create(&PostParams::default(), &review).await?;
                let is_allowed = answer.status.is_some_and(|status| status.allowed);
                ensure!(is_allowed, "the apiserver does not know of it yet");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// The control plane itself.
    #[must_use]
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.plane.client()
    }

    /// The audit log, which grows.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The kubeconfig file of an executor.
    pub fn executor_kubeconfig(&self) -> Result<PathBuf> {
        self.plane.kubeconfig_for(EXECUTOR_USER)
    }

    /// The requests since then that the apiserver has answered and that `wanted` wants; all that were answered before this
    /// call are among them.
    pub async fn audited(
        &self,
        since: Place,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<Vec<AuditEvent>> {
        self.audit.caught_up(&self.client()).await?;
        Ok(self.audit.since(since).into_iter().filter(wanted).collect())
    }

    /// Copies the logs of all processes so far into a folder, which is made if it is not there.
    pub fn keep_logs(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        for log in std::fs::read_dir(self.plane.workdir().logs())? {
            let log = log?;
            std::fs::copy(log.path(), folder.join(log.file_name()))
                .with_context(|| format!("keeping a log in {}", folder.display()))?;
        }
        Ok(())
    }

    /// Starts upstream's DaemonSet controller.
    ///
    /// It is a process of its own, so that it can come and go while everything else of kube-controller-manager (garbage
    /// collection, node lifecycle, service accounts) keeps running in another one.
    pub async fn start_upstream(&self) -> Result<Upstream> {
        let mut command = self.plane.daemonset_controller(UPSTREAM_USER).await?;
        // From this level on it says which workloads it has synced.
        command.arg("--v=4");
        Ok(Upstream(self.plane.spawn("upstream", command)?))
    }
}

/// A running DaemonSet controller of upstream; gone when dropped.
#[derive(Debug)]
pub struct Upstream(Process);

impl Upstream {
    /// Waits until it has synced this DaemonSet once more than `syncs` times. Its workers begin when its caches are whole, so
    /// the first sync is one of everything there is.
    pub async fn synced_since(&self, syncs: usize, namespace: &str, name: &str) -> Result<()> {
        eventually(DEADLINE, format!("upstream to sync {name}"), async || {
            self.0.check_running()?;
            let since = self.syncs(namespace, name);
            ensure!(since > syncs, "{since} syncs of {name}, {syncs} of them before");
            Ok(())
        })
        .await
    }

    /// How often it has synced a DaemonSet.
    #[must_use]
    pub fn syncs(&self, namespace: &str, name: &str) -> usize {
        let key = format!("daemonset=\"{namespace}/{name}\"");
        let log = self.0.log();
        let synced = |line: &&str| line.contains("\"Finished syncing daemon set\"") && line.contains(&key);
        log.lines().filter(synced).count()
    }

    /// Fails if it has ended, with the end of its log.
    pub fn check_running(&self) -> Result<()> {
        self.0.check_running()
    }

    /// Asks it to end and waits until the process is gone.
    pub async fn stop(self) -> Result<()> {
        self.0.terminate(DEADLINE).await.map(|_| ())
    }
}
