//! A running control plane.

mod access;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod builder;
mod commands;
pub(crate) mod nodes;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

use self::access::{ADMIN, Access};
use self::audit::{AuditEvent, AuditTail};
use self::builder::{Builder, Component};
use self::commands::{Layout, Ports};
use crate::process::{Process, port_was_taken};
use crate::tools::Tool;
use crate::wait::eventually;
use crate::workdir::Workdir;

/// How long the apiserver may take to become ready; four seconds on an idle machine.
const READY_DEADLINE: Duration = Duration::from_mins(2);

/// How often a start is retried because another process took a port first.
const PORT_TRIES: usize = 5;

/// A Kubernetes control plane of real processes. They end when the value is dropped.
///
/// All files are in one temporary folder ([`ControlPlane::workdir`]), so several control planes can run at the same
/// time.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the components one by one, etcd last; then the folder.
    processes: Mutex<BTreeMap<std::cmp::Reverse<Component>, Process>>,
    builder: Builder,
    programs: BTreeMap<Component, PathBuf>,
    layout: Layout,
    access: Access,
    config: kube::Config,
    nodes_made: AtomicUsize,
    workdir: Arc<Workdir>,
}

impl ControlPlane {
    /// Configures a control plane; see [`Builder`].
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts the control plane on the ports that `ports` returns.
    async fn start_from(builder: Builder, mut ports: impl FnMut() -> io::Result<Ports>) -> Result<Self> {
        let programs = build_programs(&builder).await?;
        let mut tries = 1;
        loop {
            let ports = ports().context("looking for free ports")?;
            match Self::try_start(&builder, &programs, ports).await {
                Err(error) if tries < PORT_TRIES && port_was_taken(&error) => tries += 1,
                result => return result,
            }
        }
    }

    async fn try_start(
        builder: &Builder,
        programs: &BTreeMap<Component, PathBuf>,
        ports: Ports,
    ) -> Result<Self> {
        let workdir = Workdir::new()?;
        let layout = Layout::new(workdir.path(), ports)?;
        layout.write_tracing(builder)?;
        let access = Access::new(&builder.users);
        access.write_tokens(&layout.tokens())?;
        access.write_kubeconfigs(&layout.kubeconfigs(), &layout.server(), &layout.certificate())?;

        // The apiserver waits for etcd. Clients need the apiserver's certificate.
        let mut processes = BTreeMap::new();
        for component in [Component::Etcd, Component::Apiserver] {
            let process = spawn(&workdir, &layout, component, &programs[&component], builder)?;
            processes.insert(std::cmp::Reverse(component), process);
        }
        eventually(READY_DEADLINE, "the apiserver's certificate", async || {
            // If a process has ended there will be no certificate. The check below reports it.
            let ended = processes.values().any(|process| process.check_running().is_err());
            // The apiserver writes the key after the certificate, so the certificate is complete once the key exists.
            // Clients would also read half a file, and then trust no server.
            ensure!(
                ended || layout.key().exists(),
                "there is no {}",
                layout.key().display()
            );
            Ok(())
        })
        .await?;
        for process in processes.values() {
            process.check_running()?;
        }
        let config = admin_config(&layout).await?;
        let control_plane = Self {
            processes: Mutex::new(processes),
            builder: builder.clone(),
            programs: programs.clone(),
            layout,
            access,
            config,
            nodes_made: AtomicUsize::new(0),
            workdir,
        };
        control_plane.wait_until_ready().await?;
        control_plane.access.bind_roles(&control_plane.client()).await?;
        control_plane.start_the_others()?;
        Ok(control_plane)
    }

    /// Starts the components that need a ready apiserver.
    fn start_the_others(&self) -> Result<()> {
        let mut others = self.builder.components.iter();
        others.try_for_each(|&component| match component {
            Component::Etcd | Component::Apiserver => Ok(()),
            other => self.start(other),
        })
    }

    /// The administrator's kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        access::kubeconfig(&self.layout.kubeconfigs(), ADMIN)
    }

    /// The kubeconfig file of a user of [`Builder::user`] or [`ControlPlane::add_service_account`].
    ///
    /// # Errors
    /// There is no such user.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf> {
        let kubeconfig = access::kubeconfig(&self.layout.kubeconfigs(), user);
        ensure!(kubeconfig.exists(), "there is no user {user:?}");
        Ok(kubeconfig)
    }

    /// Creates a kubeconfig for a ServiceAccount, with a token from the TokenRequest API as pods have it. The user is
    /// `system:serviceaccount:NAMESPACE:NAME`, with the rights that RBAC gives it.
    ///
    /// # Errors
    /// The ServiceAccount does not exist, or already has a kubeconfig.
    pub async fn add_service_account(&self, namespace: &str, service_account: &str) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let token = accounts
            .create_token_request(service_account, &PostParams::default(), &TokenRequest::default())
            .await
            .with_context(|| format!("a token for the ServiceAccount {namespace}/{service_account}"))?;
        let token = token
            .status
            .and_then(|status| status.token)
            .context("an answer without a token")?;
        let user = format!("system:serviceaccount:{namespace}:{service_account}");
        let (folder, ca) = (self.layout.kubeconfigs(), self.layout.certificate());
        access::write_kubeconfig(&folder, &self.layout.server(), &ca, &user, &token)
    }

    /// A new client of the administrator. It belongs to the runtime of the calling task.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config.clone())
            .expect("the same configuration made a client at the start")
    }

    /// A new client of a user of [`Builder::user`] or [`ControlPlane::add_service_account`].
    ///
    /// # Errors
    /// There is no such user.
    pub async fn client_for(&self, user: &str) -> Result<kube::Client> {
        Ok(kube::Client::try_from(
            client_config(&self.kubeconfig_for(user)?).await?,
        )?)
    }

    /// The apiserver's address.
    #[must_use]
    pub fn server(&self) -> String {
        self.layout.server()
    }

    /// The temporary folder.
    #[must_use]
    pub fn workdir(&self) -> &Arc<Workdir> {
        &self.workdir
    }

    /// A command that runs only these controllers of Kubernetes, as a user of [`Builder::user`]. They run in a process of
    /// their own, so that a test can start, stop and measure them while the other controllers keep running.
    ///
    /// # Errors
    /// It cannot be built, or there is no such user.
    pub async fn built_in(&self, controllers: &str, user: &str) -> Result<Command> {
        let program = tokio::task::spawn_blocking(|| Tool::KubeControllerManager.path()).await??;
        let mut command = Command::new(program);
        command
            .arg(format!("--controllers={controllers}"))
            .args(commands::client_args(&self.kubeconfig_for(user)?));
        Ok(command)
    }

    /// Starts a program under test. Its log is in the folder of the control plane, and it ends with the control plane
    /// at the latest.
    ///
    /// # Errors
    /// The program does not exist or cannot be started.
    pub fn spawn(&self, name: &str, command: Command) -> Result<Process> {
        Process::spawn_in(&self.workdir, name, command)
    }

    /// All audit events so far, oldest response first, including every request that was answered before this call.
    ///
    /// # Errors
    /// [`Builder::audit_log`] is off, or the apiserver does not answer.
    pub async fn audit_events(&self) -> Result<Vec<AuditEvent>> {
        ensure!(
            self.builder.audit,
            "this control plane was started without Builder::audit_log"
        );
        // The apiserver logs a response just after it has sent it. A marker request is logged after all earlier ones.
        let mark = format!("/version?mark={:032x}", rand::random::<u128>());
        let request = http::Request::get(&mark).body(Vec::new())?;
        self.client()
            .request_text(request)
            .await
            .context("asking the apiserver for its version")?;
        let mut events = eventually(Duration::from_secs(30), "an entry in the audit log", async || {
            let events = audit::read(&self.layout.audit_log())?;
            ensure!(
                events.iter().any(|event| event.uri == mark),
                "{mark} is not in it"
            );
            Ok(events)
        })
        .await?;
        events.retain(|event| !event.uri.starts_with("/version?mark="));
        Ok(events)
    }

    /// A reader of the audit log from its beginning, while the log grows.
    ///
    /// # Errors
    /// [`Builder::audit_log`] is off.
    pub fn audit_tail(&self) -> Result<AuditTail> {
        ensure!(
            self.builder.audit,
            "this control plane was started without Builder::audit_log"
        );
        AuditTail::open(&self.layout.audit_log())
    }

    /// Runs kubectl as the administrator and returns its standard output.
    ///
    /// # Errors
    /// kubectl failed; the error has its standard error.
    pub async fn kubectl<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String> {
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let output = self.kubectl_output(&args).await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "kubectl {} failed ({}): {said}",
                args.join(OsStr::new(" ")).display(),
                output.status
            );
        }
        String::from_utf8(output.stdout).context("kubectl printed something that is not text")
    }

    /// Runs kubectl as the administrator and returns its exit status and output.
    ///
    /// # Errors
    /// kubectl cannot be built or run.
    pub async fn kubectl_output<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Output> {
        let program = tokio::task::spawn_blocking(|| Tool::Kubectl.path()).await??;
        tokio::process::Command::new(program)
            .args(args)
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.workdir.path())
            .stdin(Stdio::null())
            .process_group(self.workdir.group())
            .kill_on_drop(true)
            .output()
            .await
            .context("running kubectl")
    }

    /// Starts a component, or starts it again, on the same port and with the same data. The apiserver needs some time
    /// to become ready: see [`ControlPlane::wait_until_ready`].
    ///
    /// # Errors
    /// The component is not part of this control plane, already runs, or cannot be started.
    pub fn start(&self, component: Component) -> Result<()> {
        let program = self
            .programs
            .get(&component)
            .with_context(|| format!("{component:?} was not asked for"))?;
        let mut processes = self.processes();
        let key = std::cmp::Reverse(component);
        ensure!(
            processes
                .get(&key)
                .is_none_or(|process| process.check_running().is_err()),
            "{component:?} already runs"
        );
        processes.insert(
            key,
            spawn(&self.workdir, &self.layout, component, program, &self.builder)?,
        );
        Ok(())
    }

    /// Kills a component (SIGKILL).
    ///
    /// # Errors
    /// The component does not run.
    pub fn kill(&self, component: Component) -> Result<()> {
        let process = self.processes().remove(&std::cmp::Reverse(component));
        process
            .with_context(|| format!("{component:?} does not run"))?
            .kill9()
    }

    /// Waits until the apiserver is ready.
    ///
    /// # Errors
    /// The apiserver is not ready within two minutes, or a component has ended.
    pub async fn wait_until_ready(&self) -> Result<()> {
        let client = self.client();
        // A component that has ended does not come back, so stop waiting and report it.
        let ended = eventually(READY_DEADLINE, "a ready apiserver", async || {
            if let Err(ended) = self.check_running() {
                return Ok(Some(ended));
            }
            let request = http::Request::get("/readyz").body(Vec::new())?;
            client.request_text(request).await.context("/readyz")?;
            Ok(None)
        })
        .await?;
        ended.map_or(Ok(()), Err)
    }

    /// Fails if a component has ended by itself; the error has the end of its log.
    ///
    /// # Errors
    /// See above.
    pub fn check_running(&self) -> Result<()> {
        self.processes().values().try_for_each(Process::check_running)
    }

    /// The process id of a component.
    ///
    /// # Errors
    /// The component does not run.
    pub fn pid(&self, component: Component) -> Result<u32> {
        let processes = self.processes();
        let process = processes.get(&std::cmp::Reverse(component));
        let process = process.with_context(|| format!("{component:?} does not run"))?;
        process.check_running()?;
        Ok(process.pid())
    }

    /// Whether the control plane has this component.
    #[must_use]
    pub fn has(&self, component: Component) -> bool {
        self.builder.has(component)
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<std::cmp::Reverse<Component>, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds all programs, outside of the async threads because it can take minutes.
async fn build_programs(builder: &Builder) -> Result<BTreeMap<Component, PathBuf>> {
    let components = builder.components.clone();
    tokio::task::spawn_blocking(move || {
        components
            .into_iter()
            .map(|component| Ok((component, component.tool().path()?)))
            .collect()
    })
    .await?
}

fn spawn(
    workdir: &Arc<Workdir>,
    layout: &Layout,
    component: Component,
    program: &Path,
    builder: &Builder,
) -> Result<Process> {
    let command = layout.command(component, program, builder);
    Process::spawn_in(workdir, component.tool().name(), command).map(Process::into_environment)
}

async fn admin_config(layout: &Layout) -> Result<kube::Config> {
    client_config(&access::kubeconfig(&layout.kubeconfigs(), ADMIN)).await
}

async fn client_config(kubeconfig: &Path) -> Result<kube::Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    Ok(kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::ports::free_ports;

    #[tokio::test]
    async fn start_is_retried_if_a_port_is_taken() -> Result<()> {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = taken.local_addr()?.port();
        let mut tries = 0;
        let control_plane = ControlPlane::start_from(ControlPlane::builder(), || {
            tries += 1;
            let [etcd, etcd_peer, apiserver] = free_ports()?;
            Ok(match tries {
                1 => [port, etcd_peer, apiserver],
                2 => [etcd, etcd_peer, port],
                _ => [etcd, etcd_peer, apiserver],
            })
        })
        .await?;
        control_plane.wait_until_ready().await?;
        assert_eq!(tries, 3);
        Ok(())
    }
}
