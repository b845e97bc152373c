//! A settled ReplicaSet in the caches of an executor. Its pods are on as many nodes, which it does not read.

use anyhow::{Context as _, Result, ensure};
use nodewise_executor::replica_set::{REPLICA_SETS, ReplicaSets};
use nodewise_projection::{Pod, Workload};
use nodewise_proto::bucket::Receiver;
use nodewise_proto::v1;
use nodewise_runtime::{Delta, event::ClusterEvent, kind::cached_kinds, store::Store};
use serde_json::Value;

use super::manifests::{CREATED, replica_set};
use super::{BUCKETS, FIRST_VERSION, PodOnNode, Settled, listed, plan_request, planned, pod, time_of};

/// The name of the ReplicaSet.
pub(super) const NAME: &str = "web-5d8c7f9b6d";

/// The executor's caches of a settled ReplicaSet.
#[derive(Debug)]
pub struct ReplicaSetCaches {
    store: Store,
    workload: Workload,
    /// The text of a pod, with placeholders.
    pod: String,
    pods: usize,
    events: i64,
}

impl ReplicaSetCaches {
    /// The caches after the initial lists: a ReplicaSet of `pods` ready pods.
    ///
    /// # Errors
    /// Nodewise's first plan does not create its pods.
    pub fn settled(pods: usize) -> Result<Self> {
        let template = template()?;
        let workload = Workload::replica_set_from_text(&replica_set(NAME, pods, pods).to_string())?;
        let mut store = store(BUCKETS);
        let all = (0..pods).map(|number| Pod::from_text(&of(number).text(&template, true, CREATED)));
        for event in [
            ClusterEvent::Workloads(REPLICA_SETS, listed(vec![workload.clone()])),
            ClusterEvent::Pods(listed(all.collect::<Result<_, _>>().context("a pod")?)),
        ] {
            store.apply(event);
        }
        Ok(Self {
            store,
            workload,
            pod: template,
            pods,
            events: 0,
        })
    }
}

impl Settled for ReplicaSetCaches {
    fn pods(&self) -> usize {
        self.pods
    }

    fn set_ready(&mut self, pod: usize, ready: bool) -> Result<()> {
        ensure!(pod < self.pods, "there is no pod {pod}");
        self.events += 1;
        let text = of(pod).text(&self.pod, ready, &time_of(self.events)?);
        let mut pod = Pod::from_text(&text)?;
        pod.resource_version = (FIRST_VERSION + self.events).to_string();
        self.store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
        Ok(())
    }

    fn request(&mut self, receiver: &Receiver<'_>) -> v1::PlanRequest {
        plan_request::<ReplicaSets>(&mut self.store, &self.workload, receiver)
    }
}

/// The text of a pod of the ReplicaSet, with placeholders.
pub(super) fn template() -> Result<String> {
    pod(&first_plan(&replica_set(NAME, 1, 0))?, NAME)
}

/// Empty caches for ReplicaSets, with this many buckets.
fn store(buckets: u32) -> Store {
    let mut store = Store::new(&[], buckets);
    for kind in cached_kinds::<ReplicaSets>() {
        store.add_kind(kind);
    }
    store
}

fn of(number: usize) -> PodOnNode<'static> {
    PodOnNode {
        workload: 0,
        name: NAME,
        node: number,
    }
}

/// Nodewise's plan for a new ReplicaSet.
fn first_plan(replica_set: &Value) -> Result<v1::Plan> {
    let workload = Workload::replica_set_from_text(&replica_set.to_string())?;
    let mut store = store(1);
    store.apply(ClusterEvent::Workloads(
        REPLICA_SETS,
        listed(vec![workload.clone()]),
    ));
    store.apply(ClusterEvent::Pods(listed(Vec::new())));
    let request = plan_request::<ReplicaSets>(&mut store, &workload, &Receiver::EMPTY);
    planned(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_do_until_a_pod_changes() -> Result<()> {
        let mut caches = ReplicaSetCaches::settled(40)?;
        let mut verdict = |change: Option<(usize, bool)>| -> Result<v1::Verdict> {
            if let Some((pod, ready)) = change {
                caches.set_ready(pod, ready)?;
            }
            Ok(planned(caches.request(&Receiver::EMPTY))?.verdict())
        };
        assert_eq!(verdict(None)?, v1::Verdict::Noop);
        assert_eq!(verdict(Some((7, false)))?, v1::Verdict::Apply);
        assert_eq!(verdict(Some((7, true)))?, v1::Verdict::Noop);
        assert!(caches.set_ready(40, true).is_err());
        Ok(())
    }
}
