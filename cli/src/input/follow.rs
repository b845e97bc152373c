//! Keeps the objects of a cluster up to date with watches. It never writes.

use std::{collections::BTreeSet, pin::Pin, sync::Arc};

use futures::{Stream, StreamExt as _, stream::select_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use serde_json::value::RawValue;

use super::{Cluster, Facts, InputError, Origin, Served, live::one_line};
use crate::kind::Kind;

/// An event of the watch of a kind.
type Watched = (Kind, Result<Event<DynamicObject>, watcher::Error>);

/// The objects of one namespace, and all nodes, as the watches show them.
pub(crate) struct Follower {
    pub(crate) cluster: Cluster,
    source: Arc<str>,
    events: Pin<Box<dyn Stream<Item = Watched> + Send>>,
    /// The kinds whose first list is not complete yet.
    pending: BTreeSet<Kind>,
    /// The objects of the lists that are being read: kind, namespace and name.
    listed: BTreeSet<(Kind, String, String)>,
}

/// What the watches have shown.
pub(crate) enum Change {
    /// Objects may have changed.
    Objects,
    /// A watch failed. It is tried again, with back-off.
    Failed(String),
}

impl Follower {
    /// Watches what a workload of this kind needs.
    pub(crate) fn start(client: &Client, source: &str, kind: Kind, namespace: &str) -> Self {
        let streams = kind.needs().iter().map(|kind| {
            let kind = *kind;
            let events = watcher(api(client, kind, namespace), watcher::Config::default()).default_backoff();
            events.map(move |event| (kind, event)).boxed()
        });
        Self {
            cluster: Cluster {
                facts: Some(Facts::default()),
                sources: vec![source.into()],
                ..Cluster::default()
            },
            source: source.into(),
            events: Box::pin(select_all(streams)),
            pending: kind.needs().iter().copied().collect(),
            listed: BTreeSet::new(),
        }
    }

    /// Whether every kind has been listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }

    /// Waits for the next event, and applies it and all that are there already.
    ///
    /// # Errors
    /// An object cannot be read, or the user has no right to list a kind.
    pub(crate) async fn next(&mut self) -> Result<Change, InputError> {
        let mut next = self.events.next().await;
        loop {
            let Some((kind, event)) = next else {
                return Ok(Change::Failed("the watches have ended".to_owned()));
            };
            match event {
                Ok(event) => self.apply(kind, event)?,
                Err(error) if self.pending.contains(&kind) && is_refusal(&error) => {
                    let problem = format!("cannot watch {}: {}", kind.plural(), one_line(&error));
                    return Err(InputError::new(&self.source, problem));
                }
                Err(error) => {
                    let problem = format!("the watch of {} failed: {}", kind.plural(), one_line(&error));
                    return Ok(Change::Failed(problem));
                }
            }
            let waiting = futures::poll!(self.events.next());
            next = match waiting {
                std::task::Poll::Ready(next) => next,
                std::task::Poll::Pending => return Ok(Change::Objects),
            };
        }
    }

    fn apply(&mut self, kind: Kind, event: Event<DynamicObject>) -> Result<(), InputError> {
        match event {
            Event::Init => self.listed.retain(|(of, ..)| *of != kind),
            Event::InitApply(object) => {
                let (namespace, name) = identity(&object);
                self.listed.insert((kind, namespace, name));
                self.put(kind, &object)?;
            }
            Event::InitDone => {
                let listed = &self.listed;
                let is_gone = |namespace: &str, name: &str| {
                    !listed.contains(&(kind, namespace.to_owned(), name.to_owned()))
                };
                self.cluster.remove(kind, is_gone);
                self.pending.remove(&kind);
            }
            Event::Apply(object) => self.put(kind, &object)?,
            Event::Delete(object) => {
                let (of, called) = identity(&object);
                self.cluster
                    .remove(kind, |namespace, name| (namespace, name) == (&*of, &*called));
            }
        }
        Ok(())
    }

    /// Adds or replaces an object.
    fn put(&mut self, kind: Kind, object: &DynamicObject) -> Result<(), InputError> {
        let source: Arc<str> = format!("{}: {}", self.source, kind.plural()).into();
        let origin = Origin {
            source,
            document: None,
            item: None,
        };
        let json = serde_json::to_string(object).and_then(RawValue::from_string);
        let json = json.map_err(|error| InputError::new(&origin, error.to_string()))?;
        let (of, called) = identity(object);
        self.cluster
            .remove(kind, |namespace, name| (namespace, name) == (&*of, &*called));
        self.cluster.add(kind, &json, origin)?;
        if kind.is_workload() {
            self.cluster.sort();
        }
        Ok(())
    }
}

impl Cluster {
    /// Removes the objects of a kind that a condition on namespace and name selects.
    fn remove(&mut self, kind: Kind, is_gone: impl Fn(&str, &str) -> bool) {
        let keeps = |one: &Served| one.kind != kind || !is_gone(&one.namespace, &one.name);
        match kind {
            Kind::Node => self.nodes.retain(|node| !is_gone("", &node.object.name)),
            Kind::Pod => {
                let facts = &mut self.facts;
                for (namespace, pods) in &mut self.pods {
                    pods.retain(|pod| {
                        let gone = is_gone(namespace, &pod.object.name);
                        if let Some(facts) = facts.as_mut().filter(|_| gone) {
                            facts.forget_pod(&pod.object.uid);
                        }
                        !gone
                    });
                }
            }
            Kind::ControllerRevision => {
                for revisions in self.revisions.values_mut() {
                    revisions.retain(keeps);
                }
            }
            Kind::DaemonSet | Kind::ReplicaSet | Kind::Deployment => self.workloads.retain(keeps),
        }
    }
}

fn identity(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

fn api(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = kind
        .api_version()
        .split_once('/')
        .unwrap_or(("", kind.api_version()));
    let gvk = GroupVersionKind::gvk(group, version, kind.name());
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
    if kind == Kind::Node {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Whether the apiserver refuses the request, so that repeating it is of no use.
fn is_refusal(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return false;
    };
    matches!(cause, kube::Error::Api(status) if status.is_forbidden() || status.code == 401)
}
