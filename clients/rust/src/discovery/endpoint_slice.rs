//! Finds the addresses of a Service with a watch of its EndpointSlices.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, ResourceExt as _};
use nodewise_telemetry::with_causes;

use super::LookupResult;
use crate::target::{ServiceName, ServicePort};

/// The label with the name of the Service that a slice belongs to.
const OF_SERVICE: &str = "kubernetes.io/service-name";

/// A stream of the Service's addresses. After an error the watch starts again with a list. Resuming from the last resourceVersion
/// would be wrong: an apiserver whose etcd was restored from a backup may not have reached that version yet, and would send nothing
/// (D-112).
pub(super) fn addresses(cluster: Client, service: &ServiceName) -> impl Stream<Item = LookupResult> {
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
            Ok(event) => slices.apply(event).then(|| slices.addresses(&service.port)),
            Err(error) => Some(Err(with_causes(error.to_string(), &error))),
        };
        std::future::ready(found)
    })
}

/// The EndpointSlices of the Service, by name.
#[derive(Debug, Default)]
struct Slices {
    present: BTreeMap<String, EndpointSlice>,
    /// The slices of a list that is not complete yet.
    listing: BTreeMap<String, EndpointSlice>,
}

impl Slices {
    /// Applies a watch event. Returns whether `present` has changed.
    fn apply(&mut self, event: Event<EndpointSlice>) -> bool {
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

    /// The addresses of the ready endpoints. If there are none, those of the terminating endpoints that still serve.
    fn addresses(&self, port: &ServicePort) -> LookupResult {
        let (mut ready, mut terminating) = (BTreeSet::new(), BTreeSet::new());
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
                    Condition::Terminating => terminating.extend(address),
                    Condition::NotReady => {}
                }
            }
        }
        let found = one_family(if ready.is_empty() { terminating } else { ready });
        if found.is_empty() && wrong_port {
            return Err("its endpoints do not have the port".to_owned());
        }
        Ok(found.into_iter().map(Into::into).collect())
    }
}

/// The port number in this slice.
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

/// The first address of an endpoint. Kubernetes gives further ones no meaning.
fn address(endpoint: &Endpoint, port: u16) -> Option<SocketAddr> {
    let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    Some(SocketAddr::new(address, port))
}

/// Keeps one IP family. In a dual-stack cluster each pod has an endpoint in both families but is one replica. IPv4 is preferred.
fn one_family(addresses: BTreeSet<SocketAddr>) -> BTreeSet<SocketAddr> {
    if addresses.iter().any(SocketAddr::is_ipv4) {
        addresses.into_iter().filter(SocketAddr::is_ipv4).collect()
    } else {
        addresses
    }
}

/// Whether an endpoint may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Ready,
    /// Serving, and terminating.
    Terminating,
    NotReady,
}

impl Condition {
    /// Absent conditions mean ready, serving and not terminating.
    fn of(endpoint: &Endpoint) -> Self {
        let conditions = endpoint.conditions.as_ref();
        let is = |value: Option<bool>| value != Some(false);
        let serves = conditions.is_none_or(|conditions| is(conditions.serving));
        let ready = conditions.is_none_or(|conditions| is(conditions.ready));
        let terminating = conditions.is_some_and(|conditions| conditions.terminating == Some(true));
        match (ready, serves, terminating) {
            (true, _, false) => Self::Ready,
            (_, true, true) => Self::Terminating,
            _ => Self::NotReady,
        }
    }
}

#[cfg(test)]
mod tests;
