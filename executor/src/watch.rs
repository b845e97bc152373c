//! The watches of a real apiserver: list, then watch from the list's version, and begin again after a gap.
//!
//! Beyond what a ready-made watcher tells, the own-write gate needs the version of every list and of every bookmark, which
//! is why the loop is our own. First lists are most-recent (quorum) reads: an executor that was killed must not see less
//! than it had written. Objects are projected as they arrive and the rest of them is never kept. One that cannot be read is
//! passed over, named and counted: the others must not suffer for it.
//!
//! An apiserver whose etcd was restored from a backup may be at a lower version than a watch has reached. It does not refuse
//! such a watch, and shows nothing until it gets there. So before a watch goes on it is asked where it is. What one watch finds holds
//! for all: every resource is listed again, also one whose own version the apiserver has passed by then (D-112).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use backon::BackoffBuilder as _;
use futures::Stream;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status};
use nodewise_telemetry::{http::Checks, in_short};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{self, Identity};
use crate::event::{ClusterEvent, DaemonSet, Delta, Node, Pod, Resource, Revision};
use crate::gate;
use crate::list::{Page, Pages};
use crate::metrics::Metrics;
use crate::project::ProjectError;

mod kinds;
mod wire;

use kinds::Watched;
pub(crate) use kinds::{completed, page_size};
use wire::{Line, LineKind};

/// After this the apiserver ends a watch, in seconds.
const WATCH_SECONDS: u32 = 290;
/// Silence after which a watch is taken for dead, as the other end of a broken connection is: the apiserver sends a
/// bookmark every minute.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// Time for one page of a list; the apiserver itself gives up after a minute.
const PAGE_TIMEOUT: Duration = Duration::from_secs(65);
/// Time until a watch begins, and for a list of one object.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this and showed nothing has failed.
const SHORT_WATCH: Duration = Duration::from_secs(5);
/// Events that may wait for the controller before the watches wait too.
const CHANNEL_SIZE: usize = 1_024;
/// What was read from so many bytes is taken by the controller before more is read: labels take more than ten times the memory of their text,
/// and which revisions are kept whole is decided by the controller.
const CHUNK_BYTES: usize = 1 << 20;

/// A stream of everything that changes; dropping it ends the watches. It ends when any of them does, which none should: a
/// cache that is followed no more must not be planned from.
#[derive(Debug)]
pub struct Watches {
    events: mpsc::Receiver<ClusterEvent>,
    tasks: JoinSet<()>,
}

impl Watches {
    /// Starts watching, in one namespace or in all. Each resource has a check `watch-<resource>` in `checks` that fails, with the reason, while its
    /// watch does not work.
    #[must_use]
    pub fn start(client: &Client, namespace: Option<&str>, checks: &Checks, metrics: &Metrics) -> Self {
        let (sender, events) = mpsc::channel(CHANNEL_SIZE);
        let (restores, mut tasks) = (watch::Sender::new(0), JoinSet::new());
        let daemon_sets = Follower::<DaemonSet>::new(client, namespace, &sender, &restores, checks, metrics);
        let mut are_known = daemon_sets.has_listed.subscribe();
        tasks.spawn(daemon_sets.run());
        tasks.spawn(Follower::<Pod>::new(client, namespace, &sender, &restores, checks, metrics).run());
        tasks.spawn(Follower::<Node>::new(client, namespace, &sender, &restores, checks, metrics).run());
        let revisions = Follower::<Revision>::new(client, namespace, &sender, &restores, checks, metrics);
        tasks.spawn(async move {
            // Which revisions are kept whole depends on the DaemonSets.
            if are_known.wait_for(|are_known| *are_known).await.is_ok() {
                revisions.run().await;
            }
        });
        Self { events, tasks }
    }

    /// Ends the watches and waits until none can set a check any more.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
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
    List(Resource, #[source] kube::Error),
    #[error("watching {0}")]
    Watch(Resource, #[source] kube::Error),
    /// The same would be served again: a new list is needed.
    #[error("reading what the watch of {0} shows")]
    Line(Resource, #[source] serde_json::Error),
    /// Likewise.
    #[error("reading {1} of the {0}")]
    Object(Resource, String, #[source] ProjectError),
    #[error("the list of {0} has no resourceVersion")]
    NoVersion(Resource),
    /// What happened since the version is not known any more: a new list is needed.
    #[error("the watch of {0} fell too far behind")]
    Gone(Resource),
    /// The connection may be broken without either side having been told.
    #[error("no answer about {0} within {1:?}")]
    Silent(Resource, Duration),
    /// To begin at once again would be a storm.
    #[error("the watch of {0} ended as soon as it had begun")]
    Short(Resource),
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
        // A refusal may quote whole objects.
        in_short(&text)
    }
}

/// Follows one resource.
struct Follower<T> {
    client: Client,
    sender: mpsc::Sender<ClusterEvent>,
    checks: Checks,
    metrics: Metrics,
    check: String,
    /// The collection's path.
    path: String,
    /// What was reached, and where the next watch begins; empty before the first list.
    version: String,
    next: Step,
    /// How many restores of etcd any of the followers has found.
    restores: watch::Sender<u64>,
    /// How many of these our last list came after.
    restores_listed: u64,
    delays: Delays,
    /// A list was sent.
    has_listed: watch::Sender<bool>,
    /// Pages were sent of a list that is not complete.
    pages_sent: bool,
    resource: std::marker::PhantomData<fn() -> T>,
}

/// What a follower does next.
#[derive(Clone, Copy)]
enum Step {
    List,
    /// Ask whether the apiserver has reached our version.
    Confirm,
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
        restores: &watch::Sender<u64>,
        checks: &Checks,
        metrics: &Metrics,
    ) -> Self {
        let follower = Self {
            client: client.clone(),
            sender: sender.clone(),
            checks: checks.clone(),
            metrics: metrics.clone(),
            check: format!("watch-{}", T::RESOURCE),
            path: path::<T>(namespace),
            version: String::new(),
            next: Step::List,
            restores: restores.clone(),
            restores_listed: 0,
            delays: Delays::new(),
            has_listed: watch::Sender::new(false),
            pages_sent: false,
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
            if *self.restores.borrow() != self.restores_listed {
                self.next = Step::List;
            }
            let step = match self.next {
                Step::List => self.list().await,
                Step::Confirm => self.confirm().await,
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
                    if matches!(error, WatchError::Line(..) | WatchError::Object(..)) {
                        self.next = Step::List;
                    }
                    let (reason, delay) = (error.describe(), self.delays.next());
                    tracing::warn!(resource = %T::RESOURCE, ?delay, "{reason}; trying again");
                    self.checks.set(&self.check, Err(reason));
                    sleep(delay).await;
                }
            }
        }
    }

    /// The delays go on until the watch has shown something: what can be begun but not kept up has not recovered.
    fn works(&self) {
        self.checks.set(&self.check, Ok(()));
    }

    /// Gives up on a call that nobody answers.
    async fn bounded<R>(&self, limit: Duration, call: impl Future<Output = R>) -> Result<R, WatchError> {
        let answer = timeout(limit, call).await;
        answer.map_err(|_| WatchError::Silent(T::RESOURCE, limit))
    }

    async fn send(&self, event: ClusterEvent) -> Result<(), WatchError> {
        self.sender.send(event).await.map_err(|_| WatchError::Stopped)
    }

    /// Waits until the controller has taken every event.
    async fn all_taken(&self) -> Result<(), WatchError> {
        let places = self.sender.reserve_many(self.sender.max_capacity()).await;
        places.map(drop).map_err(|_| WatchError::Stopped)
    }

    /// Lists everything, page by page, as of one version.
    async fn list(&mut self) -> Result<(), WatchError> {
        let mut pages = Pages::new(self.path.as_str(), T::PAGE_SIZE);
        let (mut objects, mut sent) = (Vec::new(), 0);
        let restores = *self.restores.borrow();
        if std::mem::take(&mut self.pages_sent) {
            self.send_page(Vec::new(), true).await?;
        }
        let resource_version = loop {
            let text = match self.bounded(PAGE_TIMEOUT, pages.next(&self.client)).await? {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(kube::Error::Api(status)) if status.code == 410 => {
                    return Err(WatchError::Gone(T::RESOURCE));
                }
                Err(error) => return Err(WatchError::List(T::RESOURCE, error)),
            };
            let page = Page::read(&text).map_err(|error| WatchError::List(T::RESOURCE, error))?;
            let mut unsent = 0;
            for item in page.items.into_iter().flatten() {
                objects.extend(self.read(item)?.filter(T::matters));
                unsent += item.get().len();
                if unsent > CHUNK_BYTES {
                    (objects, unsent) = (self.send_chunk(objects, &mut sent).await?, 0);
                }
            }
            if !pages.go_on(&page.metadata) {
                break page.metadata.resource_version;
            }
            objects = self.send_chunk(objects, &mut sent).await?;
        };
        if resource_version.is_empty() {
            return Err(WatchError::NoVersion(T::RESOURCE));
        }
        let count = sent + objects.len();
        tracing::debug!(resource = %T::RESOURCE, count, resource_version, "listed");
        let begins_anew = gate::is_behind(&self.version, &resource_version);
        (self.version, self.next) = (resource_version.clone(), Step::Watch);
        self.pages_sent = false;
        self.works();
        self.send(T::event(Delta::Listed {
            objects,
            resource_version,
        }))
        .await?;
        self.has_listed.send_replace(true);
        self.listed(restores, begins_anew);
        Ok(())
    }

    /// Notes a list that was begun when so many restores were known, and tells the others of one that nobody knew of. They are told
    /// when the list is on its way, so that theirs come after it.
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

    /// Sends what was listed so far ahead, counting it, or answers with it.
    async fn send_chunk(&mut self, objects: Vec<T>, sent: &mut usize) -> Result<Vec<T>, WatchError> {
        let read = objects.len();
        let objects = self.send_page(objects, !self.pages_sent).await?;
        *sent += read - objects.len();
        Ok(objects)
    }

    /// Sends what was listed so far ahead, or answers with it.
    async fn send_page(&mut self, objects: Vec<T>, is_first: bool) -> Result<Vec<T>, WatchError> {
        match T::page(objects, is_first) {
            Ok(page) => {
                self.pages_sent = true;
                self.send(page).await?;
                self.all_taken().await?;
                Ok(Vec::new())
            }
            Err(objects) => Ok(objects),
        }
    }

    /// Asks the apiserver at which version it is. One that is behind this has begun anew, and everything is listed again.
    async fn confirm(&mut self) -> Result<(), WatchError> {
        let failed = |error| WatchError::List(T::RESOURCE, error);
        let request = Request::new(self.path.as_str())
            .list(&ListParams::default().limit(1))
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        let answer = self.bounded(OPEN_TIMEOUT, answer::text(&self.client, request));
        let text = answer.await?.map_err(failed)?;
        let page = Page::read(&text).map_err(failed)?;
        let (version, now) = (&self.version, page.metadata.resource_version);
        self.next = if gate::is_behind(version, &now) {
            tracing::warn!(resource = %T::RESOURCE, version, now, "the apiserver is at a lower version than the watch had reached; listing again");
            Step::List
        } else {
            Step::Watch
        };
        Ok(())
    }

    /// Watches until the apiserver ends it, as it does every few minutes, or another follower finds that etcd was restored.
    async fn watch(&mut self) -> Result<(), WatchError> {
        self.next = Step::Confirm;
        let failed = |error| match error {
            kube::Error::Api(status) if status.code == 410 => WatchError::Gone(T::RESOURCE),
            error => WatchError::Watch(T::RESOURCE, error),
        };
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let request = Request::new(self.path.as_str())
            .watch(&params, &self.version)
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        let open = wire::lines(&self.client, request);
        let mut lines = self.bounded(OPEN_TIMEOUT, open).await?.map_err(failed)?;
        self.works();
        let (began, mut shown) = (Instant::now(), false);
        let (mut restores, listed) = (self.restores.subscribe(), self.restores_listed);
        loop {
            let next = tokio::select! {
                next = timeout(IDLE_LIMIT, lines.next()) => next,
                _ = restores.wait_for(|restores| *restores != listed) => return Ok(()),
            };
            let Ok(next) = next else { break };
            let Some(line) = next.map_err(failed)? else {
                let short = !shown && began.elapsed() < SHORT_WATCH;
                return if short {
                    Err(WatchError::Short(T::RESOURCE))
                } else {
                    Ok(())
                };
            };
            self.take(&line).await?;
            shown = true;
            self.delays = Delays::new();
        }
        tracing::debug!(resource = %T::RESOURCE, "the watch is silent for too long; watching anew");
        Ok(())
    }

    async fn take(&mut self, line: &str) -> Result<(), WatchError> {
        let unread = |error| WatchError::Line(T::RESOURCE, error);
        let Line { kind, object } = serde_json::from_str(line).map_err(unread)?;
        if kind == LineKind::Error {
            let status: Status = serde_json::from_str(object.get()).map_err(unread)?;
            return Err(if status.code == 410 {
                WatchError::Gone(T::RESOURCE)
            } else {
                WatchError::Watch(T::RESOURCE, kube::Error::Api(Box::new(status)))
            });
        }
        let version = Identity::of(object.get()).resource_version;
        let event = match kind {
            LineKind::Bookmark => Some(ClusterEvent::Bookmark(T::RESOURCE, version.clone())),
            LineKind::Deleted => self.read(object)?.map(|object| T::event(Delta::Deleted(object))),
            _ => self.read(object)?.map(|object| T::event(Delta::Applied(object))),
        };
        if !version.is_empty() {
            self.version = version;
        }
        let Some(event) = event else { return Ok(()) };
        self.send(event).await?;
        if line.len() > CHUNK_BYTES {
            self.all_taken().await?;
        }
        Ok(())
    }

    /// Reads an object. Of one that may be missing and cannot be read its last state stays what is known.
    fn read(&self, object: &RawValue) -> Result<Option<T>, WatchError> {
        let error = match T::read(object.get()) {
            Ok(object) => return Ok(Some(object)),
            Err(error) => error,
        };
        let Identity { namespace, name, .. } = Identity::of(object.get());
        self.metrics.unreadable(T::RESOURCE);
        if !T::MAY_BE_MISSING {
            return Err(WatchError::Object(
                T::RESOURCE,
                format!("{namespace}/{name}"),
                error,
            ));
        }
        tracing::warn!(resource = %T::RESOURCE, namespace, name, "passed over, since it cannot be read: {error}");
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
