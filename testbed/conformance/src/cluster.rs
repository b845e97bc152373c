//! A control plane for executors, with users, RBAC and an audit log.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api, Client,
    api::{PatchParams, PostParams},
};
use nodewise_testbed::{AuditEvent, Builder, Component, ControlPlane, Process, User, eventually, manifests};
use serde_json::Value;

use crate::{
    audit::{Audit, AuditPosition},
    deadline::DEADLINE,
    rights::{self, Right},
};

/// The user name of an executor at the apiserver: the ServiceAccount of `deploy/`.
pub const EXECUTOR_USER: &str = "system:serviceaccount:nodewise-system:nodewise-executor";

/// The namespace and the name of that ServiceAccount.
const EXECUTOR_ACCOUNT: (&str, &str) = ("nodewise-system", "nodewise-executor");

/// This plugin rejects an owner reference with blockOwnerDeletion unless the user may set the owner's finalizers. Some
/// clusters use it.
const OWNER_ADMISSION: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";

/// The user name of upstream's controllers at the apiserver.
pub const UPSTREAM_USER: &str = "upstream-controllers";

/// A whole control plane without a DaemonSet controller. All its processes end when the value is dropped.
#[derive(Debug)]
pub struct Cluster {
    // The audit log is a file of the control plane, so its reader is dropped first.
    audit: Audit,
    plane: ControlPlane,
}

impl Cluster {
    /// Starts the control plane, without nodes. D-108: the executor has the RBAC rights of
    /// `deploy/kustomize/overlays/own`.
    pub async fn start() -> Result<Self> {
        Self::start_for("own").await
    }

    /// The same with the RBAC rights of this overlay.
    pub async fn start_for(overlay: &str) -> Result<Self> {
        Self::start_with(ControlPlane::builder(), overlay).await
    }

    /// The same, starting from `builder`, which may add admission plugins, for example.
    pub async fn start_with(builder: Builder, overlay: &str) -> Result<Self> {
        let cluster = Self::start_as(builder, overlay).await?;
        let (namespace, name) = EXECUTOR_ACCOUNT;
        cluster.plane.add_service_account(namespace, name).await?;
        Ok(cluster)
    }

    /// The same, but the apiserver and etcd export the spans of sampled requests to a collector. The executor is in a
    /// group from which the apiserver accepts trace contexts, so it cannot use a ServiceAccount token.
    pub async fn start_traced(builder: Builder, overlay: &str, collector: &str) -> Result<Self> {
        let executor = User::new(EXECUTOR_USER).group("system:monitoring");
        Self::start_as(builder.tracing(collector).user(executor), overlay).await
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
        let overlay = overlay.to_owned();
        let objects = tokio::task::spawn_blocking(move || rights::objects(&overlay)).await??;
        cluster.give_rights(&objects).await?;
        Ok(cluster)
    }

    /// Applies RBAC objects, and waits until the apiserver's authorizer has seen them.
    pub async fn give_rights(&self, objects: &[Value]) -> Result<()> {
        let (client, params) = (self.client(), PatchParams::apply("nodewise-conformance"));
        for object in objects {
            manifests::apply(&client, object, &params).await?;
        }
        let reviews = Api::<SubjectAccessReview>::all(client);
        for right in Right::given_by(objects)? {
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

    /// The control plane.
    #[must_use]
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.plane.client()
    }

    /// The audit log.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The kubeconfig file of an executor.
    pub fn executor_kubeconfig(&self) -> Result<PathBuf> {
        self.plane.kubeconfig_for(EXECUTOR_USER)
    }

    /// The audit events after `since` that `wanted` accepts, including all requests that were answered before this
    /// call.
    pub async fn audited(
        &self,
        since: AuditPosition,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<Vec<AuditEvent>> {
        self.audit.caught_up(&self.client()).await?;
        Ok(self.audit.since(since).into_iter().filter(wanted).collect())
    }

    /// Copies the logs of all processes so far into a folder, and creates the folder if necessary.
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
    /// It runs in its own process, so that it can start and stop while the other controllers of kube-controller-manager
    /// keep running.
    pub async fn start_upstream(&self) -> Result<Upstream> {
        self.start_built_in("daemonset-controller").await
    }

    /// Starts these controllers of upstream.
    pub async fn start_built_in(&self, controllers: &str) -> Result<Upstream> {
        let mut command = self.plane.built_in(controllers, UPSTREAM_USER).await?;
        // From this level on it logs which workloads it has synced.
        command.arg("--v=4");
        Ok(Upstream(self.plane.spawn("upstream", command)?))
    }
}

/// Running controllers of upstream. They end when dropped.
#[derive(Debug)]
pub struct Upstream(Process);

impl Upstream {
    /// Waits until they have synced this workload more than `syncs` times. The workers start after the caches have
    /// synced, so the first sync sees all objects.
    pub async fn synced_since(&self, syncs: usize, kind: &str, namespace: &str, name: &str) -> Result<()> {
        eventually(DEADLINE, format!("upstream to sync {name}"), async || {
            self.0.check_running()?;
            let since = self.syncs(kind, namespace, name);
            ensure!(since > syncs, "{since} syncs of {name}, {syncs} of them before");
            Ok(())
        })
        .await
    }

    /// How often they have synced a workload of this kind.
    #[must_use]
    pub fn syncs(&self, kind: &str, namespace: &str, name: &str) -> usize {
        let (message, key) = match kind {
            "DaemonSet" => ("\"Finished syncing daemon set\"", "daemonset"),
            "Deployment" => ("\"Finished syncing deployment\"", "deployment"),
            _ => ("\"Finished syncing\" kind=\"ReplicaSet\"", "key"),
        };
        let key = format!("{key}=\"{namespace}/{name}\"");
        let log = self.0.log();
        let synced = |line: &&str| line.contains(message) && line.contains(&key);
        log.lines().filter(synced).count()
    }

    /// Fails if it has ended; the error has the end of its log.
    pub fn check_running(&self) -> Result<()> {
        self.0.check_running()
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub async fn stop(self) -> Result<()> {
        self.0.terminate(DEADLINE).await.map(|_| ())
    }
}
