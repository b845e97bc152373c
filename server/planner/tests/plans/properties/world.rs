//! A simulated cluster, and an executor whose caches lag behind and whose writes can fail.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use nodewise_planner::{
    daemonset::DaemonSet,
    plan::{Action, ActionKind, Plan},
    report::{OutcomeResult, fold},
    snapshot::{Bucket, OwnWrite, Pod, Snapshot, TaintEffect},
};
use nodewise_simulator::{self as simulator, ObjectKey, Refusal, Resource, WatchCache};
use serde_json::{Value, json};

use super::simulated;
use crate::support::{Cluster, HASH_LABEL, apply};

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
    simulated: simulator::Cluster,
    ds: ObjectKey,
    /// The objects of the simulated cluster as the planner's types, and the executor's state.
    pub(super) live: Cluster,
    watch: WatchCache,
    /// The pods that `watch` shows.
    cache: Vec<Pod>,
    /// The versions of the cluster up to which the caches do not show the pods yet: one for each event that changed a pod.
    behind: VecDeque<u64>,
    /// Whether the executor uses the own-write gate.
    gate: bool,
    wrote: bool,
    /// Creates that seemed to fail and may still take effect.
    late: Vec<LateCreate>,
    /// By node: the name of the pod that last vanished from the cache, until the cache shows another pod there or no pod is
    /// replaced.
    vanished: BTreeMap<String, String>,
}

/// A create of a pod that seemed to fail.
#[derive(Debug, Clone)]
struct LateCreate {
    pod_name: String,
    object: Value,
}

impl World {
    pub(super) fn new(live: Cluster, gate: bool) -> Self {
        let (simulated, ds) = simulated::cluster(&live);
        let mut world = Self {
            watch: WatchCache::list(&simulated, Resource::Pods),
            simulated,
            ds,
            cache: vec![],
            behind: VecDeque::new(),
            live,
            gate,
            wrote: false,
            late: Vec::new(),
            vanished: BTreeMap::new(),
        };
        world.refresh();
        world.cache.clone_from(&world.live.pods);
        world
    }

    /// Reads the objects of the simulated cluster.
    fn refresh(&mut self) {
        let list = |resource| self.simulated.list(resource);
        self.live.nodes = list(Resource::Nodes).map(simulated::read_node).collect();
        self.live.pods = list(Resource::Pods).map(simulated::read_pod).collect();
        self.live.revisions = list(Resource::Revisions).map(simulated::read_revision).collect();
        let ds = self.simulated.read(&self.ds).expect("nobody deletes it");
        simulated::read_daemon_set(&mut self.live.ds, ds);
    }

    /// Changes the image in the template.
    pub(super) fn change_template(&mut self, image: &str) {
        let change = |spec: &mut Value| {
            spec["template"]["spec"]["containers"][0]["image"] = json!(image);
            // The generation increases also if the image is the same.
            spec["updates"] = json!(spec["updates"].as_u64().unwrap_or_default() + 1);
        };
        let changed = self.simulated.update_daemon_set(&self.ds, change);
        changed.expect("nobody deletes it");
        self.refresh();
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
        self.refresh();
        let known = self.behind.back().copied().unwrap_or(self.watch.version());
        let mut changes = self.simulated.changes_after(known);
        if changes.any(|change| change.key.resource == Resource::Pods) {
            self.behind.push_back(self.simulated.version());
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
            Event::Vanish => self.simulated.finish_deletions(),
            Event::Ready(index) => self.pod(*index, |cluster, pod| cluster.set_ready(pod, true)),
            Event::Unready(index) => self.pod(*index, |cluster, pod| cluster.set_ready(pod, false)),
            Event::Fail(index) => self.pod(*index, simulator::Cluster::fail_pod),
            Event::Delete(index) => self.pod(*index, |cluster, pod| cluster.delete(pod, None)),
            // The state drops names for nodes that may not run a pod. A late create on such a node would make an excess pod, which
            // placement deletes. That is not the subject of this test.
            Event::Taint(index, text) => {
                self.late.clear();
                let (key, effect) = text.split_once(':').expect("a taint is written key:Effect");
                self.set_taints(*index, json!([{"key": key, "effect": effect}]));
            }
            Event::Free(index) => self.set_taints(*index, json!([])),
            Event::Remove(index) => {
                self.late.clear();
                if self.live.nodes.len() > 1 {
                    let index = *index % self.live.nodes.len();
                    self.simulated.remove_node(&self.live.nodes[index].name);
                }
            }
            Event::Add(index) => {
                let name = format!("node-{index}");
                if self.live.nodes.iter().all(|node| node.name != name) {
                    simulated::add_node(&mut self.simulated, &name);
                }
            }
            Event::Template(version) => {
                // Outstanding creates of the former template are not the subject of this test.
                self.late.clear();
                self.observe();
                self.change_template(&format!("img:{version}"));
            }
            Event::Restart => {
                self.catch_up();
                self.live.state = nodewise_planner::snapshot::State::default();
                self.vanished.clear();
                // One case cannot be recognized from the cluster: a create by the old process, for a pod that replaces another one,
                // takes effect after the new process has listed the pods.
                let late = std::mem::take(&mut self.late).into_iter();
                self.late = late.filter(|late| self.is_first_name(&late.pod_name)).collect();
            }
            Event::Wait(seconds) => self.wait(SignedDuration::from_secs((*seconds).into())),
            Event::LateCreate => {
                if let Some(late) = self.late.pop() {
                    self.create(&late);
                }
            }
        }
        None
    }

    fn pod(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut simulator::Cluster, &ObjectKey) -> Result<(), Refusal>,
    ) {
        let count = self.live.pods.len();
        if count > 0 {
            let key = simulated::key(Resource::Pods, &self.live.pods[index % count].name);
            change(&mut self.simulated, &key).expect("the pod exists");
        }
    }

    fn set_taints(&mut self, index: usize, taints: Value) {
        let node = &self.live.nodes[index % self.live.nodes.len()].name;
        let changed = self.simulated.set_taints(node, taints);
        changed.expect("the node exists");
    }

    fn wait(&mut self, duration: SignedDuration) {
        self.live.now += duration;
        self.simulated.set_time(self.live.now);
    }

    /// Creates a pod whose create seemed to fail, unless a pod of that name exists, and binds it.
    fn create(&mut self, late: &LateCreate) {
        simulated::create(&mut self.simulated, &late.object);
        self.simulated.bind_pods();
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
        self.see(self.simulated.version());
        self.wrote = false;
    }

    /// Lets the cache show the pods up to this version of the cluster. Names of vanished pods count as used until another pod of
    /// the workload appears on their node.
    fn see(&mut self, version: u64) {
        self.watch.catch_up(&self.simulated, version);
        let pods = self.watch.objects().map(simulated::read_pod).collect();
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
            .retain(|late| !cache.iter().any(|pod| pod.name == late.pod_name));
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
        self.live.state = plan.state.clone();
        let (mut rank, mut lost) = (0, vec![]);
        let outcomes = apply::outcomes(&plan, &mut |action| {
            rank += 1;
            let fails = faults >> (rank % 32) & 1 == 1;
            let manifest = plan.pod_manifest.as_ref();
            match &action.kind {
                ActionKind::CreatePod { pod_name, node_name } if fails => {
                    let manifest = manifest.expect("a plan with creates has a manifest");
                    lost.push(LateCreate {
                        pod_name: pod_name.clone(),
                        object: simulated::pod_manifest(manifest, pod_name, node_name),
                    });
                    OutcomeResult::Failed
                }
                ActionKind::DeletePod { .. } if fails => OutcomeResult::Failed,
                kind => simulated::write(&mut self.simulated, &self.ds, manifest, kind),
            }
        });
        self.simulated.bind_pods();
        if unclear {
            for late in lost {
                self.create(&late);
            }
        } else {
            self.late.extend(lost);
        }
        self.vanished.retain(|node, _| !settled.contains(node));
        self.wrote |= !outcomes.is_empty();
        self.live.state = fold(self.live.state.clone(), &outcomes, &self.live.options);
        self.refresh();
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
            self.simulated.finish_deletions();
            self.simulated.remove_pods_of_missing_nodes();
            self.refresh();
            for pod in &self.live.pods {
                let key = simulated::key(Resource::Pods, &pod.name);
                let changed = self.simulated.set_ready(&key, true);
                changed.expect("the pod exists");
            }
            // Longer than the lifetime of expectations, minReadySeconds and the longest back-off.
            self.wait(SignedDuration::from_mins(16));
            self.refresh();
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
