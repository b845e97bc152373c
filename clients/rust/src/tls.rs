//! What is asked of replicas that are spoken to over TLS.

use nodewise_tls::client::Connector;

use super::ClientError;
use crate::target::{Address, ServiceName, Target};

/// How replicas are spoken to over TLS.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// Whom to believe, and who this client is.
    pub connector: Connector,
    /// The name that every replica must prove to have, instead of the one that its target says.
    pub server_name: Option<String>,
}

impl ClientTls {
    /// The name that the replicas of a target must prove to have. `namespace` is that of Services whose target says none.
    ///
    /// # Errors
    /// The target asks for plain text.
    pub(super) fn server_name_of(
        &self,
        target: &Target,
        namespace: Option<&str>,
    ) -> Result<String, ClientError> {
        let name = match target {
            Target::Fixed(address) => match address.server_name() {
                Some(name) => name.to_owned(),
                // Somebody meant it to be encrypted.
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

    /// One replica, to be spoken to over TLS.
    pub(super) fn of_fixed(&self, address: Address) -> Result<Address, ClientError> {
        let name = self.server_name_of(&Target::Fixed(address.clone()), None)?;
        Ok(address.with_server_name(&name))
    }
}

#[cfg(test)]
mod tests {
    use nodewise_tls::client::Files;

    use super::*;

    #[test]
    fn a_replica_must_have_the_name_that_its_target_says_unless_another_is_given() {
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
