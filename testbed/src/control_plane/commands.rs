//! The command lines of the components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::access;
use super::builder::{Builder, Component};
use super::nodes::NODE_SILENT_LABEL;

/// The client-side rate limit of a component in requests per second; the burst is twice as much. Kubernetes' low
/// defaults protect a shared apiserver. Here they would be the bottleneck.
const QPS: u32 = 5000;

/// How long finished spans wait before they are exported, in milliseconds. The SDK's default of five seconds would slow
/// down every test.
const EXPORT_DELAY: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "200");

/// The ports of a control plane: etcd for clients, etcd for peers, the apiserver.
pub(super) type Ports = [u16; 3];

/// The paths and ports of one control plane.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) dir: PathBuf,
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
}

impl Layout {
    /// Uses these ports, and writes the fixed configuration files into `dir`.
    pub(super) fn new(dir: &Path, [etcd, etcd_peer, apiserver]: Ports) -> Result<Self> {
        let layout = Self {
            dir: dir.to_owned(),
            etcd,
            etcd_peer,
            apiserver,
        };
        fs::create_dir(layout.kubeconfigs()).context("making the folder of the kubeconfigs")?;
        for (name, text) in [
            (
                "audit-policy.yaml",
                include_str!("../../config/audit-policy.yaml"),
            ),
            ("kwok.yaml", include_str!("../../config/kwok.yaml")),
        ] {
            fs::write(dir.join(name), text).with_context(|| format!("writing {name}"))?;
        }
        Ok(layout)
    }

    /// Writes the apiserver's tracing configuration, if tracing is on.
    pub(super) fn write_tracing(&self, builder: &Builder) -> Result<()> {
        let Some(url) = &builder.tracing else {
            return Ok(());
        };
        ensure!(
            collector(url).is_some(),
            "spans cannot go to {url:?}: the apiserver and etcd send them in plain text, to http://HOST:PORT"
        );
        // JSON is valid YAML.
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "TracingConfiguration",
            "endpoint": collector(url),
            "samplingRatePerMillion": builder.traces_per_million,
        });
        fs::write(self.tracing(), config.to_string()).context("writing the apiserver's tracing configuration")
    }

    fn tracing(&self) -> PathBuf {
        self.dir.join("tracing.json")
    }

    pub(super) fn kubeconfigs(&self) -> PathBuf {
        self.dir.join("kubeconfigs")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.dir.join("logs").join("audit.log")
    }

    /// etcd's data folder.
    pub(super) fn etcd_data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    /// The apiserver's serving certificate. The apiserver makes it at its first start and appends the CA certificate.
    pub(super) fn certificate(&self) -> PathBuf {
        self.dir.join("certs").join("apiserver.crt")
    }

    /// The key of that certificate. The apiserver writes it after the certificate.
    pub(super) fn key(&self) -> PathBuf {
        self.dir.join("certs").join("apiserver.key")
    }

    /// The apiserver's address.
    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.apiserver)
    }

    /// The command that starts `component` from `program`.
    pub(super) fn command(&self, component: Component, program: &Path, builder: &Builder) -> Command {
        let mut command = Command::new(program);
        // Without the user's own settings in `~/.kube` and `~/.kwok`.
        command
            .current_dir(&self.dir)
            .env("HOME", &self.dir)
            .envs([EXPORT_DELAY])
            .env_remove("KUBECONFIG");
        command.args(match component {
            Component::Etcd => self.etcd_args(builder),
            Component::Apiserver => self.apiserver_args(builder),
            Component::ControllerManager => self.controller_manager_args(builder),
            Component::Scheduler => self.scheduler_args(),
            Component::Kwok => self.kwok_args(),
        });
        command.args(builder.args.get(&component).into_iter().flatten());
        command
    }

    fn etcd_args(&self, builder: &Builder) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.etcd);
        let peers = format!("http://127.0.0.1:{}", self.etcd_peer);
        let mut args = vec![
            flag("data-dir", self.etcd_data().display()),
            flag("listen-client-urls", &clients),
            flag("advertise-client-urls", &clients),
            flag("listen-peer-urls", &peers),
            flag("initial-advertise-peer-urls", &peers),
            flag("initial-cluster", format!("default={peers}")),
            // The data is deleted after the test.
            flag("unsafe-no-fsync", true),
            flag("log-level", "warn"),
        ];
        if let Some(collector) = builder.tracing.as_deref().and_then(collector) {
            // etcd samples a request only if its client has sampled it; its own sampling rate is 0.
            args.push(flag("enable-distributed-tracing", true));
            args.push(flag("distributed-tracing-address", collector));
        }
        args
    }

    fn apiserver_args(&self, builder: &Builder) -> Vec<String> {
        let off: Vec<_> = builder.admission_off.iter().map(String::as_str).collect();
        let mut args = vec![
            flag("etcd-servers", format!("http://127.0.0.1:{}", self.etcd)),
            flag("bind-address", "127.0.0.1"),
            flag("advertise-address", "127.0.0.1"),
            flag("secure-port", self.apiserver),
            flag("cert-dir", self.dir.join("certs").display()),
            // Nothing uses the service `kubernetes`, and the apiserver rejects loopback addresses as endpoints.
            flag("endpoint-reconciler-type", "none"),
            flag("service-cluster-ip-range", "10.0.0.0/16"),
            flag("service-account-issuer", "https://kubernetes.default.svc"),
            flag("service-account-key-file", self.key().display()),
            flag("service-account-signing-key-file", self.key().display()),
            flag("token-auth-file", self.tokens().display()),
            flag("authorization-mode", "RBAC"),
        ];
        if !off.is_empty() {
            args.push(flag("disable-admission-plugins", off.join(",")));
        }
        if builder.audit {
            args.push(flag(
                "audit-policy-file",
                self.dir.join("audit-policy.yaml").display(),
            ));
            args.push(flag("audit-log-path", self.audit_log().display()));
            // In megabytes: so large that the log is never rotated, since a rotation could delete the start of a test.
            args.push(flag("audit-log-maxsize", 100_000));
        }
        if builder.tracing.is_some() {
            args.push(flag("tracing-config-file", self.tracing().display()));
        }
        args
    }

    fn controller_manager_args(&self, builder: &Builder) -> Vec<String> {
        let mut controllers = builder.controllers.clone();
        if !builder.has(Component::Kwok) && controllers.contains('*') {
            // Without kwok no kubelet reports a status, so this controller would mark all nodes as unreachable.
            controllers.push_str(",-node-lifecycle-controller");
        }
        let mut args = client_args(&self.kubeconfig(Component::ControllerManager));
        args.extend([
            flag("controllers", controllers),
            flag("service-account-private-key-file", self.key().display()),
            flag("root-ca-file", self.certificate().display()),
            // The fake kubelets send no heartbeats, because with thousands of nodes these would be most of the traffic.
            // A grace period of ten years turns the check off; see `ControlPlane::set_node_silent`.
            flag("node-monitor-grace-period", "87600h"),
        ]);
        args
    }

    fn scheduler_args(&self) -> Vec<String> {
        client_args(&self.kubeconfig(Component::Scheduler))
    }

    fn kwok_args(&self) -> Vec<String> {
        vec![
            flag("kubeconfig", self.kubeconfig(Component::Kwok).display()),
            flag("config", self.dir.join("kwok.yaml").display()),
            flag(
                "manage-nodes-with-label-selector",
                format!("!{NODE_SILENT_LABEL}"),
            ),
            // No leases: with leases, kwok ignores pods that are bound to a node before it has seen the node's first
            // lease.
            flag("node-lease-duration-seconds", 0),
        ]
    }

    fn kubeconfig(&self, component: Component) -> PathBuf {
        access::kubeconfig(&self.kubeconfigs(), component.user())
    }
}

/// The flags with which Kubernetes' own components connect to the apiserver.
pub(super) fn client_args(kubeconfig: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig.display()),
        flag("leader-elect", false),
        // No HTTPS server, so that it needs no port and no certificate.
        flag("secure-port", 0),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", 2 * QPS),
    ]
}

/// The `HOST:PORT` of a Collector's URL, if the URL is without TLS.
fn collector(url: &str) -> Option<&str> {
    url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'))
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
