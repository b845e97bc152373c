//! The watches of a real apiserver: list, then watch from the list's version, and begin again after a gap.
//!
//! Beyond what a ready-made watcher tells, the own-write gate needs the version of every list and of every bookmark, which
//! is why the loop is our own. First lists are most-recent (quorum) reads: an executor that was killed must not see less
//! than it had written. Objects are projected as they arrive and the rest of them is never kept.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use backon::BackoffBuilder as _;
use futures::{Stream, TryStreamExt as _};
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, WatchEvent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::event::{ClusterEvent, DaemonSet, Delta, Node, Pod, Resource, Revision};
use crate::http::Checks;
use crate::project::{NodeObject, PodObject, ProjectError};
use crate::store::KIND;

/// Objects per page of a list.
const PAGE_SIZE: u32 = 1_000;
/// After this the apiserver ends a watch, in seconds.
const WATCH_SECONDS: u32 = 290;
/// Silence after which a watch is taken for dead: its end would have come.
const IDLE_LIMIT: Duration = Duration::from_secs(295);
/// Events that may wait for the controller before the watches wait too.
const CHANNEL_SIZE: usize = 1_024;

/// A stream of everything that changes; dropping it ends the watches.
#[derive(Debug)]
pub struct Watches {
    events: mpsc::Receiver<ClusterEvent>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Starts watching, in one namespace or in all. Each resource has a check `watch-<resource>` in `checks` that fails, with the reason, while its
    /// watch does not work.
    #[must_use]
    pub fn start(client: &Client, namespace: Option<&str>, checks: &Checks) -> Self {
        let (sender, events) = mpsc::channel(CHANNEL_SIZE);
        let mut tasks = JoinSet::new();
        tasks.spawn(Follower::<DaemonSet>::new(client, namespace, &sender, checks).run());
        tasks.spawn(Follower::<Pod>::new(client, namespace, &sender, checks).run());
        tasks.spawn(Follower::<Node>::new(client, namespace, &sender, checks).run());
        tasks.spawn(Follower::<Revision>::new(client, namespace, &sender, checks).run());
        Self {
            events,
            _tasks: tasks,
        }
    }
}

impl Stream for Watches {
    type Item = ClusterEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ClusterEvent>> {
        self.events.poll_recv(context)
    }
}

/// A kind of object as it is watched.
trait Watched: Sized + Send + 'static {
    const RESOURCE: Resource;
    /// The path of its API group.
    const API: &'static str;
    /// What is read off the wire.
    type Wire: Clone + fmt::Debug + DeserializeOwned + Send + 'static;

    fn read(wire: Self::Wire) -> Result<Self, ProjectError>;
    fn version(&self) -> &str;
    fn event(delta: Delta<Self>) -> ClusterEvent;
    /// Whether it is worth keeping in a list.
    fn matters(&self) -> bool {
        true
    }
}

/// Lists leave out what every item of theirs is; the object is completed so that it looks the same from everywhere.
fn complete(mut object: Value, kind: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| "apps/v1".into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    object
}

impl Watched for DaemonSet {
    const RESOURCE: Resource = Resource::DaemonSets;
    const API: &'static str = "/apis/apps/v1";
    type Wire = Value;

    fn read(wire: Value) -> Result<Self, ProjectError> {
        Self::from_json(&complete(wire, KIND))
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::DaemonSets(delta)
    }
}

impl Watched for Revision {
    const RESOURCE: Resource = Resource::Revisions;
    const API: &'static str = "/apis/apps/v1";
    type Wire = Value;

    fn read(wire: Value) -> Result<Self, ProjectError> {
        Self::from_json(&complete(wire, "ControllerRevision"))
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Revisions(delta)
    }
}

impl Watched for Pod {
    const RESOURCE: Resource = Resource::Pods;
    const API: &'static str = "/api/v1";
    type Wire = PodObject;

    fn read(wire: PodObject) -> Result<Self, ProjectError> {
        wire.try_into()
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Pods(delta)
    }
    fn matters(&self) -> bool {
        self.projection
            .controller
            .as_ref()
            .is_none_or(|controller| controller.kind == KIND)
    }
}

impl Watched for Node {
    const RESOURCE: Resource = Resource::Nodes;
    const API: &'static str = "/api/v1";
    type Wire = NodeObject;

    fn read(wire: NodeObject) -> Result<Self, ProjectError> {
        wire.try_into()
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Nodes(delta)
    }
}

#[derive(Deserialize)]
struct Page<T> {
    metadata: PageMeta,
    // The API writes an empty list as null.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(rename = "continue", default)]
    continue_token: String,
}

#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error("listing {0}")]
    List(Resource, #[source] kube::Error),
    #[error("watching {0}")]
    Watch(Resource, #[source] kube::Error),
    #[error("reading one of the {0} that the apiserver served")]
    Read(Resource, #[source] ProjectError),
    #[error("the list of {0} has no resourceVersion")]
    NoVersion(Resource),
    /// What happened since the version is not known any more: a new list is needed.
    #[error("the watch of {0} fell too far behind")]
    Gone(Resource),
    /// Nobody listens any more.
    #[error("stopped")]
    Stopped,
}

impl WatchError {
    fn describe(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        text
    }
}

/// Follows one resource.
struct Follower<T> {
    client: Client,
    sender: mpsc::Sender<ClusterEvent>,
    checks: Checks,
    check: String,
    /// The collection's path.
    path: String,
    /// Where the next watch begins; absent when a list is needed.
    version: Option<String>,
    delays: Delays,
    resource: std::marker::PhantomData<fn() -> T>,
}

/// Delays after failures: 0.5 s doubling to 30 s, with jitter.
struct Delays(backon::ExponentialBackoff);

impl Delays {
    fn new() -> Self {
        let builder = backon::ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_secs(30))
            .without_max_times()
            .with_jitter();
        Self(builder.build())
    }

    fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(Duration::from_secs(30))
    }
}

fn path<T: Watched>(namespace: Option<&str>) -> String {
    let (api, plural) = (T::API, T::RESOURCE.plural());
    match namespace.filter(|_| T::RESOURCE != Resource::Nodes) {
        Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
        None => format!("{api}/{plural}"),
    }
}

impl<T: Watched> Follower<T> {
    fn new(
        client: &Client,
        namespace: Option<&str>,
        sender: &mpsc::Sender<ClusterEvent>,
        checks: &Checks,
    ) -> Self {
        let follower = Self {
            client: client.clone(),
            sender: sender.clone(),
            checks: checks.clone(),
            check: format!("watch-{}", T::RESOURCE),
            path: path::<T>(namespace),
            version: None,
            delays: Delays::new(),
            resource: std::marker::PhantomData,
        };
        follower
            .checks
            .set(&follower.check, Err("waiting for the first list".into()));
        follower
    }

    /// Until nobody listens any more.
    async fn run(mut self) {
        loop {
            let step = match self.version.clone() {
                None => self.list().await,
                Some(version) => self.watch(&version).await,
            };
            match step {
                Ok(()) => {}
                Err(WatchError::Stopped) => return,
                Err(WatchError::Gone(resource)) => {
                    tracing::info!(%resource, "the watch fell too far behind; listing again");
                    self.version = None;
                }
                Err(error) => {
                    let (reason, delay) = (error.describe(), self.delays.next());
                    tracing::warn!(resource = %T::RESOURCE, ?delay, "{reason}; trying again");
                    self.checks.set(&self.check, Err(reason));
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    fn works(&mut self) {
        self.delays = Delays::new();
        self.checks.set(&self.check, Ok(()));
    }

    async fn send(&self, event: ClusterEvent) -> Result<(), WatchError> {
        self.sender.send(event).await.map_err(|_| WatchError::Stopped)
    }

    /// Lists everything, page by page, as of one version.
    async fn list(&mut self) -> Result<(), WatchError> {
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut objects = Vec::new();
        let resource_version = loop {
            let request = Request::new(self.path.as_str())
                .list(&params)
                .map_err(|error| WatchError::List(T::RESOURCE, kube::Error::BuildRequest(error)))?;
            let page: Page<T::Wire> = match self.client.request(request).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 410 => {
                    return Err(WatchError::Gone(T::RESOURCE));
                }
                Err(error) => return Err(WatchError::List(T::RESOURCE, error)),
            };
            for item in page.items.into_iter().flatten() {
                let object = T::read(item).map_err(|error| WatchError::Read(T::RESOURCE, error))?;
                if object.matters() {
                    objects.push(object);
                }
            }
            if page.metadata.continue_token.is_empty() {
                break page.metadata.resource_version;
            }
            params = params.continue_token(&page.metadata.continue_token);
        };
        if resource_version.is_empty() {
            return Err(WatchError::NoVersion(T::RESOURCE));
        }
        tracing::debug!(resource = %T::RESOURCE, count = objects.len(), resource_version, "listed");
        self.version = Some(resource_version.clone());
        self.works();
        self.send(T::event(Delta::Listed {
            objects,
            resource_version,
        }))
        .await
    }

    /// Watches until the apiserver ends it, as it does every few minutes.
    async fn watch(&mut self, version: &str) -> Result<(), WatchError> {
        let failed = |error| match error {
            kube::Error::Api(status) if status.code == 410 => WatchError::Gone(T::RESOURCE),
            error => WatchError::Watch(T::RESOURCE, error),
        };
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let request = Request::new(self.path.as_str())
            .watch(&params, version)
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        let stream = self
            .client
            .request_events::<T::Wire>(request)
            .await
            .map_err(failed)?;
        self.works();
        let mut stream = std::pin::pin!(stream);
        while let Ok(next) = tokio::time::timeout(IDLE_LIMIT, stream.try_next()).await {
            let Some(event) = next.map_err(failed)? else {
                return Ok(());
            };
            self.take(event).await?;
        }
        tracing::debug!(resource = %T::RESOURCE, "the watch is silent for too long; watching anew");
        Ok(())
    }

    async fn take(&mut self, event: WatchEvent<T::Wire>) -> Result<(), WatchError> {
        let read = |wire| T::read(wire).map_err(|error| WatchError::Read(T::RESOURCE, error));
        let event = match event {
            WatchEvent::Added(wire) | WatchEvent::Modified(wire) => Delta::Applied(read(wire)?),
            WatchEvent::Deleted(wire) => Delta::Deleted(read(wire)?),
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                self.version = Some(version.clone());
                return self.send(ClusterEvent::Bookmark(T::RESOURCE, version)).await;
            }
            WatchEvent::Error(status) if status.code == 410 => return Err(WatchError::Gone(T::RESOURCE)),
            WatchEvent::Error(status) => {
                return Err(WatchError::Watch(T::RESOURCE, kube::Error::Api(status)));
            }
        };
        if let Delta::Applied(object) | Delta::Deleted(object) = &event {
            self.version = Some(object.version().to_owned());
        }
        self.send(T::event(event)).await
    }
}

#[cfg(test)]
mod tests;
