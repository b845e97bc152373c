//! Flags that programs which ask the service have in common.

use std::path::PathBuf;

use nodewise_tls::{
    FileError,
    client::{Connector, Files, Identity, ServerName},
};

use crate::{
    ClientTls,
    target::{Mismatch, Target},
};

/// How the service is spoken to. Plain text only where others cannot read along, or where somebody says so.
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

    /// Speak plain text to servers that are not on loopback
    #[arg(long, env = "NODEWISE_PLAINTEXT")]
    pub plaintext: bool,
}

/// No server can be spoken to as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Others could read along, and answer.
    #[error(
        "--server {0} is not on loopback, and would be asked in plain text: {advice} where something else protects \
         it",
        advice = advice(.0)
    )]
    Unprotected(Target),
    /// `--plaintext`, and another flag that means TLS.
    #[error("--plaintext means no TLS, and {0} means TLS: leave one of them out")]
    Contradiction(&'static str),
    /// `--plaintext`, and a server that is to be asked over TLS.
    #[error("--plaintext means no TLS, and --server {0} means TLS: leave --plaintext out, or write http://")]
    Encrypted(Target),
    /// No certificate can be for it.
    #[error(
        "--tls-server-name {0:?} is no name that a server could prove to have: it must be a DNS name or an IP address"
    )]
    ServerName(String),
    /// A file is of no use.
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
    /// How these servers are spoken to; without a flag of TLS none, with which those at `https://` still are over TLS.
    ///
    /// # Errors
    /// One of them would be asked in plain text, and nobody said that it may be; two flags, or a flag and a server, contradict
    /// each other; a file is of no use.
    pub fn client(&self, servers: &[Target]) -> Result<Option<ClientTls>, TlsError> {
        match (self.asks_for_tls(), self.plaintext) {
            (Some(flag), true) => Err(TlsError::Contradiction(flag)),
            // The client refuses servers at http:// then.
            (Some(_), false) => Ok(Some(self.tls()?)),
            (None, plaintext) => {
                for server in servers {
                    server
                        .can_be_asked(plaintext)
                        .map_err(|mismatch| TlsError::new(mismatch, server))?;
                }
                Ok(None)
            }
        }
    }

    /// A flag that means TLS, if one is given.
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

    /// Whether it is TLS, or what is wrong.
    fn meaning(args: &TlsArgs, servers: &str) -> Result<bool, String> {
        let servers: Vec<Target> = servers
            .split(',')
            .map(|server| server.parse().expect(server))
            .collect();
        let client = args.client(&servers).map_err(|error| error.to_string())?;
        Ok(client.is_some())
    }

    // Every kind of server, without flags, with --tls and with --plaintext. `http://` with --tls is refused by the client.
    #[test]
    fn plain_text_is_spoken_on_loopback_or_by_flag() {
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
            // The first that is wrong among several.
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
    fn plain_text_and_tls_at_the_same_time_are_refused() {
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

    // Each names the server, what is wrong with it, and what to write.
    #[test]
    fn what_is_refused_is_said_in_full() {
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
