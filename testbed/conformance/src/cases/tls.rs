//! The service over TLS.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use nodewise_tls::testing::{Authority, write};
use tempfile::TempDir;

use crate::{
    audit::AuditPosition,
    case::{Case, solo},
    fixture::SoloFixture,
    server::Server,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "tls",
        "With NODEWISE_TLS_CA, NODEWISE_TLS_CERT and NODEWISE_TLS_KEY the executor calls the service over TLS, and the service \
         accepts the executor's certificate.",
        tls
    ),
    solo!(
        "tls-foreign",
        "While the service's certificate is not signed by an authority in NODEWISE_TLS_CA, the executor makes no call and \
         writes nothing. Work starts or resumes once the service has a valid certificate.",
        foreign
    ),
];

/// The executor's identity, in its client certificate.
const EXECUTOR: &str = "spiffe://cluster.local/ns/tools/sa/executor-under-test";

/// The number of failed connections that shows that the executor retries.
const TRIES: u64 = 3;

/// The server's metrics of rejected connections and of calls, including health checks.
const REFUSED: &str = "nodewise_connections_refused_total{reason=\"tls\"}";
const CALLS: &str = "rpc_server_call_duration_seconds_count";

/// The certificate files of both ends.
struct Certificates {
    folder: TempDir,
    /// The authority that the executor trusts.
    of_servers: Authority,
    /// The authority that the server trusts.
    clients: PathBuf,
    /// The executor's environment variables.
    environment: [(String, String); 3],
}

impl Certificates {
    /// Without a server certificate so far.
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for certificates")?;
        let (of_servers, of_clients) = (
            Authority::new("authority of servers"),
            Authority::new("authority of clients"),
        );
        let servers = write(folder.path(), "servers.crt", &of_servers.pem());
        let [certificate, key] = of_clients.issue(&[EXECUTOR]).write(folder.path(), "client");
        let environment = [
            ("NODEWISE_TLS_CA", servers),
            ("NODEWISE_TLS_CERT", certificate),
            ("NODEWISE_TLS_KEY", key),
        ];
        Ok(Self {
            clients: write(folder.path(), "clients.crt", &of_clients.pem()),
            environment: environment.map(|(name, file)| (name.to_owned(), text(&file))),
            of_servers,
            folder,
        })
    }

    /// Writes a certificate and key of this authority for the server, and returns their paths. A running server reloads
    /// them within seconds.
    fn issue_to_server(&self, authority: &Authority) -> [String; 2] {
        let certificate = authority.issue(&["127.0.0.1"]);
        certificate
            .write(self.folder.path(), "server")
            .map(|file| text(&file))
    }

    /// Starts a server with a certificate of this authority. It admits only the executor.
    async fn start_server(&self, solo: &SoloFixture, authority: &Authority) -> Result<Server> {
        let [certificate, key] = self.issue_to_server(authority);
        let flags = [
            "--http-listen",
            "127.0.0.1:0",
            "--tls-cert",
            &certificate,
            "--tls-key",
            &key,
            "--tls-client-ca",
            &text(&self.clients),
            "--tls-allow-client",
            EXECUTOR,
        ];
        solo.another_server(&flags).await
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// An https:// server that admits only the executor.
async fn tls(solo: &mut SoloFixture) -> Result<()> {
    let certificates = Certificates::new()?;
    let server = certificates.start_server(solo, &certificates.of_servers).await?;
    let url = format!("https://{}", server.address());
    solo.start_in(None, &[url], &certificates.environment)?;
    solo.start_agent(3).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 3, "{updated} pods have the second version");
    Ok(())
}

/// A server whose certificate has an untrusted authority until the test corrects it: once from the start, and once
/// while the executor is connected and has work to do.
async fn foreign(solo: &mut SoloFixture) -> Result<()> {
    let certificates = Certificates::new()?;
    let stranger = Authority::new("authority of a stranger");
    // In no environment variable. The executors of `tests/wrong` read it from there.
    let _ = write(certificates.folder.path(), "stranger.crt", &stranger.pem());
    let mut server = certificates.start_server(solo, &stranger).await?;
    solo.add_nodes(3).await?;
    solo.create(daemon_set("agent").build()).await?;
    let position = solo.audit_position().await?;
    let url = format!("https://{}", server.address());
    solo.start_in(None, &[url], &certificates.environment)?;
    wait_for_failed_connections(solo, &server, position).await?;
    certificates.issue_to_server(&certificates.of_servers);
    solo.wait_until_settled("agent").await?;

    solo.wait_until_idle().await?;
    server.process().kill9()?;
    let position = solo.audit_position().await?;
    solo.patch("agent", image_patch(2)).await?;
    certificates.issue_to_server(&stranger);
    server.start_again(solo.cluster().plane()).await?;
    wait_for_failed_connections(solo, &server, position).await?;
    certificates.issue_to_server(&certificates.of_servers);
    solo.wait_until_settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 3, "{updated} pods have the second version");
    Ok(())
}

/// Waits until the executor has failed to connect often enough. Fails if it called the server, wrote since then, or
/// ended.
async fn wait_for_failed_connections(
    solo: &SoloFixture,
    server: &Server,
    since: AuditPosition,
) -> Result<()> {
    let what = "the executor to have turned away from the server";
    solo.eventually(what, async || {
        let tries = server.sum_of(REFUSED).await?;
        let (calls, writes) = (server.sum_of(CALLS).await?, solo.writes_since(since).await?);
        let is_believed = calls > 0 || !writes.is_empty();
        ensure!(is_believed || tries >= TRIES, "{tries} times so far");
        Ok((calls, writes))
    })
    .await
    .and_then(|(calls, writes)| {
        ensure!(
            calls == 0 && writes.is_empty(),
            "a server was believed that anybody could be: {calls} calls, and {writes:?}"
        );
        Ok(())
    })?;
    solo.expect_running()
}
