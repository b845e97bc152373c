//! The server side of TLS connections.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, UnixTime},
    server::{
        NoServerSessionStorage, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::SingleCertAndKey,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::{
    files::{self, FileError, Role},
    names::{AllowedClient, ClientNames},
    refused::RefusedClients,
};

/// A connection to a client.
pub type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// The ALPN protocol of gRPC: HTTP/2.
pub(crate) const ALPN: &[u8] = b"h2";

/// The certificate files of a server, and the clients that it accepts.
#[derive(Debug, Clone)]
pub struct Files {
    /// File with the certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// File with the private key.
    pub key: PathBuf,
    /// The clients that are accepted. `None`: clients need no certificate.
    pub clients: Option<Clients>,
}

/// The clients that a server accepts.
#[derive(Debug, Clone)]
pub struct Clients {
    /// File with the certificate authorities of the clients.
    pub authorities: PathBuf,
    /// Patterns for accepted clients. If empty, every client with a valid certificate is accepted.
    pub allowed: Vec<AllowedClient>,
}

/// Accepts TLS connections, with the certificates that were read last.
#[derive(Clone)]
pub struct Acceptor {
    files: Arc<Files>,
    current: Arc<Mutex<Current>>,
    /// Survives reloads.
    refused: RefusedClients,
}

struct Current {
    config: Arc<ServerConfig>,
    /// The bytes of the files, to detect changes. They include the private key, so they must not be printed.
    contents: Contents,
    until: Timestamp,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

type Contents = Vec<Option<Vec<u8>>>;

impl Acceptor {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn new(files: Files) -> Result<Self, FileError> {
        let refused = RefusedClients::default();
        let current = load(&files, contents(&files), &refused)?;
        Ok(Self {
            files: Arc::new(files),
            current: Arc::new(Mutex::new(current)),
            refused,
        })
    }

    /// Performs the TLS handshake. Returns the names of the client if it has a certificate.
    ///
    /// # Errors
    /// The client does not speak TLS, or its certificate is not accepted.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream, Option<ClientNames>)> {
        let config = Arc::clone(&self.lock().config);
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let names = certificates.and_then(<[_]>::first).and_then(ClientNames::of);
        Ok((stream, names))
    }

    /// The next time at which a certificate expires or another certificate authority of the clients becomes valid.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.lock().until
    }

    /// Reads the files again if they have changed or [`Self::until`] has passed. Returns whether new certificates are in use.
    ///
    /// # Errors
    /// A file cannot be used. The previous certificates stay in use.
    pub fn reload(&self) -> Result<bool, FileError> {
        // Read before locking, because new connections wait for the lock.
        let contents = contents(&self.files);
        let is_the_same =
            |current: &Current| current.contents == contents && Timestamp::now() < current.until;
        if is_the_same(&self.lock()) {
            return Ok(false);
        }
        let current = load(&self.files, contents, &self.refused)?;
        *self.lock() = current;
        Ok(true)
    }

    /// Calls [`Self::reload`] periodically and logs the result. Never returns.
    pub async fn keep_reloading(&self, pause: Duration) {
        let mut failed = None;
        loop {
            tokio::time::sleep(pause).await;
            let acceptor = self.clone();
            let Ok(reloaded) = tokio::task::spawn_blocking(move || acceptor.reload()).await else {
                continue;
            };
            match reloaded {
                Ok(false) => failed = None,
                Ok(true) => {
                    failed = None;
                    tracing::info!(until = %self.until(), "the certificates were read again");
                }
                Err(error) => {
                    let error = error.to_string();
                    if failed.as_ref() != Some(&error) {
                        tracing::warn!(
                            error,
                            "the certificates cannot be used any more; the previous ones stay in use"
                        );
                        failed = Some(error);
                    }
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn contents(files: &Files) -> Contents {
    let clients = files.clients.as_ref().map(|clients| &clients.authorities);
    [Some(&files.certificate), Some(&files.key), clients]
        .into_iter()
        .flatten()
        .map(|path| std::fs::read(path).ok())
        .collect()
}

/// Parses the files. `contents` was read before: if a file changes in between, the next reload sees the difference.
fn load(files: &Files, contents: Contents, refused: &RefusedClients) -> Result<Current, FileError> {
    let provider = Arc::new(ring::default_provider());
    let identity = files::identity(&provider, Role::Server, &files.certificate, &files.key)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks them");
    let mut until = identity.until;
    let builder = match &files.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let authorities = files::authorities(&clients.authorities)?;
            until = until.min(authorities.until);
            let allowed = clients.allowed.clone();
            builder.with_client_cert_verifier(OnlyAllowed::verifier(
                authorities.roots,
                allowed,
                refused.clone(),
                provider,
            ))
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // No session resumption: a resumed session would not verify the client's certificate again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Current {
        config: Arc::new(config),
        contents,
        until,
    })
}

/// Verifies client certificates, and accepts only the allowed names.
#[derive(Debug)]
struct OnlyAllowed {
    inner: Arc<dyn ClientCertVerifier>,
    allowed: Vec<AllowedClient>,
    refused: RefusedClients,
}

impl OnlyAllowed {
    fn verifier(
        roots: RootCertStore,
        allowed: Vec<AllowedClient>,
        refused: RefusedClients,
        provider: Arc<CryptoProvider>,
    ) -> Arc<dyn ClientCertVerifier> {
        let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .expect("there is an authority");
        Arc::new(Self {
            inner,
            allowed,
            refused,
        })
    }
}

impl ClientCertVerifier for OnlyAllowed {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.inner.verify_client_cert(certificate, intermediates, now)?;
        if self.allowed.is_empty() {
            return Ok(verified);
        }
        let names = ClientNames::of(certificate);
        let is_allowed = |names: &ClientNames| self.allowed.iter().any(|allowed| allowed.allows(names));
        if names.as_ref().is_some_and(is_allowed) {
            return Ok(verified);
        }
        if let Some(names) = names {
            self.refused.log(&names);
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
