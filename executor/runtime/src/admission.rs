//! Watches the quotas and admission webhooks that can make the apiserver reject writes. When one of them changes, failed
//! workloads are retried at once instead of after their back-off.
//!
//! This is an optimization. Without permission to watch them, failed workloads are retried after their back-off.

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

/// The namespace whose writes a change may affect; `None` for all namespaces.
pub type Scope = Option<String>;

/// Minimum time between two reports of changes.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Changes of quotas and webhooks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AdmissionChanges(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    changes: Mutex<Changes>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Changes {
    /// Changes that were not reported yet.
    scopes: BTreeSet<Scope>,
    /// Time of the last report.
    last_report: Option<Instant>,
}

impl AdmissionChanges {
    /// Records a change.
    pub fn change(&self, scope: Scope) {
        self.lock().scopes.insert(scope);
        self.0.more.notify_one();
    }

    /// Waits for changes and returns them, at most once a second, because a user who may change a quota may do so all the
    /// time. Cancel safe.
    pub async fn changed(&self) -> Vec<Scope> {
        loop {
            let last_report = self.lock().last_report;
            if self.lock().scopes.is_empty() {
                self.0.more.notified().await;
            } else if let Some(last_report) =
                last_report.filter(|last_report| last_report.elapsed() < MIN_INTERVAL)
            {
                sleep_until(last_report + MIN_INTERVAL).await;
            } else {
                let mut changes = self.lock();
                changes.last_report = Some(Instant::now());
                return std::mem::take(&mut changes.scopes).into_iter().collect();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the quotas of a namespace, or of all, and the webhook configurations of the cluster. Runs until it is dropped.
    pub async fn watch(&self, client: &Client, namespace: Option<&str>) {
        let quotas: Api<AdmissionObject<ResourceQuota>> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        // A quota may be as large as any object, so pages are small.
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
        let webhooks = Api::<AdmissionObject<PartialObjectMeta<K>>>::all(client.clone());
        self.follow(watcher(webhooks, watcher::Config::default())).await;
    }

    /// Records a change when the relevant fields of an object change. Returns if the executor may not watch the resource.
    async fn follow<K: Resource<DynamicType = ()>>(
        &self,
        events: impl futures::Stream<Item = watcher::Result<Event<AdmissionObject<K>>>>,
    ) {
        let plural = K::plural(&());
        let (mut seen, mut is_listed) = (HashMap::new(), false);
        let mut events = std::pin::pin!(events.default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    let now = object.settings_hash;
                    let uid = object.uid().unwrap_or_default();
                    let is_unchanged = seen.get(&uid) == Some(&now);
                    seen.insert(uid, now);
                    if is_listed && !is_unchanged {
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
                        "no right to list and watch {plural}: a write that one of these refuses is retried after its back-off"
                    );
                    return;
                }
                Err(error) => tracing::debug!(%error, "watching {plural}"),
            }
        }
    }
}

/// The relevant fields of a quota or of a webhook configuration: its identity, and a hash of the fields that affect writes.
/// The rest is not parsed: managed fields may be nested too deep for a parser of whole objects, and objects may be large.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ServedObject", bound = "")]
struct AdmissionObject<K> {
    meta: ObjectMeta,
    /// A hash of the fields that affect writes.
    settings_hash: u64,
    kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
struct ServedObject {
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

impl<K> From<ServedObject> for AdmissionObject<K> {
    fn from(
        ServedObject {
            metadata,
            spec,
            status,
        }: ServedObject,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        // Admission reads the limits that the quota controller has copied into the status.
        (metadata.generation, spec, status).hash(&mut hasher);
        Self {
            meta: ObjectMeta {
                namespace: metadata.namespace,
                name: metadata.name,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            settings_hash: hasher.finish(),
            kind: PhantomData,
        }
    }
}

impl<K: Resource<DynamicType = ()>> Resource for AdmissionObject<K> {
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
    use nodewise_fake_apiserver::{apiserver, failure};

    fn served(namespace: &str, pods: &str, used: &str) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": "q", "uid": format!("uid-{namespace}"), "resourceVersion": "7"},
            "spec": {"hard": {"pods": pods}}, "status": {"used": {"pods": used}},
        })
    }

    fn quota(namespace: &str, pods: &str, used: &str) -> AdmissionObject<ResourceQuota> {
        serde_json::from_value(served(namespace, pods, used)).expect("a quota")
    }

    // A user who may write a quota can write unusual managed fields. They must not hide changes of other quotas.
    #[tokio::test]
    async fn unusual_managed_fields_hide_no_change() {
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
        let admission_changes = AdmissionChanges::default();
        let changed = tokio::select! {
            changed = tokio::time::timeout(Duration::from_mins(1), admission_changes.changed()) => changed,
            () = admission_changes.watch(&client, None) => panic!("the watches end"),
        };
        assert_eq!(changed.ok(), Some(vec![Some("odd".to_owned())]));
        let line = format!(r#"{{"type":"MODIFIED","object":{}}}"#, odd("2"));
        let event: WatchEvent<AdmissionObject<ResourceQuota>> =
            serde_json::from_str(&line).expect("an event");
        assert!(matches!(event, WatchEvent::Modified(_)), "{event:?}");
    }

    async fn changes(events: Vec<watcher::Result<Event<AdmissionObject<ResourceQuota>>>>) -> Vec<Scope> {
        let admission_changes = AdmissionChanges::default();
        admission_changes.follow(stream::iter(events)).await;
        admission_changes.change(None);
        admission_changes.changed().await
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_reported_once_a_second_and_none_is_lost() {
        let admission_changes = AdmissionChanges::default();
        let at = |namespace: &str| Some(namespace.to_owned());
        admission_changes.change(at("a"));
        assert_eq!(admission_changes.changed().await, [at("a")]);
        let start = Instant::now();
        admission_changes.change(at("b"));
        // A caller that also waits for something else drops the future again and again.
        for _ in 0..3 {
            let waited = tokio::time::timeout(MIN_INTERVAL / 10, admission_changes.changed()).await;
            assert!(waited.is_err());
        }
        admission_changes.change(at("a"));
        assert_eq!(admission_changes.changed().await, [at("a"), at("b")]);
        assert_eq!(start.elapsed(), MIN_INTERVAL);
    }

    #[tokio::test]
    async fn changed_limits_are_reported_and_usage_is_not() {
        let reported = changes(vec![
            Ok(Event::Init),
            Ok(Event::InitApply(quota("a", "1", "0"))),
            Ok(Event::InitApply(quota("b", "1", "0"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(quota("a", "1", "1"))),
        ]);
        assert_eq!(reported.await, [None], "nothing but the end of the test");
        let reported = changes(vec![
            Ok(Event::InitApply(quota("a", "1", "0"))),
            Ok(Event::InitApply(quota("b", "1", "0"))),
            Ok(Event::InitDone),
            Ok(Event::Apply(quota("a", "2", "1"))),
            Ok(Event::Delete(quota("b", "1", "1"))),
            Ok(Event::Apply(quota("c", "1", "0"))),
        ]);
        assert_eq!(
            reported.await,
            [
                None,
                Some("a".to_owned()),
                Some("b".to_owned()),
                Some("c".to_owned())
            ]
        );
    }

    #[tokio::test]
    async fn a_forbidden_watch_is_not_retried() {
        let refused = Status::failure("no", "Forbidden").with_code(403).boxed();
        let refused = watcher::Error::InitialListFailed(kube::Error::Api(refused));
        let events = stream::iter([Err(refused)]).chain(stream::pending());
        let admission_changes = AdmissionChanges::default();
        admission_changes.follow::<ResourceQuota>(events).await;
    }
}
