//! The addresses of a Service: a watch of its EndpointSlices.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, ResourceExt as _};
use nodewise_telemetry::with_causes;

use super::Found;
use crate::target::{ServiceName, ServicePort};

/// The label that says which Service a slice is part of.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// The endpoints of a Service as they change. A watch that breaks begins again with a new list: slices are few, and an apiserver whose
/// etcd was restored from a backup would show nothing to a watch from a version that it has not reached yet (D-112).
pub(super) fn addresses(cluster: Client, service: &ServiceName) -> impl Stream<Item = Found> {
    let api: Api<EndpointSlice> = match &service.namespace {
        Some(namespace) => Api::namespaced(cluster, namespace),
        None => Api::default_namespaced(cluster),
    };
    let config = watcher::Config::default().labels(&format!("{OF_SERVICE}={}", service.name));
    let mut slices = Slices::default();
    let events = stream::unfold(None, move |watching: Option<stream::BoxStream<'static, _>>| {
        let mut watching = watching.unwrap_or_else(|| watch(api.clone(), config.clone()).boxed());
        async move {
            let event: watcher::Result<_> = watching.next().await?;
            let unbroken = event.is_ok().then_some(watching);
            Some((event, unbroken))
        }
    });
    events.default_backoff().filter_map(move |event| {
        let found = match event {
            Ok(event) => slices.take(event).then(|| slices.addresses(&service.port)),
            Err(error) => Some(Err(with_causes(error.to_string(), &error))),
        };
        std::future::ready(found)
    })
}

/// The slices of the Service, by name.
#[derive(Debug, Default)]
struct Slices {
    present: BTreeMap<String, EndpointSlice>,
    /// A list that is not complete yet.
    listing: BTreeMap<String, EndpointSlice>,
}

impl Slices {
    /// Whether the picture has changed and is whole.
    fn take(&mut self, event: Event<EndpointSlice>) -> bool {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(slice) => {
                self.listing.insert(slice.name_any(), slice);
            }
            Event::InitDone => {
                self.present = std::mem::take(&mut self.listing);
                return true;
            }
            Event::Apply(slice) => {
                self.present.insert(slice.name_any(), slice);
                return true;
            }
            Event::Delete(slice) => {
                self.present.remove(&slice.name_any());
                return true;
            }
        }
        false
    }

    /// Those that are ready; if there are none, those that still serve while they end.
    fn addresses(&self, port: &ServicePort) -> Found {
        let (mut ready, mut ending) = (BTreeSet::new(), BTreeSet::new());
        let mut wrong_port = false;
        for slice in self.present.values() {
            let number = number(slice, port);
            for endpoint in slice.endpoints.iter().flatten() {
                let Some(number) = number else {
                    wrong_port = true;
                    continue;
                };
                let address = address(endpoint, number);
                match Condition::of(endpoint) {
                    Condition::Ready => ready.extend(address),
                    Condition::ServesStill => ending.extend(address),
                    Condition::No => {}
                }
            }
        }
        let found = one_family(if ready.is_empty() { ending } else { ready });
        if found.is_empty() && wrong_port {
            return Err("its endpoints do not have the port".to_owned());
        }
        Ok(found.into_iter().map(Into::into).collect())
    }
}

/// The number of the port in this slice.
fn number(slice: &EndpointSlice, port: &ServicePort) -> Option<u16> {
    let ports = slice.ports.iter().flatten();
    let mut named = ports.filter_map(|port| Some((port.name.as_deref().unwrap_or(""), port.port?)));
    let number = match port {
        ServicePort::Number(number) => return Some(*number),
        ServicePort::First => named.next()?.1,
        ServicePort::Name(wanted) => named.find(|(name, _)| name == wanted)?.1,
    };
    u16::try_from(number).ok()
}

/// The first address is the one that counts; further ones have no meaning.
fn address(endpoint: &Endpoint, port: u16) -> Option<SocketAddr> {
    let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

/// Pods of a cluster with both families are in slices of both, and each is one replica: IPv4 is taken where there is any.
fn one_family(addresses: BTreeSet<SocketAddr>) -> BTreeSet<SocketAddr> {
    if addresses.iter().any(SocketAddr::is_ipv4) {
        addresses.into_iter().filter(SocketAddr::is_ipv4).collect()
    } else {
        addresses
    }
}

/// Whether to ask an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Ready,
    /// It ends, and answers until then.
    ServesStill,
    No,
}

impl Condition {
    /// What is not said counts as ready, serving and not terminating.
    fn of(endpoint: &Endpoint) -> Self {
        let said = endpoint.conditions.as_ref();
        let is = |value: Option<bool>| value != Some(false);
        let serves = said.is_none_or(|said| is(said.serving));
        let ready = said.is_none_or(|said| is(said.ready));
        let ends = said.is_some_and(|said| said.terminating == Some(true));
        match (ready, serves, ends) {
            (true, _, false) => Self::Ready,
            (_, true, true) => Self::ServesStill,
            _ => Self::No,
        }
    }
}

#[cfg(test)]
mod tests;
