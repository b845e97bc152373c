//! What makes an apiserver refuse writes for a while: quotas and admission webhooks. When one of them changes, workloads that failed
//! are tried again at once instead of at the end of their back-off.
//!
//! Nothing rests on it: where there is no right to watch them the back-off alone counts.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::sync::Notify;

/// Whose writes an obstacle may concern: those in one namespace, or `None`: all.
pub type Scope = Option<String>;

/// Changes of obstacles. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Obstacles(Arc<Changes>);

#[derive(Debug, Default)]
struct Changes {
    /// Those that nobody has heard of yet.
    scopes: Mutex<Vec<Scope>>,
    more: Notify,
}

impl Obstacles {
    /// One has changed.
    pub fn change(&self, scope: Scope) {
        let mut scopes = self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
        self.0.more.notify_one();
    }

    /// Waits until some have changed. Safe to drop while waiting.
    pub async fn changed(&self) -> Vec<Scope> {
        self.0.more.notified().await;
        std::mem::take(&mut *self.0.scopes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Watches the quotas of a namespace, or of all, and the webhooks of the cluster, until it is dropped.
    pub async fn watch(&self, client: &Client, namespace: Option<&str>) {
        let quotas: Api<ResourceQuota> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let quotas = watcher(quotas, watcher::Config::default());
        let limits = |quota: &ResourceQuota| {
            // Admission reads what the quota controller has copied into the status.
            let hard = |quota: &ResourceQuota| quota.status.as_ref().and_then(|status| status.hard.clone());
            (quota.spec.clone(), hard(quota))
        };
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
        let generation = |object: &PartialObjectMeta<K>| object.metadata.generation;
        self.follow(&K::plural(&()), webhooks, generation).await;
    }

    /// Notes when what decides about writes changes, as long as it may be watched.
    async fn follow<K: Resource, D: PartialEq>(
        &self,
        plural: &str,
        events: impl futures::Stream<Item = watcher::Result<Event<K>>>,
        decisive: impl Fn(&K) -> D,
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
    use std::collections::BTreeMap;

    use futures::stream;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
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
        let limits = |quota: &ResourceQuota| quota.spec.clone();
        obstacles
            .follow("resourcequotas", stream::iter(events), limits)
            .await;
        obstacles.change(None);
        obstacles.changed().await
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
                Some("a".to_owned()),
                Some("b".to_owned()),
                Some("c".to_owned()),
                None
            ]
        );
    }

    #[tokio::test]
    async fn who_may_not_watch_does_not_try_for_ever() {
        let refused = Status::failure("no", "Forbidden").with_code(403).boxed();
        let refused = watcher::Error::InitialListFailed(kube::Error::Api(refused));
        let events = stream::iter([Err(refused)]).chain(stream::pending());
        let obstacles = Obstacles::default();
        obstacles
            .follow("resourcequotas", events, |quota: &ResourceQuota| {
                quota.spec.clone()
            })
            .await;
    }
}
