//! Fake kubelets that make every new pod ready at once.
//!
//! Neither the scheduler nor kwok runs in this benchmark: they would use most of a small machine, equally for both
//! owners. A controller counts a DaemonSet's pod for the node in its affinity, bound or not. An unbound pod disappears
//! as soon as it is deleted.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, future};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PartialObjectMeta, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::json;
use tokio::task::JoinHandle;

/// How many pods are made ready at the same time.
const CONCURRENCY: usize = 64;

/// Makes pods ready until it is dropped.
#[derive(Debug)]
pub(super) struct Kubelets {
    task: JoinHandle<Result<()>>,
    /// The number of pods that were made ready.
    made_ready: Arc<AtomicUsize>,
}

impl Kubelets {
    /// Makes the existing and new pods of these ready.
    #[must_use]
    pub(super) fn start(client: &Client, pods: Api<PartialObjectMeta<Pod>>) -> Self {
        let made_ready = Arc::default();
        Self {
            task: tokio::spawn(run(client.clone(), pods, Arc::clone(&made_ready))),
            made_ready,
        }
    }

    /// The number of pods that were made ready so far.
    pub(super) fn made_ready(&self) -> usize {
        self.made_ready.load(Ordering::Relaxed)
    }

    /// Fails if the task has ended with an error.
    pub(super) async fn check_running(&mut self) -> Result<()> {
        if !self.task.is_finished() {
            return Ok(());
        }
        (&mut self.task).await?.context("the kubelets gave up")
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(client: Client, pods: Api<PartialObjectMeta<Pod>>, made_ready: Arc<AtomicUsize>) -> Result<()> {
    let mut seen = HashSet::new();
    let pods = watcher(pods, watcher::Config::default()).default_backoff();
    let new = pods.applied_objects().filter_map(move |pod| {
        // A broken watch restarts by itself with a list.
        let new = pod.ok().and_then(|pod| {
            let uid = pod.metadata.uid?;
            let name = pod.metadata.namespace.zip(pod.metadata.name);
            name.filter(|_| seen.insert(uid))
        });
        future::ready(new)
    });
    new.map(async |(namespace, name)| {
        if make_ready(&Api::namespaced(client.clone(), &namespace), &name).await? {
            made_ready.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    })
    .buffer_unordered(CONCURRENCY)
    .try_for_each(async |()| Ok(()))
    .await
}

/// Makes a pod ready. Returns whether it still existed.
async fn make_ready(api: &Api<Pod>, name: &str) -> Result<bool> {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |of: &str| json!({"type": of, "status": "True", "lastTransitionTime": now});
    let status = json!({"status": {
        "phase": "Running", "startTime": now, "conditions": [condition("Ready"), condition("ContainersReady")],
    }});
    let patched = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await;
    match patched {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(error)) if error.code == 404 => Ok(false),
        Err(error) => Err(error).with_context(|| format!("making {name} ready")),
    }
}
