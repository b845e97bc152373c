//! Histories of a DaemonSet with a RolloutPolicy: the budget holds whatever happens (L-11, L-35), no node gets a revision that it was
//! not admitted to, and once the cluster is well again, the rollout ends.

use std::{collections::BTreeSet, time::Duration};

use nodewise_planner::{
    daemonset::plan_cache::PlanCache,
    plan::{ActionKind, PhaseKind, Plan},
    report::OutcomeResult,
    rollout::{
        Disruption, InMaintenance, NotReady, OnFailure, Order, Pace, Policy, Requests, Spec, Stage, Targets,
        Unadmitted,
        status::{PolicyStatus, State},
    },
    snapshot::{IntOrString, Labels, PodPhase, Selector, State as ReconcileState},
};
use proptest::prelude::*;

use crate::{
    plan_cache::in_buckets,
    support::{Cluster, HASH_LABEL, actions, at, node, taint},
};

const NODES: usize = 7;
/// maxUnavailable of the DaemonSet.
const BUDGET: usize = 2;
/// The nodes of the stage `canary`.
const CANARIES: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    /// A plan is carried out.
    Sync,
    /// Every second write of a plan is refused.
    Refused(bool),
    /// The executor dies after so many writes, and its state is lost.
    Killed(usize),
    /// All pods on ready nodes become ready.
    Ready,
    /// The clock moves, by seconds.
    Clock(u64),
    /// The pod of a node becomes unready, fails, or vanishes.
    Pod(usize, PodFate),
    /// A node changes.
    Node(usize, NodeFate),
    /// The template gets one of these images.
    Template(u8),
    Pause(bool),
    Partition(i32),
    /// The status of the policy is lost.
    StatusLost,
}

#[derive(Debug, Clone, Copy)]
enum PodFate {
    Unready,
    Failed,
    Gone,
}

#[derive(Debug, Clone, Copy)]
enum NodeFate {
    NotReady,
    Ready,
    Cordoned,
    Gone,
    Back,
}

/// What happens if nothing goes wrong but writes and the executor.
fn calm() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Sync),
        5 => Just(Step::Ready),
        3 => (0..15_u64).prop_map(Step::Clock),
        1 => any::<bool>().prop_map(Step::Refused),
        1 => (0..6_usize).prop_map(Step::Killed),
    ]
}

fn anything() -> impl Strategy<Value = Step> {
    let pod = prop_oneof![Just(PodFate::Unready), Just(PodFate::Failed), Just(PodFate::Gone)];
    let node = prop_oneof![
        3 => Just(NodeFate::NotReady),
        3 => Just(NodeFate::Ready),
        1 => Just(NodeFate::Cordoned),
        1 => Just(NodeFate::Gone),
        1 => Just(NodeFate::Back),
    ];
    prop_oneof![
        12 => calm(),
        2 => (0..NODES, pod).prop_map(|(index, fate)| Step::Pod(index, fate)),
        3 => (0..NODES, node).prop_map(|(index, fate)| Step::Node(index, fate)),
        2 => (1..4_u8).prop_map(Step::Template),
        1 => any::<bool>().prop_map(Step::Pause),
        1 => (0..4).prop_map(Step::Partition),
        1 => Just(Step::StatusLost),
    ]
}

fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let soak = prop_oneof![Just(Duration::ZERO), Just(Duration::from_secs(10))];
    (any::<bool>(), any::<bool>(), any::<bool>(), soak).prop_map(|(has_pool, has_zones, spreads, soak)| {
        let mut stages = vec![Stage {
            name: "canary".to_owned(),
            replicas: Some(IntOrString::Int(i32::try_from(CANARIES).expect("a few"))),
            spread_by: spreads.then(|| "zone".to_owned()),
            soak,
            ..Stage::default()
        }];
        if has_pool {
            stages.push(Stage {
                name: "pool".to_owned(),
                selector: Some(Selector {
                    match_labels: Some(vec![("pool".to_owned(), "a".to_owned())]),
                    match_expressions: None,
                }),
                max_unavailable: Some(IntOrString::Int(1)),
                ..Stage::default()
            });
        }
        if has_zones {
            stages.push(Stage {
                name: "zones".to_owned(),
                group_by: Some("zone".to_owned()),
                ..Stage::default()
            });
        }
        stages
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    let choices = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![
            Just(InMaintenance::Exempt),
            Just(InMaintenance::First),
            Just(InMaintenance::Count)
        ],
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (stages(), choices, 1..3_i32).prop_map(|(stages, choices, threshold)| {
        let (exempts, stable, oldest, in_maintenance, rolls_back, has_pace, evicts) = choices;
        Policy {
            name: "agents".to_owned(),
            uid: "uid-of-agents".to_owned(),
            resource_version: "1".to_owned(),
            generation: 1,
            created: Some(at(0)),
            deleting: false,
            requests: Requests::default(),
            targets: Some(Targets::Names(vec!["foo".to_owned()])),
            spec: Ok(Spec {
                stages,
                not_ready: if exempts {
                    NotReady::Exempt
                } else {
                    NotReady::Count
                },
                max_exempt: IntOrString::Int(3),
                in_maintenance,
                unadmitted: if stable {
                    Unadmitted::Stable
                } else {
                    Unadmitted::Update
                },
                order: if oldest { Order::OldestPod } else { Order::Name },
                pace: has_pace.then_some(Pace {
                    nodes: 1,
                    interval: Duration::from_secs(10),
                }),
                disruption: if evicts {
                    Disruption::Evict
                } else {
                    Disruption::Delete
                },
                progress_deadline: Duration::from_mins(1),
                failure_threshold: IntOrString::Int(threshold),
                on_failure: if rolls_back {
                    OnFailure::Rollback
                } else {
                    OnFailure::Pause
                },
                ..Spec::default()
            }),
            status: PolicyStatus::default(),
        }
    })
}

/// A cluster with its history.
struct World {
    cluster: Cluster,
    cache: PlanCache,
    /// Nodes whose available pod a plan has removed, until an available pod is there again.
    ours: BTreeSet<String>,
    /// Whether nodes that are not ready get the taint that keeps new pods away.
    has_taints: bool,
}

impl World {
    /// All nodes run the first template, the policy knows it, and the template has changed.
    fn new(policy: Policy, has_taints: bool) -> Self {
        let mut cluster = Cluster::new(0).rolling(&BUDGET.to_string(), "0");
        cluster.nodes = (0..NODES).map(new_node).collect();
        for index in 0..NODES {
            cluster.pod(&format!("first-{index}@node-{index} new ready t=10"));
        }
        cluster.sync();
        cluster.ds.rollout.policies = vec![policy];
        cluster.sync();
        cluster.change_template("img:2");
        cluster.install_revision();
        Self {
            cluster,
            cache: PlanCache::default(),
            ours: BTreeSet::new(),
            has_taints,
        }
    }

    fn policy(&mut self) -> &mut Policy {
        &mut self.cluster.ds.rollout.policies[0]
    }

    fn spec(&mut self) -> &mut Spec {
        self.policy().spec.as_mut().expect("it can be used")
    }

    /// The plan; the one that remembers the plans before is the same.
    fn plan(&mut self) -> Plan {
        let asked = in_buckets(&self.cluster.snapshot(), 3);
        self.cache.identify(&asked.buckets).expect("names are unique");
        let cached = nodewise_planner::daemonset::plan_until(&asked, &mut self.cache, &|| false);
        let fresh = nodewise_planner::daemonset::plan(&asked);
        assert_eq!(
            format!("{:?}", cached.expect("nothing asks to stop")),
            format!("{fresh:?}")
        );
        fresh
    }

    /// Carries out a plan; `fate` has the results of its writes.
    fn apply(&mut self, plan: &Plan, mut fate: impl FnMut(usize) -> OutcomeResult) {
        let before = self.cluster.pods.clone();
        let mut number = 0;
        self.cluster.apply_with(plan, &mut |_| {
            number += 1;
            fate(number - 1)
        });
        for pod in &self.cluster.pods {
            let was_available =
                |old: &&nodewise_planner::snapshot::Pod| old.uid == pod.uid && old.ready && !old.deleting;
            if pod.deleting && before.iter().any(|old| was_available(&old)) {
                self.ours.extend(pod.target.node().map(str::to_owned));
            }
        }
        self.cluster.observe();
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Sync => {
                let plan = self.plan();
                self.check(&plan);
                self.apply(&plan, |_| OutcomeResult::Succeeded);
            }
            Step::Refused(first) => {
                let plan = self.plan();
                let is_refused = |number: usize| number.is_multiple_of(2) == *first;
                self.apply(&plan, |number| {
                    if is_refused(number) {
                        OutcomeResult::Failed
                    } else {
                        OutcomeResult::Succeeded
                    }
                });
            }
            Step::Killed(after) => {
                let plan = self.plan();
                self.apply(&plan, |number| {
                    if number < *after {
                        OutcomeResult::Succeeded
                    } else {
                        OutcomeResult::Skipped
                    }
                });
                self.cluster.state = ReconcileState::default();
            }
            Step::Ready => self.pods_become_ready(),
            Step::Clock(seconds) => self.cluster.now += Duration::from_secs(*seconds),
            Step::Pod(index, fate) => self.pod(&format!("node-{index}"), *fate),
            Step::Node(index, fate) => self.node(*index, *fate),
            Step::Template(image) => self.cluster.change_template(&format!("img:{image}")),
            Step::Pause(paused) => self.spec().paused = *paused,
            Step::Partition(nodes) => self.spec().partition = Some(IntOrString::Int(*nodes)),
            Step::StatusLost => self.policy().status = PolicyStatus::default(),
        }
        // Of a node that is not ready, it is the node's doing that its new pod is not available, or that it should have none.
        let is_down = |name: &String| {
            let node = self.cluster.nodes.iter().find(|node| node.name == *name);
            let pods = self.cluster.pods.iter();
            let mut here = pods.filter(|pod| pod.target.node() == Some(name) && !pod.deleting);
            node.is_some_and(|node| {
                node.taints.is_empty() && !here.any(|pod| pod.ready || node.ready != Some(true))
            })
        };
        self.ours = std::mem::take(&mut self.ours)
            .into_iter()
            .filter(is_down)
            .collect();
    }

    /// What holds for each plan.
    fn check(&mut self, plan: &Plan) {
        let paused = self.spec().paused;
        let is_running = |uid: &str| {
            let mut pods = self.cluster.pods.iter();
            pods.any(|pod| pod.uid == uid && pod.ready && !pod.deleting)
        };
        for action in actions(plan, PhaseKind::Deletes) {
            let (ActionKind::DeletePod { pod, .. } | ActionKind::EvictPod { pod, .. }) = &action.kind else {
                panic!("{action:?} among deletes");
            };
            assert!(
                !(paused && is_running(&pod.uid)),
                "paused, and {pod:?} is replaced"
            );
        }
    }

    fn pods_become_ready(&mut self) {
        let now = self.cluster.now;
        let nodes = &self.cluster.nodes;
        for pod in self
            .cluster
            .pods
            .iter_mut()
            .filter(|pod| !pod.ready && !pod.phase.is_terminal())
        {
            let mut here = nodes.iter().filter(|node| pod.target.node() == Some(&node.name));
            if here.any(|node| node.ready == Some(true)) {
                (pod.phase, pod.ready, pod.ready_since) = (PodPhase::Running, true, Some(now));
            }
        }
    }

    fn pod(&mut self, node: &str, fate: PodFate) {
        let now = self.cluster.now;
        let is_here = |pod: &nodewise_planner::snapshot::Pod| pod.target.node() == Some(node);
        if matches!(fate, PodFate::Gone) {
            self.cluster.pods.retain(|pod| !is_here(pod));
        }
        for pod in self.cluster.pods.iter_mut().filter(|pod| is_here(pod)) {
            (pod.ready, pod.ready_since) = (false, Some(now));
            if matches!(fate, PodFate::Failed) {
                pod.phase = PodPhase::Failed;
            }
        }
    }

    fn node(&mut self, index: usize, fate: NodeFate) {
        let (name, now) = (format!("node-{index}"), self.cluster.now);
        let position = self.cluster.nodes.iter().position(|node| node.name == name);
        match (fate, position) {
            (NodeFate::Gone, Some(position)) => {
                self.cluster.nodes.remove(position);
                self.cluster.pods.retain(|pod| pod.target.node() != Some(&name));
            }
            (NodeFate::Back, None) => {
                self.cluster.nodes.push(new_node(index));
            }
            (NodeFate::Cordoned, Some(position)) => self.cluster.nodes[position].unschedulable = true,
            (NodeFate::Ready | NodeFate::NotReady, Some(position)) => {
                let node = &mut self.cluster.nodes[position];
                let ready = Some(matches!(fate, NodeFate::Ready));
                if node.ready != ready {
                    (node.ready, node.ready_since) = (ready, Some(now));
                }
                node.taints.clear();
                if ready == Some(true) {
                    node.unschedulable = false;
                } else {
                    let not_ready = taint("node.kubernetes.io/not-ready=:NoSchedule");
                    node.taints.extend(self.has_taints.then_some(not_ready));
                    self.pod(&name, PodFate::Unready);
                }
            }
            _ => {}
        }
    }

    /// The nodes with a live pod of the present template.
    fn updated(&self) -> BTreeSet<String> {
        let hash = self.cluster.current_hash();
        let pods = self.cluster.pods.iter().filter(|pod| !pod.deleting);
        let of_update = pods.filter(|pod| pod.labels.get(HASH_LABEL) == Some(hash.as_str()));
        of_update
            .filter_map(|pod| pod.target.node().map(str::to_owned))
            .collect()
    }

    /// Everything becomes well, and stays so for ten minutes.
    fn heals(&mut self) {
        let spec = self.spec();
        (spec.paused, spec.partition) = (false, None);
        for index in 0..NODES {
            self.take(&Step::Node(index, NodeFate::Back));
            self.take(&Step::Node(index, NodeFate::Ready));
        }
        for _ in 0..120 {
            for step in [Step::Sync, Step::Ready, Step::Clock(5)] {
                self.take(&step);
                assert!(self.ours.len() <= BUDGET, "{:?}", self.ours);
            }
        }
    }

    fn state(&self) -> State {
        self.cluster.ds.rollout.policies[0].status.targets[0].state
    }

    /// Whether the first stage is recorded as complete.
    fn is_canary_complete(&self) -> bool {
        let target = self.cluster.ds.rollout.policies[0].status.targets.first();
        let first = target.and_then(|target| target.stages.first());
        first.is_some_and(nodewise_planner::rollout::status::StageStatus::is_complete)
    }
}

fn new_node(index: usize) -> nodewise_planner::snapshot::Node {
    let name = format!("node-{index}");
    let pool = if index.is_multiple_of(2) { "a" } else { "b" };
    let labels = [
        ("kubernetes.io/hostname", name.clone()),
        ("pool", pool.to_owned()),
        ("zone", format!("zone-{}", index % 3)),
    ];
    let mut node = node(&name, &[]);
    node.labels = Labels::new(labels.map(|(key, value)| (key.to_owned(), value)).to_vec());
    node
}

proptest! {
    #[test]
    fn l_11_the_budget_holds_whatever_happens_and_rollouts_end(
        policy in policies(),
        has_taints in any::<bool>(),
        steps in proptest::collection::vec(anything(), 0..60),
    ) {
        let mut world = World::new(policy, has_taints);
        for step in &steps {
            world.take(step);
            prop_assert!(world.ours.len() <= BUDGET, "{:?} are without a pod by our doing after {:?}", world.ours, step);
        }
        world.heals();
        let all = world.cluster.nodes.len();
        match world.state() {
            State::Complete => prop_assert_eq!(world.updated().len(), all),
            State::RolledBack => prop_assert_eq!(world.updated().len(), 0),
            State::Rejected => {}
            state => prop_assert!(false, "the rollout does not end: {:?}, {:?}", state, world.cluster.ds.rollout.policies[0].status),
        }
    }

    #[test]
    fn l_5_a_node_that_was_admitted_stays_so_and_no_other_is_touched(
        policy in policies(),
        steps in proptest::collection::vec(calm(), 0..60),
    ) {
        let mut world = World::new(policy, false);
        let mut touched = world.updated();
        prop_assert!(touched.is_empty());
        for step in &steps {
            world.take(step);
            touched.extend(world.updated());
            if !world.is_canary_complete() {
                prop_assert!(touched.len() <= CANARIES, "{:?} after {:?}", touched, step);
            }
            if !matches!(world.state(), State::RollingBack | State::RolledBack | State::Rejected) {
                let old: BTreeSet<_> = world.cluster.pods.iter()
                    .filter(|pod| pod.labels.get(HASH_LABEL) != Some(world.cluster.current_hash().as_str()))
                    .filter_map(|pod| pod.target.node().map(str::to_owned)).collect();
                prop_assert!(old.is_disjoint(&touched), "{:?} and {:?} after {:?}", old, touched, step);
            }
        }
    }
}
