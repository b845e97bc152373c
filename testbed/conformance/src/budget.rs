//! Watches the pods of one DaemonSet and records the worst values that occurred. A test checks its budget against these
//! observed values, not against plans.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};
use nodewise_testbed::eventually;

use crate::deadline::DEADLINE;

/// The values recorded so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Uids of all pods seen.
    pub created: BTreeSet<String>,
    /// Uids of all pods seen in deletion or gone, with the time at which that was first seen.
    pub deleted: BTreeMap<String, Instant>,
    /// The most pods on one node at a time that were neither finished nor in deletion, and the name of that node.
    pub most_live: (usize, String),
    /// The most nodes without a ready pod at a time, among the nodes that had one at [`BudgetWatch::arm`].
    pub most_unavailable: usize,
    /// The most nodes at a time with more than one live pod.
    pub most_surging: usize,
}

impl Seen {
    /// Fails if a node ever had two live pods.
    pub fn expect_no_doubles(&self) -> Result<()> {
        let (count, node) = &self.most_live;
        ensure!(*count <= 1, "{node} had {count} pods at a time");
        Ok(())
    }

    /// Fails if more than `allowed` nodes were unavailable at a time.
    pub fn expect_unavailable_at_most(&self, allowed: usize) -> Result<()> {
        let most = self.most_unavailable;
        ensure!(most <= allowed, "{most} nodes were unavailable, {allowed} may be");
        Ok(())
    }

    /// Fails unless a rollout kept its budget, created exactly `created` pods in total, and never had two pods on a
    /// node.
    pub fn expect_rollout(&self, unavailable: usize, created: usize) -> Result<()> {
        self.expect_unavailable_at_most(unavailable)?;
        self.expect_no_doubles()?;
        self.expect_created(created)
    }

    /// Fails unless exactly `count` pods were created in total.
    pub fn expect_created(&self, count: usize) -> Result<()> {
        let made = self.created.len();
        ensure!(made == count, "{made} pods were made where {count} were needed");
        Ok(())
    }
}

#[derive(Debug, Default)]
struct State {
    pods: BTreeMap<String, Pod>,
    /// The nodes that count as unavailable while they have no ready pod.
    armed: BTreeSet<String>,
    /// Whether a list is in progress, so that `pods` is incomplete.
    listing: bool,
    seen: Seen,
}

/// A running watch. It ends when dropped.
#[derive(Debug)]
pub struct BudgetWatch {
    pods: Api<Pod>,
    labels: String,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl BudgetWatch {
    /// Starts to watch the pods of a namespace that have the label `app: name`.
    #[must_use]
    pub fn start(client: Client, namespace: &str, name: &str) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let labels = format!("app={name}");
        let config = watcher::Config::default().labels(&labels);
        let (shared, watched) = (Arc::clone(&state), pods.clone());
        let task = tokio::spawn(async move {
            let mut events = watcher(watched, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                if let Ok(event) = event {
                    shared
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .observe(event);
                }
            }
        });
        Self {
            pods,
            labels,
            state,
            task,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, every node that now has a ready pod counts as unavailable while it has none.
    ///
    /// # Errors
    /// As [`BudgetWatch::seen`].
    pub async fn arm(&self) -> Result<()> {
        self.catch_up().await?;
        let mut state = self.lock();
        state.armed = state.nodes_with(is_ready);
        state.seen.most_unavailable = 0;
        state.seen.most_surging = 0;
        Ok(())
    }

    /// The values recorded so far.
    #[must_use]
    pub fn seen_so_far(&self) -> Seen {
        self.lock().seen.clone()
    }

    /// The values recorded so far, once the watch has caught up with the apiserver.
    ///
    /// # Errors
    /// The pods cannot be listed, or the watch does not catch up.
    pub async fn seen(&self) -> Result<Seen> {
        self.catch_up().await?;
        Ok(self.seen_so_far())
    }

    async fn catch_up(&self) -> Result<()> {
        let labelled = ListParams::default().labels(&self.labels);
        eventually(
            DEADLINE,
            "the watch to show the pods that there are",
            async || {
                let listed = self.pods.list(&labelled).await?;
                let state = self.lock();
                let late = listed.iter().filter(|pod| !state.shows(pod)).count();
                ensure!(late == 0, "{late} pods are shown as they were, or not at all");
                Ok(())
            },
        )
        .await
    }
}

impl Drop for BudgetWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn observe(&mut self, event: watcher::Event<Pod>) {
        match event {
            watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                self.seen.created.insert(uid.clone());
                if pod.metadata.deletion_timestamp.is_some() {
                    self.seen.deleted.entry(uid.clone()).or_insert_with(Instant::now);
                }
                self.pods.insert(uid, pod);
            }
            watcher::Event::Delete(pod) => {
                let uid = pod.metadata.uid.unwrap_or_default();
                self.pods.remove(&uid);
                self.seen.deleted.entry(uid).or_insert_with(Instant::now);
            }
            watcher::Event::Init => {
                self.pods.clear();
                self.listing = true;
            }
            watcher::Event::InitDone => self.listing = false,
        }
        if !self.listing {
            self.measure();
        }
    }

    /// Whether the watch has this version of a pod, or a later one.
    fn shows(&self, pod: &Pod) -> bool {
        let version = |pod: &Pod| {
            pod.resource_version()
                .and_then(|version| version.parse::<u64>().ok())
        };
        let uid = pod.uid().unwrap_or_default();
        match self.pods.get(&uid) {
            Some(known) => version(known) >= version(pod),
            None => self.seen.deleted.contains_key(&uid),
        }
    }

    fn measure(&mut self) {
        let ready = self.nodes_with(is_ready);
        let unavailable = self.armed.difference(&ready).count();
        let mut live: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.pods.values().filter(|pod| is_live(pod)) {
            *live.entry(node_of(pod)).or_default() += 1;
        }
        let surging = live.values().filter(|count| **count > 1).count();
        let seen = &mut self.seen;
        seen.most_unavailable = seen.most_unavailable.max(unavailable);
        seen.most_surging = seen.most_surging.max(surging);
        if let Some((node, count)) = live.into_iter().max_by_key(|(_, count)| *count)
            && count > seen.most_live.0
        {
            seen.most_live = (count, node);
        }
    }

    fn nodes_with(&self, condition: fn(&Pod) -> bool) -> BTreeSet<String> {
        self.pods
            .values()
            .filter(|pod| condition(pod))
            .map(node_of)
            .collect()
    }
}

/// The node that a pod is bound to, or that its node affinity names.
#[must_use]
pub fn node_of(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    if let Some(node) = spec.and_then(|spec| spec.node_name.clone()) {
        return node;
    }
    let affinity = spec.and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let required =
        affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required
        .map(|required| required.node_selector_terms.iter())
        .into_iter()
        .flatten();
    let mut fields = terms.filter_map(|term| term.match_fields.as_ref()).flatten();
    fields
        .find_map(|field| field.values.as_ref()?.first().cloned())
        .unwrap_or_default()
}

/// The Ready condition is True and the pod is not in deletion.
#[must_use]
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    pod.metadata.deletion_timestamp.is_none()
        && conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The pod is neither finished nor in deletion.
#[must_use]
pub fn is_live(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !is_finished(pod)
}

/// The pod has succeeded or failed.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}
