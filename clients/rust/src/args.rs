//! Flags that programs which ask the service have in common.

use std::path::PathBuf;

use nodewise_tls::{
    FileError,
    client::{Connector, Files, Identity},
};

use crate::ClientTls;

/// How the service is spoken to.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TlsArgs {
    /// Speak TLS to replicas that are looked up; any other flag of TLS means it as well, and https:// always does
    #[arg(long, env = "NODEWISE_TLS")]
    pub tls: bool,

    /// File with the authorities, in PEM form, that servers must have their certificates from. All files are read again for
    /// each connection [default: those of the system]
    #[arg(long, env = "NODEWISE_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// File with the certificate to show to servers, followed by those that lead to its authority
    #[arg(long, env = "NODEWISE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// File with its private key
    #[arg(long, env = "NODEWISE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Name that the certificates of servers must be for [default: the host of --server, and SERVICE.NAMESPACE.svc]
    #[arg(long, env = "NODEWISE_TLS_SERVER_NAME", value_name = "NAME")]
    pub tls_server_name: Option<String>,
}

impl TlsArgs {
    /// What the flags mean; none without any of them.
    pub fn client(&self) -> Result<Option<ClientTls>, FileError> {
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = Files {
            authorities: self.tls_ca.clone(),
            identity: identity.map(|(certificate, key)| Identity { certificate, key }),
        };
        if !self.tls && files == Files::default() && self.tls_server_name.is_none() {
            return Ok(None);
        }
        Ok(Some(ClientTls {
            connector: Connector::new(files)?,
            server_name: self.tls_server_name.clone(),
        }))
    }
}
