//! Keeps the objects of a cluster up to date with watches. It never writes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream, select_all},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::{GroupVersionKind, Status},
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use nodewise_proto::v1;
use nodewise_status::NodeFacts;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::{
    Cluster, Facts, InputError, Origin, Served,
    live::{is_served, one_line},
    touched::Touched,
};
use crate::kind::Kind;

/// A watch that failed works again if it does not fail for so long: the longest back-off (31 s) and the time to connect (30 s) are
/// shorter. A watch without changes says nothing when it works again.
const QUIET: Duration = Duration::from_secs(75);

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
/// The events of all watches.
type Events = Pin<Box<dyn Stream<Item = Watched> + Send>>;

/// The objects of some namespaces or of all, and all nodes, as the watches show them.
pub(crate) struct Follower {
    pub(crate) cluster: Cluster,
    source: Arc<str>,
    events: Events,
    /// The watches whose first list is not complete yet.
    pending: BTreeSet<Scope>,
    /// The objects of the lists that are being read: kind, namespace and name.
    listed: BTreeSet<(Kind, String, String)>,
    /// The objects of the cluster with their resourceVersion. What is not among them need not be looked for, and what is listed again
    /// with the same version need not be read again.
    known: HashMap<(Kind, String, String), String>,
    touched: Touched,
    failing: BTreeMap<Scope, Failure>,
    nodes: Nodes,
}

/// A watch that has failed, and has shown nothing since.
struct Failure {
    problem: String,
    at: Instant,
}

/// Whether nodes are watched.
#[derive(PartialEq, Eq)]
enum Nodes {
    /// The user must have the right.
    Needed,
    /// The user may lack the right.
    Wanted,
    /// The user lacks the right.
    Refused,
}

/// What the watches have shown.
pub(crate) enum Change {
    /// Objects may have changed.
    Objects,
    /// A watch failed. It is tried again, with back-off. Objects may have changed before.
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
            let events = if scope.kind.is_optional() {
                if_served(client.clone(), scope.kind, events.boxed()).boxed()
            } else {
                events.boxed()
            };
            events.map(move |event| (scope.clone(), event)).boxed()
        });
        let events = select_all(streams);
        Self::of(source, scopes, Box::pin(events))
    }

    fn of(source: &str, scopes: BTreeSet<Scope>, events: Events) -> Self {
        Self {
            cluster: Cluster {
                facts: Some(Facts::default()),
                sources: vec![source.into()],
                ..Cluster::default()
            },
            source: source.into(),
            events,
            pending: scopes,
            listed: BTreeSet::new(),
            known: HashMap::new(),
            touched: Touched::default(),
            failing: BTreeMap::new(),
            nodes: Nodes::Needed,
        }
    }

    /// Also follows if the user has no right to list nodes or RolloutPolicies. Then there are none.
    pub(crate) fn tolerating_missing_nodes(mut self) -> Self {
        self.nodes = Nodes::Wanted;
        self
    }

    /// Whether there are no nodes because the user has no right to list them.
    pub(crate) fn lacks_nodes(&self) -> bool {
        self.nodes == Nodes::Refused
    }

    /// What the watches say that fail now.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut failing = self.failing.values();
        let first = &failing.next()?.problem;
        Some(match failing.count() {
            0 => first.clone(),
            1 => format!("{first}; and one more watch fails"),
            more => format!("{first}; and {more} more watches fail"),
        })
    }

    /// Whether every kind has been listed, or may not be.
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
        let oldest = self.failing.values().map(|failure| failure.at).min();
        let quiet = async {
            match oldest {
                Some(at) => sleep_until(at + QUIET).await,
                None => std::future::pending().await,
            }
        };
        let mut next = tokio::select! {
            next = self.events.next() => next,
            () = quiet => {
                self.failing.retain(|_, failure| failure.at.elapsed() < QUIET);
                return Ok(Change::Objects);
            }
        };
        for applied in 1.. {
            let Some((scope, event)) = next else {
                return Err(InputError::new(&self.source, "the watches have ended"));
            };
            match event {
                Ok(event) => {
                    // A list that begins has not succeeded yet.
                    if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
                        self.failing.remove(&scope);
                    }
                    self.apply(&scope, event)?;
                }
                Err(error) => return self.failed(scope, &error).map(Change::Failed),
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

    /// Records that a watch failed, and says how.
    ///
    /// # Errors
    /// The user has no right to watch the kind at all.
    fn failed(&mut self, scope: Scope, error: &watcher::Error) -> Result<String, InputError> {
        let problem = scope.problem(error);
        if let Some(status) = refusal(error).filter(|_| self.pending.contains(&scope)) {
            let may_lack = scope.kind == Kind::Node || scope.kind.is_optional();
            let is_tolerated = may_lack && self.nodes != Nodes::Needed;
            if !is_tolerated || !status.is_forbidden() {
                return Err(InputError::new(&self.source, problem));
            }
            if scope.kind == Kind::Node {
                self.nodes = Nodes::Refused;
            }
            self.pending.remove(&scope);
        }
        let failure = Failure {
            problem: problem.clone(),
            at: Instant::now(),
        };
        self.failing.insert(scope, failure);
        Ok(problem)
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
                if kind == Kind::Node && self.lacks_nodes() {
                    // The user has got the right.
                    self.nodes = Nodes::Wanted;
                    self.touched.all_nodes();
                }
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

    /// What an error of the watch means. If a right is missing, it says which.
    fn problem(&self, error: &watcher::Error) -> String {
        let kind = self.kind.plural();
        let Some(status) = refusal(error) else {
            return format!("the watch of {kind} failed: {}", one_line(error));
        };
        let said = format!("cannot watch {kind}: {}", status.message);
        if !status.is_forbidden() {
            return said;
        }
        let place = match &self.namespace {
            Some(namespace) => format!("in the namespace {namespace}"),
            None if self.kind == Kind::Node => "of the cluster".to_owned(),
            None => "in all namespaces".to_owned(),
        };
        format!("{said}. The right to list and watch {kind} {place} is missing")
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
            Kind::RolloutPolicy => {
                if let Some(policies) = self.policies.get_mut(namespace) {
                    policies.retain(|one| one.name != name);
                }
            }
            Kind::DaemonSet | Kind::ReplicaSet | Kind::Deployment => {
                let is_it = |one: &Served| (one.kind, &*one.namespace, &*one.name) == (kind, namespace, name);
                self.workloads.retain(|one| !is_it(one));
            }
        }
    }
}

/// The events of a watch of a kind that may not be installed. If it is not, that of an empty list: a watch would fail for ever.
fn if_served(
    client: Client,
    kind: Kind,
    events: BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>,
) -> impl Stream<Item = Result<Event<DynamicObject>, watcher::Error>> + Send {
    let served = async move {
        // Without an answer, the watch says what is wrong.
        if is_served(&client, kind).await.unwrap_or(true) {
            events
        } else {
            stream::iter([Ok(Event::Init), Ok(Event::InitDone)])
                .chain(stream::pending())
                .boxed()
        }
    };
    stream::once(served).flatten()
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

/// The answer of an apiserver that refuses the request, so that repeating it is of no use.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return None;
    };
    match cause {
        kube::Error::Api(status) if status.is_forbidden() || status.code == 401 => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc::{UnboundedSender, unbounded};

    use super::*;

    fn scope(kind: Kind, namespace: Option<&str>) -> Scope {
        Scope {
            kind,
            namespace: namespace.map(Into::into),
        }
    }

    /// A follower of these watches, and where their events are put in.
    fn follower(scopes: &[Scope]) -> (Follower, UnboundedSender<Watched>) {
        let (sender, events) = unbounded();
        let scopes = scopes.iter().cloned().collect();
        (Follower::of("test", scopes, Box::pin(events)), sender)
    }

    fn forbidden() -> kube::Error {
        kube::Error::Api(Status::failure("you may not", "Forbidden").with_code(403).boxed())
    }

    #[tokio::test]
    async fn a_problem_stays_until_its_own_watch_succeeds() {
        let (pods, nodes) = (scope(Kind::Pod, None), scope(Kind::Node, None));
        let (mut follower, events) = follower(&[pods.clone(), nodes.clone()]);
        let put = |scope: &Scope, event| events.unbounded_send((scope.clone(), event)).expect("it reads");
        let fails = || Err(watcher::Error::WatchFailed(forbidden()));
        put(&pods, Ok(Event::InitDone));
        put(&nodes, Ok(Event::InitDone));
        assert!(matches!(follower.next().await, Ok(Change::Objects)));
        assert!(follower.is_complete());
        assert_eq!(follower.problem(), None);

        put(&pods, fails());
        assert!(matches!(follower.next().await, Ok(Change::Failed(_))));
        put(&nodes, Ok(Event::InitDone));
        put(&pods, Ok(Event::Init));
        assert!(matches!(follower.next().await, Ok(Change::Objects)));
        let problem = follower.problem().expect("pods fail");
        assert!(problem.starts_with("the watch of pods failed"), "{problem}");

        put(&nodes, fails());
        assert!(matches!(follower.next().await, Ok(Change::Failed(_))));
        let problem = follower.problem().expect("both fail");
        assert!(problem.ends_with("; and one more watch fails"), "{problem}");
        put(&nodes, Ok(Event::InitDone));
        put(&pods, Ok(Event::InitDone));
        assert!(matches!(follower.next().await, Ok(Change::Objects)));
        assert_eq!(follower.problem(), None);

        put(&pods, fails());
        assert!(matches!(follower.next().await, Ok(Change::Failed(_))));
        let failure = follower.failing.get_mut(&pods).expect("pods fail");
        failure.at = failure
            .at
            .checked_sub(QUIET)
            .expect("the machine runs for a while");
        assert!(matches!(follower.next().await, Ok(Change::Objects)));
        assert_eq!(follower.problem(), None, "it has not failed again");
    }

    #[tokio::test]
    async fn only_the_right_to_list_nodes_may_be_missing() {
        let refused = || Err(watcher::Error::InitialListFailed(forbidden()));
        let (pods, nodes) = (scope(Kind::Pod, Some("shop")), scope(Kind::Node, None));
        for (refused_scope, tolerates, expected) in [
            (&nodes, true, None),
            (&nodes, false, Some("nodes of the cluster is missing")),
            (&pods, true, Some("pods in the namespace shop is missing")),
        ] {
            let (mut follower, events) = follower(&[pods.clone(), nodes.clone()]);
            if tolerates {
                follower = follower.tolerating_missing_nodes();
            }
            let put = |scope: &Scope, event| events.unbounded_send((scope.clone(), event)).expect("it reads");
            put(refused_scope, refused());
            let Some(expected) = expected else {
                assert!(matches!(follower.next().await, Ok(Change::Failed(_))));
                assert!(follower.lacks_nodes() && !follower.is_complete());
                put(&pods, Ok(Event::InitDone));
                assert!(follower.next().await.is_ok());
                assert!(follower.is_complete());
                put(&nodes, Ok(Event::InitDone));
                assert!(follower.next().await.is_ok());
                assert!(!follower.lacks_nodes(), "the right was granted");
                assert!(follower.take_touched().has_nodes());
                continue;
            };
            let error = follower.next().await.err().expect("it ends").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
