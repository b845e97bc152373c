//! Where the replicas are: each target tells its addresses as they change, and together they are the set of replicas.

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

/// All addresses of a target, or why they cannot be told: then what was told before stays true.
type Found = Result<Vec<Address>, String>;

/// How names are looked up.
pub(super) type Lookup =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Looks names up as the system does it.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|host, port| {
        let addresses = async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) };
        addresses.boxed()
    })
}

/// Where to look for replicas, and with what.
pub(super) struct Discovery {
    targets: Vec<Target>,
    /// The names that the replicas of each must prove to have, if they are spoken to over TLS.
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

    /// The addresses of a target, to be spoken to as they should be.
    fn of(&self, target: usize, addresses: Vec<Address>) -> Vec<Address> {
        let Some(names) = &self.server_names else {
            return addresses;
        };
        let secured = |address: Address| address.with_server_name(&names[target]);
        addresses.into_iter().map(secured).collect()
    }

    /// What each target tells without being looked up.
    fn told(&self) -> Vec<Vec<Address>> {
        let told = self
            .targets
            .iter()
            .enumerate()
            .map(|(index, target)| match target {
                Target::Fixed(address) => self.of(index, vec![address.clone()]),
                Target::Dns { .. } | Target::Service(_) => Vec::new(),
            });
        told.collect()
    }

    /// Those that need not be looked up.
    pub(super) fn fixed(&self) -> Vec<Address> {
        self.told().concat()
    }

    /// Keeps the set up to date. Never ends.
    pub(super) async fn follow(&self, replicas: &Replicas) {
        let tell = |(index, target)| self.addresses(target, replicas).map(move |found| (index, found));
        let mut all = select_all(self.targets.iter().enumerate().map(tell));
        let mut told = self.told();
        while let Some((index, found)) = all.next().await {
            let target = &self.targets[index];
            match found {
                Ok(addresses) => {
                    if addresses.is_empty() {
                        replicas.not_found(index, &format!("{target} has no replica that is ready"));
                    } else {
                        replicas.found(index);
                    }
                    told[index] = self.of(index, addresses);
                    if let Err(error) = replicas.replace(&told.concat()) {
                        replicas.not_found(index, &error.to_string());
                    }
                }
                Err(reason) => replicas.not_found(index, &format!("{target}: {reason}")),
            }
        }
        std::future::pending::<()>().await;
    }

    fn addresses<'a>(&'a self, target: &'a Target, replicas: &Replicas) -> BoxStream<'a, Found> {
        match (target, &self.cluster) {
            (Target::Fixed(_), _) => stream::empty().boxed(),
            (Target::Dns { host, port }, _) => {
                dns::addresses(host, *port, &self.lookup, replicas.doubts()).boxed()
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
