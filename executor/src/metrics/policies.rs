//! The metrics of RolloutPolicies: what their statuses say.
//!
//! Whoever may write a policy in some namespace chooses the names of its stages, and how many there are. So the number of series is
//! bounded, for each namespace and for all, and values that are not known become `Other`.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
    ops::{AddAssign, SubAssign},
    sync::{Mutex, MutexGuard, PoisonError},
};

use nodewise_api::{RolloutPolicyStatus, StageState, StageStatus, TargetStatus, condition};
use nodewise_projection::{Key, RolloutPolicy};
use nodewise_proto::workload::DAEMON_SET;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use serde::Deserialize;

use super::{gauge, labels::WorkloadLabels};

/// Most policies that have series.
const MOST_POLICIES: usize = 1_000;
/// Most targets and stages of all policies that have series. A stage has six. Conditions do not count.
const MOST_STAGES: usize = 4_000;
/// The part of both that one namespace may have: whoever fills it must not silence the alerts of the others.
const SHARE: usize = 4;

/// The label value of everything that is not in the lists below.
const OTHER: &str = "Other";
const CONDITIONS: [&str; 4] = [
    condition::ACCEPTED,
    condition::PROGRESSING,
    condition::AVAILABLE,
    condition::ROLLED_BACK,
];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
/// The states of a rollout, which are the reasons of the condition Progressing, and the reasons of the other conditions.
const REASONS: [&str; 21] = [
    "Complete",
    "RolledBack",
    "Progressing",
    "Soaking",
    "Analyzing",
    "OutsideWindow",
    "AwaitingApproval",
    "Partitioned",
    "Paused",
    "AnalysisHeld",
    "TooManyNodesNotReady",
    "ProgressDeadlineExceeded",
    "RollingBack",
    "Rejected",
    "Invalid",
    "Accepted",
    "Limited",
    "Conflict",
    "MinimumNodesAvailable",
    "MinimumNodesUnavailable",
    "NotNeeded",
];

/// Labels of a policy and one of its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    namespace: String,
    policy: String,
    condition: &'static str,
    status: &'static str,
    reason: &'static str,
}

/// Labels of a DaemonSet and the state of its rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    policy: String,
    state: &'static str,
}

/// Labels of a stage and a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    policy: String,
    stage: String,
    state: &'static str,
}

/// The metric families. A policy that is gone has no series.
#[derive(Default)]
pub(super) struct Policies {
    conditions: Family<ConditionLabels, Gauge>,
    targets: Family<TargetLabels, Gauge>,
    stages: Family<StageLabels, Gauge>,
    nodes: Family<StageLabels, Gauge>,
    omitted: Gauge,
    shown: Mutex<All>,
}

/// The series of all policies.
#[derive(Default)]
struct All {
    /// By namespace and name.
    of: BTreeMap<(String, String), Shown>,
    total: Total,
    /// Those of a namespace.
    totals: HashMap<String, Total>,
}

/// Sums over policies. They are kept, because a policy changes often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    known: usize,
    /// Policies that have series.
    policies: usize,
    /// Targets and stages that have series.
    stages: usize,
    /// What has none.
    omitted: usize,
}

impl AddAssign for Total {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.policies += other.policies;
        self.stages += other.stages;
        self.omitted += other.omitted;
    }
}

impl SubAssign for Total {
    fn sub_assign(&mut self, other: Self) {
        self.known -= other.known;
        self.policies -= other.policies;
        self.stages -= other.stages;
        self.omitted -= other.omitted;
    }
}

impl All {
    fn put(&mut self, id: (String, String), shown: Shown) {
        let total = shown.total();
        self.total += total;
        *self.totals.entry(id.0.clone()).or_default() += total;
        self.of.insert(id, shown);
    }

    /// Removes a policy, and returns its series. None if it is not known.
    fn remove(&mut self, id: &(String, String)) -> Shown {
        let Some(shown) = self.of.remove(id) else {
            return Shown::default();
        };
        let total = shown.total();
        self.total -= total;
        if let Some(of_namespace) = self.totals.get_mut(&id.0) {
            *of_namespace -= total;
            if *of_namespace == Total::default() {
                self.totals.remove(&id.0);
            }
        }
        shown
    }

    /// How many targets and stages of a further policy of a namespace may have series. `None` if the policy may have none.
    fn room(&self, namespace: &str) -> Option<usize> {
        let of_namespace = self.totals.get(namespace).copied().unwrap_or_default();
        let is_full = self.total.policies >= MOST_POLICIES || of_namespace.policies >= MOST_POLICIES / SHARE;
        let room = MOST_STAGES.saturating_sub(self.total.stages);
        let share = (MOST_STAGES / SHARE).saturating_sub(of_namespace.stages);
        (!is_full).then_some(room.min(share))
    }
}

/// The series of one policy.
#[derive(Default)]
struct Shown {
    conditions: Vec<(ConditionLabels, i64)>,
    targets: Vec<(TargetLabels, i64)>,
    stages: Vec<(StageLabels, i64)>,
    nodes: Vec<(StageLabels, i64)>,
    /// The policy, targets and stages that have no series because there are too many.
    omitted: usize,
}

impl Shown {
    fn total(&self) -> Total {
        Total {
            known: 1,
            policies: usize::from(!self.conditions.is_empty() || self.size() > 0),
            stages: self.size(),
            omitted: self.omitted,
        }
    }

    /// The number of targets and stages.
    fn size(&self) -> usize {
        self.targets.len() + self.stages.len()
    }

    /// The series of a status, with at most `room` targets and stages.
    fn of(policy: &RolloutPolicy, status: &RolloutPolicyStatus, room: usize) -> Self {
        let mut shown = Self::default();
        for found in &status.conditions {
            let (Some(condition), Some(status)) =
                (known(&CONDITIONS, &found.type_), known(&STATUSES, &found.status))
            else {
                continue;
            };
            let labels = ConditionLabels {
                namespace: policy.namespace.clone(),
                policy: policy.name.clone(),
                condition,
                status,
                reason: reason(&found.reason),
            };
            shown.conditions.push((labels, 1));
        }
        for target in &status.targets {
            shown.add_target(policy, target, room);
        }
        shown
    }

    fn add_target(&mut self, policy: &RolloutPolicy, target: &TargetStatus, room: usize) {
        if self.size() == room {
            self.omitted += 1 + target.stages.len();
            return;
        }
        let workload = WorkloadLabels::of(&Key::new(DAEMON_SET, &policy.namespace, &target.name));
        let labels = TargetLabels {
            workload: workload.clone(),
            policy: policy.name.clone(),
            state: reason(&target.state),
        };
        self.targets.push((labels, 1));
        for stage in &target.stages {
            if self.size() == room {
                self.omitted += 1;
                continue;
            }
            let labels = |state| StageLabels {
                workload: workload.clone(),
                policy: policy.name.clone(),
                stage: stage.name.clone(),
                state,
            };
            self.stages.push((labels(state_name(stage.state)), 1));
            let counts = counts(stage).map(|(state, count)| (labels(state), i64::from(count)));
            self.nodes.extend(counts);
        }
    }
}

impl Policies {
    /// Takes the status of a policy that came or changed.
    pub(super) fn set(&self, policy: &RolloutPolicy) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Object {
            status: RolloutPolicyStatus,
        }
        // A status that cannot be read is as good as none.
        let object: Object = serde_json::from_slice(&policy.object).unwrap_or_default();
        let id = (policy.namespace.clone(), policy.name.clone());
        let mut all = self.lock();
        let before = all.remove(&id);
        let now = match all.room(&policy.namespace) {
            Some(room) => Shown::of(policy, &object.status, room),
            None => Shown {
                omitted: 1,
                ..Shown::default()
            },
        };
        self.replace(&before, &now);
        all.put(id, now);
        self.omitted.set(gauge(all.total.omitted));
    }

    /// Removes the series of a policy that is gone.
    pub(super) fn remove(&self, policy: &RolloutPolicy) {
        let mut all = self.lock();
        let before = all.remove(&(policy.namespace.clone(), policy.name.clone()));
        self.replace(&before, &Shown::default());
        self.omitted.set(gauge(all.total.omitted));
    }

    /// Removes the series of every policy.
    pub(super) fn forget_all(&self) {
        *self.lock() = All::default();
        self.conditions.clear();
        self.targets.clear();
        self.stages.clear();
        self.nodes.clear();
        self.omitted.set(0);
    }

    /// A series that stays is never absent, so that a scrape does not miss it.
    fn replace(&self, before: &Shown, now: &Shown) {
        replace(&self.conditions, &before.conditions, &now.conditions);
        replace(&self.targets, &before.targets, &now.targets);
        replace(&self.stages, &before.stages, &now.stages);
        replace(&self.nodes, &before.nodes, &now.nodes);
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "1 for each condition of a RolloutPolicy, with its present status and reason. A policy that is gone has no series";
        own.register("rollout_policy_condition", help, self.conditions.clone());
        let help = "1 for the state of a DaemonSet's rollout in the status of its RolloutPolicy, which is the reason of the condition Progressing; \
                    Other: a state that this version does not know";
        own.register("rollout_policy_state", help, self.targets.clone());
        let help = "1 for the state of a stage, or of a wave of a stage with groupBy: Pending, AwaitingApproval, OutsideWindow, Analyzing, Progressing, \
                    Soaking or Complete";
        own.register("rollout_stage_state", help, self.stages.clone());
        let help = "Nodes of a stage, by state: all; updated (with a pod of the update revision); available (with an available one); exempt; failed. \
                    A node counts in each state that applies";
        own.register("rollout_stage_nodes", help, self.nodes.clone());
        let help = "RolloutPolicies, targets and stages that have no series, because at most 1,000 policies and 4,000 targets and stages have some, \
                    and those of one namespace a quarter of that";
        own.register("policy_series_omitted", help, self.omitted.clone());
    }
}

fn replace<L: Clone + Eq + Hash + std::fmt::Debug>(
    family: &Family<L, Gauge>,
    before: &[(L, i64)],
    now: &[(L, i64)],
) {
    let stay: HashSet<&L> = now.iter().map(|(labels, _)| labels).collect();
    for (labels, _) in before.iter().filter(|(labels, _)| !stay.contains(labels)) {
        family.remove(labels);
    }
    for (labels, value) in now {
        family.get_or_create(labels).set(*value);
    }
}

/// The counts of a stage, by the label `state`.
fn counts(stage: &StageStatus) -> [(&'static str, u32); 5] {
    [
        ("all", stage.nodes),
        ("updated", stage.updated),
        ("available", stage.available),
        ("exempt", stage.exempt),
        ("failed", stage.failed),
    ]
}

fn state_name(state: StageState) -> &'static str {
    match state {
        StageState::Pending => "Pending",
        StageState::AwaitingApproval => "AwaitingApproval",
        StageState::OutsideWindow => "OutsideWindow",
        StageState::Analyzing => "Analyzing",
        StageState::Progressing => "Progressing",
        StageState::Soaking => "Soaking",
        StageState::Complete => "Complete",
    }
}

fn known(values: &[&'static str], value: &str) -> Option<&'static str> {
    values.iter().copied().find(|known| *known == value)
}

fn reason(reason: &str) -> &'static str {
    known(&REASONS, reason).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, status: &Value) -> RolloutPolicy {
        let metadata = json!({"namespace": "a", "name": name, "uid": name, "resourceVersion": "1"});
        let object =
            json!({"metadata": metadata, "spec": {"targets": {"names": ["agent"]}}, "status": status});
        RolloutPolicy::from_json(&object).expect("a policy")
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-27T10:00:00Z"})
    }

    fn status(state: &str, stages: usize) -> Value {
        let one = |number| json!({"name": format!("s{number}"), "nodes": 5, "updated": 3, "available": 2, "exempt": 1, "failed": 0, "state": "Soaking"});
        json!({
            "conditions": [condition("Accepted", "True", "Accepted"), condition("Progressing", "True", state), condition("Odd", "True", "x")],
            "targets": [{"name": "agent", "uid": "u", "state": state, "stages": (0..stages).map(one).collect::<Vec<_>>()}],
        })
    }

    /// The series, without the lines about the families.
    fn series(policies: &Policies) -> Vec<String> {
        let mut registry = Registry::default();
        policies.register(&mut registry);
        let mut encoded = String::new();
        text::encode(&mut encoded, &registry).expect("writing to a string");
        let lines = encoded.lines().filter(|line| line.contains('{'));
        let mut series: Vec<_> = lines.map(str::to_owned).collect();
        series.sort();
        series
    }

    // L-37
    #[test]
    fn a_policy_has_the_series_of_its_status_until_it_is_gone() {
        let policies = Policies::default();
        policies.set(&policy("p", &status("Soaking", 1)));
        let of = "kind=\"DaemonSet\",namespace=\"a\",name=\"agent\",policy=\"p\"";
        let expected = [
            "rollout_policy_condition{namespace=\"a\",policy=\"p\",condition=\"Accepted\",status=\"True\",reason=\"Accepted\"} 1".to_owned(),
            "rollout_policy_condition{namespace=\"a\",policy=\"p\",condition=\"Progressing\",status=\"True\",reason=\"Soaking\"} 1".to_owned(),
            format!("rollout_policy_state{{{of},state=\"Soaking\"}} 1"),
            format!("rollout_stage_nodes{{{of},stage=\"s0\",state=\"all\"}} 5"),
            format!("rollout_stage_nodes{{{of},stage=\"s0\",state=\"available\"}} 2"),
            format!("rollout_stage_nodes{{{of},stage=\"s0\",state=\"exempt\"}} 1"),
            format!("rollout_stage_nodes{{{of},stage=\"s0\",state=\"failed\"}} 0"),
            format!("rollout_stage_nodes{{{of},stage=\"s0\",state=\"updated\"}} 3"),
            format!("rollout_stage_state{{{of},stage=\"s0\",state=\"Soaking\"}} 1"),
        ];
        assert_eq!(series(&policies), expected);
        // A state of a newer version of the service.
        policies.set(&policy("p", &status("Dancing", 0)));
        assert_eq!(
            series(&policies),
            [
                expected[0].clone(),
                expected[1].replace("Soaking", OTHER),
                expected[2].replace("Soaking", OTHER),
            ]
        );
        policies.remove(&policy("p", &json!(null)));
        assert_eq!(series(&policies), [""; 0]);
    }

    #[test]
    fn a_status_that_cannot_be_read_has_no_series() {
        let policies = Policies::default();
        policies.set(&policy("p", &status("Soaking", 1)));
        policies.set(&policy("p", &json!({"targets": 7})));
        assert_eq!(series(&policies), [""; 0]);
        policies.set(&policy("p", &status("Soaking", 1)));
        policies.forget_all();
        assert_eq!(series(&policies), [""; 0]);
    }

    /// A policy of another namespace.
    fn elsewhere(namespace: &str, name: &str, status: &Value) -> RolloutPolicy {
        let mut policy = policy(name, status);
        namespace.clone_into(&mut policy.namespace);
        policy
    }

    fn accepted() -> Value {
        json!({"conditions": [condition("Accepted", "True", "Accepted")]})
    }

    #[test]
    fn the_number_of_series_of_a_namespace_is_bounded() {
        let (policies, share) = (Policies::default(), MOST_STAGES / SHARE);
        policies.set(&policy("large", &status("Soaking", share + 10)));
        // One is the target.
        assert_eq!(policies.omitted.get(), 11);
        policies.set(&policy("late", &status("Soaking", 3)));
        assert_eq!(policies.omitted.get(), 15);
        let late = |line: &&String| line.contains("policy=\"late\"");
        assert_eq!(series(&policies).iter().filter(late).count(), 2, "its conditions");
        assert_eq!(series(&policies).len(), 4 + 1 + 6 * (share - 1));
        policies.remove(&policy("large", &json!(null)));
        policies.set(&policy("late", &status("Soaking", 3)));
        assert_eq!(
            (policies.omitted.get(), series(&policies).len()),
            (0, 2 + 1 + 6 * 3)
        );
        for number in 1..MOST_POLICIES / SHARE + 5 {
            policies.set(&policy(&number.to_string(), &accepted()));
        }
        assert_eq!(policies.omitted.get(), 5);
        assert_eq!(series(&policies).len(), 2 + 1 + 6 * 3 + MOST_POLICIES / SHARE - 1);
    }

    // Whoever fills one namespace takes nothing from the others.
    #[test]
    fn a_namespace_that_is_full_leaves_room_for_others() {
        let policies = Policies::default();
        for number in 0..MOST_POLICIES {
            policies.set(&elsewhere("full", &number.to_string(), &status("Soaking", 20)));
        }
        assert!(policies.omitted.get() > 0);
        let before = policies.omitted.get();
        policies.set(&policy("p", &status("Soaking", 3)));
        assert_eq!(policies.omitted.get(), before);
        let of_a = |line: &&String| line.contains("namespace=\"a\"");
        assert_eq!(series(&policies).iter().filter(of_a).count(), 2 + 1 + 6 * 3);
    }

    #[test]
    fn the_number_of_series_of_all_is_bounded() {
        let policies = Policies::default();
        for number in 0..MOST_POLICIES + 5 {
            policies.set(&elsewhere(&number.to_string(), "p", &status("Soaking", 4)));
        }
        // Five targets and stages for each policy.
        let omitted = 5 * (MOST_POLICIES - MOST_STAGES / 5) + 5;
        assert_eq!(policies.omitted.get(), gauge(omitted));
        let has = |text: &str| {
            series(&policies)
                .iter()
                .filter(|line| line.contains(text))
                .count()
        };
        assert_eq!(has("condition=\"Accepted\""), MOST_POLICIES);
        assert_eq!(has("rollout_stage_state"), MOST_STAGES / 5 * 4);
        for number in 0..MOST_POLICIES + 5 {
            policies.remove(&elsewhere(&number.to_string(), "p", &json!(null)));
        }
        assert_eq!((policies.omitted.get(), series(&policies).len()), (0, 0));
        let all = policies.lock();
        assert!(all.of.is_empty() && all.totals.is_empty() && all.total == Total::default());
    }
}
