//! Tests connections between clients and servers.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use nodewise_tls::{
    client,
    names::ClientNames,
    server,
    testing::{Authority, Pem, rcgen::date_time_ymd, write},
};
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;

/// Certificate files of a client and a server. Each side trusts an authority of its own.
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

/// Connects, exchanges a byte in both directions, and returns the client's names as the server sees them.
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
async fn clients_need_no_certificate_without_client_authorities() {
    let folder = Folder::new();
    let (server, client) = (folder.server(None), folder.client(None));
    let (names, connected) = meet(&server, &client, "localhost").await;
    assert_eq!(names.expect("let in"), None);
    connected.expect("connects");
}

#[tokio::test]
async fn a_server_needs_the_right_name_and_authority() {
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
    // The system's authorities do not include the test's authority.
    let of_the_system = client::Connector::new(client::Files::default()).expect("no files");
    let (_, connected) = meet(&server, &of_the_system, "localhost").await;
    connected.expect_err("an unknown authority");
}

#[tokio::test]
async fn only_allowed_clients_are_accepted() {
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
async fn clients_without_a_valid_certificate_are_rejected() {
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
async fn changed_certificates_are_used_from_the_next_connection_on() {
    let folder = Folder::new();
    let (server, client) = (folder.server(None), folder.client(None));
    assert!(!server.reload().expect("readable"), "nothing has changed");

    // The server gets a certificate from another authority. The client's file has that authority only later.
    let next = Authority::new("of servers, next");
    let _ = next.issue(&["localhost"]).write(folder.path(), "server");
    assert!(server.reload().expect("good files"));
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect_err("not known yet");
    let _ = write(folder.path(), "servers.crt", &next.pem());
    let (_, connected) = meet(&server, &client, "localhost").await;
    connected.expect("known");

    // Files that cannot be used change nothing.
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

/// A plain rustls client with these versions and session resumption.
fn offering(folder: &Folder, versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(folder.servers.pem().as_bytes()).expect("PEM");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let config = config.expect("versions").with_root_certificates(roots);
    Arc::new(config.with_no_client_auth())
}

#[tokio::test]
async fn tls_1_2_and_1_3_work_and_no_session_is_resumed() {
    let folder = Folder::new();
    let server = folder.server(None);
    for version in [&TLS12, &TLS13] {
        let config = offering(&folder, &[version]);
        for connection in 0..3 {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let accepted = async {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (mut stream, _) = server.accept(stream).await.expect("TLS");
                stream.write_all(b"x").await.expect("written");
                stream.read_u8().await.expect("read");
            };
            let connected = async {
                let stream = TcpStream::connect(address).await.expect("a connection");
                let name = "localhost".try_into().expect("a name");
                let connector = TlsConnector::from(Arc::clone(&config));
                let mut stream = connector.connect(name, stream).await.expect("TLS");
                // Session tickets would have arrived by now.
                stream.read_u8().await.expect("read");
                stream.write_all(b"x").await.expect("written");
                let (_, state) = stream.get_ref();
                (state.protocol_version(), state.handshake_kind())
            };
            let ((), spoken) = tokio::join!(accepted, connected);
            let expected = (Some(version.version), Some(HandshakeKind::Full));
            assert_eq!(spoken, expected, "connection {connection}");
        }
    }
}

#[tokio::test]
async fn versions_before_tls_1_2_are_rejected() {
    let folder = Folder::new();
    let server = folder.server(None);
    for version in [[3, 0], [3, 1], [3, 2]] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let accepted = async {
            let (stream, _) = listener.accept().await.expect("a connection");
            server.accept(stream).await.map(|_| ())
        };
        let connected = async {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.write_all(&client_hello(version)).await.expect("written");
            let mut said = Vec::new();
            stream.read_to_end(&mut said).await.expect("read");
            said
        };
        let (accepted, said) = tokio::join!(accepted, connected);
        let error = accepted.expect_err("refused").to_string();
        // A fatal alert: protocol_version.
        assert_eq!((said[0], &said[5..]), (21, &[2, 70][..]), "{version:?}: {error}");
    }
}

/// The ClientHello of an old TLS version.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = Vec::from(version);
    hello.extend([7; 32]); // Random.
    hello.push(0); // No session.
    hello.extend([0, 4, 0xC0, 0x13, 0x00, 0x2F]); // ECDHE-RSA and RSA with AES-128-CBC-SHA.
    hello.extend([1, 0]); // No compression.
    // supported_groups: secp256r1; ec_point_formats: uncompressed; signature_algorithms: ECDSA and RSA with SHA-256.
    let extensions = [
        0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 6, 0, 4, 4, 3, 4, 1,
    ];
    hello.extend([0, u8::try_from(extensions.len()).expect("few")]);
    hello.extend(extensions);
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).expect("few");
    let handshake = [&[1, 0, 0, length(&hello)][..], &hello].concat();
    [&[22, 3, 1, 0, length(&handshake)][..], &handshake].concat()
}
