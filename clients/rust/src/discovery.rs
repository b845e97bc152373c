//! Finds the addresses of the replicas. Each target has a stream of addresses; the union of all targets is the set of replicas.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, select_all};
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;

use super::replicas::Replicas;
use super::target::{Address, Target};
use super::{ClientError, ClientTls};

mod dns;
mod endpoint_slice;

/// All addresses of a target. On an error the previous addresses stay in use.
type LookupResult = Result<Vec<Address>, String>;

/// Resolves a host name and a port to addresses.
pub(super) type Lookup =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolves names with the system's resolver.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|host, port| {
        let addresses = async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) };
        addresses.boxed()
    })
}

/// The targets, and the clients that resolve them.
pub(super) struct Discovery {
    targets: Vec<Target>,
    /// With TLS: for each target, the name that the certificates of its replicas must have.
    server_names: Option<Vec<String>>,
    cluster: Option<Client>,
    lookup: Lookup,
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery")
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl Discovery {
    pub(super) fn new(
        targets: Vec<Target>,
        cluster: Option<Client>,
        tls: Option<&ClientTls>,
        lookup: Lookup,
    ) -> Result<Self, ClientError> {
        let namespace = cluster.as_ref().map(Client::default_namespace);
        let named = |tls: &ClientTls| {
            let names = targets.iter().map(|target| tls.server_name_of(target, namespace));
            names.collect::<Result<_, _>>()
        };
        let server_names = tls.map(named).transpose()?;
        Ok(Self {
            targets,
            server_names,
            cluster,
            lookup,
        })
    }

    /// Adds the server name to the addresses of a target, if TLS is set up.
    fn secured(&self, target: usize, addresses: Vec<Address>) -> Vec<Address> {
        let Some(names) = &self.server_names else {
            return addresses;
        };
        let secured = |address: Address| address.with_server_name(&names[target]);
        addresses.into_iter().map(secured).collect()
    }

    /// For each target, the addresses that need no look-up.
    fn fixed_by_target(&self) -> Vec<Vec<Address>> {
        let addresses = self
            .targets
            .iter()
            .enumerate()
            .map(|(index, target)| match target {
                Target::Fixed(address) => self.secured(index, vec![address.clone()]),
                Target::Dns { .. } | Target::Service(_) => Vec::new(),
            });
        addresses.collect()
    }

    /// All addresses that need no look-up.
    pub(super) fn fixed(&self) -> Vec<Address> {
        self.fixed_by_target().concat()
    }

    /// Keeps the set of replicas up to date. Never returns.
    pub(super) async fn follow(&self, replicas: &Replicas) {
        let numbered = |(index, target)| self.addresses(target, replicas).map(move |found| (index, found));
        let mut all = select_all(self.targets.iter().enumerate().map(numbered));
        let mut by_target = self.fixed_by_target();
        while let Some((index, found)) = all.next().await {
            let target = &self.targets[index];
            match found {
                Ok(addresses) => {
                    if addresses.is_empty() {
                        replicas.not_found(index, &format!("{target} has no replica that is ready"));
                    } else {
                        replicas.found(index);
                    }
                    by_target[index] = self.secured(index, addresses);
                    if let Err(error) = replicas.replace(&by_target.concat()) {
                        replicas.not_found(index, &error.to_string());
                    }
                }
                Err(reason) => replicas.not_found(index, &format!("{target}: {reason}")),
            }
        }
        std::future::pending::<()>().await;
    }

    fn addresses<'a>(&'a self, target: &'a Target, replicas: &Replicas) -> BoxStream<'a, LookupResult> {
        match (target, &self.cluster) {
            (Target::Fixed(_), _) => stream::empty().boxed(),
            (Target::Dns { host, port }, _) => {
                dns::addresses(host, *port, &self.lookup, replicas.lookup_triggers()).boxed()
            }
            (Target::Service(service), Some(cluster)) => {
                endpoint_slice::addresses(cluster.clone(), service).boxed()
            }
            (Target::Service(_), None) => {
                stream::iter([Err("there is no cluster to ask".to_owned())]).boxed()
            }
        }
    }
}
