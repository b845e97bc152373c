//! TLS: which clients are allowed, and the errors for unusable certificates.

mod support;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use nodewise_client::{ClientConfig, ClientError, ClientTls, target::Target};
use nodewise_proto::v1::{self, reconcile_service_client::ReconcileServiceClient};
use nodewise_server::{Config, Listeners, run};
use nodewise_telemetry::with_causes;
use nodewise_tls::{
    client,
    server::{Acceptor, Clients, Files},
    testing::{Authority, Pem, assert_said, rcgen::date_time_ymd, write},
};
use support::{Cluster, Form, Process, SOON, eventually};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpSocket},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Channel;

/// The log message for a client that is not allowed.
const REFUSED: &str = "none of those that are let in";

/// The name in the certificates of the servers.
const NAME: &str = "planner.tools.svc";

/// A folder with certificate files, and the authority that issues them.
struct Folder {
    dir: TempDir,
    authority: Authority,
}

impl Folder {
    fn new() -> Self {
        Self {
            dir: TempDir::new().expect("a folder"),
            authority: Authority::new("our authority"),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn issue(&self, name: &str, alternatives: &[&str]) -> [String; 2] {
        self.put(name, &self.authority.issue(alternatives))
    }

    fn put(&self, name: &str, pem: &Pem) -> [String; 2] {
        pem.write(self.path(), name)
            .map(|path| path.to_str().expect("ASCII").to_owned())
    }

    fn authorities(&self) -> String {
        let path = write(self.path(), "ca.crt", &self.authority.pem());
        path.to_str().expect("ASCII").to_owned()
    }

    /// A client with a certificate for these names, or without a certificate.
    fn client(&self, names: Option<&[&str]>) -> client::Connector {
        let identity = names.map(|names| {
            let [certificate, key] = self.issue("client", names).map(Into::into);
            client::Identity { certificate, key }
        });
        let files = client::Files {
            authorities: Some(self.authorities().into()),
            identity,
        };
        client::Connector::new(files).expect("good files")
    }

    /// A server in this process that allows these clients.
    async fn serve(&self, allowed: &[&str]) -> Serving {
        let [certificate, key] = self.issue("server", &[NAME]).map(Into::into);
        let acceptor = Acceptor::new(Files {
            certificate,
            key,
            clients: Some(Clients {
                authorities: self.authorities().into(),
                allowed: allowed.iter().map(|name| name.parse().expect("a name")).collect(),
            }),
        })
        .expect("good files");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let listeners = Listeners {
            grpc: listener,
            tls: Some(acceptor.clone()),
            http: None,
        };
        tokio::spawn(run(Config::default(), listeners, stop.clone().cancelled_owned()));
        Serving {
            address,
            acceptor,
            _stop: stop.drop_guard(),
        }
    }
}

struct Serving {
    address: SocketAddr,
    acceptor: Acceptor,
    _stop: DropGuard,
}

async fn connect(address: SocketAddr, connector: client::Connector) -> Result<Channel, ClientError> {
    let Ok(Target::Fixed(target)) = format!("https://{address}").parse() else {
        panic!("{address} is an address");
    };
    let config = ClientConfig {
        tls: Some(ClientTls {
            connector,
            server_name: Some(NAME.to_owned()),
        }),
        ..ClientConfig::default()
    };
    nodewise_client::connect(target, &config).await
}

async fn plan(channel: Channel) -> Result<v1::Plan, tonic::Status> {
    let request = Cluster::empty(3).request(1, Form::Inline);
    let response = ReconcileServiceClient::new(channel).plan(request).await?;
    Ok(response.into_inner().plan.expect("a plan"))
}

/// A plan over a new connection. A client may get the error that it is not allowed only with its first call.
async fn asked(address: SocketAddr, connector: client::Connector) -> Result<v1::Plan, String> {
    let channel = connect(address, connector)
        .await
        .map_err(|error| with_causes(error.to_string(), &error))?;
    plan(channel)
        .await
        .map_err(|status| with_causes(status.to_string(), &status))
}

#[tokio::test]
async fn only_the_named_clients_are_allowed() {
    let folder = Folder::new();
    let server = folder.serve(&["spiffe://cluster.local/ns/tools/*"]).await;
    let named = folder.client(Some(&["spiffe://cluster.local/ns/tools/sa/executor"]));
    asked(server.address, named).await.expect("let in");
    for names in [None, Some(&["spiffe://cluster.local/ns/others/sa/executor"][..])] {
        let error = asked(server.address, folder.client(names))
            .await
            .expect_err("refused");
        let alert = if names.is_some() {
            "AccessDenied"
        } else {
            "CertificateRequired"
        };
        assert!(error.contains(alert), "{names:?}: {error}");
    }
}

#[tokio::test]
async fn a_new_certificate_cuts_off_no_calls() {
    let folder = Folder::new();
    let server = folder.serve(&[]).await;
    let channel = connect(server.address, folder.client(Some(&["executor"])))
        .await
        .expect("connects");
    let (questions, receiver) = tokio::sync::mpsc::channel(1);
    let mut answers = ReconcileServiceClient::new(channel.clone())
        .plan_stream(tokio_stream::wrappers::ReceiverStream::new(receiver))
        .await
        .expect("a stream")
        .into_inner();

    // The new certificate of the server comes from another authority.
    let until = server.acceptor.until();
    let next = Authority::new("the next authority");
    folder.put(
        "server",
        &next.issue_changed(&[NAME], |params| params.not_after = date_time_ymd(2090, 1, 1)),
    );
    let acceptor = server.acceptor.clone();
    eventually("the server has read the new certificate", || {
        let changed = acceptor.until() != until;
        async move { changed.then_some(()) }
    })
    .await;
    let error = asked(server.address, folder.client(Some(&["executor"])))
        .await
        .expect_err("unknown");
    assert!(error.contains("UnknownIssuer"), "{error}");

    // The existing connection still works: its stream, and new calls.
    plan(channel).await.expect("the connection is open");
    let question = v1::PlanStreamRequest {
        id: "1".to_owned(),
        request: Some(Cluster::empty(3).request(1, Form::Inline)),
    };
    questions.send(question).await.expect("the stream is open");
    let answer = answers
        .message()
        .await
        .expect("the stream is open")
        .expect("an answer");
    assert_eq!(answer.id, "1");
}

#[tokio::test]
async fn connections_without_a_handshake_are_closed_and_delay_no_others() {
    let folder = Folder::new();
    let server = folder.serve(&[]).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let socket = TcpSocket::new_v4().expect("a socket");
        // A hundred for each address: one address may not have all of them.
        let other = Ipv4Addr::new(
            127,
            0,
            0,
            2 + u8::try_from(silent.len() / 100).expect("three of them"),
        );
        socket.bind((other, 0).into()).expect("an address");
        silent.push(socket.connect(server.address).await.expect("a connection"));
    }
    let answered = asked(server.address, folder.client(Some(&["executor"])));
    tokio::time::timeout(SOON, answered)
        .await
        .expect("in time")
        .expect("let in");
    let mut byte = [0];
    for stream in &mut silent {
        let ended = tokio::time::timeout(SOON, stream.read(&mut byte))
            .await
            .expect("in time");
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}

/// The log of a server that does not start with these flags.
async fn startup_error(flags: &[&str]) -> String {
    let mut process = Process::start(flags, &[]);
    assert!(!process.ended().await.success());
    process.rest_of_log()
}

#[tokio::test]
async fn plain_text_off_loopback_needs_a_flag() {
    let said = startup_error(&["--listen", "0.0.0.0:0"]).await;
    assert_said(&said, &["0.0.0.0:0", "--tls-cert", "--plaintext"]);
    let mut asked_for = Process::start(&["--listen", "0.0.0.0:0", "--plaintext"], &[]);
    assert!(asked_for.url().starts_with("http://0.0.0.0:"));
    let mut loopback = Process::start(&["--listen", "[::1]:0"], &[]);
    assert!(loopback.url().starts_with("http://[::1]:"));
}

#[tokio::test]
async fn startup_errors_name_unusable_files() {
    let folder = Folder::new();
    let [certificate, key] = folder.issue("server", &[NAME]);
    let [_, other_key] = folder.issue("other", &[NAME]);
    let expired = folder.authority.issue_changed(&[NAME], |params| {
        params.not_after = date_time_ymd(2021, 2, 3);
    });
    let [expired, expired_key] = folder.put("expired", &expired);
    let with = |certificate: &str, key: &str, rest: &[&str]| {
        let flags = [
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
        ];
        let flags: Vec<String> = flags.iter().chain(rest).map(|flag| (*flag).to_owned()).collect();
        async move {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            startup_error(&flags).await
        }
    };
    let said = with("/no/such.crt", &key, &[]).await;
    assert_said(
        &said,
        &["nodewise-server: the certificate in /no/such.crt", "No such file"],
    );
    let said = with(&certificate, &other_key, &[]).await;
    assert_said(
        &said,
        &[
            "the key in ",
            "other.key",
            "not the key of the certificate in ",
            "server.crt",
        ],
    );
    let said = with(&expired, &expired_key, &[]).await;
    assert_said(&said, &["expired.crt", NAME, "expired at 2021-02-03"]);
    let said = with(&certificate, &key, &["--tls-client-ca", &certificate]).await;
    assert_said(
        &said,
        &["the authorities in ", "server.crt", "is not an authority's"],
    );

    let ca = folder.authorities();
    let said = with(
        &certificate,
        &key,
        &["--tls-client-ca", &ca, "--tls-allow-client", "executor*"],
    )
    .await;
    assert_said(&said, &["--tls-allow-client", "executor*", "would also let in"]);
    let said = startup_error(&["--tls-cert", &certificate]).await;
    assert_said(&said, &["--tls-key"]);
    let said = with(&certificate, &key, &["--tls-allow-client", "executor"]).await;
    assert_said(&said, &["--tls-client-ca"]);
    let said = with(&certificate, &key, &["--plaintext"]).await;
    assert_said(&said, &["--plaintext", "--tls-cert"]);
}

#[tokio::test]
async fn the_binary_speaks_tls() {
    let folder = Folder::new();
    let [certificate, key] = folder.issue("server", &[NAME]);
    let ca = folder.authorities();
    let mut process = Process::start(
        &["--listen", "127.0.0.1:0"],
        &[
            ("NODEWISE_PLAINTEXT", "false"),
            ("NODEWISE_TLS_CERT", &certificate),
            ("NODEWISE_TLS_KEY", &key),
            ("NODEWISE_TLS_CLIENT_CA", &ca),
            ("NODEWISE_TLS_ALLOW_CLIENT", "executor.tools.svc,ci.tools.svc"),
        ],
    );
    let address: SocketAddr = process.url()["http://".len()..].parse().expect("an address");
    for (name, is_let_in) in [
        ("ci.tools.svc", true),
        ("executor.tools.svc", true),
        ("x.tools.svc", false),
    ] {
        let answer = asked(address, folder.client(Some(&[name]))).await;
        assert_eq!(answer.is_ok(), is_let_in, "{name}: {answer:?}");
    }
    // Repeated refusals of one client are logged once.
    for _ in 0..20 {
        let refused = asked(address, folder.client(Some(&["x.tools.svc"]))).await;
        refused.expect_err("not let in");
    }
    let other = asked(address, folder.client(Some(&["y.tools.svc", "y.example"]))).await;
    other.expect_err("not let in");
    for names in [&["x.tools.svc"][..], &["y.tools.svc", "y.example"]] {
        let warning = process.line(|line| line.contains(REFUSED).then(|| line.to_owned()));
        assert_said(&warning, &["WARN"]);
        assert_said(&warning, names);
    }
    // Unusable files are logged, and the old certificates stay in use.
    let _ = write(folder.path(), "server.crt", "no certificate");
    process.line(|line| {
        line.contains("the certificates cannot be used any more")
            .then_some(())
    });
    let answer = asked(address, folder.client(Some(&["ci.tools.svc"]))).await;
    answer.expect("as before");
    // The server does not speak plain text.
    let plain = ReconcileServiceClient::connect(format!("http://{address}"));
    let plain = tokio::time::timeout(Duration::from_secs(10), plain)
        .await
        .expect("in time");
    if let Ok(mut client) = plain {
        let request = Cluster::empty(3).request(1, Form::Inline);
        client.plan(request).await.expect_err("no plain text");
    }
    process.terminate();
    assert!(process.ended().await.success());
    let more = process.rest_of_log();
    assert!(!more.contains(REFUSED), "one line for each client: {more}");
}
