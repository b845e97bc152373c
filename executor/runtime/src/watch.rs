//! The list-and-watch loop of one apiserver. It lists a resource, watches from the version of the list, and lists again after
//! a gap. It reads objects; it keeps no cache.
//!
//! The loop is not `kube::runtime::watcher` because the own-write gate needs the resourceVersion of every list and of every
//! bookmark. The first list is a most-recent (quorum) read, so an executor that was killed sees at least its own writes.
//! Objects are projected as they arrive, and the rest of their JSON is dropped. Where a resource allows it, an object that
//! cannot be read is skipped, logged, and counted, so that it does not block the other objects.
//!
//! After etcd is restored from a backup, the apiserver may be at a lower version than a watch has reached. The apiserver
//! accepts such a watch but sends nothing until it reaches that version. So before a watch continues, the reflector asks the
//! apiserver for its current version. When one reflector finds a restore, all resources are listed again, including those whose
//! version the apiserver has already passed (D-112).

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use backon::BackoffBuilder as _;
use bytes::Bytes;
use futures::Stream;
use kube::Client;
use kube::api::WatchParams;
use kube::core::Request;
use nodewise_projection::ProjectError;
use nodewise_telemetry::{http::Checks, in_short, with_causes};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::delta::Delta;
use crate::encoding::{self, DecodeError, Payload};
use crate::event::ClusterEvent;
use crate::gate;
use crate::list::{EncodedPage, ListPager};
use crate::metrics::Metrics;
use crate::object::Object;
use crate::resource::Resource;
use crate::response::ObjectIdentity;

mod discovery;
mod inputs;
mod wire;

use wire::{Event, EventKind};

/// The timeout that a watch request asks for, in seconds.
const WATCH_SECONDS: u32 = 290;
/// A watch that receives nothing for this long is treated as dead. The apiserver sends a bookmark about every minute.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// Timeout for one page of a list. The apiserver itself gives up after a minute.
const PAGE_TIMEOUT: Duration = Duration::from_secs(65);
/// Timeout for opening a watch, and for a list of one object.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks whether an optional resource is installed by now.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);
/// A watch that ends sooner than this without an event counts as failed.
const SHORT_WATCH: Duration = Duration::from_secs(5);
/// Capacity of the event channel. When it is full, the watches wait for the controller.
const CHANNEL_SIZE: usize = 1_024;
/// After this many bytes of objects, the reflector waits until the controller has processed the objects it was sent. Parsed labels
/// take more than ten times the memory of their text, and the controller decides which revisions are kept whole.
const CHUNK_BYTES: usize = 1 << 20;

/// A stream of the events of all watches. Dropping it ends the watches. The stream ends when any watch ends, which is a bug:
/// the controller must not plan from a cache that is no longer updated.
#[derive(Debug)]
pub struct Watches {
    events: mpsc::Receiver<ClusterEvent>,
    tasks: JoinSet<()>,
    checks: Checks,
    /// The names of the health checks of these watches.
    check_names: Vec<String>,
}

/// Starts the watches of one process. They share one event channel, and they tell each other about restores of etcd.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Builder<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    kinds: Vec<Resource>,
    checks: &'a Checks,
    metrics: &'a Metrics,
    sender: mpsc::Sender<ClusterEvent>,
    restores: watch::Sender<u64>,
    /// The watches that were started, and whether they have sent their first lists.
    started: HashMap<Resource, watch::Receiver<bool>>,
    watches: Watches,
}

impl<'a> Builder<'a> {
    /// Creates a builder for watches in one namespace, or in all of them. Each resource gets a health check
    /// `watch-<resource>` in `checks`. The check fails, with the reason, while the watch of the resource does not work. `kinds`
    /// are the kinds of workload that are reconciled.
    #[must_use]
    pub fn new(
        client: &'a Client,
        namespace: Option<&'a str>,
        kinds: &[Resource],
        checks: &'a Checks,
        metrics: &'a Metrics,
    ) -> Self {
        let (sender, events) = mpsc::channel(CHANNEL_SIZE);
        Self {
            client,
            namespace,
            kinds: kinds.to_vec(),
            checks,
            metrics,
            sender,
            restores: watch::Sender::new(0),
            started: HashMap::new(),
            watches: Watches {
                events,
                tasks: JoinSet::new(),
                checks: checks.clone(),
                check_names: Vec::new(),
            },
        }
    }

    /// Starts a watch, unless the resource is watched already. The returned value becomes true when the first list has been
    /// sent.
    pub fn watch<T: Watched>(&mut self) -> watch::Receiver<bool> {
        if let Some(has_listed) = self.started.get(&T::RESOURCE) {
            return has_listed.clone();
        }
        let reflector = self.reflector::<T>();
        let has_listed = reflector.has_listed.subscribe();
        self.started.insert(T::RESOURCE, has_listed.clone());
        self.watches.tasks.spawn(reflector.run());
        has_listed
    }

    /// Starts a watch as soon as all of these first lists have been sent.
    pub fn watch_after<T: Watched>(&mut self, first_lists: Vec<watch::Receiver<bool>>) {
        let reflector = self.reflector::<T>();
        self.watches.tasks.spawn(async move {
            for mut first_list in first_lists {
                if first_list.wait_for(|has_listed| *has_listed).await.is_err() {
                    return;
                }
            }
            reflector.run().await;
        });
    }

    fn reflector<T: Watched>(&mut self) -> Reflector<T> {
        let reflector = Reflector::new(
            self.client,
            self.namespace,
            &self.kinds,
            &self.sender,
            &self.restores,
            self.checks,
            self.metrics,
        );
        self.watches.check_names.push(reflector.check.clone());
        reflector
    }

    /// Returns the event stream of all watches that were started.
    #[must_use]
    pub fn finish(self) -> Watches {
        self.watches
    }
}

impl Watches {
    /// Ends the watches. Waits until none of them can set a health check any more.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Removes the health checks: a process without watches, such as a standby, is ready.
impl Drop for Watches {
    fn drop(&mut self) {
        self.tasks.abort_all();
        for name in &self.check_names {
            self.checks.remove(name);
        }
    }
}

impl Stream for Watches {
    type Item = ClusterEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ClusterEvent>> {
        if let Poll::Ready(ended) = self.tasks.poll_join_next(context) {
            tracing::error!(?ended, "a watch has ended");
            return Poll::Ready(None);
        }
        self.events.poll_recv(context)
    }
}

#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error("listing {0}")]
    List(&'static str, #[source] kube::Error),
    #[error("watching {0}")]
    Watch(&'static str, #[source] kube::Error),
    /// What the watch sent is not an event. The apiserver would send it again, so a new list is needed.
    #[error("reading an event of the watch of {0}")]
    Event(&'static str, #[source] DecodeError),
    /// An object cannot be read. The apiserver would send it again, so a new list is needed.
    #[error("reading {1} of the {0}")]
    Object(&'static str, String, #[source] ProjectError),
    #[error("the list of {0} has no resourceVersion")]
    NoVersion(&'static str),
    /// The apiserver no longer has the events since the version of the watch. A new list is needed.
    #[error("the watch of {0} fell too far behind")]
    Gone(&'static str),
    /// The apiserver did not answer in time. The connection may be half-open.
    #[error("no answer about {0} within {1:?}")]
    Silent(&'static str, Duration),
    /// The watch ended at once. The reflector backs off before it tries again.
    #[error("the watch of {0} ended as soon as it had begun")]
    Short(&'static str),
    /// The resource is served, and not in the version that this program knows.
    #[error(
        "the apiserver serves {0} of {1} in version {2} and not in {3}, the only one that this version of the executor knows: what they \
         ask for is not known, and workloads that they may mean wait; upgrade the executor, or serve {3}"
    )]
    OtherVersion(&'static str, &'static str, String, &'static str),
    /// The receiver of the events is gone.
    #[error("stopped")]
    Stopped,
}

impl WatchError {
    /// Whether the apiserver does not serve the resource.
    fn is_not_found(&self) -> bool {
        matches!(self, Self::List(_, kube::Error::Api(status)) | Self::Watch(_, kube::Error::Api(status)) if status.code == 404)
    }

    fn describe(&self) -> String {
        let text = match self {
            // The error's own text has the message three times.
            Self::List(_, kube::Error::Api(status)) | Self::Watch(_, kube::Error::Api(status))
                if !status.message.is_empty() =>
            {
                format!("{self}: {}", status.message)
            }
            _ => with_causes(self.to_string(), self),
        };
        // The message of the apiserver may quote a whole object.
        in_short(&text)
    }
}

/// Reads an object from its Protobuf message, which has no envelope.
pub type ReadProtobuf<T> = fn(&Bytes) -> Result<T, ProjectError>;

/// A kind of object that can be watched.
pub trait Watched: Sized + Send + 'static {
    /// The resource of these objects.
    const RESOURCE: Resource;

    /// Reads an object from the JSON that the apiserver sent.
    fn read(json: &str) -> Result<Self, ProjectError>;
    /// Reads an object from Protobuf, with the same result as [`Self::read`]. `None`: these objects are read from JSON only.
    const READ_PROTOBUF: Option<ReadProtobuf<Self>> = None;

    /// Wraps a change of these objects in an event.
    fn event(delta: Delta<Self>) -> ClusterEvent;
    /// Returns the event of a bookmark: no object changed, and the watch has reached this metadata.resourceVersion.
    fn bookmark(version: String) -> ClusterEvent;
    /// Whether an object that cannot be read may be skipped. False where a missing object leads to wrong plans: the planner
    /// would create a second pod beside a pod that is missing, and delete the pods of a node that is missing.
    const SKIPS_UNREADABLE: bool;
    /// Whether the resource may not be installed. While it is not, there are no objects, and nothing waits for a list of them.
    const IS_OPTIONAL: bool = false;

    /// Wraps one page of an unfinished list in an event of its own, so that large lists do not pile up in memory. Returns the
    /// objects in `Err` if this kind does not send pages. `is_first` is true for the first page, and for the empty page that
    /// tells the controller to discard the pages of an abandoned list.
    fn page(objects: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        let _ = is_first;
        Err(objects)
    }

    /// Drops what of these objects of an unfinished list would not be cached. Called after each page of a kind that does not send
    /// pages.
    fn bound(_: &mut [Self]) {}

    /// Whether lists keep this object, if these kinds of workload are reconciled.
    fn is_kept_from_lists(&self, kinds: &[Resource]) -> bool {
        let _ = kinds;
        true
    }
}

/// Lists and watches one resource.
struct Reflector<T> {
    client: Client,
    sender: mpsc::Sender<ClusterEvent>,
    checks: Checks,
    metrics: Metrics,
    check: String,
    kinds: Vec<Resource>,
    /// The collection's path.
    path: String,
    /// The resourceVersion that was reached, where the next watch starts. Empty before the first list, and while the resource is
    /// not installed.
    version: String,
    next: Step,
    /// Number of etcd restores that the reflectors of this process have found.
    restores: watch::Sender<u64>,
    /// Number of restores that were known when the last list of this reflector started.
    restores_listed: u64,
    delays: Delays,
    /// True after the first list was sent.
    has_listed: watch::Sender<bool>,
    /// Pages of an unfinished list were sent.
    pages_sent: bool,
    /// The controller was told that the resource is not installed.
    is_absent: bool,
    /// The controller was told that it is not known which objects there are.
    is_lost: bool,
    resource: std::marker::PhantomData<fn() -> T>,
}

/// The next step of a reflector.
#[derive(Clone, Copy)]
enum Step {
    /// Ask the apiserver whether an optional resource is installed.
    Discover,
    List,
    /// Ask the apiserver whether it has reached our version.
    CheckVersion,
    Watch,
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

impl<T: Watched> Reflector<T> {
    /// The first step, and the one after a restore of etcd.
    const FIRST: Step = if T::IS_OPTIONAL {
        Step::Discover
    } else {
        Step::List
    };

    fn new(
        client: &Client,
        namespace: Option<&str>,
        kinds: &[Resource],
        sender: &mpsc::Sender<ClusterEvent>,
        restores: &watch::Sender<u64>,
        checks: &Checks,
        metrics: &Metrics,
    ) -> Self {
        let reflector = Self {
            client: client.clone(),
            sender: sender.clone(),
            checks: checks.clone(),
            metrics: metrics.clone(),
            check: format!("watch-{}", T::RESOURCE),
            kinds: kinds.to_vec(),
            path: T::RESOURCE.path(namespace),
            version: String::new(),
            next: Self::FIRST,
            restores: restores.clone(),
            restores_listed: 0,
            delays: Delays::new(),
            has_listed: watch::Sender::new(false),
            pages_sent: false,
            is_absent: false,
            is_lost: false,
            resource: std::marker::PhantomData,
        };
        reflector
            .checks
            .set(&reflector.check, Err("waiting for the first list".into()));
        reflector
    }

    /// Runs until the receiver of the events is gone.
    async fn run(mut self) {
        loop {
            if *self.restores.borrow() != self.restores_listed {
                self.next = Self::FIRST;
            }
            let step = match self.next {
                Step::Discover => self.discover().await,
                Step::List => self.list().await,
                Step::CheckVersion => self.check_version().await,
                Step::Watch => self.watch().await,
            };
            match step {
                Ok(()) => {}
                Err(WatchError::Stopped) => return,
                Err(WatchError::Gone(resource)) => {
                    let delay = self.delays.next();
                    tracing::info!(%resource, ?delay, "the watch fell too far behind; listing again");
                    self.next = Step::List;
                    sleep(delay).await;
                }
                Err(error) => {
                    if matches!(error, WatchError::Event(..) | WatchError::Object(..)) {
                        self.next = Step::List;
                    }
                    if T::IS_OPTIONAL && error.is_not_found() {
                        self.next = Step::Discover;
                    }
                    let (reason, delay) = (error.describe(), self.delays.next());
                    tracing::warn!(resource = %T::RESOURCE, ?delay, "{reason}; trying again");
                    self.checks.set(&self.check, Err(reason));
                    sleep(delay).await;
                }
            }
        }
    }

    /// Marks the health check as healthy. The back-off is not reset here but after the first event: a watch that opens but
    /// never delivers has not recovered.
    fn set_healthy(&self) {
        self.checks.set(&self.check, Ok(()));
    }

    /// Runs a call with a timeout.
    async fn with_timeout<R>(&self, limit: Duration, call: impl Future<Output = R>) -> Result<R, WatchError> {
        let answer = timeout(limit, call).await;
        answer.map_err(|_| WatchError::Silent(T::RESOURCE.plural, limit))
    }

    async fn send(&self, event: ClusterEvent) -> Result<(), WatchError> {
        self.sender.send(event).await.map_err(|_| WatchError::Stopped)
    }

    /// Waits until the controller has received every event.
    async fn wait_until_received(&self) -> Result<(), WatchError> {
        let permits = self.sender.reserve_many(self.sender.max_capacity()).await;
        permits.map(drop).map_err(|_| WatchError::Stopped)
    }

    /// Returns a pager of the collection with at most `most` objects in a page.
    fn pager(&self, most: u32) -> ListPager {
        ListPager::new(self.path.as_str(), most).ask_for_protobuf(T::READ_PROTOBUF.is_some())
    }

    /// Lists all objects, page by page, as of one version.
    async fn list(&mut self) -> Result<(), WatchError> {
        let mut pager = self.pager(T::RESOURCE.page_size);
        let (mut objects, mut sent) = (Vec::new(), 0);
        let restores = *self.restores.borrow();
        if std::mem::take(&mut self.pages_sent) {
            self.send_page(Vec::new(), true).await?;
        }
        let resource_version = loop {
            let next = pager.next_payload(&self.client);
            let payload = match self.with_timeout(PAGE_TIMEOUT, next).await? {
                Ok(Some(payload)) => payload,
                Ok(None) => continue,
                Err(kube::Error::Api(status)) if status.code == 410 => {
                    return Err(WatchError::Gone(T::RESOURCE.plural));
                }
                Err(error) => return Err(WatchError::List(T::RESOURCE.plural, error)),
            };
            let page = EncodedPage::read(&payload, T::RESOURCE.kind)
                .map_err(|error| WatchError::List(T::RESOURCE.plural, error))?;
            let mut unsent = 0;
            for item in page.items {
                unsent += item.len();
                objects.extend(
                    self.read(&item)?
                        .filter(|object| object.is_kept_from_lists(&self.kinds)),
                );
                if unsent > CHUNK_BYTES {
                    (objects, unsent) = (self.send_chunk(objects, &mut sent).await?, 0);
                }
            }
            if !pager.advance(&page.metadata) {
                break page.metadata.resource_version;
            }
            objects = self.send_chunk(objects, &mut sent).await?;
        };
        if resource_version.is_empty() {
            return Err(WatchError::NoVersion(T::RESOURCE.plural));
        }
        let count = sent + objects.len();
        tracing::debug!(resource = %T::RESOURCE, count, resource_version, "listed");
        let begins_anew = gate::is_behind(&self.version, &resource_version);
        (self.version, self.next) = (resource_version.clone(), Step::Watch);
        (self.pages_sent, self.is_absent, self.is_lost) = (false, false, false);
        self.set_healthy();
        self.send(T::event(Delta::Listed {
            objects,
            resource_version,
        }))
        .await?;
        self.has_listed.send_replace(true);
        self.listed(restores, begins_anew);
        Ok(())
    }

    /// Records a finished list that started when `known` restores were known. If the list shows a new restore, the other
    /// reflectors are told. They are told after this list was sent, so that their lists come after it.
    fn listed(&mut self, known: u64, begins_anew: bool) {
        let is_new = begins_anew && known == self.restores_listed;
        if is_new {
            self.restores.send_if_modified(|restores| {
                let is_first = *restores == known;
                *restores += u64::from(is_first);
                is_first
            });
        }
        self.restores_listed = if is_new { *self.restores.borrow() } else { known };
    }

    /// Like `send_page`, and adds the number of objects that were sent to `sent`.
    async fn send_chunk(&mut self, objects: Vec<T>, sent: &mut usize) -> Result<Vec<T>, WatchError> {
        let read = objects.len();
        let objects = self.send_page(objects, !self.pages_sent).await?;
        *sent += read - objects.len();
        Ok(objects)
    }

    /// Sends the objects read so far as a page. Returns them if this kind does not send pages.
    async fn send_page(&mut self, objects: Vec<T>, is_first: bool) -> Result<Vec<T>, WatchError> {
        match T::page(objects, is_first) {
            Ok(page) => {
                self.pages_sent = true;
                self.send(page).await?;
                self.wait_until_received().await?;
                Ok(Vec::new())
            }
            Err(mut objects) => {
                T::bound(&mut objects);
                Ok(objects)
            }
        }
    }

    /// Asks the apiserver for its current version. If that is lower than ours, everything is listed again.
    async fn check_version(&mut self) -> Result<(), WatchError> {
        let failed = |error| WatchError::List(T::RESOURCE.plural, error);
        let mut pager = self.pager(1);
        let answer = self.with_timeout(OPEN_TIMEOUT, pager.next_payload(&self.client));
        let Some(payload) = answer.await?.map_err(failed)? else {
            return Ok(());
        };
        let page = EncodedPage::read(&payload, T::RESOURCE.kind).map_err(failed)?;
        let (version, now) = (&self.version, page.metadata.resource_version);
        self.next = if gate::is_behind(version, &now) {
            tracing::warn!(resource = %T::RESOURCE, version, now, "the apiserver is at a lower version than the watch had reached; listing again");
            Step::List
        } else {
            Step::Watch
        };
        Ok(())
    }

    /// Watches until the apiserver ends the watch, as it does every few minutes, or until another reflector finds a restore
    /// of etcd.
    async fn watch(&mut self) -> Result<(), WatchError> {
        self.next = Step::CheckVersion;
        let failed = |error| match error {
            kube::Error::Api(status) if status.code == 410 => WatchError::Gone(T::RESOURCE.plural),
            error => WatchError::Watch(T::RESOURCE.plural, error),
        };
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let mut request = Request::new(self.path.as_str())
            .watch(&params, &self.version)
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        if T::READ_PROTOBUF.is_some() {
            encoding::ask_for_protobuf(request.headers_mut());
        }
        let open = wire::open(&self.client, request);
        let mut events = self.with_timeout(OPEN_TIMEOUT, open).await?.map_err(failed)?;
        tracing::debug!(resource = %T::RESOURCE, encoding = %events.encoding, "watching");
        self.set_healthy();
        let (began, mut shown) = (Instant::now(), false);
        let (mut restores, listed) = (self.restores.subscribe(), self.restores_listed);
        loop {
            let next = tokio::select! {
                next = timeout(IDLE_LIMIT, events.next()) => next,
                _ = restores.wait_for(|restores| *restores != listed) => return Ok(()),
            };
            let Ok(next) = next else { break };
            let Some(payload) = next.map_err(failed)? else {
                let short = !shown && began.elapsed() < SHORT_WATCH;
                return if short {
                    Err(WatchError::Short(T::RESOURCE.plural))
                } else {
                    Ok(())
                };
            };
            self.handle_event(&payload).await?;
            shown = true;
            self.delays = Delays::new();
        }
        tracing::debug!(resource = %T::RESOURCE, "the watch has shown nothing for too long; starting a new one");
        Ok(())
    }

    async fn handle_event(&mut self, payload: &Payload) -> Result<(), WatchError> {
        let unread = |error| WatchError::Event(T::RESOURCE.plural, error);
        let Event { kind, object } = Event::read(payload, T::RESOURCE.kind).map_err(unread)?;
        if kind == EventKind::Error {
            let status = object.status().map_err(unread)?;
            return Err(if status.code == 410 {
                WatchError::Gone(T::RESOURCE.plural)
            } else {
                WatchError::Watch(T::RESOURCE.plural, kube::Error::Api(Box::new(status)))
            });
        }
        let version = object.identity().resource_version;
        let event = match kind {
            EventKind::Bookmark => Some(T::bookmark(version.clone())),
            EventKind::Deleted => self.read(&object)?.map(|object| T::event(Delta::Deleted(object))),
            _ => self.read(&object)?.map(|object| T::event(Delta::Applied(object))),
        };
        if !version.is_empty() {
            self.version = version;
        }
        let Some(event) = event else { return Ok(()) };
        self.send(event).await?;
        if payload.len() > CHUNK_BYTES {
            self.wait_until_received().await?;
        }
        Ok(())
    }

    /// Reads an object. Returns `None` for an unreadable object that may be skipped; the cache then keeps its last state.
    fn read(&self, object: &Object<'_>) -> Result<Option<T>, WatchError> {
        let read = match (object, T::READ_PROTOBUF) {
            (Object::Json(json), _) => T::read(json.get()),
            (Object::Protobuf(bytes), Some(read)) => read(bytes),
            (Object::Protobuf(_), None) => Err(ProjectError {
                path: ".".to_owned(),
                message: encoding::UNASKED.to_owned(),
            }),
        };
        let error = match read {
            Ok(object) => return Ok(Some(object)),
            Err(error) => error,
        };
        let ObjectIdentity { namespace, name, .. } = object.identity();
        self.metrics.unreadable(T::RESOURCE);
        if !T::SKIPS_UNREADABLE {
            return Err(WatchError::Object(
                T::RESOURCE.plural,
                format!("{namespace}/{name}"),
                error,
            ));
        }
        tracing::warn!(resource = %T::RESOURCE, namespace, name, "skipped, because it cannot be read: {error}");
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
