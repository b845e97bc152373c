//! The service over TLS.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use nodewise_tls::testing::{Authority, write};
use tempfile::TempDir;

use crate::{
    audit::Place,
    case::{Case, solo},
    daemon_set::{daemon_set, image_patch},
    scene::Solo,
    server::Server,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "tls",
        "With NODEWISE_TLS_CA, NODEWISE_TLS_CERT and NODEWISE_TLS_KEY the service is asked over TLS, and let in by the executor's \
         certificate.",
        tls
    ),
    solo!(
        "tls-foreign",
        "While the service's certificate is of an authority that is not in NODEWISE_TLS_CA it is asked nothing and nothing is \
         written; work begins, or goes on, by itself when it has a right one.",
        foreign
    ),
];

/// The executor, to the service.
const EXECUTOR: &str = "spiffe://cluster.local/ns/tools/sa/executor-under-test";

/// So many connections have not begun when the executor has tried, and tried again.
const TRIES: u64 = 3;

/// The server's metrics of connections that do not begin, and of calls, health's among them.
const REFUSED: &str = "nodewise_connections_refused_total{reason=\"tls\"}";
const CALLS: &str = "rpc_server_call_duration_seconds_count";

/// The files of both ends.
struct Certificates {
    folder: TempDir,
    /// Whom the executor believes.
    of_servers: Authority,
    /// Whom the server believes.
    clients: PathBuf,
    /// What the executor is told.
    environment: [(String, String); 3],
}

impl Certificates {
    /// The server has none yet.
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

    /// Where the server's certificate and key are, which are of this authority from now on. A server that runs notices within
    /// seconds.
    fn issue_to_server(&self, authority: &Authority) -> [String; 2] {
        let certificate = authority.issue(&["127.0.0.1"]);
        certificate
            .write(self.folder.path(), "server")
            .map(|file| text(&file))
    }

    /// Starts a server with a certificate of this authority, which lets in nobody but the executor.
    async fn start_server(&self, solo: &Solo, authority: &Authority) -> Result<Server> {
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

/// An https:// server that lets in nobody else.
async fn tls(solo: &mut Solo) -> Result<()> {
    let certificates = Certificates::new()?;
    let server = certificates.start_server(solo, &certificates.of_servers).await?;
    let url = format!("https://{}", server.address());
    solo.start_in(None, &[url], &certificates.environment)?;
    solo.start_agent(3).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 3, "{updated} pods have the second version");
    Ok(())
}

/// The same server, but until its certificate is mended anybody could have made it: once from the beginning, and once when the
/// executor has known it and has work in hand.
async fn foreign(solo: &mut Solo) -> Result<()> {
    let certificates = Certificates::new()?;
    let stranger = Authority::new("authority of a stranger");
    // Told to nobody: executors that believe whom they like find it there.
    let _ = write(certificates.folder.path(), "stranger.crt", &stranger.pem());
    let mut server = certificates.start_server(solo, &stranger).await?;
    solo.add_nodes(3).await?;
    solo.create(daemon_set("agent").build()).await?;
    let place = solo.place().await?;
    let url = format!("https://{}", server.address());
    solo.start_in(None, &[url], &certificates.environment)?;
    turned_away(solo, &server, place).await?;
    certificates.issue_to_server(&certificates.of_servers);
    solo.settled("agent").await?;

    solo.at_rest().await?;
    server.process().kill9()?;
    let place = solo.place().await?;
    solo.patch("agent", image_patch(2)).await?;
    certificates.issue_to_server(&stranger);
    server.start_again(solo.cluster().plane()).await?;
    turned_away(solo, &server, place).await?;
    certificates.issue_to_server(&certificates.of_servers);
    solo.settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 3, "{updated} pods have the second version");
    Ok(())
}

/// Waits until the executor has tried and given up often enough. Fails if it asked the server anything, wrote since then, or ended.
async fn turned_away(solo: &Solo, server: &Server, since: Place) -> Result<()> {
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
