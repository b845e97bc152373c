//! Connections between both ends.

use std::{
    io,
    path::{Path, PathBuf},
};

use nodewise_tls::{
    client,
    names::ClientNames,
    server,
    testing::{Authority, Pem, rcgen::date_time_ymd, write},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Files of both ends; each end believes an authority of its own.
struct Folder {
    dir: TempDir,
    servers: Authority,
    clients: Authority,
}

impl Folder {
    fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a folder"),
            servers: Authority::new("of servers"),
            clients: Authority::new("of clients"),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn server(&self, allowed: Option<&[&str]>) -> server::Acceptor {
        let [certificate, key] = self.servers.issue(&["localhost"]).write(self.path(), "server");
        let clients = allowed.map(|allowed| server::Clients {
            authorities: write(self.path(), "clients.crt", &self.clients.pem()),
            allowed: allowed.iter().map(|name| name.parse().expect("a name")).collect(),
        });
        server::Acceptor::new(server::Files {
            certificate,
            key,
            clients,
        })
        .expect("good files")
    }

    fn client(&self, identity: Option<&Pem>) -> client::Connector {
        client::Connector::new(client::Files {
            authorities: Some(self.servers_file()),
            identity: identity.map(|identity| {
                let [certificate, key] = identity.write(self.path(), "client");
                client::Identity { certificate, key }
            }),
        })
        .expect("good files")
    }

    fn servers_file(&self) -> PathBuf {
        write(self.path(), "servers.crt", &self.servers.pem())
    }
}

/// What the server knows of the client after both sent a byte.
async fn meet(
    server: &server::Acceptor,
    client: &client::Connector,
    name: &str,
) -> (io::Result<Option<ClientNames>>, io::Result<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let accepted = async {
        let (stream, _) = listener.accept().await?;
        let (mut stream, names) = server.accept(stream).await?;
        stream.write_all(b"x").await?;
        stream.read_u8().await?;
        Ok(names)
    };
    let connected = async {
        let stream = TcpStream::connect(address).await?;
        let name = name.to_owned().try_into().expect("a name");
        let mut stream = client.connect(name, stream).await?;
        stream.read_u8().await?;
        stream.write_all(b"x").await?;
        Ok(())
    };
    tokio::join!(accepted, connected)
}

#[tokio::test]
async fn everybody_is_let_in_where_no_certificates_are_wanted() {
    let folder = Folder::new();
    let (server, client) = (folder.server(None), folder.client(None));
    let (names, connected) = meet(&server, &client, "localhost").await;
    assert_eq!(names.expect("let in"), None);
    connected.expect("connects");
}

#[tokio::test]
async fn a_server_is_believed_by_its_name_and_authority_only() {
    let folder = Folder::new();
    let server = folder.server(None);
    let (_, connected) = meet(&server, &folder.client(None), "another.host").await;
    let error = connected.expect_err("another name").to_string();
    assert!(
        error.contains("not valid for name") && error.contains("localhost"),
        "{error}"
    );
    let stranger = client::Connector::new(client::Files {
        authorities: Some(write(folder.path(), "other.crt", &Authority::new("other").pem())),
        identity: None,
    })
    .expect("good files");
    let (accepted, connected) = meet(&server, &stranger, "localhost").await;
    let error = connected.expect_err("another authority").to_string();
    assert!(error.contains("UnknownIssuer"), "{error}");
    assert!(accepted.is_err());
    // Those of the system do not know ours.
    let of_the_system = client::Connector::new(client::Files::default()).expect("no files");
    let (_, connected) = meet(&server, &of_the_system, "localhost").await;
    connected.expect_err("an unknown authority");
}

#[tokio::test]
async fn only_allowed_clients_are_let_in() {
    const URI: &str = "spiffe://cluster.local/ns/tools/sa/executor";
    let folder = Folder::new();
    let server = folder.server(Some(&["spiffe://cluster.local/ns/tools/*", "ci.tools.svc"]));
    for (names, principal) in [
        (&[URI, "executor.tools.svc"][..], Some(URI)),
        (&["other.tools.svc", "ci.tools.svc"], Some("other.tools.svc")),
        (&["spiffe://cluster.local/ns/others/sa/executor"], None),
        (&["tools.svc"], None),
        (&[], None),
    ] {
        let client = folder.client(Some(&folder.clients.issue(names)));
        let (accepted, connected) = meet(&server, &client, "localhost").await;
        let found = accepted
            .as_ref()
            .ok()
            .map(|names| names.as_ref().expect("a certificate").principal());
        assert_eq!(found.as_deref(), principal, "{names:?}: {accepted:?}");
        if principal.is_none() {
            let error = connected.expect_err("refused").to_string();
            assert!(error.contains("AccessDenied"), "{error}");
        }
    }
}

#[tokio::test]
async fn clients_without_a_good_certificate_are_refused() {
    let folder = Folder::new();
    let server = folder.server(Some(&[]));
    let good = folder.clients.issue(&["executor"]);
    let (accepted, _) = meet(&server, &folder.client(Some(&good)), "localhost").await;
    accepted.expect("any client of the authority");
    let strangers = folder.servers.issue(&["executor"]);
    for identity in [None, Some(&strangers)] {
        let (accepted, connected) = meet(&server, &folder.client(identity), "localhost").await;
        accepted.expect_err("refused");
        connected.expect_err("refused");
    }
}

#[tokio::test]
async fn certificates_that_change_are_used_from_the_next_connection_on() {
    let folder = Folder::new();
    let (server, client) = (folder.server(None), folder.client(None));
    assert!(!server.reload().expect("readable"), "nothing has changed");

    // The server's comes from another authority now, which the client's file gets to know later.
    let next = Authority::new("of servers, next");
    let _ = next.issue(&["localhost"]).write(folder.path(), "server");
    assert!(server.reload().expect("good files"));
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect_err("not known yet");
    let _ = write(folder.path(), "servers.crt", &next.pem());
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect("known");

    // What cannot be used changes nothing.
    let expired = next.issue_changed(&["localhost"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let _ = expired.write(folder.path(), "server");
    let error = server.reload().expect_err("expired").to_string();
    assert!(error.contains("expired at 2020-01-01"), "{error}");
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect("as before");
    let _ = write(folder.path(), "servers.crt", "");
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect("as before");
}
