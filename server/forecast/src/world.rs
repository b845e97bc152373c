//! The simulated cluster with the pods of the workload, and the planner's view of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use nodewise_planner::{
    plan::{Action, ActionKind, Plan, PodManifest, When},
    report::{self, Outcome, OutcomeResult, Subject},
    snapshot::{ExpectedCreate, List, Options, Pod, Pods, State, UsedPodName},
};
use nodewise_simulator::{Cluster, Config, ObjectKey, Patch, Reason, Refusal, Resource, pod};
use serde_json::Value;

use crate::{Assumptions, Error, objects};

/// The most pods that a stuck play names.
const MOST_BLOCKING: usize = 20;

/// The new pods that never become ready.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    /// Those on these nodes.
    pub(crate) nodes: BTreeSet<String>,
    /// Those with these numbers, in the order of their creation.
    pub(crate) numbers: BTreeSet<usize>,
}

/// The simulated cluster.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    assumptions: Assumptions,
    start: Timestamp,
    pub(crate) failing: Failing,
    /// The number of pods that were created.
    created: usize,
    /// New pods that never become ready.
    pub(crate) failed_pods: usize,
    /// The pods as the planner sees them, by name.
    pods: BTreeMap<String, Pod>,
    /// The resourceVersion that the view has reached.
    seen: u64,
}

impl World {
    /// An empty cluster. The time is that of the snapshot, rounded up to whole seconds as in the API.
    pub(crate) fn new(namespace: &str, assumptions: Assumptions, now: Timestamp) -> Self {
        let config = Config {
            start_ticks: assumptions.ready_ticks(),
            stop_ticks: assumptions.gone_ticks(),
        };
        let partial = i64::from(now.subsec_nanosecond() > 0);
        let start = Timestamp::from_second(now.as_second().saturating_add(partial)).unwrap_or(now);
        Self {
            cluster: Cluster::new(config, start),
            namespace: namespace.to_owned(),
            assumptions,
            start,
            failing: Failing::default(),
            created: 0,
            failed_pods: 0,
            pods: BTreeMap::new(),
            seen: 0,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.now()
    }

    /// The virtual time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now().duration_since(self.start).unsigned_abs()
    }

    pub(crate) fn key(&self, resource: Resource, name: &str) -> ObjectKey {
        ObjectKey::new(resource, self.namespace.as_str(), name)
    }

    /// Stores a pod of the snapshot. One that is younger than the assumed time until ready becomes ready at that age; an older one
    /// that is not ready stays as it is.
    pub(crate) fn load_pod(&mut self, pod: Pod) -> Result<(), Error> {
        let key = self
            .cluster
            .load(Resource::Pods, &self.namespace, objects::pod_json(&pod))
            .map_err(|refusal| refused(format!("pod {}", pod.name), refusal))?;
        let due = if pod.deleting {
            Some(self.assumptions.gone_ticks())
        } else {
            let age = pod
                .created
                .map_or(SignedDuration::MAX, |created| self.now().duration_since(created));
            let age = u64::try_from(age.as_secs()).unwrap_or_default();
            self.assumptions
                .ready_ticks()
                .checked_sub(age)
                .filter(|left| *left > 0)
        };
        self.set_due(&key, due);
        self.pods.insert(pod.name.clone(), pod);
        Ok(())
    }

    fn set_due(&mut self, key: &ObjectKey, due: Option<u64>) {
        // The pod was stored just now.
        let _ = self.cluster.set_due(key, due);
    }

    /// The pods as the planner sees them.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    /// The pods that are not ready and have not finished.
    pub(crate) fn unready(&self) -> Vec<&Pod> {
        let pods = self.pods();
        pods.filter(|pod| !pod.ready && !pod.phase.is_terminal())
            .collect()
    }

    /// Updates the view to the present state of the cluster. Returns the changed pods, before and after.
    pub(crate) fn catch_up(&mut self) -> Vec<(Option<Pod>, Option<Pod>)> {
        let names: BTreeSet<String> = self
            .cluster
            .changes_after(self.seen)
            .filter(|change| change.key.resource == Resource::Pods)
            .map(|change| change.key.name.clone())
            .collect();
        self.seen = self.cluster.version();
        self.cluster.compact(self.seen);
        let mut changes = Vec::with_capacity(names.len());
        for name in names {
            let before = self.pods.remove(&name);
            let object = self.cluster.get(&self.key(Resource::Pods, &name));
            let after = object.map(|object| objects::read_pod(object, before.as_ref()));
            if let Some(pod) = &after {
                self.pods.insert(name, pod.clone());
            }
            changes.push((before, after));
        }
        changes
    }

    /// Lets time pass until the next pod changes, or until `other` has passed. Returns false if neither is known.
    pub(crate) fn skip(&mut self, other: Option<Duration>) -> bool {
        let Some(ticks) = self.ticks_to(other) else {
            return false;
        };
        let seconds = i64::try_from(ticks).unwrap_or(i64::MAX);
        let now = self
            .now()
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap_or(Timestamp::MAX);
        self.cluster.skip(ticks, now);
        true
    }

    /// The ticks until the next change of a pod, or until `other` has passed, rounded up.
    pub(crate) fn ticks_to(&self, other: Option<Duration>) -> Option<u64> {
        let other = other.map(|after| crate::assumptions::whole_seconds(after).max(1));
        let pods = self.cluster.ticks_to_next_change();
        pods.into_iter().chain(other).min()
    }

    /// Applies a plan as an executor does, and returns the state for the next plan. `write` does the writes that concern no pod.
    pub(crate) fn apply(
        &mut self,
        plan: &Plan,
        options: &Options,
        write: &mut dyn FnMut(&mut Self, &Action) -> OutcomeResult,
    ) -> State {
        let (mut outcomes, mut aborted, mut failed) = (Vec::new(), false, false);
        for phase in &plan.phases {
            let mut stopped = aborted
                || match phase.when {
                    When::Always => false,
                    When::AfterSuccess => failed,
                    When::AfterFailure => !failed,
                };
            let is_needless = phase.when == When::AfterFailure && !failed;
            for batch in &phase.batches {
                let mut batch_failed = false;
                for action in &batch.actions {
                    let result = if stopped {
                        OutcomeResult::Skipped
                    } else {
                        self.attempt(action, plan.pod_manifest.as_ref(), write)
                    };
                    batch_failed |= result == OutcomeResult::Failed;
                    outcomes.push(outcome(outcomes.len(), action, result, is_needless));
                }
                stopped |= batch_failed;
                failed |= batch_failed;
                aborted |= batch_failed && phase.kind.aborts_on_failure();
            }
        }
        let mut state = report::fold(plan.state.clone(), &outcomes, options);
        // The view catches up before the next plan.
        state.expectations = None;
        state
    }

    fn attempt(
        &mut self,
        action: &Action,
        manifest: Option<&PodManifest>,
        write: &mut dyn FnMut(&mut Self, &Action) -> OutcomeResult,
    ) -> OutcomeResult {
        match &action.kind {
            ActionKind::CreatePod { pod_name, node_name } => match manifest {
                Some(manifest) => self.create_pod(manifest, pod_name, node_name),
                None => OutcomeResult::Failed,
            },
            ActionKind::DeletePod {
                pod,
                uid_precondition,
                ..
            } => {
                let key = self.key(Resource::Pods, &pod.name);
                let uid = uid_precondition.then_some(pod.uid.as_str());
                of(&self.cluster.delete(&key, uid))
            }
            ActionKind::EvictPod { pod, .. } => {
                let key = self.key(Resource::Pods, &pod.name);
                of(&self.cluster.delete(&key, Some(&pod.uid)))
            }
            ActionKind::AdoptPod { pod, patch } | ActionKind::ReleasePod { pod, patch } => {
                let key = self.key(Resource::Pods, &pod.name);
                of(&self.cluster.patch(&key, &Patch::Strategic(json(patch))))
            }
            ActionKind::RelabelPod { pod, patch } => {
                let key = self.key(Resource::Pods, &pod.name);
                of(&self.cluster.patch(&key, &Patch::Merge(json(patch))))
            }
            ActionKind::EmitEvent { .. } => OutcomeResult::Succeeded,
            _ => write(self, action),
        }
    }

    fn create_pod(&mut self, manifest: &PodManifest, name: &str, node: &str) -> OutcomeResult {
        let object = objects::pod_manifest(manifest, name, node);
        let owner = pod::owner_uid(&object).map(str::to_owned);
        let namespace = self.namespace.clone();
        match self.cluster.create(Resource::Pods, &namespace, object) {
            Ok(key) => {
                self.cluster.bind_pod(&key);
                self.fail_if_chosen(&key);
                OutcomeResult::Succeeded
            }
            Err(refusal) if refusal.reason == Reason::AlreadyExists => {
                let present = self.cluster.get(&self.key(Resource::Pods, name));
                let is_ours = present.is_some_and(|present| {
                    pod::owner_uid(present) == owner.as_deref()
                        && pod::node(present).unwrap_or_default() == node
                });
                if is_ours {
                    OutcomeResult::AlreadyExists
                } else {
                    OutcomeResult::NameTaken
                }
            }
            Err(_) => OutcomeResult::Failed,
        }
    }

    fn fail_if_chosen(&mut self, key: &ObjectKey) {
        let number = self.created;
        self.created += 1;
        let node = self.cluster.get(key).and_then(pod::node);
        let on_failing_node = node.is_some_and(|node| self.failing.nodes.contains(node));
        if on_failing_node || self.failing.numbers.contains(&number) {
            self.failed_pods += 1;
            self.set_due(key, None);
        }
    }
}

/// The first pods, each as `POD` or `POD on NODE`.
pub(crate) fn named(pods: &[&Pod]) -> Vec<String> {
    let name = |pod: &&Pod| match pod.target.node() {
        Some(node) => format!("{} on {node}", pod.name),
        None => pod.name.clone(),
    };
    pods.iter().take(MOST_BLOCKING).map(name).collect()
}

/// A list of pods for the planner. `version` must differ for lists that differ.
pub(crate) fn list(pods: Vec<Pod>, version: u64) -> List<Pods> {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&version.to_le_bytes());
    List::with_digest(pods, digest)
}

/// Adds the name of a pod that finishes, is being deleted or is gone to the state, as an executor does: no pod gets that name again
/// until its replacement was seen.
pub(crate) fn note_used_name(
    state: &mut State,
    (kind, owner): (&str, &str),
    before: Option<&Pod>,
    after: Option<&Pod>,
) {
    let is_own = |pod: &&Pod| pod.controller.as_ref().is_some_and(|found| found.uid == owner);
    let Some(pod) = after.or(before).filter(is_own) else {
        return;
    };
    if after.is_some_and(|pod| !pod.deleting && !pod.phase.is_terminal()) {
        return;
    }
    // The names of a ReplicaSet's pods do not depend on the node.
    let node = pod.target.node().filter(|_| kind == "DaemonSet");
    let used = UsedPodName {
        node_name: node.unwrap_or_default().to_owned(),
        pod_name: pod.name.clone(),
    };
    if let Err(index) = state.used_pod_names.binary_search(&used) {
        state.used_pod_names.insert(index, used);
    }
}

/// Whether a pod is available to its workload.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    let is_old_enough = || {
        let since = pod.ready_since.map(|since| now.duration_since(since));
        since.is_some_and(|since| since.as_secs() >= i64::from(min_ready_seconds))
    };
    pod.ready && !pod.deleting && !pod.phase.is_terminal() && (min_ready_seconds <= 0 || is_old_enough())
}

pub(crate) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The outcome of a write. A precondition that does not hold means that the object is gone.
pub(crate) fn of<T>(result: &Result<T, Refusal>) -> OutcomeResult {
    match result {
        Ok(_) => OutcomeResult::Succeeded,
        Err(refusal) => match refusal.reason {
            Reason::NotFound | Reason::Conflict => OutcomeResult::NotFound,
            Reason::AlreadyExists => OutcomeResult::NameTaken,
            Reason::Invalid => OutcomeResult::Failed,
        },
    }
}

pub(crate) fn refused(object: String, refusal: Refusal) -> Error {
    Error::Refused {
        object,
        message: refusal.message,
    }
}

fn outcome(index: usize, action: &Action, result: OutcomeResult, ignored: bool) -> Outcome {
    let subject = match &action.kind {
        ActionKind::CreatePod { pod_name, node_name } => Some(Subject::CreatedPod(ExpectedCreate {
            pod_name: pod_name.clone(),
            node_name: node_name.clone(),
        })),
        ActionKind::DeletePod { pod, .. } | ActionKind::EvictPod { pod, .. } => {
            Some(Subject::DeletedPodUid(pod.uid.clone()))
        }
        _ => None,
    };
    Outcome {
        action_id: u32::try_from(index + 1).unwrap_or(u32::MAX),
        result,
        message: String::new(),
        http_status: 0,
        subject,
        ignored,
    }
}
