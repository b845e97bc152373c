//! What makes an apiserver refuse writes for a while: quotas and admission webhooks. When one of them changes, workloads that failed
//! are tried again at once instead of at the end of their back-off.
//!
//! Nothing rests on it: where there is no right to watch them the back-off alone counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Deserialize;
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
        let quotas: Api<Obstacle<ResourceQuota>> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        // A quota may be as large as an object may be: few are held at a time.
        let quotas = watcher(quotas, watcher::Config::default().page_size(10));
        futures::join!(
            self.follow(quotas),
            self.follow_webhooks::<ValidatingWebhookConfiguration>(client),
            self.follow_webhooks::<MutatingWebhookConfiguration>(client),
        );
    }

    async fn follow_webhooks<K>(&self, client: &Client)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + 'static,
    {
        let webhooks = Api::<Obstacle<PartialObjectMeta<K>>>::all(client.clone());
        self.follow(watcher(webhooks, watcher::Config::default())).await;
    }

    /// Notes when what decides about writes changes, as long as it may be watched.
    async fn follow<K: Resource<DynamicType = ()>>(
        &self,
        events: impl futures::Stream<Item = watcher::Result<Event<Obstacle<K>>>>,
    ) {
        let plural = K::plural(&());
        let (mut seen, mut is_listed) = (HashMap::new(), false);
        let mut events = std::pin::pin!(events.default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    let now = object.decisive;
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

/// What is read of a quota or of a configuration of webhooks: which one it is, and what decides about writes. Who may write one may also
/// write managed fields that are nested deeper than a parser of whole objects takes, and it may be as large as an object may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Served", bound = "")]
struct Obstacle<K> {
    meta: ObjectMeta,
    /// A hash of what decides about writes.
    decisive: u64,
    kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
struct Served {
    metadata: Metadata,
    spec: Option<Limits>,
    status: Option<Limits>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
}

#[derive(Deserialize, Hash)]
struct Limits {
    hard: Option<BTreeMap<String, String>>,
}

impl<K> From<Served> for Obstacle<K> {
    fn from(
        Served {
            metadata,
            spec,
            status,
        }: Served,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        // Admission reads what the quota controller has copied into the status.
        (metadata.generation, spec, status).hash(&mut hasher);
        Self {
            meta: ObjectMeta {
                namespace: metadata.namespace,
                name: metadata.name,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            decisive: hasher.finish(),
            kind: PhantomData,
        }
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Obstacle<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }
    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }
    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }
    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }
    fn metadata_api() -> bool {
        K::metadata_api()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use kube::core::{Status, WatchEvent};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::api::{apiserver, failure};

    fn served(namespace: &str, pods: &str, used: &str) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": "q", "uid": format!("uid-{namespace}"), "resourceVersion": "7"},
            "spec": {"hard": {"pods": pods}}, "status": {"used": {"pods": used}},
        })
    }

    fn quota(namespace: &str, pods: &str, used: &str) -> Obstacle<ResourceQuota> {
        serde_json::from_value(served(namespace, pods, used)).expect("a quota")
    }

    // Whoever may write a quota of one namespace may write that, and it must not hide the others.
    #[tokio::test]
    async fn odd_managed_fields_hide_no_change() {
        let odd = |pods: &str| {
            let fields = (0..1_000).fold(json!({}), |fields, _| json!({ "f:a": fields }));
            let mut quota = served("odd", pods, "0");
            quota["metadata"]["managedFields"] =
                json!([{"time": "10000-01-01T22:59:59Z", "fieldsV1": fields}]);
            quota
        };
        let lists = AtomicU32::new(0);
        let (client, _) = apiserver(move |asked| {
            if !asked.line.contains("/resourcequotas") {
                return None;
            }
            if asked.line.contains("watch=") {
                let (_, gone) = failure(410, "Expired", &[]);
                return Some((200, json!({"type": "ERROR", "object": gone})));
            }
            let pods = lists.fetch_add(1, Ordering::Relaxed).min(1).to_string();
            let items = [odd(&pods), served("a", "1", "0")];
            let list = json!({"kind": "ResourceQuotaList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items});
            Some((200, list))
        });
        let obstacles = Obstacles::default();
        let changed = tokio::select! {
            changed = tokio::time::timeout(Duration::from_mins(1), obstacles.changed()) => changed,
            () = obstacles.watch(&client, None) => panic!("the watches end"),
        };
        assert_eq!(changed.ok(), Some(vec![Some("odd".to_owned())]));
        let line = format!(r#"{{"type":"MODIFIED","object":{}}}"#, odd("2"));
        let event: WatchEvent<Obstacle<ResourceQuota>> = serde_json::from_str(&line).expect("an event");
        assert!(matches!(event, WatchEvent::Modified(_)), "{event:?}");
    }

    async fn changes(events: Vec<watcher::Result<Event<Obstacle<ResourceQuota>>>>) -> Vec<Scope> {
        let obstacles = Obstacles::default();
        obstacles.follow(stream::iter(events)).await;
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
        obstacles.follow::<ResourceQuota>(events).await;
    }
}
