//! Runs the programs with the configuration, rights and certificates (`deploy/certificates.sh`) of an overlay. Only the
//! kubelet is missing.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use kube::api::PatchParams;
use nodewise_conformance::{Cluster, DEADLINE, TestNamespace, binaries, daemon_set};
use nodewise_e2e::own_address;
use nodewise_testbed::{ControlPlane, Process, manifests};
use serde_json::{Value, json};

use crate::render::{self, NAMESPACE};

/// Where the manifests mount certificates.
const MOUNTED: &str = "/etc/nodewise/tls";

type Environment = BTreeMap<String, String>;

/// Writes each of the release's Secrets into a folder, as the kubelet does.
fn write_secrets(into: &Path, name: &str) -> Result<()> {
    let mut script = Command::new(render::file("deploy/certificates.sh"));
    let output = script
        .args([NAMESPACE, name])
        .output()
        .context("running the script")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && complaints.is_empty(), "{complaints}");
    for secret in manifests::parse(&String::from_utf8(output.stdout)?)? {
        let folder = into.join(secret["metadata"]["name"].as_str().context("a name")?);
        fs::create_dir(&folder)?;
        for (name, data) in secret["data"].as_object().context("data")? {
            let data: k8s_openapi::ByteString = serde_json::from_value(data.clone())?;
            fs::write(folder.join(name), data.0)?;
        }
    }
    Ok(())
}

/// The environment variables of a Deployment's container, with the paths of the certificates in `secrets`.
fn environment(objects: &[Value], deployment: &str, secrets: &Path) -> Result<Environment> {
    let mut deployments = render::deployments(objects);
    let found = deployments.find(|object| object["metadata"]["name"] == deployment);
    let pod = &found.context(deployment.to_owned())?["spec"]["template"]["spec"];
    let secret = pod["volumes"][0]["secret"]["secretName"]
        .as_str()
        .context("a Secret")?;
    let folder = secrets.join(secret).display().to_string();
    let variables = pod["containers"][0]["env"]
        .as_array()
        .context("variables")?
        .iter();
    Ok(variables
        .map(|variable| {
            let text = |key: &str| {
                variable[key]
                    .as_str()
                    .unwrap_or_default()
                    .replace(MOUNTED, &folder)
            };
            (text("name"), text("value"))
        })
        .collect())
}

/// The address that a server prints.
async fn address(server: &Process) -> Result<SocketAddr> {
    let words = "serve: listening on ";
    let line = server.wait_for_log_line(words, DEADLINE).await?;
    let (_, rest) = line.split_once(words).context("the line has the words")?;
    rest.split_whitespace()
        .next()
        .context("an address")?
        .parse()
        .context(rest.to_owned())
}

/// The EndpointSlice that the controller would create for the Service and a pod.
fn slice(server: SocketAddr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": { "name": "nodewise-server-1", "namespace": NAMESPACE,
            "labels": { "kubernetes.io/service-name": "nodewise-server" } },
        "addressType": "IPv4",
        "ports": [{ "name": "grpc", "port": server.port(), "protocol": "TCP" }],
        "endpoints": [{ "addresses": [server.ip()], "conditions": { "ready": true } }],
    })
}

/// Whether the server admits a client with the certificate in this folder.
fn is_admitted(server: SocketAddr, certificate: &Path, ca: &str) -> Result<bool> {
    let output = Command::new(&binaries()?.cli)
        .args(["plan", "--server", &format!("https://{server}"), "--tls-ca", ca])
        .args(["--tls-server-name", "nodewise-server.nodewise-system.svc"])
        .arg("--tls-cert")
        .arg(certificate.join("tls.crt"))
        .arg("--tls-key")
        .arg(certificate.join("tls.key"))
        .arg("-f")
        .arg(render::file("cli/tests/data/new.json"))
        .stdin(Stdio::null())
        .output()
        .context("running nodewise")?;
    Ok(output.status.success())
}

/// Adds the authority of another certificate to those that the server trusts.
fn trust_as_well(server: &Environment, certificate: &Path) -> Result<()> {
    let authorities = &server["NODEWISE_TLS_CLIENT_CA"];
    let more = fs::read_to_string(certificate.join("ca.crt"))?;
    fs::write(authorities, fs::read_to_string(authorities)? + "\n" + &more)?;
    Ok(())
}

fn start_server(plane: &ControlPlane, environment: &Environment) -> Result<Process> {
    let mut server = Command::new(&binaries()?.server);
    server
        .envs(environment)
        .env("NODEWISE_LISTEN", format!("{}:0", own_address()?))
        .env("NODEWISE_HTTP_LISTEN", "127.0.0.1:0");
    plane.spawn("server", server)
}

/// The executor finds the server through its Service, both authenticate by certificate, the executor becomes the
/// leader, and pods are created.
#[tokio::test(flavor = "multi_thread")]
async fn programs_work_with_the_deployed_configuration() -> Result<()> {
    let cluster = Cluster::start_for("own-secrets").await?;
    let (plane, secrets) = (cluster.plane(), cluster.plane().workdir().path());
    plane.create_nodes(3).await?;
    write_secrets(secrets, "nodewise")?;
    let objects = tokio::task::spawn_blocking(|| render::overlay("own-secrets")).await??;
    let mut for_server = environment(&objects, "nodewise-server", secrets)?;
    let for_executor = environment(&objects, "nodewise-executor", secrets)?;

    let built = tokio::task::spawn_blocking(binaries).await??;
    write_secrets(secrets, "other")?;
    let other = secrets.join("other-executor-tls");
    trust_as_well(&for_server, &other)?;
    let running = start_server(plane, &for_server)?;
    let server = address(&running).await?;
    manifests::apply(&cluster.client(), &slice(server), &PatchParams::apply("test")).await?;
    let mut executor = Command::new(&built.executor);
    executor
        .envs(&for_executor)
        .env("NODEWISE_HTTP_LISTEN", "127.0.0.1:0");
    executor.env("NODEWISE_KUBECONFIG", cluster.executor_kubeconfig()?);
    let executor = plane.spawn("executor", executor)?;

    let test_namespace = TestNamespace::of_all_nodes(cluster.client(), "default").with_deadline(DEADLINE);
    test_namespace
        .roll_out("agent", daemon_set("agent").build())
        .await?;
    test_namespace.expect_one_pod_per_node("agent").await?;
    executor.terminate(DEADLINE).await?;

    let ca = &for_executor["NODEWISE_TLS_CA"];
    let own = secrets.join("nodewise-executor-tls");
    ensure!(is_admitted(server, &own, ca)?, "with the executor's certificate");
    ensure!(!is_admitted(server, &other, ca)?, "with another good certificate");
    let line = running
        .wait_for_log_line("none of those that are let in", DEADLINE)
        .await?;
    ensure!(
        line.contains("spiffe://cluster.local/ns/nodewise-system/sa/other-executor"),
        "{line}"
    );
    // Both certificates are equally valid. Only the list of allowed clients rejects this one.
    for_server
        .remove("NODEWISE_TLS_ALLOW_CLIENT")
        .context("the list")?;
    let running = start_server(plane, &for_server)?;
    ensure!(
        is_admitted(address(&running).await?, &other, ca)?,
        "without the list"
    );
    Ok(())
}
