//! The service's end.

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

/// What gRPC speaks over TLS.
pub(crate) const ALPN: &[u8] = b"h2";

/// Where a server's certificates are, and who is let in.
#[derive(Debug, Clone)]
pub struct Files {
    /// Its certificate, with those that lead to an authority that its clients know.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who must have a certificate, and from whom; everybody is let in without one.
    pub clients: Option<Clients>,
}

/// Which clients are let in.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Authorities whose clients are let in.
    pub authorities: PathBuf,
    /// Of those, these only; all of them if there is none.
    pub allowed: Vec<AllowedClient>,
}

/// Lets clients in, by what is in the files now.
#[derive(Clone)]
pub struct Acceptor {
    files: Arc<Files>,
    current: Arc<Mutex<Current>>,
    /// Also of clients that came before the files were read again.
    refused: RefusedClients,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Of the files, to see whether they have changed. The key is among them: it is not to be printed.
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
    /// One of them cannot be used.
    pub fn new(files: Files) -> Result<Self, FileError> {
        let refused = RefusedClients::default();
        let current = load(&files, contents(&files), &refused)?;
        Ok(Self {
            files: Arc::new(files),
            current: Arc::new(Mutex::new(current)),
            refused,
        })
    }

    /// The server's part of a connection's beginning, and who the client is if it had to say so.
    ///
    /// # Errors
    /// The client speaks no TLS, or is not let in.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream, Option<ClientNames>)> {
        let config = Arc::clone(&self.lock().config);
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let names = certificates.and_then(<[_]>::first).and_then(ClientNames::of);
        Ok((stream, names))
    }

    /// When the first of the certificates expires, those of the clients' authorities among them, or another authority becomes
    /// valid.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.lock().until
    }

    /// Reads the files again, if they are not what they were, or mean something else by now. Whether they were taken.
    ///
    /// # Errors
    /// One of them cannot be used; those from before are used then.
    pub fn reload(&self) -> Result<bool, FileError> {
        // Before the lock is taken, which connections wait for.
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

    /// Reads the files again and again, with such a pause, and tells the log. Never ends.
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
                            "the certificates cannot be used any more; those from before are"
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

/// What the files mean. `contents` were read before: files that change in between are read again the next time.
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
    // A session that is resumed would not look at the client's certificate again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Current {
        config: Arc::new(config),
        contents,
        until,
    })
}

/// Verifies clients, and lets in those that are allowed.
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
            self.refused.tell(&names);
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
