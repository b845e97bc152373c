//! The state that the service returns with each plan, per workload: creates and deletes that no watch has shown yet, back-off
//! of failed pods, pod name collisions, and the progress of the slow start. Also the names of deleted pods and the blocked
//! evictions, which the executor records itself.
//!
//! The service decides what an outstanding expectation means. This module only removes expectations as watches show the
//! expected pods and deletions. Everything is in memory and empty after a start.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nodewise_projection::{Key, moment, timestamp};
use nodewise_proto::{
    Timestamp,
    v1::{self, action::Kind, outcome::Subject},
    workload::EXPECTATION_LIFETIME,
};

use crate::apply::{Blocked, removed_pod};

mod blocked;
mod used_names;

use blocked::BlockedEvictions;
use used_names::UsedNames;

/// How observed deletions reduce the expected deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionRule {
    /// Only deletions of the expected pods count (the deviation `DELETIONS_BY_UID`, Q-5).
    #[default]
    ByUid,
    /// Any deletion of a pod of the workload counts, and repeated events of one deletion count again, as upstream does.
    Counted,
}

/// The first second of year 1: the protocol has no earlier times.
const FIRST_SECOND: i64 = -62_135_596_800;

/// Number of creates and deletes that a plan made at `now` does not wait for any more, because they were expected for too
/// long.
#[must_use]
pub fn expired(sent: &v1::ReconcileState, now: jiff::Timestamp) -> usize {
    let Some(expectations) = &sent.expectations else {
        return 0;
    };
    if is_expired(expectations.set_at, now) {
        expectations.creates.len() + expectations.delete_uids.len()
    } else {
        0
    }
}

fn is_expired(set_at: Option<Timestamp>, now: jiff::Timestamp) -> bool {
    set_at.and_then(moment).is_none_or(|set_at| {
        let end = set_at.checked_add(EXPECTATION_LIFETIME);
        end.is_ok_and(|end| now > end)
    })
}

/// The creates and deletes of one plan that no watch has shown yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectations {
    set_at: Option<Timestamp>,
    /// Node name of each create, by pod name.
    named: BTreeMap<String, String>,
    /// Number of creates whose names the apiserver generates, by node name.
    unnamed: BTreeMap<String, usize>,
    /// Uids of the pods to be deleted.
    deletes: BTreeSet<String>,
}

impl From<v1::Expectations> for Expectations {
    fn from(wire: v1::Expectations) -> Self {
        let mut expectations = Self {
            set_at: wire.set_at,
            deletes: wire.delete_uids.into_iter().collect(),
            ..Self::default()
        };
        for create in wire.creates {
            if create.pod_name.is_empty() {
                *expectations.unnamed.entry(create.node_name).or_default() += 1;
            } else {
                expectations.named.insert(create.pod_name, create.node_name);
            }
        }
        expectations
    }
}

impl From<&Expectations> for v1::Expectations {
    fn from(expectations: &Expectations) -> Self {
        let named = expectations
            .named
            .iter()
            .map(|(pod_name, node_name)| v1::ExpectedCreate {
                pod_name: pod_name.clone(),
                node_name: node_name.clone(),
            });
        let unnamed = expectations.unnamed.iter().flat_map(|(node_name, count)| {
            let create = v1::ExpectedCreate {
                pod_name: String::new(),
                node_name: node_name.clone(),
            };
            std::iter::repeat_n(create, *count)
        });
        Self {
            set_at: expectations.set_at,
            creates: named.chain(unnamed).collect(),
            delete_uids: expectations.deletes.iter().cloned().collect(),
        }
    }
}

impl Expectations {
    /// Number of outstanding creates.
    #[must_use]
    pub fn creates(&self) -> usize {
        self.named.len() + self.unnamed.values().sum::<usize>()
    }

    /// Number of outstanding deletes.
    #[must_use]
    pub fn deletes(&self) -> usize {
        self.deletes.len()
    }

    /// Records a new pod on a node (D-73).
    fn observe_create(&mut self, pod_name: &str, node_name: &str) {
        if self.named.remove(pod_name).is_none() {
            lower(&mut self.unnamed, node_name, 1);
        }
    }

    /// Records a pod that is gone or being deleted (D-73). Its creation is not expected any more either.
    fn observe_deletion(&mut self, pod_name: &str, pod_uid: &str, rule: DeletionRule) {
        self.named.remove(pod_name);
        if !self.deletes.remove(pod_uid) && rule == DeletionRule::Counted {
            self.deletes.pop_first();
        }
    }

    /// Removes what is not in `other`. Never adds.
    fn retain(&mut self, other: &Self) {
        self.named
            .retain(|pod_name, _| other.named.contains_key(pod_name));
        self.deletes.retain(|uid| other.deletes.contains(uid));
        self.unnamed.retain(|node_name, count| {
            *count = (*count).min(other.unnamed.get(node_name).copied().unwrap_or(0));
            *count > 0
        });
    }

    /// Removes what is in `sent` but not in `held`: a watch showed it while the plan was being made.
    fn settle(&mut self, sent: &Self, held: &Self) {
        self.named
            .retain(|pod_name, _| !sent.named.contains_key(pod_name) || held.named.contains_key(pod_name));
        self.deletes
            .retain(|uid| !sent.deletes.contains(uid) || held.deletes.contains(uid));
        for (node_name, count) in &sent.unnamed {
            let observed = count.saturating_sub(held.unnamed.get(node_name).copied().unwrap_or(0));
            lower(&mut self.unnamed, node_name, observed);
        }
    }
}

fn lower(counts: &mut BTreeMap<String, usize>, key: &str, by: usize) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Whether an action certainly had no effect: it was skipped, its name was taken, a budget did not allow it, or the apiserver
/// rejected it.
fn had_no_effect(outcome: &v1::Outcome) -> bool {
    match outcome.result() {
        v1::Result::Skipped | v1::Result::NameTaken | v1::Result::Blocked => true,
        v1::Result::Failed => (400..500).contains(&outcome.http_status),
        _ => false,
    }
}

/// Removes expectations that neither the plan's actions nor the request account for. No watch would ever fulfil them.
pub fn remove_foreign_expectations(
    held: &mut v1::ReconcileState,
    plan: &v1::Plan,
    sent: &v1::ReconcileState,
) {
    let Some(expectations) = &mut held.expectations else {
        return;
    };
    let named = |create: &v1::ExpectedCreate| (create.pod_name.clone(), create.node_name.clone());
    let mut creates: HashMap<_, usize> = HashMap::new();
    let mut deletes: HashSet<&str> = HashSet::new();
    if let Some(expected) = &sent.expectations {
        for create in &expected.creates {
            *creates.entry(named(create)).or_default() += 1;
        }
        deletes.extend(expected.delete_uids.iter().map(String::as_str));
    }
    for action in plan.actions() {
        if let Some(Kind::CreatePod(create)) = &action.kind {
            let create = (create.pod_name.clone(), create.node_name.clone());
            *creates.entry(create).or_default() += 1;
        }
        deletes.extend(removed_pod(action).map(|(pod, _)| &*pod.uid));
    }
    expectations.creates.retain(|create| {
        let left = creates.get_mut(&named(create)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    });
    expectations.delete_uids.retain(|uid| deletes.contains(&**uid));
}

/// The state of all workloads.
#[derive(Debug, Default)]
pub struct ReconcileStates {
    held: HashMap<Key, WorkloadState>,
    /// Names of deleted pods, with the uid of the workload. Kept apart from the state of plans, because pods may be deleted
    /// before the first plan.
    used_names: HashMap<Key, (Arc<str>, UsedNames)>,
    rule: DeletionRule,
    /// The kinds of workload whose deletes are always tracked by uid.
    by_uid: Vec<&'static str>,
}

#[derive(Debug)]
struct WorkloadState {
    uid: Arc<str>,
    expectations: Expectations,
    failed_pod_backoffs: Vec<v1::FailedPodBackoff>,
    pod_name_collisions: Vec<v1::PodNameCollision>,
    slow_start: Option<v1::SlowStart>,
    blocked: BlockedEvictions,
}

/// The cached pods of a workload. An expectation that is already met when it is set is not kept.
pub trait CachedPods {
    /// Whether the cache has a pod of this name that the workload controls.
    fn exists(&self, pod_name: &str) -> bool;
    /// Returns, by uid, whether the pod is being deleted: for each pod that the workload controls, and for each orphan of its
    /// namespace, because the cache may still show a newly adopted pod as an orphan.
    fn deleting(&self) -> HashMap<String, bool>;
}

impl ReconcileStates {
    /// Creates an empty state.
    #[must_use]
    pub fn new(rule: DeletionRule) -> Self {
        Self {
            held: HashMap::new(),
            used_names: HashMap::new(),
            rule,
            by_uid: Vec::new(),
        }
    }

    /// Tracks the deletes of this kind of workload by uid, whatever the rule is for the others.
    pub fn track_by_uid(&mut self, kind: &'static str) {
        self.by_uid.push(kind);
    }

    fn rule_of(&self, kind: &str) -> DeletionRule {
        if self.by_uid.contains(&kind) {
            DeletionRule::ByUid
        } else {
            self.rule
        }
    }

    /// Returns the state to send with the next snapshot of a workload. State of another uid with the same name is dropped: a
    /// re-created workload starts without state.
    pub fn get(&mut self, key: &Key, uid: &str) -> v1::ReconcileState {
        if self.held.get(key).is_some_and(|held| *held.uid != *uid) {
            self.held.remove(key);
        }
        let used_pod_names = self.used_names.get(key).filter(|(of, _)| **of == *uid);
        let used_pod_names = used_pod_names.map_or_else(Vec::new, |(_, names)| names.to_message());
        let Some(held) = self.held.get(key) else {
            return v1::ReconcileState {
                used_pod_names,
                ..v1::ReconcileState::default()
            };
        };
        v1::ReconcileState {
            // A plan without expectations sets no time, and the service rejects expectations without a time.
            expectations: held.expectations.set_at.map(|_| (&held.expectations).into()),
            failed_pod_backoffs: held.failed_pod_backoffs.clone(),
            pod_name_collisions: held.pod_name_collisions.clone(),
            slow_start: held.slow_start.clone(),
            used_pod_names,
            blocked_evictions: held.blocked.to_message(),
        }
    }

    /// Stores the state that a plan returned. Call this before the first write of the plan.
    ///
    /// Watches continue while the plan is being made. An expectation that was `sent` but is no longer stored was observed
    /// meanwhile. Expectations that the caches already fulfil are dropped, too.
    pub fn replace(
        &mut self,
        key: &Key,
        uid: &Arc<str>,
        planned: v1::ReconcileState,
        sent: &v1::ReconcileState,
        cached_pods: &impl CachedPods,
    ) {
        if let Some((_, names)) = self.used_names.get_mut(key).filter(|(of, _)| of == uid) {
            names.drop_unneeded(&sent.used_pod_names, &planned.used_pod_names);
        }
        let mut expectations = Expectations::from(planned.expectations.unwrap_or_default());
        let present = self.held.get(key).filter(|held| held.uid == *uid);
        let mut blocked = present.map(|held| held.blocked.clone()).unwrap_or_default();
        blocked.drop_unneeded(&sent.blocked_evictions, &planned.blocked_evictions);
        let sent = Expectations::from(sent.expectations.clone().unwrap_or_default());
        expectations.settle(
            &sent,
            &present.map(|held| held.expectations.clone()).unwrap_or_default(),
        );
        expectations
            .named
            .retain(|pod_name, _| !cached_pods.exists(pod_name));
        // Deletes that were expected before end with their own event.
        let is_new = |pod_uid: &String| !sent.deletes.contains(pod_uid);
        if expectations.deletes.iter().any(is_new) {
            let (deleting, rule) = (cached_pods.deleting(), self.rule_of(key.kind));
            expectations
                .deletes
                .retain(|pod_uid| match (deleting.get(pod_uid), rule) {
                    _ if !is_new(pod_uid) => true,
                    (None, _) => false,
                    (Some(deleting), DeletionRule::ByUid) => !deleting,
                    // Upstream waits for an event even if the pod was already being deleted.
                    (Some(_), DeletionRule::Counted) => true,
                });
        }
        let held = WorkloadState {
            uid: Arc::clone(uid),
            expectations,
            failed_pod_backoffs: planned.failed_pod_backoffs,
            pod_name_collisions: planned.pod_name_collisions,
            slow_start: planned.slow_start,
            blocked,
        };
        self.held.insert(key.clone(), held);
    }

    /// Restores the back-off of the request, because the plan ended before it handled failed pods.
    pub fn restore_failed_pod_backoffs(&mut self, key: &Key, uid: &Arc<str>, sent: &v1::ReconcileState) {
        if let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) {
            held.failed_pod_backoffs.clone_from(&sent.failed_pod_backoffs);
        }
    }

    /// Removes the expectations of actions that certainly had no effect. A call without a response may have had an effect, so
    /// its expectation stays. A name for no node that the apiserver refused because another pod has it counts as used, so that
    /// the next plan gives another one.
    pub fn lower(&mut self, key: &Key, uid: &Arc<str>, outcomes: &[v1::Outcome]) {
        let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) else {
            return;
        };
        let expected = &mut held.expectations;
        let mut taken = Vec::new();
        for outcome in outcomes.iter().filter(|outcome| had_no_effect(outcome)) {
            match &outcome.subject {
                Some(Subject::CreatedPod(create)) if create.pod_name.is_empty() => {
                    lower(&mut expected.unnamed, &create.node_name, 1);
                }
                Some(Subject::CreatedPod(create)) => {
                    expected.named.remove(&create.pod_name);
                    if create.node_name.is_empty() && outcome.result() == v1::Result::NameTaken {
                        taken.push(create.pod_name.clone());
                    }
                }
                Some(Subject::DeletedPodUid(uid)) => _ = expected.deletes.remove(uid),
                None => {}
            }
        }
        for pod_name in taken {
            self.record_used_name(key, uid, String::new(), pod_name);
        }
    }

    /// Records evictions that a PodDisruptionBudget did not allow, each instead of an earlier one of the same pod. `sent` is the
    /// state in the request for the plan that asked for them: it knows how often they were not allowed before.
    pub fn block(
        &mut self,
        key: &Key,
        uid: &Arc<str>,
        blocked: &[Blocked],
        sent: &v1::ReconcileState,
        now: jiff::Timestamp,
    ) {
        let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) else {
            return;
        };
        for one in blocked {
            held.blocked.record(one, &sent.blocked_evictions, now);
        }
    }

    /// Stores the response to an outcome report. Expectations that it does not contain are removed; none is added. Used names
    /// and blocked evictions stay.
    pub fn settle(&mut self, key: &Key, uid: &Arc<str>, settled: v1::ReconcileState) {
        let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) else {
            return;
        };
        held.expectations
            .retain(&settled.expectations.unwrap_or_default().into());
        held.failed_pod_backoffs = settled.failed_pod_backoffs;
        held.pod_name_collisions = settled.pod_name_collisions;
        held.slow_start = settled.slow_start;
    }

    /// Records that a watch showed a new pod of the workload.
    pub fn observe_create(&mut self, key: &Key, pod_name: &str, node_name: &str) {
        if let Some(held) = self.held.get_mut(key) {
            held.expectations.observe_create(pod_name, node_name);
        }
        if let Some((_, names)) = self.used_names.get_mut(key) {
            names.replaced(node_name);
        }
    }

    /// Records the name of a pod that is gone from the cache. No new pod gets this name until another pod of the workload is
    /// seen on the node.
    pub fn record_used_name(&mut self, key: &Key, uid: &Arc<str>, node_name: String, pod_name: String) {
        let (of, names) = self
            .used_names
            .entry(key.clone())
            .or_insert_with(|| (Arc::clone(uid), UsedNames::default()));
        if of != uid {
            (*of, *names) = (Arc::clone(uid), UsedNames::default());
        }
        names.record(node_name, pod_name);
    }

    /// Records that a watch showed that a pod of the workload is gone or being deleted.
    pub fn observe_deletion(&mut self, key: &Key, pod_name: &str, pod_uid: &str) {
        let rule = self.rule_of(key.kind);
        if let Some(held) = self.held.get_mut(key) {
            held.expectations.observe_deletion(pod_name, pod_uid, rule);
            held.blocked.remove(pod_uid);
        }
    }

    /// Drops the state that only plans set, and blocked evictions, and returns whether anything changed. Used names and expectations
    /// stay, because the executor knows them itself. Expired expectations are dropped. Expectations whose start is invalid or after `now`
    /// start now.
    pub fn drop_planned_state(&mut self, key: &Key, now: jiff::Timestamp) -> bool {
        let Some(held) = self.held.get_mut(key) else {
            return false;
        };
        let set_at = &mut held.expectations.set_at;
        let is_before = |at: &Timestamp| {
            let seconds = FIRST_SECOND..=now.as_second();
            seconds.contains(&at.seconds) && (0..1_000_000_000).contains(&at.nanos)
        };
        let is_odd = set_at.as_ref().is_some_and(|at| !is_before(at));
        if is_odd {
            *set_at = Some(timestamp(now));
        }
        // Plans ignore expired expectations.
        let is_over = is_expired(*set_at, now) && held.expectations != Expectations::default();
        if is_over {
            held.expectations = Expectations::default();
        }
        let before = (
            std::mem::take(&mut held.failed_pod_backoffs),
            std::mem::take(&mut held.pod_name_collisions),
            held.slow_start.take(),
            // A budget that still protects a pod does so again.
            std::mem::take(&mut held.blocked),
        );
        is_odd || is_over || before != Default::default()
    }

    /// Drops the state of a workload.
    pub fn forget(&mut self, key: &Key) {
        self.held.remove(key);
        self.used_names.remove(key);
    }

    /// Returns the number of outstanding creates and deletes of a workload.
    #[must_use]
    pub fn outstanding(&self, key: &Key) -> (usize, usize) {
        self.held.get(key).map_or((0, 0), |held| {
            (held.expectations.creates(), held.expectations.deletes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::DAEMON_SETS;

    struct FakeCache {
        pods: &'static [&'static str],
        deleting: &'static [(&'static str, bool)],
    }

    const BEFORE: FakeCache = FakeCache {
        pods: &[],
        deleting: &[("u1", false), ("u2", false), ("u3", false)],
    };

    impl CachedPods for FakeCache {
        fn exists(&self, pod_name: &str) -> bool {
            self.pods.contains(&pod_name)
        }
        fn deleting(&self) -> HashMap<String, bool> {
            let deleting = self.deleting.iter();
            deleting
                .map(|&(uid, deleting)| (uid.to_owned(), deleting))
                .collect()
        }
    }

    fn state(creates: &[(&str, &str)], deletes: &[&str]) -> v1::ReconcileState {
        let creates = creates.iter().map(|(pod_name, node_name)| v1::ExpectedCreate {
            pod_name: (*pod_name).into(),
            node_name: (*node_name).into(),
        });
        v1::ReconcileState {
            expectations: Some(v1::Expectations {
                set_at: Some(Timestamp {
                    seconds: 100,
                    nanos: 0,
                }),
                creates: creates.collect(),
                delete_uids: deletes.iter().map(|uid| (*uid).into()).collect(),
            }),
            ..Default::default()
        }
    }

    fn holding(rule: DeletionRule, planned: v1::ReconcileState) -> (ReconcileStates, Key, Arc<str>) {
        let (mut states, key, uid) = (
            ReconcileStates::new(rule),
            Key::new(DAEMON_SETS.kind, "ns", "foo"),
            Arc::from("d1"),
        );
        states.replace(&key, &uid, planned, &v1::ReconcileState::default(), &BEFORE);
        (states, key, uid)
    }

    // W12: a faulty service cannot add expectations that nothing fulfils.
    #[test]
    fn foreign_expectations_are_removed() {
        let create = |&(pod_name, node_name): &(&str, &str)| {
            Kind::CreatePod(v1::CreatePod {
                pod_name: pod_name.into(),
                node_name: node_name.into(),
            })
        };
        let creates = [("a", "n1"), ("", "n2")].iter().map(create).collect();
        let mut plan = crate::testing::with_actions(v1::PhaseKind::Creates, creates);
        let delete = |uid: &str| {
            Kind::DeletePod(v1::DeletePod {
                pod: Some(v1::ObjectReference {
                    name: "p".into(),
                    uid: uid.into(),
                }),
                ..Default::default()
            })
        };
        let evict = Kind::EvictPod(v1::EvictPod {
            pod: Some(v1::ObjectReference {
                name: "q".into(),
                uid: "u3".into(),
            }),
            ..Default::default()
        });
        let deletes = crate::testing::with_actions(v1::PhaseKind::Deletes, vec![delete("u1"), evict]);
        plan.phases.extend(deletes.phases);
        let sent = state(&[("b", "n3"), ("", "n2")], &["u2"]);
        let all = [
            ("a", "n1"),
            ("a", "n9"),
            ("b", "n3"),
            ("c", "n4"),
            ("", "n2"),
            ("", "n2"),
            ("", "n2"),
            ("", "n9"),
        ];
        let mut held = state(&all, &["u1", "u2", "u3", "u9"]);
        remove_foreign_expectations(&mut held, &plan, &sent);
        let expected = [("a", "n1"), ("b", "n3"), ("", "n2"), ("", "n2")];
        assert_eq!(held, state(&expected, &["u1", "u2", "u3"]));
        let mut nothing = v1::ReconcileState::default();
        remove_foreign_expectations(&mut nothing, &plan, &sent);
        assert_eq!(nothing, v1::ReconcileState::default());
    }

    // W12: state that only the service sets is dropped. Expectations of own writes stay.
    #[test]
    fn drop_planned_keeps_expectations() {
        let now = jiff::Timestamp::new(200, 0).expect("a moment");
        let key = Key::new(DAEMON_SETS.kind, "ns", "foo");
        // (start in the plan, start that is stored then, whether anything changes)
        for (at, held, is_dropped) in [
            ((100, 0), 100, false),
            ((200, 0), 200, false),
            ((201, 0), 200, true),
            ((i64::MAX, 0), 200, true),
            ((100, -1), 200, true),
            ((100, 1_000_000_000), 200, true),
            ((FIRST_SECOND - 1, 0), 200, true),
        ] {
            let (seconds, nanos) = at;
            for remembers in [false, true] {
                let mut planned = state(&[("a", "n1")], &["u1"]);
                let at = Timestamp { seconds, nanos };
                planned.expectations.as_mut().expect("some").set_at = Some(at);
                if remembers {
                    planned.slow_start = Some(v1::SlowStart::default());
                }
                let (mut states, key, uid) = holding(DeletionRule::ByUid, planned);
                assert_eq!(
                    states.drop_planned_state(&key, now),
                    is_dropped || remembers,
                    "{seconds}"
                );
                let mut left = state(&[("a", "n1")], &["u1"]);
                left.expectations.as_mut().expect("some").set_at = Some(Timestamp {
                    seconds: held,
                    nanos: 0,
                });
                assert_eq!(states.get(&key, &uid), left, "{seconds}");
                assert!(!states.drop_planned_state(&key, now), "{seconds}");
            }
        }
        assert!(!ReconcileStates::default().drop_planned_state(&key, now));
    }

    // Plans ignore expired expectations, and a faulty service may have returned many of them.
    #[test]
    fn drop_planned_removes_expired_expectations() {
        for (now, is_over) in [(400, false), (401, true)] {
            let (mut states, key, uid) =
                holding(DeletionRule::ByUid, state(&[("a", "n1"), ("", "n2")], &["u1"]));
            let now = jiff::Timestamp::new(now, 0).expect("a moment");
            assert_eq!(states.drop_planned_state(&key, now), is_over);
            let left = states.get(&key, &uid).expectations;
            assert_eq!(left.is_none(), is_over);
        }
    }

    // D-72: the state of a plan is stored and sent again unchanged, including its time.
    #[test]
    fn stores_the_state_of_the_plan() {
        let mut planned = state(&[("a", "n1"), ("", "n2"), ("", "n2")], &["u1"]);
        planned.failed_pod_backoffs = vec![v1::FailedPodBackoff {
            observed_generation: 3,
            node_name: "n9".into(),
            ..Default::default()
        }];
        planned.pod_name_collisions = vec![v1::PodNameCollision {
            node_name: "n8".into(),
            count: 2,
            refused_count: 0,
        }];
        planned.slow_start = Some(v1::SlowStart {
            size: 8,
            ..Default::default()
        });
        let (mut states, key, _) = holding(DeletionRule::ByUid, planned.clone());
        assert_eq!(states.get(&key, "d1"), planned);
        assert_eq!(states.outstanding(&key), (3, 1));
    }

    // D-72: after a plan without expectations, none are sent.
    #[test]
    fn stores_no_expectations_if_the_plan_sets_none() {
        let (mut states, key, _) = holding(DeletionRule::ByUid, v1::ReconcileState::default());
        assert_eq!(states.get(&key, "d1"), v1::ReconcileState::default());
    }

    // D-73: a named create is observed by its pod, an unnamed create by a pod on its node. Other pods change nothing.
    #[test]
    fn creates_are_observed() {
        let (mut states, key, _) = holding(
            DeletionRule::ByUid,
            state(&[("a", "n1"), ("b", "n2"), ("", "n3"), ("", "n3")], &[]),
        );
        states.observe_create(&key, "a", "n1");
        states.observe_create(&key, "someone-elses", "n2");
        states.observe_create(&key, "generated", "n3");
        states.observe_create(&Key::new(DAEMON_SETS.kind, "ns", "bar"), "b", "n2");
        assert_eq!(states.get(&key, "d1"), state(&[("b", "n2"), ("", "n3")], &[]));
    }

    // D-73, Q-5 by uid: only deletions of the expected pods count, and once.
    #[test]
    fn deletions_are_tracked_by_uid() {
        let (mut states, key, _) = holding(DeletionRule::ByUid, state(&[], &["u1", "u2"]));
        for uid in ["u9", "u1", "u1"] {
            states.observe_deletion(&key, "p", uid);
        }
        assert_eq!(states.get(&key, "d1"), state(&[], &["u2"]));
    }

    // Q-5 as upstream: any deletion counts, and each of its events counts again.
    #[test]
    fn deletions_are_counted_as_upstream_does() {
        let (mut states, key, _) = holding(DeletionRule::Counted, state(&[], &["u1", "u2", "u3"]));
        states.observe_deletion(&key, "p", "u9");
        assert_eq!(states.outstanding(&key), (0, 2));
        states.observe_deletion(&key, "p", "u9");
        states.observe_deletion(&key, "p", "u9");
        states.observe_deletion(&key, "p", "u9");
        assert_eq!(states.outstanding(&key), (0, 0));
    }

    // the pods of some kinds are tracked by uid in every profile.
    #[test]
    fn deletions_of_some_kinds_are_always_tracked_by_uid() {
        let (mut states, key, _) = holding(DeletionRule::Counted, state(&[], &["u1"]));
        states.track_by_uid(DAEMON_SETS.kind);
        states.observe_deletion(&key, "p", "u9");
        assert_eq!(states.outstanding(&key), (0, 1));
        states.observe_deletion(&key, "p", "u1");
        assert_eq!(states.outstanding(&key), (0, 0));
    }

    // Another pod says nothing about a name that belongs to no node: only a plan removes it.
    #[test]
    fn used_names_without_a_node_stay_until_a_plan_drops_them() {
        let (mut states, key, uid) = holding(DeletionRule::ByUid, v1::ReconcileState::default());
        for node in ["", "n1"] {
            states.record_used_name(&key, &uid, node.to_owned(), format!("old-{node}"));
        }
        for node in ["", "n1"] {
            states.observe_create(&key, "new", node);
        }
        let sent = states.get(&key, &uid);
        let names: Vec<_> = sent.used_pod_names.iter().map(|name| &*name.pod_name).collect();
        assert_eq!(names, ["old-"]);
        states.replace(&key, &uid, v1::ReconcileState::default(), &sent, &BEFORE);
        assert_eq!(states.get(&key, &uid).used_pod_names, []);
    }

    // The name of a pod that the apiserver refused is not tried again. A service cannot add names.
    #[test]
    fn refused_names_without_a_node_are_used() {
        let (mut states, key, uid) = holding(DeletionRule::ByUid, v1::ReconcileState::default());
        states.record_used_name(&key, &uid, String::new(), "gone".to_owned());
        let used = |node_name: &str, pod_name: &str| v1::UsedPodName {
            node_name: node_name.to_owned(),
            pod_name: pod_name.to_owned(),
        };
        let refused = |node_name: &str, pod_name: &str| v1::Outcome {
            result: v1::Result::NameTaken.into(),
            subject: Some(Subject::CreatedPod(v1::ExpectedCreate {
                node_name: node_name.to_owned(),
                pod_name: pod_name.to_owned(),
            })),
            ..v1::Outcome::default()
        };
        states.lower(&key, &uid, &[refused("", "taken"), refused("n1", "of-a-node")]);
        let settled = v1::ReconcileState {
            used_pod_names: vec![used("", "of-the-service")],
            ..v1::ReconcileState::default()
        };
        states.settle(&key, &uid, settled);
        let held = states.get(&key, &uid).used_pod_names;
        assert_eq!(held, [used("", "gone"), used("", "taken")]);
    }

    // A pod that was created and deleted is not expected any more.
    #[test]
    fn a_deletion_also_removes_the_expected_create() {
        let (mut states, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        states.observe_deletion(&key, "a", "u1");
        assert_eq!(states.outstanding(&key), (0, 0));
    }

    // an observation that a watch made during a plan must not be undone by that plan.
    #[test]
    fn observations_during_a_plan_are_kept() {
        let first = state(&[("a", "n1"), ("b", "n2"), ("", "n3")], &["u1", "u2"]);
        let (mut states, key, uid) = holding(DeletionRule::ByUid, first);
        let sent = states.get(&key, "d1");
        states.observe_create(&key, "a", "n1");
        states.observe_create(&key, "generated", "n3");
        states.observe_deletion(&key, "x", "u1");
        states.replace(&key, &uid, sent.clone(), &sent, &BEFORE);
        assert_eq!(states.get(&key, "d1"), state(&[("b", "n2")], &["u2"]));
        let next = state(&[("c", "n4")], &["u3"]);
        let sent = states.get(&key, "d1");
        states.replace(&key, &uid, next.clone(), &sent, &BEFORE);
        assert_eq!(
            states.get(&key, "d1"),
            next,
            "new expectations replace the old ones"
        );
    }

    // The caches already fulfil an expectation when the plan arrives. There will be no event for it.
    #[test]
    fn fulfilled_expectations_are_not_kept() {
        let cache = FakeCache {
            pods: &["a"],
            deleting: &[("u2", false), ("u3", true)],
        };
        // upstream also waits for an event of a pod that was already being deleted.
        for (rule, left) in [
            (DeletionRule::ByUid, vec!["u2"]),
            (DeletionRule::Counted, vec!["u2", "u3"]),
        ] {
            let (mut states, key, uid) = holding(rule, v1::ReconcileState::default());
            let planned = state(&[("a", "n1"), ("b", "n2")], &["u1", "u2", "u3"]);
            states.replace(&key, &uid, planned, &v1::ReconcileState::default(), &cache);
            assert_eq!(states.get(&key, "d1"), state(&[("b", "n2")], &left), "{rule:?}");
        }
    }

    // D-73: the response to a report removes the expectations of failed and skipped calls. It never adds any.
    #[test]
    fn a_report_settles_and_never_adds() {
        let (mut states, key, uid) = holding(
            DeletionRule::ByUid,
            state(&[("a", "n1"), ("b", "n2"), ("", "n3"), ("", "n3")], &["u1", "u2"]),
        );
        states.observe_create(&key, "a", "n1");
        let mut settled = state(&[("a", "n1"), ("", "n3"), ("z", "n9")], &["u2", "u9"]);
        settled.pod_name_collisions = vec![v1::PodNameCollision {
            node_name: "n2".into(),
            count: 1,
            refused_count: 0,
        }];
        settled.slow_start = Some(v1::SlowStart {
            size: 16,
            ..Default::default()
        });
        states.settle(&key, &uid, settled.clone());
        let held = states.get(&key, "d1");
        assert_eq!(held.slow_start, settled.slow_start);
        assert_eq!(held.expectations, state(&[("", "n3")], &["u2"]).expectations);
        assert_eq!(held.pod_name_collisions, settled.pod_name_collisions);
        states.settle(&key, &Arc::from("d2"), v1::ReconcileState::default());
        assert_eq!(
            states.get(&key, "d1"),
            held,
            "another workload's report changes nothing"
        );
    }

    // L-24: the expectation of a blocked eviction is lowered. The entry stays until a plan leaves it out, the pod is gone, or the
    // service may have refused the state for it.
    #[test]
    fn blocked_evictions_are_kept() {
        let blocked = || {
            let planned = state(&[], &["u1", "u2"]);
            let (mut states, key, uid) = holding(DeletionRule::ByUid, planned);
            let outcome = v1::Outcome {
                result: v1::Result::Blocked.into(),
                subject: Some(Subject::DeletedPodUid("u1".into())),
                ..v1::Outcome::default()
            };
            states.lower(&key, &uid, &[outcome]);
            let one = Blocked {
                pod_uid: "u1".into(),
                message: "budget b".into(),
                retry_after: None,
            };
            let now = jiff::Timestamp::new(200, 0).expect("a moment");
            states.block(&key, &uid, &[one], &v1::ReconcileState::default(), now);
            (states, key, uid)
        };
        let entries = |states: &mut ReconcileStates, key: &Key| states.get(key, "d1").blocked_evictions.len();
        let (mut states, key, uid) = blocked();
        assert_eq!(
            (states.outstanding(&key), entries(&mut states, &key)),
            ((0, 1), 1)
        );
        states.settle(&key, &uid, v1::ReconcileState::default());
        assert_eq!(entries(&mut states, &key), 1, "a report leaves it");
        let sent = states.get(&key, &uid);
        states.replace(&key, &uid, sent.clone(), &sent, &BEFORE);
        assert_eq!(entries(&mut states, &key), 1, "a plan keeps it");
        let forged = v1::ReconcileState {
            blocked_evictions: vec![v1::BlockedEviction::default(); 3],
            ..v1::ReconcileState::default()
        };
        states.replace(&key, &uid, forged, &sent, &BEFORE);
        assert_eq!(
            entries(&mut states, &key),
            0,
            "a plan leaves it out, and adds none"
        );
        let (mut states, key, _) = blocked();
        states.observe_deletion(&key, "p", "u1");
        assert_eq!(entries(&mut states, &key), 0, "the pod is gone");
        let (mut states, key, _) = blocked();
        assert!(states.drop_planned_state(&key, jiff::Timestamp::new(200, 0).expect("a moment")));
        assert_eq!(entries(&mut states, &key), 0, "it may be the cause");
    }

    // A workload that was re-created with the same name starts without state.
    #[test]
    fn another_uid_starts_without_state() {
        let (mut states, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        assert_eq!(states.get(&key, "d2"), v1::ReconcileState::default());
        assert_eq!(states.get(&key, "d1"), v1::ReconcileState::default());
    }

    // The state of a deleted workload is dropped.
    #[test]
    fn forget_drops_the_state() {
        let (mut states, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        states.forget(&key);
        assert_eq!(states.outstanding(&key), (0, 0));
    }
}
