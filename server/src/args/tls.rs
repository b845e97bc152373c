//! Flags about TLS.

use std::{net::SocketAddr, path::PathBuf};

use nodewise_tls::{
    FileError,
    names::AllowedClient,
    server::{Acceptor, Clients, Files},
};

/// Whether connections are encrypted, and who is let in.
#[derive(Debug, Clone, clap::Args)]
pub struct TlsArgs {
    /// File with the server's certificate in PEM form, followed by those that lead to its authority. All files are read again
    /// when they change
    #[arg(long, env = "NODEWISE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// File with its private key
    #[arg(long, env = "NODEWISE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// File with authorities: clients must have a certificate of one of them [default: clients need none]
    #[arg(
        long,
        env = "NODEWISE_TLS_CLIENT_CA",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_client_ca: Option<PathBuf>,

    /// A URI or DNS name in the certificates of clients that are let in, all that begin like it with a star at the end:
    /// `spiffe://cluster.local/ns/tools/*`. May be given several times, or with commas [default: all clients of the authorities]
    #[arg(
        long,
        env = "NODEWISE_TLS_ALLOW_CLIENT",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "tls_client_ca"
    )]
    pub tls_allow_client: Vec<AllowedClient>,

    /// Serve without TLS on an address that others can reach
    #[arg(long, env = "NODEWISE_PLAINTEXT")]
    pub plaintext: bool,
}

/// No connection can be served as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Others could read along.
    #[error(
        "others can reach {0}, and would be let in without TLS: give --tls-cert and --tls-key, or --plaintext where something else \
         protects it"
    )]
    Unprotected(SocketAddr),
    /// `--plaintext`, and a certificate.
    #[error("--plaintext means no TLS, and --tls-cert means TLS: leave one of them out")]
    Contradiction,
    /// A file is of no use.
    #[error(transparent)]
    File(#[from] FileError),
}

impl TlsArgs {
    /// TLS of the connections to an address; none where plain text is to be spoken there.
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
