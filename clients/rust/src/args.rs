//! Command-line flags for programs that call the service.

use std::path::PathBuf;

use nodewise_tls::{
    FileError,
    client::{Connector, Files, Identity, ServerName},
};

use crate::{
    ClientTls,
    target::{Mismatch, Target},
};

/// TLS flags. Plain text is allowed only on loopback or with `--plaintext`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TlsArgs {
    /// Use TLS for servers given as dns:/// or kubernetes:///. The other --tls flags imply it; https:// servers always use TLS
    #[arg(long, env = "NODEWISE_TLS")]
    pub tls: bool,

    /// PEM file with the certificate authorities of the servers. All files are read again for each connection [default: those
    /// of the system]
    #[arg(long, env = "NODEWISE_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// PEM file with the client's certificate, followed by its intermediate certificates
    #[arg(long, env = "NODEWISE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the client's private key
    #[arg(long, env = "NODEWISE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Name that the servers' certificates must have [default: the host of --server, and SERVICE.NAMESPACE.svc]
    #[arg(long, env = "NODEWISE_TLS_SERVER_NAME", value_name = "NAME")]
    pub tls_server_name: Option<String>,

    /// Allow plain text to servers that are not on loopback
    #[arg(long, env = "NODEWISE_PLAINTEXT")]
    pub plaintext: bool,
}

/// The TLS flags do not fit each other, a server, or the files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The server is not on loopback and would be called in plain text.
    #[error(
        "--server {0} is not on loopback, and would be asked in plain text: {advice} where something else protects \
         it",
        advice = advice(.0)
    )]
    Unprotected(Target),
    /// `--plaintext` together with a TLS flag.
    #[error("--plaintext means no TLS, and {0} means TLS: leave one of them out")]
    Contradiction(&'static str),
    /// `--plaintext` together with an `https://` server.
    #[error("--plaintext means no TLS, and --server {0} means TLS: leave --plaintext out, or write http://")]
    Encrypted(Target),
    /// Not a name that a certificate can have.
    #[error(
        "--tls-server-name {0:?} is no name that a server could prove to have: it must be a DNS name or an IP address"
    )]
    ServerName(String),
    /// A certificate or key file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl TlsError {
    fn new(mismatch: Mismatch, server: &Target) -> Self {
        match mismatch {
            Mismatch::Unprotected => Self::Unprotected(server.clone()),
            Mismatch::Encrypted => Self::Encrypted(server.clone()),
        }
    }
}

fn advice(target: &Target) -> &'static str {
    match target {
        Target::Fixed(_) => "write https://, or give --plaintext",
        Target::Dns { .. } | Target::Service(_) => "give --tls, or --plaintext",
    }
}

impl TlsArgs {
    /// The value of `ClientConfig::tls` for these servers. `None` without TLS flags: then `https://` servers are still called over
    /// TLS, with the system's certificate authorities.
    ///
    /// # Errors
    /// A server would be called in plain text without permission; two flags, or a flag and a server, contradict each other; a file
    /// cannot be used.
    pub fn client(&self, servers: &[Target]) -> Result<Option<ClientTls>, TlsError> {
        match (self.asks_for_tls(), self.plaintext) {
            (Some(flag), true) => Err(TlsError::Contradiction(flag)),
            // The client rejects http:// servers in this case.
            (Some(_), false) => Ok(Some(self.tls()?)),
            (None, plaintext) => {
                for server in servers {
                    server
                        .check_security(plaintext)
                        .map_err(|mismatch| TlsError::new(mismatch, server))?;
                }
                Ok(None)
            }
        }
    }

    /// The first TLS flag that is set.
    fn asks_for_tls(&self) -> Option<&'static str> {
        [
            (self.tls, "--tls"),
            (self.tls_ca.is_some(), "--tls-ca"),
            (self.tls_cert.is_some(), "--tls-cert"),
            (self.tls_key.is_some(), "--tls-key"),
            (self.tls_server_name.is_some(), "--tls-server-name"),
        ]
        .into_iter()
        .find_map(|(is_given, flag)| is_given.then_some(flag))
    }

    fn tls(&self) -> Result<ClientTls, TlsError> {
        if let Some(name) = &self.tls_server_name {
            ServerName::try_from(&**name).map_err(|_| TlsError::ServerName(name.clone()))?;
        }
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = Files {
            authorities: self.tls_ca.clone(),
            identity: identity.map(|(certificate, key)| Identity { certificate, key }),
        };
        Ok(ClientTls {
            connector: Connector::new(files)?,
            server_name: self.tls_server_name.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        tls: TlsArgs,
    }

    fn flags(flags: &[&str]) -> TlsArgs {
        let flags = std::iter::once(&"program").chain(flags);
        Program::try_parse_from(flags).expect("flags").tls
    }

    /// Whether the client uses TLS, or the error.
    fn meaning(args: &TlsArgs, servers: &str) -> Result<bool, String> {
        let servers: Vec<Target> = servers
            .split(',')
            .map(|server| server.parse().expect(server))
            .collect();
        let client = args.client(&servers).map_err(|error| error.to_string())?;
        Ok(client.is_some())
    }

    // Every kind of server, without flags, with --tls and with --plaintext. The client, not this function, rejects `http://` with
    // --tls.
    #[test]
    fn plain_text_needs_loopback_or_a_flag() {
        const FINE: &str = "";
        const HTTPS: &str = "write https://, or give --plaintext";
        const TLS: &str = "give --tls, or --plaintext";
        const ENCRYPTED: &str = "leave --plaintext out, or write http://";
        for (servers, without, plaintext) in [
            ("http://127.0.0.1:7443", FINE, FINE),
            ("http://127.8.9.1:7443", FINE, FINE),
            ("http://[::1]:7443", FINE, FINE),
            ("http://localhost:7443", FINE, FINE),
            ("http://LocalHost", FINE, FINE),
            ("http://10.0.0.1:7443", HTTPS, FINE),
            ("http://0.0.0.0:7443", HTTPS, FINE),
            ("http://[fd00::1]:7443", HTTPS, FINE),
            ("http://planner:7443", HTTPS, FINE),
            ("http://localhost.example:7443", HTTPS, FINE),
            ("http://127.0.0.1.example:7443", HTTPS, FINE),
            ("https://127.0.0.1:7443", FINE, ENCRYPTED),
            ("https://planner:7443", FINE, ENCRYPTED),
            ("dns:///127.0.0.1:7443", FINE, FINE),
            ("dns:///[::1]:7443", FINE, FINE),
            ("dns:///localhost:7443", FINE, FINE),
            ("dns:///10.0.0.1:7443", TLS, FINE),
            ("dns:///planner.tools.svc:7443", TLS, FINE),
            ("kubernetes:///planner.tools:grpc", TLS, FINE),
            ("kubernetes:///localhost:7443", TLS, FINE),
            // Several servers: the error names the first wrong one.
            ("http://127.0.0.1:1,http://localhost:2", FINE, FINE),
            ("http://127.0.0.1:1,http://planner:2", HTTPS, FINE),
            ("https://planner:1,http://127.0.0.1:2", FINE, ENCRYPTED),
            ("https://planner:1,dns:///planner:2", TLS, ENCRYPTED),
            ("http://planner:1,https://planner:2", HTTPS, ENCRYPTED),
        ] {
            for (given, expected) in [(&[][..], without), (&["--plaintext"], plaintext)] {
                match meaning(&flags(given), servers) {
                    Ok(tls) => assert!(!tls && expected.is_empty(), "{servers} {given:?}"),
                    Err(said) => {
                        let named = servers.split(',').any(|server| said.contains(server));
                        assert!(
                            named && !expected.is_empty() && said.contains(expected),
                            "{servers} {given:?}: {said}"
                        );
                    }
                }
            }
            assert_eq!(meaning(&flags(&["--tls"]), servers), Ok(true), "{servers} --tls");
        }
    }

    #[test]
    fn plain_text_together_with_tls_is_an_error() {
        for given in [
            &["--tls"][..],
            &["--tls-ca", "ca.crt"],
            &["--tls-cert", "tls.crt", "--tls-key", "tls.key"],
            &["--tls-server-name", "planner"],
        ] {
            for servers in ["http://127.0.0.1:1", "https://planner:1", "dns:///planner:1"] {
                let both = flags(&[given, &["--plaintext"]].concat());
                let said = meaning(&both, servers).expect_err("it is neither");
                let expected = format!("--plaintext means no TLS, and {} means TLS", given[0]);
                assert!(said.starts_with(&expected), "{said}");
            }
        }
    }

    // Each error names the server, the problem, and the solution.
    #[test]
    fn errors_name_server_problem_and_solution() {
        for (given, server, expected) in [
            (
                &[][..],
                "http://planner:7443",
                "--server http://planner:7443 is not on loopback, and would be asked in plain text: write https://, or give \
                 --plaintext where something else protects it",
            ),
            (
                &[],
                "kubernetes:///planner.tools:grpc",
                "--server kubernetes:///planner.tools:grpc is not on loopback, and would be asked in plain text: give --tls, or \
                 --plaintext where something else protects it",
            ),
            (
                &["--plaintext"],
                "https://planner:7443",
                "--plaintext means no TLS, and --server https://planner:7443 means TLS: leave --plaintext out, or write http://",
            ),
            (
                &["--tls-server-name", "my planner"],
                "dns:///planner:7443",
                "--tls-server-name \"my planner\" is no name that a server could prove to have: it must be a DNS name or an IP \
                 address",
            ),
            (
                &["--plaintext", "--tls"],
                "dns:///planner:7443",
                "--plaintext means no TLS, and --tls means TLS: leave one of them out",
            ),
        ] {
            assert_eq!(meaning(&flags(given), server), Err(expected.to_owned()));
        }
    }
}
