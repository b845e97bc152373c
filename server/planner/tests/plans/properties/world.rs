//! A cluster whose caches lag behind and whose writes can fail.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use nodewise_planner::{
    daemonset::{
        DaemonSet,
        report::{OutcomeResult, fold},
    },
    plan::{Action, ActionKind, Plan},
    snapshot::{Bucket, OwnWrite, Pod, PodPhase, Snapshot, TaintEffect},
};

use crate::support::{Cluster, HASH_LABEL, node, taint};

/// An event in the cluster.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The executor plans and applies. The bits of `faults` say which creates and deletes fail. With `unclear`, creates that seem
    /// to fail are done nevertheless (D-82).
    Sync {
        faults: u32,
        unclear: bool,
    },
    /// The caches catch up.
    Observe,
    /// The caches show that many of the outstanding changes.
    ObserveSome(usize),
    /// Pods that were being deleted are gone.
    Vanish,
    /// A pod becomes ready or unready.
    Ready(usize),
    Unready(usize),
    /// A pod fails.
    Fail(usize),
    /// Someone deletes a pod.
    Delete(usize),
    /// A node is tainted, loses its taints, is removed, or is added.
    Taint(usize, &'static str),
    Free(usize),
    Remove(usize),
    Add(usize),
    /// The template changes.
    Template(u8),
    /// The executor restarts: its caches are up to date, and its state is empty.
    Restart,
    /// Time passes, in seconds.
    Wait(u8),
    /// A create whose response was lost earlier takes effect now.
    LateCreate,
}

/// The cluster as it is, and as the executor sees it.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) live: Cluster,
    cache: Vec<Pod>,
    /// The changes that the caches do not show yet, in order.
    behind: VecDeque<Vec<Pod>>,
    /// Whether the executor uses the own-write gate.
    gate: bool,
    wrote: bool,
    /// Creates that seemed to fail and may still take effect.
    late: Vec<Action>,
    /// By node: the name of the pod that last vanished from the cache, until the cache shows another pod there or no pod is
    /// replaced.
    vanished: BTreeMap<String, String>,
}

impl World {
    pub(super) fn new(live: Cluster, gate: bool) -> Self {
        Self {
            cache: live.pods.clone(),
            behind: VecDeque::new(),
            live,
            gate,
            wrote: false,
            late: Vec::new(),
            vanished: BTreeMap::new(),
        }
    }

    /// The executor's snapshot.
    pub(super) fn snapshot(&self) -> Snapshot<DaemonSet> {
        let mut snapshot = self.live.snapshot();
        snapshot.buckets = Bucket::divide(self.live.nodes.clone(), self.cache.clone(), 1, |_| 0);
        if self.gate && self.wrote {
            let (written, observed) = ("2".to_owned(), "1".to_owned());
            snapshot.own_writes.push(OwnWrite {
                resource: "pods".to_owned(),
                written,
                observed,
            });
        }
        snapshot
    }

    /// Applies an event. Returns the snapshot and the plan if it was a sync.
    pub(super) fn happen(&mut self, event: &Event) -> Option<(Snapshot<DaemonSet>, Plan)> {
        let asked = self.change(event);
        if self.behind.back().unwrap_or(&self.cache) != &self.live.pods {
            self.behind.push_back(self.live.pods.clone());
        }
        asked
    }

    fn change(&mut self, event: &Event) -> Option<(Snapshot<DaemonSet>, Plan)> {
        match event {
            Event::Sync { faults, unclear } => return Some(self.sync(*faults, *unclear)),
            Event::Observe => self.observe(),
            Event::ObserveSome(count) => {
                for _ in 0..self.behind.len().min(*count) {
                    let seen = self.behind.pop_front().expect("there are as many");
                    self.see(seen);
                }
                self.settle_expectations();
            }
            Event::Vanish => self.live.pods.retain(|pod| !pod.deleting),
            Event::Ready(index) => self.pod(*index, |pod, now| {
                if !pod.phase.is_terminal() && !pod.ready {
                    (pod.phase, pod.ready, pod.ready_since) = (PodPhase::Running, true, Some(now));
                }
            }),
            Event::Unready(index) => self.pod(*index, |pod, _| pod.ready = false),
            Event::Fail(index) => self.pod(*index, |pod, _| {
                (pod.phase, pod.ready) = (PodPhase::Failed, false);
            }),
            Event::Delete(index) => self.pod(*index, |pod, _| pod.deleting = true),
            // The state drops names for nodes that may not run a pod. A late create on such a node would make an excess pod, which
            // placement deletes. That is not the subject of this test.
            Event::Taint(index, text) => {
                self.late.clear();
                self.node(*index, |node| node.taints = vec![taint(text)]);
            }
            Event::Free(index) => self.node(*index, |node| node.taints.clear()),
            Event::Remove(index) => {
                self.late.clear();
                if self.live.nodes.len() > 1 {
                    let index = *index % self.live.nodes.len();
                    self.live.nodes.remove(index);
                }
            }
            Event::Add(index) => {
                let name = format!("node-{index}");
                if self.live.nodes.iter().all(|node| node.name != name) {
                    self.live.nodes.push(node(&name, &[]));
                }
            }
            Event::Template(version) => {
                // Outstanding creates of the former template are not the subject of this test.
                self.late.clear();
                self.observe();
                self.live.change_template(&format!("img:{version}"));
            }
            Event::Restart => {
                self.catch_up();
                self.live.state = nodewise_planner::snapshot::State::default();
                self.vanished.clear();
                // One case cannot be recognized from the cluster: a create by the old process, for a pod that replaces another one,
                // takes effect after the new process has listed the pods.
                let late = std::mem::take(&mut self.late).into_iter();
                self.late = late
                    .filter(|action| created(action).is_some_and(|name| self.is_first_name(name)))
                    .collect();
            }
            Event::Wait(seconds) => self.live.now += SignedDuration::from_secs((*seconds).into()),
            Event::LateCreate => {
                if let Some(action) = self.late.pop() {
                    self.live.create_unless_there(&action);
                }
            }
        }
        None
    }

    fn pod(&mut self, index: usize, change: impl FnOnce(&mut Pod, jiff::Timestamp)) {
        let now = self.live.now;
        let count = self.live.pods.len();
        if count > 0 {
            change(&mut self.live.pods[index % count], now);
        }
    }

    fn node(&mut self, index: usize, change: impl FnOnce(&mut nodewise_planner::snapshot::Node)) {
        let count = self.live.nodes.len();
        change(&mut self.live.nodes[index % count]);
    }

    /// Lets the caches show everything, and updates expectations.
    fn observe(&mut self) {
        self.catch_up();
        self.settle_expectations();
    }

    fn catch_up(&mut self) {
        for seen in std::mem::take(&mut self.behind) {
            self.see(seen);
        }
        self.see(self.live.pods.clone());
        self.wrote = false;
    }

    /// Lets the cache show these pods. Names of vanished pods count as used until another pod of the workload appears on their
    /// node.
    fn see(&mut self, pods: Vec<Pod>) {
        let before = std::mem::replace(&mut self.cache, pods);
        let node = |pod: &Pod| pod.target.node().expect("every pod has a node").to_owned();
        let is_in = |pods: &[Pod], pod: &Pod| pods.iter().any(|other| other.uid == pod.uid);
        let used = &mut self.live.state.used_pod_names;
        for pod in before.iter().filter(|pod| !is_in(&self.cache, pod)) {
            used.push(crate::support::used(&node(pod), &pod.name));
            self.vanished.insert(node(pod), pod.name.clone());
        }
        used.sort();
        used.dedup();
        for pod in self.cache.iter().filter(|pod| !is_in(&before, pod)) {
            used.retain(|used| used.node_name != node(pod));
            self.vanished.remove(&node(pod));
        }
        // If a pod of this name appeared, the create has taken effect and cannot do so again.
        let cache = &self.cache;
        self.late
            .retain(|action| !created(action).is_some_and(|name| cache.iter().any(|pod| pod.name == name)));
    }

    /// Whether a process with an empty state would choose this name.
    fn is_first_name(&self, name: &str) -> bool {
        let mut anew = self.live.clone();
        anew.state = nodewise_planner::snapshot::State::default();
        anew.pods.clear();
        nodewise_planner::daemonset::plan(&anew.snapshot())
            .phases
            .iter()
            .flat_map(|phase| &phase.batches)
            .flat_map(|batch| &batch.actions)
            .any(|action| created(action) == Some(name))
    }

    fn settle_expectations(&mut self) {
        if let Some(pair) = &mut self.live.state.expectations {
            pair.creates
                .retain(|create| self.cache.iter().all(|pod| pod.name != create.pod_name));
            let gone = |uid: &String| self.cache.iter().all(|pod| &pod.uid != uid || pod.deleting);
            pair.delete_uids.retain(|uid| !gone(uid));
        }
    }

    fn sync(&mut self, faults: u32, unclear: bool) -> (Snapshot<DaemonSet>, Plan) {
        let snapshot = self.snapshot();
        let plan = nodewise_planner::daemonset::plan(&snapshot);
        let settled = self.settled_nodes();
        let (mut rank, mut lost) = (0, vec![]);
        let outcomes = self.live.apply_with(&plan, &mut |action| {
            rank += 1;
            let fails = faults >> (rank % 32) & 1 == 1;
            match &action.kind {
                ActionKind::CreatePod { .. } if fails => {
                    lost.push(action.clone());
                    OutcomeResult::Failed
                }
                ActionKind::DeletePod { .. } if fails => OutcomeResult::Failed,
                _ => OutcomeResult::Succeeded,
            }
        });
        if unclear {
            for action in lost {
                self.live.create_unless_there(&action);
            }
        } else {
            self.late.extend(lost);
        }
        self.vanished.retain(|node, _| !settled.contains(node));
        self.wrote |= !outcomes.is_empty();
        self.live.state = fold(self.live.state.clone(), &outcomes, &self.live.options);
        (snapshot, plan)
    }

    /// The nodes from which a pod vanished and on which no pod is replaced: they have a pod of the present revision, or may not
    /// run one.
    fn settled_nodes(&self) -> Vec<String> {
        let hash = self.live.current_hash();
        let has_new = |node: &str| {
            self.cache.iter().any(|pod| {
                let is_new = pod.labels.get(HASH_LABEL) == Some(&hash);
                is_new && !pod.deleting && !pod.phase.is_terminal() && pod.target.node() == Some(node)
            })
        };
        let may_run = |node: &str| self.may(node).is_some_and(|(run, _)| run);
        let nodes = self.vanished.keys();
        nodes
            .filter(|node| has_new(node) || !may_run(node))
            .cloned()
            .collect()
    }

    /// Syncs without faults until there is nothing left to do.
    pub(super) fn converge(&mut self) -> Result<(), String> {
        for _ in 0..120 {
            self.live.pods.retain(|pod| {
                let bound_to_missing = pod
                    .target
                    .node()
                    .is_some_and(|name| !self.live.nodes.iter().any(|node| node.name == name));
                !pod.deleting && !bound_to_missing
            });
            self.live.all_ready();
            // Longer than the lifetime of expectations, minReadySeconds and the longest back-off.
            self.live.now += SignedDuration::from_mins(16);
            self.observe();
            let (_, plan) = self.sync(0, false);
            if plan.phases.is_empty() && plan.requeue.is_none() && plan.error.is_none() {
                return Ok(());
            }
        }
        Err(format!("it does not converge: {:?}", self.live.plan()))
    }

    /// The name of the pod that last vanished from a node in the cache.
    pub(super) fn vanished_from(&self, node: &str) -> Option<&str> {
        self.vanished.get(node).map(String::as_str)
    }

    /// Whether a pod may start and may stay on a node. The workload has no tolerations.
    pub(super) fn may(&self, name: &str) -> Option<(bool, bool)> {
        let node = self.live.nodes.iter().find(|node| node.name == name)?;
        let has = |effect| node.taints.iter().any(|taint| taint.effect == effect);
        let keep = !has(TaintEffect::NoExecute);
        Some((keep && !has(TaintEffect::NoSchedule), keep))
    }
}

/// The name of the pod that an action creates.
pub(super) fn created(action: &Action) -> Option<&str> {
    match &action.kind {
        ActionKind::CreatePod { pod_name, .. } => Some(pod_name),
        _ => None,
    }
}
