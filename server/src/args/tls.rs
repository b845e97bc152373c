//! Flags about TLS.

use std::{net::SocketAddr, path::PathBuf};

use nodewise_tls::{
    FileError,
    names::AllowedClient,
    server::{Acceptor, Clients, Files},
};

/// Whether connections use TLS, and which clients are allowed.
#[derive(Debug, Clone, clap::Args)]
pub struct TlsArgs {
    /// PEM file with the server's certificate, followed by the intermediate certificates. The server rereads all TLS files when
    /// they change
    #[arg(long, env = "NODEWISE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the private key of the certificate
    #[arg(long, env = "NODEWISE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// PEM file with certificate authorities. Clients must have a certificate of one of them [default: clients need no certificate]
    #[arg(
        long,
        env = "NODEWISE_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_client_ca: Option<PathBuf>,

    /// URI or DNS name of an allowed client, as in its certificate. A star at the end matches every name with that prefix:
    /// `spiffe://cluster.local/ns/tools/*`. May be given several times, or with commas [default: all clients of the authorities]
    #[arg(
        long,
        env = "NODEWISE_TLS_ALLOW_CLIENT",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "tls_client_ca"
    )]
    pub tls_allow_client: Vec<AllowedClient>,

    /// Serve without TLS on an address that is not loopback
    #[arg(long, env = "NODEWISE_PLAINTEXT")]
    pub plaintext: bool,
}

/// The TLS flags cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The address is not loopback, and neither TLS nor `--plaintext` is set.
    #[error(
        "{0} is not on loopback, so other machines could connect without TLS: give --tls-cert and --tls-key, or --plaintext if \
         something else protects the connections"
    )]
    Unprotected(SocketAddr),
    /// Both `--plaintext` and a certificate are set.
    #[error("--plaintext means no TLS, and --tls-cert means TLS: leave one of them out")]
    Contradiction,
    /// A TLS file cannot be read or used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl TlsArgs {
    /// The TLS acceptor for connections to `address`; `None` for plain text.
    pub fn acceptor(&self, address: SocketAddr) -> Result<Option<Acceptor>, TlsError> {
        let (Some(certificate), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) else {
            if self.plaintext || address.ip().is_loopback() {
                return Ok(None);
            }
            return Err(TlsError::Unprotected(address));
        };
        if self.plaintext {
            return Err(TlsError::Contradiction);
        }
        let clients = self.tls_client_ca.clone().map(|authorities| Clients {
            authorities,
            allowed: self.tls_allow_client.clone(),
        });
        let files = Files {
            certificate,
            key,
            clients,
        };
        Ok(Some(Acceptor::new(files)?))
    }
}
