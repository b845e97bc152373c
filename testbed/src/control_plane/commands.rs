//! The command line of each part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::access;
use super::builder::{Builder, Component};
use super::nodes::NODE_SILENT_LABEL;

/// How many requests per second a component may make (and twice that in a burst): so many that the apiserver
/// is what limits it. The defaults of Kubernetes protect a shared apiserver; here they would be the bottleneck.
const QPS: u32 = 5000;

/// How long finished spans wait for others before they are sent, in milliseconds; the SDK's own five seconds are what every
/// test would wait for.
const SPANS_WAIT: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "200");

/// The ports that a control plane listens on: etcd's for clients and for peers, and the apiserver's.
pub(super) type Ports = [u16; 3];

/// Where things are, for one control plane.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) dir: PathBuf,
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
}

impl Layout {
    /// Takes these ports, and writes the fixed configuration files into `dir`.
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

    /// Writes what the apiserver reads of tracing, if it traces at all.
    pub(super) fn write_tracing(&self, builder: &Builder) -> Result<()> {
        let Some(url) = &builder.tracing else {
            return Ok(());
        };
        ensure!(
            collector(url).is_some(),
            "spans cannot go to {url:?}: the apiserver and etcd send them in plain text, to http://HOST:PORT"
        );
        // JSON is YAML, too.
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

    /// All that etcd keeps.
    pub(super) fn etcd_data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    /// The apiserver's certificate, which it makes itself at its first start, with that of the authority.
    pub(super) fn certificate(&self) -> PathBuf {
        self.dir.join("certs").join("apiserver.crt")
    }

    /// The key of that certificate, which it writes after it.
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
        // No settings of the person who runs the tests: `~/.kube` and `~/.kwok` stay out.
        command
            .current_dir(&self.dir)
            .env("HOME", &self.dir)
            .envs([SPANS_WAIT])
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
            // The data is gone after the test anyhow.
            flag("unsafe-no-fsync", true),
            flag("log-level", "warn"),
        ];
        if let Some(collector) = builder.tracing.as_deref().and_then(collector) {
            // It samples what its client has sampled, and by its sampling rate of 0 nothing else.
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
            // Nothing routes to the service `kubernetes`; its endpoints would only be refused as loopback ones.
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
            // One file, in megabytes: a test must not lose its beginning to a rotation.
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
            // Without kubelets no node sends a heartbeat, and this controller would give up every one of them.
            controllers.push_str(",-node-lifecycle-controller");
        }
        let mut args = client_args(&self.kubeconfig(Component::ControllerManager));
        args.extend([
            flag("controllers", controllers),
            flag("service-account-private-key-file", self.key().display()),
            flag("root-ca-file", self.certificate().display()),
            // The fake kubelets send no heartbeats, which for thousands of nodes would be most of the traffic. So
            // their silence says nothing, not for ten years; see `ControlPlane::set_node_silent`.
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
            // Without leases: with them, kwok forgets pods that reach a node before its first lease is seen.
            flag("node-lease-duration-seconds", 0),
        ]
    }

    fn kubeconfig(&self, component: Component) -> PathBuf {
        access::kubeconfig(&self.kubeconfigs(), component.user())
    }
}

/// How one of Kubernetes' own components talks to the apiserver.
pub(super) fn client_args(kubeconfig: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig.display()),
        flag("leader-elect", false),
        // Serves nothing itself, so that it needs no port and no certificate.
        flag("secure-port", 0),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", 2 * QPS),
    ]
}

/// The `HOST:PORT` of a Collector's URL, if it is one that takes plain text.
fn collector(url: &str) -> Option<&str> {
    url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'))
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
