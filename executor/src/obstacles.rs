//! What makes an apiserver refuse writes for a while: quotas and admission webhooks. When one of them changes, workloads that failed
//! are tried again at once instead of at the end of their back-off.
//!
//! Nothing rests on it: where there is no right to watch them the back-off alone counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Whose writes an obstacle may concern: those in one namespace, or `None`: all.
pub type Scope = Option<String>;

/// Changes of obstacles are heard of this often at most.
const PAUSE: Duration = Duration::from_secs(1);

/// Changes of obstacles. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Obstacles(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    changes: Mutex<Changes>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Changes {
    /// Those that nobody has heard of yet.
    scopes: BTreeSet<Scope>,
    /// When some were heard of last.
    heard: Option<Instant>,
}

impl Obstacles {
    /// One has changed.
    pub fn change(&self, scope: Scope) {
        self.lock().scopes.insert(scope);
        self.0.more.notify_one();
    }

    /// Waits until some have changed, and gives them once a second at most: who may change a quota may do so all the time. Safe to drop
    /// while waiting.
    pub async fn changed(&self) -> Vec<Scope> {
        loop {
            let heard = self.lock().heard;
            if self.lock().scopes.is_empty() {
                self.0.more.notified().await;
            } else if let Some(heard) = heard.filter(|heard| heard.elapsed() < PAUSE) {
                sleep_until(heard + PAUSE).await;
            } else {
                let mut changes = self.lock();
                changes.heard = Some(Instant::now());
                return std::mem::take(&mut changes.scopes).into_iter().collect();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the quotas of a namespace, or of all, and the webhooks of the cluster, until it is dropped.
    pub async fn watch(&self, client: &Client, namespace: Option<&str>) {
        let quotas: Api<ResourceQuota> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        // A quota may be as large as an object may be: few are held at a time.
        let quotas = watcher(quotas, watcher::Config::default().page_size(10));
        let quotas = self.follow("resourcequotas", quotas, limits);
        futures::join!(
            quotas,
            self.follow_webhooks::<ValidatingWebhookConfiguration>(client),
            self.follow_webhooks::<MutatingWebhookConfiguration>(client),
        );
    }

    async fn follow_webhooks<K>(&self, client: &Client)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    {
        let webhooks = Api::<PartialObjectMeta<K>>::all(client.clone());
        let webhooks = watcher(webhooks, watcher::Config::default());
        let generation =
            |object: &PartialObjectMeta<K>| object.metadata.generation.unwrap_or_default().unsigned_abs();
        self.follow(&K::plural(&()), webhooks, generation).await;
    }

    /// Notes when what decides about writes changes, as long as it may be watched.
    async fn follow<K: Resource>(
        &self,
        plural: &str,
        events: impl futures::Stream<Item = watcher::Result<Event<K>>>,
        decisive: impl Fn(&K) -> u64,
    ) {
        let (mut seen, mut is_listed) = (HashMap::new(), false);
        let mut events = std::pin::pin!(events.default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    let now = decisive(&object);
                    let uid = object.uid().unwrap_or_default();
                    let is_as_before = seen.get(&uid) == Some(&now);
                    seen.insert(uid, now);
                    if is_listed && !is_as_before {
                        self.change(object.namespace());
                    }
                }
                Ok(Event::Delete(object)) => {
                    seen.remove(&object.uid().unwrap_or_default());
                    self.change(object.namespace());
                }
                Ok(Event::InitDone) => is_listed = true,
                Ok(Event::Init) => {}
                Err(error) if is_forbidden(&error) => {
                    tracing::info!(
                        "no right to list and watch {plural}: what one of these refuses is tried again when its back-off ends"
                    );
                    return;
                }
                Err(error) => tracing::debug!(%error, "watching {plural}"),
            }
        }
    }
}

/// What decides about a quota, hashed: it may be as large as an object may be. Admission reads what the quota controller has copied
/// into the status.
fn limits(quota: &ResourceQuota) -> u64 {
    fn write(hard: Option<&BTreeMap<String, Quantity>>, hasher: &mut DefaultHasher) {
        let hard = hard.into_iter().flatten();
        hard.for_each(|(name, Quantity(most))| (name, most).hash(hasher));
    }
    let mut hasher = DefaultHasher::new();
    write(
        quota.spec.as_ref().and_then(|spec| spec.hard.as_ref()),
        &mut hasher,
    );
    hasher.write_u8(0);
    write(
        quota.status.as_ref().and_then(|status| status.hard.as_ref()),
        &mut hasher,
    );
    hasher.finish()
}

fn is_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status.is_forbidden(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use kube::core::Status;

    use super::*;

    fn quota(namespace: &str, pods: &str, used: &str) -> ResourceQuota {
        let amount = |pods: &str| BTreeMap::from([("pods".to_owned(), Quantity(pods.to_owned()))]);
        let mut quota = ResourceQuota::default();
        quota.metadata.namespace = Some(namespace.to_owned());
        quota.metadata.uid = Some(format!("uid-{namespace}"));
        quota.spec.get_or_insert_default().hard = Some(amount(pods));
        quota.status.get_or_insert_default().used = Some(amount(used));
        quota
    }

    async fn changes(events: Vec<watcher::Result<Event<ResourceQuota>>>) -> Vec<Scope> {
        let obstacles = Obstacles::default();
        obstacles
            .follow("resourcequotas", stream::iter(events), limits)
            .await;
        obstacles.change(None);
        obstacles.changed().await
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_heard_of_once_a_second_and_none_is_lost() {
        let obstacles = Obstacles::default();
        let at = |namespace: &str| Some(namespace.to_owned());
        obstacles.change(at("a"));
        assert_eq!(obstacles.changed().await, [at("a")]);
        let start = Instant::now();
        obstacles.change(at("b"));
        // Whoever waits for something else as well gives up again and again.
        for _ in 0..3 {
            let waited = tokio::time::timeout(PAUSE / 10, obstacles.changed()).await;
            assert!(waited.is_err());
        }
        obstacles.change(at("a"));
        assert_eq!(obstacles.changed().await, [at("a"), at("b")]);
        assert_eq!(start.elapsed(), PAUSE);
    }

    #[tokio::test]
    async fn changed_limits_are_told_and_usage_is_not() {
        let told = changes(vec![
            Ok(Event::Init),
            Ok(Event::InitApply(quota("a", "1", "0"))),
            Ok(Event::InitApply(quota("b", "1", "0"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(quota("a", "1", "1"))),
        ]);
        assert_eq!(told.await, [None], "nothing but the end of the test");
        let told = changes(vec![
            Ok(Event::InitApply(quota("a", "1", "0"))),
            Ok(Event::InitApply(quota("b", "1", "0"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(quota("a", "2", "1"))),
            Ok(Event::Delete(quota("b", "1", "1"))),
            Ok(Event::Apply(quota("c", "1", "0"))),
        ]);
        assert_eq!(
            told.await,
            [
                None,
                Some("a".to_owned()),
                Some("b".to_owned()),
                Some("c".to_owned())
            ]
        );
    }

    #[tokio::test]
    async fn who_may_not_watch_does_not_try_for_ever() {
        let refused = Status::failure("no", "Forbidden").with_code(403).boxed();
        let refused = watcher::Error::InitialListFailed(kube::Error::Api(refused));
        let events = stream::iter([Err(refused)]).chain(stream::pending());
        let obstacles = Obstacles::default();
        obstacles.follow("resourcequotas", events, limits).await;
    }
}
