//! The certificates of `deploy/certificates.sh` are those that the manifests and the programs want.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nodewise_conformance::{DEADLINE, binaries};
use nodewise_testbed::{Process, Workdir, manifests};
use serde_json::Value;

use crate::render;

/// Where the manifests mount them.
const MOUNTED: &str = "/etc/nodewise/tls";

/// Writes the Secrets into a folder each, as the kubelet does.
fn write_secrets(into: &Path) -> Result<()> {
    let output = Command::new(render::file("deploy/certificates.sh"))
        .output()
        .context("running the script")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && complaints.is_empty(), "{complaints}");
    for secret in manifests::parse(&String::from_utf8(output.stdout)?)? {
        let folder = into.join(secret["metadata"]["name"].as_str().context("a name")?);
        fs::create_dir(&folder)?;
        for (name, data) in secret["data"].as_object().context("data")? {
            let encoded = data.as_str().context("a text")?.to_owned();
            let data: k8s_openapi::ByteString = serde_json::from_value(encoded.into())?;
            fs::write(folder.join(name), data.0)?;
        }
    }
    Ok(())
}

/// The variables of a container, with its certificates in these folders.
fn environment(deployment: &Value, secrets: &Path) -> Result<BTreeMap<String, String>> {
    let pod = &deployment["spec"]["template"]["spec"];
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

/// Asks the server at this port for a plan, with the certificates of one of these containers.
fn plan(port: &str, tls: &BTreeMap<String, String>, ca: &str) -> Result<Output> {
    Command::new(&binaries()?.cli)
        .args([
            "plan",
            "--server",
            &format!("https://127.0.0.1:{port}"),
            "--now",
            "2026-01-01T02:00:00Z",
        ])
        .args([
            "--tls-server-name",
            "nodewise-server.nodewise-system.svc",
            "--tls-ca",
            ca,
        ])
        .args([
            "--tls-cert",
            &tls["NODEWISE_TLS_CERT"],
            "--tls-key",
            &tls["NODEWISE_TLS_KEY"],
        ])
        .arg("-f")
        .arg(render::file("cli/tests/data/new.json"))
        .stdin(Stdio::null())
        .output()
        .context("running nodewise")
}

/// The server of the overlay, as it is configured there, lets the executor of the overlay in and nobody else.
#[tokio::test]
async fn with_them_the_executor_is_let_in_and_nobody_else() -> Result<()> {
    let workdir = Workdir::new()?;
    let secrets = workdir.path();
    write_secrets(secrets)?;
    let objects = render::overlay("own-secrets")?;
    let of = |name: &str| {
        let found = render::deployments(&objects).find(|deployment| deployment["metadata"]["name"] == name);
        environment(found.context(name.to_owned())?, secrets)
    };
    let (server, executor) = (of("nodewise-server")?, of("nodewise-executor")?);

    let mut command = Command::new(&binaries()?.server);
    command.envs(&server).envs([
        ("NODEWISE_LISTEN", "127.0.0.1:0"),
        ("NODEWISE_HTTP_LISTEN", "127.0.0.1:0"),
    ]);
    let process = Process::spawn_in(&workdir, "nodewise-server", command)?;
    let words = "serve: listening on ";
    let line = process.wait_for_log_line(words, DEADLINE).await?;
    let (_, address) = line.rsplit_once(words).context("the line has the words")?;
    let port: String = address
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();

    let ca = &executor["NODEWISE_TLS_CA"];
    let planned = plan(&port, &executor, ca)?;
    ensure!(
        planned.status.success(),
        "{}",
        String::from_utf8_lossy(&planned.stderr)
    );
    let refused = plan(&port, &server, ca)?;
    ensure!(
        !refused.status.success(),
        "the server's own certificate is let in, too"
    );
    process.terminate(Duration::from_secs(30)).await?;
    Ok(())
}
