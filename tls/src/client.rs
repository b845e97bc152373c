//! The client side of TLS connections.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{ClientConfig, RootCertStore, crypto::ring, sign::SingleCertAndKey};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{
    files::{self, FileError, Role},
    server::ALPN,
};

pub use rustls::pki_types::ServerName;

/// A connection to a server.
pub type TlsStream = tokio_rustls::client::TlsStream<TcpStream>;

/// The certificate files of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// File with the certificate authorities that the client trusts. `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// The client's own certificate and private key, for servers that require one.
    pub identity: Option<Identity>,
}

/// The files of a client's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// File with the certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// File with the private key.
    pub key: PathBuf,
}

/// The protocol inside of a connection (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, which gRPC needs.
    Http2,
}

impl Protocol {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => ALPN,
        }
    }
}

/// Opens TLS connections. Each connection uses the present contents of the files.
#[derive(Debug, Clone)]
pub struct Connector {
    files: Arc<Files>,
    protocol: Protocol,
    last: Arc<Mutex<Arc<ClientConfig>>>,
}

impl Default for Connector {
    /// Trusts the system's certificate authorities and has no certificate of its own.
    fn default() -> Self {
        Self::of_system(Protocol::Http2)
    }
}

impl Connector {
    /// Reads the files. Connections are for gRPC.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn new(files: Files) -> Result<Self, FileError> {
        Self::speaking(files, Protocol::Http2)
    }

    /// As [`Self::default`], for connections with this protocol.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "without files there is nothing that could be wrong"
    )]
    pub fn of_system(protocol: Protocol) -> Self {
        Self::speaking(Files::default(), protocol).expect("there are no files to read")
    }

    /// As [`Self::new`], for connections with this protocol.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn speaking(files: Files, protocol: Protocol) -> Result<Self, FileError> {
        let config = load(&files, protocol)?;
        Ok(Self {
            files: Arc::new(files),
            protocol,
            last: Arc::new(Mutex::new(config)),
        })
    }

    /// Performs the TLS handshake with a server whose certificate must be for `name`.
    ///
    /// # Errors
    /// The server does not speak TLS, its certificate is not trusted, or it rejects the client's certificate.
    pub async fn connect(&self, name: ServerName<'static>, stream: TcpStream) -> io::Result<TlsStream> {
        // Connections are rare and long-lived, so reading the files for each is cheap.
        match load(&self.files, self.protocol) {
            Ok(config) => *self.last() = config,
            Err(error) => {
                tracing::warn!(%error, "the certificates cannot be used any more; the previous ones stay in use");
            }
        }
        let config = Arc::clone(&self.last());
        TlsConnector::from(config).connect(name, stream).await
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Arc<ClientConfig>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(files: &Files, protocol: Protocol) -> Result<Arc<ClientConfig>, FileError> {
    let provider = Arc::new(ring::default_provider());
    let roots = match &files.authorities {
        Some(path) => files::authorities(path)?.roots,
        None => system_authorities(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks them")
        .with_root_certificates(roots);
    let mut config = match &files.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            let identity = files::identity(&provider, Role::Client, certificate, key)?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.key)))
        }
    };
    config.alpn_protocols = vec![protocol.name().to_vec()];
    Ok(Arc::new(config))
}

/// Whether this system has certificate authorities. The Nodewise images have none.
#[must_use]
pub fn system_has_authorities() -> bool {
    !load_system_authorities().0.is_empty()
}

/// The system's certificate authorities. If there are none, no server is trusted.
fn system_authorities() -> RootCertStore {
    let (roots, errors) = load_system_authorities();
    if roots.is_empty() {
        tracing::warn!(
            ?errors,
            "this system has no certificate authorities: no server is trusted unless a file names some (--tls-ca, --analysis-ca)"
        );
    }
    roots
}

fn load_system_authorities() -> (RootCertStore, Vec<rustls_native_certs::Error>) {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    (roots, found.errors)
}
