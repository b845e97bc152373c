//! The end of those who ask.

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

/// Where a client's certificates are, and what it believes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Authorities whose servers are believed; those of the system without it.
    pub authorities: Option<PathBuf>,
    /// The client's own certificate and its private key, if servers want one.
    pub identity: Option<Identity>,
}

/// A client's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// With those that lead to an authority that the servers know.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Connects to servers, with what is in the files at that moment.
#[derive(Debug, Clone)]
pub struct Connector {
    files: Arc<Files>,
    last: Arc<Mutex<Arc<ClientConfig>>>,
}

impl Default for Connector {
    /// Believes the authorities of the system, and has no certificate of its own.
    fn default() -> Self {
        Self::new(Files::default()).expect("no file is of no use")
    }
}

impl Connector {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn new(files: Files) -> Result<Self, FileError> {
        let config = load(&files)?;
        Ok(Self {
            files: Arc::new(files),
            last: Arc::new(Mutex::new(config)),
        })
    }

    /// The client's part of a connection's beginning, with a server that must have this name.
    ///
    /// # Errors
    /// The server speaks no TLS, is not believed, or does not let the client in.
    pub async fn connect(&self, name: ServerName<'static>, stream: TcpStream) -> io::Result<TlsStream> {
        // Connections are rare, and stay: each begins with what is in the files by then.
        match load(&self.files) {
            Ok(config) => *self.last() = config,
            Err(error) => {
                tracing::warn!(%error, "the certificates cannot be used any more; those from before are");
            }
        }
        let config = Arc::clone(&self.last());
        TlsConnector::from(config).connect(name, stream).await
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Arc<ClientConfig>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(files: &Files) -> Result<Arc<ClientConfig>, FileError> {
    let provider = Arc::new(ring::default_provider());
    let roots = match &files.authorities {
        Some(path) => files::authorities(path)?.roots,
        None => of_the_system(),
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
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Whether this system has authorities, as our images do not.
#[must_use]
pub fn system_has_authorities() -> bool {
    !found().0.is_empty()
}

/// Without any, nobody is believed.
fn of_the_system() -> RootCertStore {
    let (roots, errors) = found();
    if roots.is_empty() {
        tracing::warn!(
            ?errors,
            "this system has no authorities: servers need --tls-ca to be believed"
        );
    }
    roots
}

fn found() -> (RootCertStore, Vec<rustls_native_certs::Error>) {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    (roots, found.errors)
}
