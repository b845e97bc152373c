//! TLS settings of the client, and the names that the replicas' certificates must have.

use nodewise_tls::client::Connector;

use super::ClientError;
use crate::target::{Address, ServiceName, Target};

/// The TLS settings of a client.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// The certificate authorities that the client trusts, and its own certificate.
    pub connector: Connector,
    /// The name that every replica's certificate must have, instead of the host of its target.
    pub server_name: Option<String>,
}

impl ClientTls {
    /// The name that the certificates of a target's replicas must have. `namespace` is the default for Services.
    ///
    /// # Errors
    /// The target is `http://`.
    pub(super) fn server_name_of(
        &self,
        target: &Target,
        namespace: Option<&str>,
    ) -> Result<String, ClientError> {
        let name = match target {
            Target::Fixed(address) => match address.server_name() {
                Some(name) => name.to_owned(),
                None => return Err(ClientError::PlainText(target.clone())),
            },
            Target::Dns { host, .. } => host.clone(),
            Target::Service(ServiceName {
                namespace: own, name, ..
            }) => {
                let namespace = own.as_deref().or(namespace).unwrap_or("default");
                format!("{name}.{namespace}.svc")
            }
        };
        Ok(self.server_name.clone().unwrap_or(name))
    }

    /// The address of one replica with its server name.
    pub(super) fn secured(&self, address: Address) -> Result<Address, ClientError> {
        let name = self.server_name_of(&Target::Fixed(address.clone()), None)?;
        Ok(address.with_server_name(&name))
    }
}

#[cfg(test)]
mod tests {
    use nodewise_tls::client::Files;

    use super::*;

    #[test]
    fn the_server_name_is_that_of_the_target_unless_set() {
        let connector = Connector::new(Files::default()).expect("no files");
        let mut tls = ClientTls {
            connector,
            server_name: None,
        };
        for (target, name) in [
            ("https://planner:7443", "planner"),
            ("dns:///planner.example:7443", "planner.example"),
            ("kubernetes:///planner.tools:grpc", "planner.tools.svc"),
            ("kubernetes:///planner:grpc", "planner.here.svc"),
        ] {
            let target = target.parse().expect("a target");
            for given in [None, Some("given")] {
                tls.server_name = given.map(str::to_owned);
                let expected = tls.server_name_of(&target, Some("here")).expect("TLS");
                assert_eq!(expected, given.unwrap_or(name), "{target}");
            }
        }
        let plain = "http://planner:7443".parse().expect("a target");
        let error = tls
            .server_name_of(&plain, None)
            .expect_err("plain text")
            .to_string();
        assert!(
            error.contains("http://planner:7443 asks for plain text"),
            "{error}"
        );
    }
}
