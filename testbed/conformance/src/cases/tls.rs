//! The service over TLS.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use nodewise_tls::testing::{Authority, write};

use crate::{
    case::{Case, solo},
    daemon_set::image_patch,
    scene::Solo,
};

pub(super) const CASES: &[Case] = &[solo!(
    "tls",
    "With NODEWISE_TLS_CA, NODEWISE_TLS_CERT and NODEWISE_TLS_KEY the service is asked over TLS, and let in by the executor's \
     certificate.",
    tls
)];

/// The executor, to the service.
const EXECUTOR: &str = "spiffe://cluster.local/ns/tools/sa/executor-under-test";

/// An https:// server that lets in nobody else.
async fn tls(solo: &mut Solo) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for certificates")?;
    let path = |path: &Path| path.display().to_string();
    let (of_servers, of_clients) = (
        Authority::new("authority of servers"),
        Authority::new("authority of clients"),
    );
    let [certificate, key] = of_servers.issue(&["127.0.0.1"]).write(folder.path(), "server");
    let clients = write(folder.path(), "clients.crt", &of_clients.pem());
    let flags = [
        "--tls-cert",
        &path(&certificate),
        "--tls-key",
        &path(&key),
        "--tls-client-ca",
        &path(&clients),
        "--tls-allow-client",
        EXECUTOR,
    ];
    let server = solo.another_server(&flags).await?;
    let [certificate, key] = of_clients.issue(&[EXECUTOR]).write(folder.path(), "client");
    let servers = write(folder.path(), "servers.crt", &of_servers.pem());
    let environment = [
        ("NODEWISE_TLS_CA", servers),
        ("NODEWISE_TLS_CERT", certificate),
        ("NODEWISE_TLS_KEY", key),
    ]
    .map(|(name, file)| (name.to_owned(), path(&file)));
    let url = format!("https://{}", server.address());
    solo.start_in(None, &[url], &environment)?;
    solo.start_agent(3).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.settled("agent").await?;
    let updated = solo.count_of_version("agent", 2).await?;
    ensure!(updated == 3, "{updated} pods have the second version");
    Ok(())
}
