//! Keeps the objects of a cluster up to date with watches. It never writes.

use std::{
    collections::{BTreeSet, HashMap},
    pin::Pin,
    sync::Arc,
};

use futures::{Stream, StreamExt as _, stream::select_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use nodewise_proto::v1;
use nodewise_status::NodeFacts;
use serde_json::value::RawValue;

use super::{Cluster, Facts, InputError, Origin, Served, live::one_line, touched::Touched};
use crate::kind::Kind;

/// What one watch shows: the objects of a kind, in one namespace or in all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Scope {
    kind: Kind,
    namespace: Option<Arc<str>>,
}

/// The most events that are applied before the caller gets its turn.
const TOGETHER: usize = 1_000;

/// An event of a watch.
type Watched = (Scope, Result<Event<DynamicObject>, watcher::Error>);

/// The objects of some namespaces or of all, and all nodes, as the watches show them.
pub(crate) struct Follower {
    pub(crate) cluster: Cluster,
    source: Arc<str>,
    events: Pin<Box<dyn Stream<Item = Watched> + Send>>,
    /// The watches whose first list is not complete yet.
    pending: BTreeSet<Scope>,
    /// The objects of the lists that are being read: kind, namespace and name.
    listed: BTreeSet<(Kind, String, String)>,
    /// The objects of the cluster with their resourceVersion. What is not among them need not be looked for, and what is listed again
    /// with the same version need not be read again.
    known: HashMap<(Kind, String, String), String>,
    touched: Touched,
}

/// What the watches have shown.
pub(crate) enum Change {
    /// Objects may have changed.
    Objects,
    /// A watch failed. It is tried again, with back-off.
    Failed(String),
}

impl Follower {
    /// Watches what workloads of these kinds need: in these namespaces or, if there are none, in all.
    pub(crate) fn start(client: &Client, source: &str, kinds: &[Kind], namespaces: &[String]) -> Self {
        let needed: BTreeSet<Kind> = kinds.iter().flat_map(|kind| kind.needs()).copied().collect();
        let scopes: BTreeSet<Scope> = needed
            .into_iter()
            .flat_map(|kind| scopes(kind, namespaces))
            .collect();
        let streams = scopes.iter().map(|scope| {
            let scope = scope.clone();
            let events = watcher(api(client, &scope), watcher::Config::default()).default_backoff();
            events.map(move |event| (scope.clone(), event)).boxed()
        });
        Self {
            cluster: Cluster {
                facts: Some(Facts::default()),
                sources: vec![source.into()],
                ..Cluster::default()
            },
            source: source.into(),
            events: Box::pin(select_all(streams)),
            pending: scopes,
            listed: BTreeSet::new(),
            known: HashMap::new(),
            touched: Touched::default(),
        }
    }

    /// Whether every kind has been listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }

    /// The workloads whose status may have changed since the last call.
    pub(crate) fn take_touched(&mut self) -> Touched {
        std::mem::take(&mut self.touched)
    }

    /// Waits for the next event, and applies it and those that are there already.
    ///
    /// # Errors
    /// An object cannot be read, or the user has no right to list a kind.
    pub(crate) async fn next(&mut self) -> Result<Change, InputError> {
        let mut next = self.events.next().await;
        for applied in 1.. {
            let Some((scope, event)) = next else {
                return Ok(Change::Failed("the watches have ended".to_owned()));
            };
            match event {
                Ok(event) => self.apply(&scope, event)?,
                Err(error) if self.pending.contains(&scope) && is_refusal(&error) => {
                    let problem = format!("cannot watch {}: {}", scope.kind.plural(), one_line(&error));
                    return Err(InputError::new(&self.source, problem));
                }
                Err(error) => {
                    let kind = scope.kind.plural();
                    let problem = format!("the watch of {kind} failed: {}", one_line(&error));
                    return Ok(Change::Failed(problem));
                }
            }
            if applied == TOGETHER {
                break;
            }
            let waiting = futures::poll!(self.events.next());
            next = match waiting {
                std::task::Poll::Ready(next) => next,
                std::task::Poll::Pending => return Ok(Change::Objects),
            };
        }
        Ok(Change::Objects)
    }

    fn apply(&mut self, scope: &Scope, event: Event<DynamicObject>) -> Result<(), InputError> {
        let kind = scope.kind;
        match event {
            Event::Init => self
                .listed
                .retain(|(of, namespace, _)| *of != kind || !scope.has(namespace)),
            Event::InitApply(object) => {
                let (namespace, name) = identity(&object);
                self.listed.insert((kind, namespace, name));
                self.put(kind, &object)?;
            }
            Event::InitDone => {
                let is_gone = |(of, namespace, name): &(Kind, String, String)| {
                    let object = (*of, namespace.clone(), name.clone());
                    *of == kind && scope.has(namespace) && !self.listed.contains(&object)
                };
                let gone: Vec<_> = self
                    .known
                    .keys()
                    .filter(|object| is_gone(object))
                    .cloned()
                    .collect();
                for (_, namespace, name) in gone {
                    self.remove(kind, namespace, name);
                }
                self.listed
                    .retain(|(of, namespace, _)| *of != kind || !scope.has(namespace));
                self.pending.remove(scope);
            }
            Event::Apply(object) => self.put(kind, &object)?,
            Event::Delete(object) => {
                let (namespace, name) = identity(&object);
                self.remove(kind, namespace, name);
            }
        }
        Ok(())
    }

    /// Adds or replaces an object.
    fn put(&mut self, kind: Kind, object: &DynamicObject) -> Result<(), InputError> {
        let (namespace, name) = identity(object);
        let version = object.metadata.resource_version.clone().unwrap_or_default();
        let former = self
            .known
            .insert((kind, namespace.clone(), name.clone()), version.clone());
        if former
            .as_ref()
            .is_some_and(|former| *former == version && !version.is_empty())
        {
            return Ok(());
        }
        let is_known = former.is_some();
        let source: Arc<str> = format!("{}: {}", self.source, kind.plural()).into();
        let origin = Origin {
            source,
            document: None,
            item: None,
        };
        let json = serde_json::to_string(object).and_then(RawValue::from_string);
        let json = json.map_err(|error| InputError::new(&origin, error.to_string()))?;
        let before = (is_known && kind == Kind::Node)
            .then(|| self.cluster.node(&name))
            .flatten();
        if is_known {
            self.touched
                .before_removal(&self.cluster, kind, &namespace, &name);
            self.cluster.remove(kind, &namespace, &name);
        }
        self.cluster.add(kind, &json, origin)?;
        if kind.is_workload() {
            self.cluster.place_last();
        }
        // Most changes of nodes are heartbeats.
        if kind != Kind::Node || before.is_none() || before != self.cluster.node(&name) {
            self.touched.add(kind, object);
        }
        Ok(())
    }

    /// Removes an object.
    fn remove(&mut self, kind: Kind, namespace: String, name: String) {
        self.touched
            .before_removal(&self.cluster, kind, &namespace, &name);
        if kind == Kind::Node {
            self.touched.all_nodes();
        }
        self.cluster.remove(kind, &namespace, &name);
        self.known.remove(&(kind, namespace, name));
    }
}

impl Scope {
    fn has(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

/// The watches of a kind.
fn scopes(kind: Kind, namespaces: &[String]) -> Vec<Scope> {
    if namespaces.is_empty() || kind == Kind::Node {
        return vec![Scope {
            kind,
            namespace: None,
        }];
    }
    let scope = |namespace: &String| Scope {
        kind,
        namespace: Some(namespace.as_str().into()),
    };
    namespaces.iter().map(scope).collect()
}

impl Cluster {
    /// A node as the planner and people see it.
    fn node(&self, name: &str) -> Option<(v1::Node, Option<NodeFacts>)> {
        let node = self.nodes.iter().rev().find(|node| node.object.name == name)?;
        let facts = self.facts.as_ref().and_then(|facts| facts.node(name));
        Some((node.object.clone(), facts.cloned()))
    }

    /// Removes an object.
    fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        match kind {
            Kind::Node => self.nodes.retain(|node| node.object.name != name),
            Kind::Pod => {
                let Some(pods) = self.pods.get_mut(namespace) else {
                    return;
                };
                if let Some(at) = pods.iter().position(|pod| pod.object.name == name) {
                    let gone = pods.swap_remove(at);
                    if let Some(facts) = &mut self.facts {
                        facts.forget_pod(&gone.object.uid);
                    }
                }
            }
            Kind::ControllerRevision => {
                if let Some(revisions) = self.revisions.get_mut(namespace) {
                    revisions.retain(|one| one.name != name);
                }
            }
            Kind::DaemonSet | Kind::ReplicaSet | Kind::Deployment => {
                let is_it = |one: &Served| (one.kind, &*one.namespace, &*one.name) == (kind, namespace, name);
                self.workloads.retain(|one| !is_it(one));
            }
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

fn api(client: &Client, scope: &Scope) -> Api<DynamicObject> {
    let kind = scope.kind;
    let (group, version) = kind
        .api_version()
        .split_once('/')
        .unwrap_or(("", kind.api_version()));
    let gvk = GroupVersionKind::gvk(group, version, kind.name());
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
    match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Whether the apiserver refuses the request, so that repeating it is of no use.
fn is_refusal(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return false;
    };
    matches!(cause, kube::Error::Api(status) if status.is_forbidden() || status.code == 401)
}
