//! What happened to the pods and ReplicaSets of one workload, read afterwards from the apiserver's watches. They show each
//! change in order, however fast the changes followed each other. A test checks its bounds against what happened, not
//! against plans.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, pin_mut, try_join};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;

use crate::{
    budget::{is_finished, is_live, is_ready},
    replicas::{HASH_LABEL, controller_of},
    test_namespace::TestNamespace,
};

/// How long a watch is read, in seconds. The apiserver sends past changes at once.
const READING: u32 = 1;

/// The objects of one resource, and the version of the list.
#[derive(Debug)]
struct Listed<K> {
    objects: BTreeMap<String, K>,
    version: String,
}

/// The start of a history.
#[derive(Debug)]
pub struct Beginning {
    labels: String,
    pods: Listed<Pod>,
    sets: Listed<ReplicaSet>,
}

/// The worst values that occurred.
#[derive(Debug, Default)]
pub struct History {
    /// Uids of the pods that were created.
    pub(crate) created: BTreeSet<String>,
    /// Uids of the pods that were deleted, from the request on.
    pub(crate) deleted: BTreeSet<String>,
    /// The most pods at a time that were neither finished nor in deletion, by the uid of their controller.
    most_live: BTreeMap<String, usize>,
    /// The largest spec.replicas of each ReplicaSet, by uid.
    largest: BTreeMap<String, usize>,
    /// The largest sum of spec.replicas of all ReplicaSets.
    pub(crate) most_replicas: usize,
    /// The fewest ready pods at a time.
    pub(crate) fewest_ready: usize,
    /// The most templates at a time that unfinished pods had, with those in deletion.
    pub(crate) most_templates: usize,
}

impl TestNamespace {
    /// Starts the history of the workload whose pods and ReplicaSets have the label `app: name`.
    pub async fn begin_history(&self, name: &str) -> Result<Beginning> {
        let labels = format!("app={name}");
        Ok(Beginning {
            pods: list(&self.api(), &labels).await?,
            sets: list(&self.api(), &labels).await?,
            labels,
        })
    }

    /// What has happened since then.
    pub async fn history(&self, begun: &Beginning) -> Result<History> {
        let (pods, sets) = (self.pod_api(), self.replica_set_api());
        let (pods, sets) = try_join!(
            changes(self, &pods, &begun.labels, &begun.pods),
            changes(self, &sets, &begun.labels, &begun.sets)
        )?;
        let mut history = History::default();
        history.measure_pods(&begun.pods, pods);
        history.measure_sets(&begun.sets, sets);
        Ok(history)
    }
}

impl History {
    fn measure_pods(&mut self, begun: &Listed<Pod>, changes: Vec<WatchEvent<Pod>>) {
        let mut pods = begun.objects.clone();
        self.fewest_ready = pods.values().filter(|pod| is_ready(pod)).count();
        for change in changes {
            match change {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                    let uid = uid(&pod);
                    if !begun.objects.contains_key(&uid) {
                        self.created.insert(uid.clone());
                    }
                    if pod.metadata.deletion_timestamp.is_some() {
                        self.deleted.insert(uid.clone());
                    }
                    pods.insert(uid, pod);
                }
                WatchEvent::Deleted(pod) => {
                    pods.remove(&uid(&pod));
                    self.deleted.insert(uid(&pod));
                }
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
            }
            self.measure_present_pods(&pods);
        }
    }

    fn measure_present_pods(&mut self, pods: &BTreeMap<String, Pod>) {
        let mut live: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in pods.values().filter(|pod| is_live(pod)) {
            *live
                .entry(controller_of(&pod.metadata).unwrap_or_default())
                .or_default() += 1;
        }
        for (controller, count) in live {
            let most = self.most_live.entry(controller.to_owned()).or_default();
            *most = count.max(*most);
        }
        let ready = pods.values().filter(|pod| is_ready(pod)).count();
        self.fewest_ready = self.fewest_ready.min(ready);
        let unfinished = pods.values().filter(|pod| !is_finished(pod));
        let templates: BTreeSet<_> = unfinished.map(|pod| pod.labels().get(HASH_LABEL)).collect();
        self.most_templates = self.most_templates.max(templates.len());
    }

    fn measure_sets(&mut self, begun: &Listed<ReplicaSet>, changes: Vec<WatchEvent<ReplicaSet>>) {
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        let before = begun.objects.values().cloned().map(WatchEvent::Added);
        for change in before.chain(changes) {
            match change {
                WatchEvent::Added(set) | WatchEvent::Modified(set) => {
                    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
                    sizes.insert(uid(&set), usize::try_from(wanted).unwrap_or(0));
                }
                WatchEvent::Deleted(set) => {
                    sizes.remove(&uid(&set));
                }
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
            }
            for (uid, size) in &sizes {
                let largest = self.largest.entry(uid.clone()).or_default();
                *largest = (*size).max(*largest);
            }
            self.most_replicas = self.most_replicas.max(sizes.values().sum());
        }
    }

    /// Fails if a ReplicaSet ever had more pods than replicas. Pods that are finished or in deletion do not count.
    pub(crate) fn expect_no_excess_pods(&self) -> Result<()> {
        for (set, most) in &self.largest {
            let pods = self.most_live.get(set).copied().unwrap_or(0);
            ensure!(
                pods <= *most,
                "the ReplicaSet {set} had {pods} pods, and never more than {most} replicas"
            );
        }
        Ok(())
    }

    /// Fails unless exactly `created` pods were created and `deleted` pods were deleted, and no ReplicaSet ever had too
    /// many pods.
    pub fn expect_pods(&self, created: usize, deleted: usize) -> Result<()> {
        self.expect_no_excess_pods()?;
        let counts = (self.created.len(), self.deleted.len());
        ensure!(
            counts == (created, deleted),
            "{} pods were created and {} deleted, where {created} and {deleted} were needed",
            counts.0,
            counts.1
        );
        Ok(())
    }

    /// P-65. Fails if the ReplicaSets ever wanted more than `most` pods, or fewer than `fewest` pods were ready.
    pub fn expect_within(&self, most: usize, fewest: usize) -> Result<()> {
        self.expect_no_excess_pods()?;
        ensure!(
            self.most_replicas <= most,
            "the ReplicaSets had {} replicas, and {most} were allowed",
            self.most_replicas
        );
        ensure!(
            self.fewest_ready >= fewest,
            "only {} pods were ready, and {fewest} had to be",
            self.fewest_ready
        );
        Ok(())
    }
}

fn uid(object: &impl Resource) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

async fn list<K>(api: &Api<K>, labels: &str) -> Result<Listed<K>>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let list = api.list(&ListParams::default().labels(labels)).await?;
    Ok(Listed {
        version: list.metadata.resource_version.unwrap_or_default(),
        objects: list
            .items
            .into_iter()
            .map(|object| (uid(&object), object))
            .collect(),
    })
}

/// All changes since a list, up to this call.
async fn changes<K>(
    namespace: &TestNamespace,
    api: &Api<K>,
    labels: &str,
    since: &Listed<K>,
) -> Result<Vec<WatchEvent<K>>>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let until = list(api, labels).await?;
    let params = WatchParams::default()
        .labels(labels)
        .disable_bookmarks()
        .timeout(READING);
    namespace
        .eventually("the watch to show the objects that there are", async || {
            let watch = api.watch(&params, &since.version).await?;
            pin_mut!(watch);
            let (mut changes, mut versions) = (Vec::new(), versions(since));
            while let Some(change) = watch.next().await {
                let change = change.context("reading a watch")?;
                match &change {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        versions.insert(uid(object), version(object));
                    }
                    WatchEvent::Deleted(object) => {
                        versions.remove(&uid(object));
                    }
                    WatchEvent::Error(status) => bail!("the watch failed: {status:?}"),
                    WatchEvent::Bookmark(_) => {}
                }
                changes.push(change);
            }
            let late = until.objects.iter().filter(|(uid, object)| {
                let shown = versions.get(*uid);
                shown.is_none_or(|shown| *shown < version(*object)) && {
                    // It may have been deleted since the list.
                    let is_gone = |change: &WatchEvent<K>| {
                        matches!(change, WatchEvent::Deleted(gone) if uid_is(gone, uid))
                    };
                    !changes.iter().any(is_gone)
                }
            });
            let late = late.count();
            let kept = versions.keys().filter(|uid| {
                let is_new = !since.objects.contains_key(*uid);
                !until.objects.contains_key(*uid) && !is_new
            });
            let kept = kept.count();
            ensure!(
                late == 0 && kept == 0,
                "{late} objects are shown as they were, and {kept} are not shown as deleted"
            );
            Ok(changes)
        })
        .await
}

fn uid_is(object: &impl Resource, expected: &str) -> bool {
    object.meta().uid.as_deref() == Some(expected)
}

fn version(object: &impl Resource) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

fn versions<K: Resource>(listed: &Listed<K>) -> BTreeMap<String, u64> {
    let objects = listed.objects.iter();
    objects
        .map(|(uid, object)| (uid.clone(), version(object)))
        .collect()
}
