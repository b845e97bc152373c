//! What the service told the executor to hold for each workload: creates and deletes that no watch has shown yet, failed-pod
//! back-off, pod name collisions and how far the slow start has come. Beside that, which names of pods went with their pods.
//!
//! The service decides what an outstanding expectation means; this only shrinks expectations as watches show what was
//! expected. Everything lives in memory and starts empty (M-15).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::SignedDuration;
use nodewise_proto::{
    Timestamp,
    v1::{self, action::Kind, outcome::Subject},
};

use crate::event::Key;
use crate::project::timestamp;

mod used_names;

use used_names::UsedNames;

/// How deletions are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionRule {
    /// Only the pods that were to be deleted count (the deviation `DELETIONS_BY_UID`, Q-5).
    #[default]
    ByUid,
    /// Any deletion of a pod of the workload counts, and each of its events again, as upstream does.
    Counted,
}

/// The first second of the year 1: moments before it are none in the protocol.
const FIRST_SECOND: i64 = -62_135_596_800;

/// After this time a plan waits for nothing that is still expected, as the contract says.
const LIFETIME: SignedDuration = SignedDuration::from_mins(5);

/// How many creates and deletes a plan made at `now` does not wait for any more, since they were expected for too long.
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
    let set_at = set_at.and_then(|at| jiff::Timestamp::new(at.seconds, at.nanos).ok());
    set_at.is_none_or(|set_at| now.duration_since(set_at) > LIFETIME)
}

/// Creates and deletes of one plan that have not been observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectations {
    set_at: Option<Timestamp>,
    /// Node names by pod name.
    named: BTreeMap<String, String>,
    /// How many pods whose names the apiserver chooses, by node name.
    unnamed: BTreeMap<String, usize>,
    /// Uids of pods.
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
    /// Creates outstanding.
    #[must_use]
    pub fn creates(&self) -> usize {
        self.named.len() + self.unnamed.values().sum::<usize>()
    }

    /// Deletes outstanding.
    #[must_use]
    pub fn deletes(&self) -> usize {
        self.deletes.len()
    }

    /// A watch showed this new pod for this node (D-73).
    fn observe_create(&mut self, pod_name: &str, node_name: &str) {
        if self.named.remove(pod_name).is_none() {
            lower(&mut self.unnamed, node_name, 1);
        }
    }

    /// A watch showed that this pod is gone or being deleted (D-73). Nobody needs to wait for its creation any more.
    fn observe_deletion(&mut self, pod_name: &str, pod_uid: &str, rule: DeletionRule) {
        self.named.remove(pod_name);
        if !self.deletes.remove(pod_uid) && rule == DeletionRule::Counted {
            self.deletes.pop_first();
        }
    }

    /// Removes what `other` does not have. Never adds.
    fn retain(&mut self, other: &Self) {
        self.named
            .retain(|pod_name, _| other.named.contains_key(pod_name));
        self.deletes.retain(|uid| other.deletes.contains(uid));
        self.unnamed.retain(|node_name, count| {
            *count = (*count).min(other.unnamed.get(node_name).copied().unwrap_or(0));
            *count > 0
        });
    }

    /// Removes what `sent` had and `held` has no more: it was observed while the plan was under way.
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

/// Whether an action was left out, not tried, or refused by the apiserver.
fn is_undone(outcome: &v1::Outcome) -> bool {
    match outcome.result() {
        v1::Result::Skipped | v1::Result::NameTaken => true,
        v1::Result::Failed => (400..500).contains(&outcome.http_status),
        _ => false,
    }
}

/// Removes expectations that no action of the plan sets and that the request did not have: no watch would ever meet them.
pub fn leave_out_foreign(held: &mut v1::ReconcileState, plan: &v1::Plan, sent: &v1::ReconcileState) {
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
        match &action.kind {
            Some(Kind::CreatePod(create)) => {
                let create = (create.pod_name.clone(), create.node_name.clone());
                *creates.entry(create).or_default() += 1;
            }
            Some(Kind::DeletePod(delete)) => deletes.extend(delete.pod.as_ref().map(|pod| &*pod.uid)),
            _ => {}
        }
    }
    expectations.creates.retain(|create| {
        let left = creates.get_mut(&named(create)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    });
    expectations.delete_uids.retain(|uid| deletes.contains(&**uid));
}

/// What is held for every workload.
#[derive(Debug, Default)]
pub struct Holdings {
    held: HashMap<Key, Held>,
    /// With the uid of the workload. Apart from what plans say: pods may go before the first plan.
    used_names: HashMap<Key, (Arc<str>, UsedNames)>,
    rule: DeletionRule,
}

#[derive(Debug)]
struct Held {
    uid: Arc<str>,
    expectations: Expectations,
    failed_pod_backoffs: Vec<v1::FailedPodBackoff>,
    pod_name_collisions: Vec<v1::PodNameCollision>,
    slow_start: Option<v1::SlowStart>,
}

/// How the pods of a workload look now, for expectations that are met already when they are set.
pub trait Sighted {
    /// The caches show a pod of this name that the workload controls.
    fn exists(&self, pod_name: &str) -> bool;
    /// By uid whether it is being deleted, for each pod that the workload controls, and each orphan of its namespace: a
    /// pod that was adopted just now may still look like one.
    fn deleting(&self) -> HashMap<String, bool>;
}

impl Holdings {
    /// Holds nothing yet.
    #[must_use]
    pub fn new(rule: DeletionRule) -> Self {
        Self {
            held: HashMap::new(),
            used_names: HashMap::new(),
            rule,
        }
    }

    /// What to send with the next snapshot of a workload. What was held for another uid of its name is dropped: a re-created
    /// workload starts afresh.
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
            // A plan that expects nothing sets no time, and expectations without one are refused.
            expectations: held.expectations.set_at.map(|_| (&held.expectations).into()),
            failed_pod_backoffs: held.failed_pod_backoffs.clone(),
            pod_name_collisions: held.pod_name_collisions.clone(),
            slow_start: held.slow_start.clone(),
            used_pod_names,
        }
    }

    /// Holds what a plan says, from before its first write on.
    ///
    /// Watches went on while the plan was under way: what was `sent` and is not held any more was observed meanwhile, and
    /// what the caches show already has not to be waited for.
    pub fn replace(
        &mut self,
        key: &Key,
        uid: &Arc<str>,
        planned: v1::ReconcileState,
        sent: &v1::ReconcileState,
        sighted: &impl Sighted,
    ) {
        if let Some((_, names)) = self.used_names.get_mut(key).filter(|(of, _)| of == uid) {
            names.drop_unneeded(&sent.used_pod_names, &planned.used_pod_names);
        }
        let mut expectations = Expectations::from(planned.expectations.unwrap_or_default());
        let sent = Expectations::from(sent.expectations.clone().unwrap_or_default());
        let present = self.held.get(key).filter(|held| held.uid == *uid);
        expectations.settle(
            &sent,
            &present.map(|held| held.expectations.clone()).unwrap_or_default(),
        );
        expectations.named.retain(|pod_name, _| !sighted.exists(pod_name));
        // What was awaited before ends with its own event.
        let is_new = |pod_uid: &String| !sent.deletes.contains(pod_uid);
        if expectations.deletes.iter().any(is_new) {
            let deleting = sighted.deleting();
            expectations
                .deletes
                .retain(|pod_uid| match (deleting.get(pod_uid), self.rule) {
                    _ if !is_new(pod_uid) => true,
                    (None, _) => false,
                    (Some(deleting), DeletionRule::ByUid) => !deleting,
                    // Upstream waits for an event even if the pod was being deleted before.
                    (Some(_), DeletionRule::Counted) => true,
                });
        }
        let held = Held {
            uid: Arc::clone(uid),
            expectations,
            failed_pod_backoffs: planned.failed_pod_backoffs,
            pod_name_collisions: planned.pod_name_collisions,
            slow_start: planned.slow_start,
        };
        self.held.insert(key.clone(), held);
    }

    /// Takes back the back-off that a plan brought along, since the plan ended before it came to failed pods.
    pub fn restore_backoffs(&mut self, key: &Key, uid: &Arc<str>, sent: &v1::ReconcileState) {
        if let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) {
            held.failed_pod_backoffs.clone_from(&sent.failed_pod_backoffs);
        }
    }

    /// Takes out what is expected of actions that were certainly not done. What the apiserver did not answer may be done all the same.
    pub fn lower(&mut self, key: &Key, uid: &Arc<str>, outcomes: &[v1::Outcome]) {
        let Some(held) = self.held.get_mut(key).filter(|held| held.uid == *uid) else {
            return;
        };
        let expected = &mut held.expectations;
        for outcome in outcomes.iter().filter(|outcome| is_undone(outcome)) {
            match &outcome.subject {
                Some(Subject::CreatedPod(create)) if create.pod_name.is_empty() => {
                    lower(&mut expected.unnamed, &create.node_name, 1);
                }
                Some(Subject::CreatedPod(create)) => _ = expected.named.remove(&create.pod_name),
                Some(Subject::DeletedPodUid(uid)) => _ = expected.deletes.remove(uid),
                None => {}
            }
        }
    }

    /// Takes over the answer to a report: expectations that are missing there are settled, none is added.
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

    /// A watch showed a new pod of the workload.
    pub fn observe_create(&mut self, key: &Key, pod_name: &str, node_name: &str) {
        if let Some(held) = self.held.get_mut(key) {
            held.expectations.observe_create(pod_name, node_name);
        }
        if let Some((_, names)) = self.used_names.get_mut(key) {
            names.replaced(node_name);
        }
    }

    /// A pod of the workload of this uid is gone from the cache: no new pod gets its name before another one is seen on the node.
    pub fn retire_name(&mut self, key: &Key, uid: &Arc<str>, node_name: String, pod_name: String) {
        let (of, names) = self
            .used_names
            .entry(key.clone())
            .or_insert_with(|| (Arc::clone(uid), UsedNames::default()));
        if of != uid {
            (*of, *names) = (Arc::clone(uid), UsedNames::default());
        }
        names.retire(node_name, pod_name);
    }

    /// A watch showed that a pod of the workload is gone or being deleted.
    pub fn observe_deletion(&mut self, key: &Key, pod_name: &str, pod_uid: &str) {
        if let Some(held) = self.held.get_mut(key) {
            held.expectations.observe_deletion(pod_name, pod_uid, self.rule);
        }
    }

    /// Drops what plans have left to remember of a workload, and answers whether there was anything. Used names and expectations stay,
    /// since the executor knows these by itself. Expectations that do not begin at a moment before `now` begin now.
    pub fn drop_planned(&mut self, key: &Key, now: jiff::Timestamp) -> bool {
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
        // A plan does not wait for these any more.
        let is_over = is_expired(*set_at, now) && held.expectations != Expectations::default();
        if is_over {
            held.expectations = Expectations::default();
        }
        let before = (
            std::mem::take(&mut held.failed_pod_backoffs),
            std::mem::take(&mut held.pod_name_collisions),
            held.slow_start.take(),
        );
        is_odd || is_over || before != Default::default()
    }

    /// Drops what is held for a workload.
    pub fn forget(&mut self, key: &Key) {
        self.held.remove(key);
        self.used_names.remove(key);
    }

    /// Creates and deletes outstanding for a workload.
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

    struct Sees {
        pods: &'static [&'static str],
        deleting: &'static [(&'static str, bool)],
    }

    const BEFORE: Sees = Sees {
        pods: &[],
        deleting: &[("u1", false), ("u2", false), ("u3", false)],
    };

    impl Sighted for Sees {
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

    fn holding(rule: DeletionRule, planned: v1::ReconcileState) -> (Holdings, Key, Arc<str>) {
        let (mut holdings, key, uid) = (Holdings::new(rule), Key::new("ns", "foo"), Arc::from("d1"));
        holdings.replace(&key, &uid, planned, &v1::ReconcileState::default(), &BEFORE);
        (holdings, key, uid)
    }

    // W12: a wrong service cannot fill what is expected.
    #[test]
    fn what_neither_the_plan_does_nor_was_sent_is_not_expected() {
        let mut plan = crate::testing::creating(&[("a", "n1"), ("", "n2")]);
        let delete = |uid: &str| {
            Kind::DeletePod(v1::DeletePod {
                pod: Some(v1::ObjectReference {
                    name: "p".into(),
                    uid: uid.into(),
                }),
                ..Default::default()
            })
        };
        let deletes = crate::testing::with_actions(v1::PhaseKind::Deletes, vec![delete("u1")]);
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
        let mut held = state(&all, &["u1", "u2", "u9"]);
        leave_out_foreign(&mut held, &plan, &sent);
        let expected = [("a", "n1"), ("b", "n3"), ("", "n2"), ("", "n2")];
        assert_eq!(held, state(&expected, &["u1", "u2"]));
        let mut nothing = v1::ReconcileState::default();
        leave_out_foreign(&mut nothing, &plan, &sent);
        assert_eq!(nothing, v1::ReconcileState::default());
    }

    // W12: what the service alone remembers goes, and what was written and not seen yet stays.
    #[test]
    fn a_refused_request_leaves_what_is_expected() {
        let now = jiff::Timestamp::new(200, 0).expect("a moment");
        let key = Key::new("ns", "foo");
        // (when the plan said that it expects, what is held then, whether anything is dropped)
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
                let (mut holdings, key, uid) = holding(DeletionRule::ByUid, planned);
                assert_eq!(
                    holdings.drop_planned(&key, now),
                    is_dropped || remembers,
                    "{seconds}"
                );
                let mut left = state(&[("a", "n1")], &["u1"]);
                left.expectations.as_mut().expect("some").set_at = Some(Timestamp {
                    seconds: held,
                    nanos: 0,
                });
                assert_eq!(holdings.get(&key, &uid), left, "{seconds}");
                assert!(!holdings.drop_planned(&key, now), "{seconds}");
            }
        }
        assert!(!Holdings::default().drop_planned(&key, now));
    }

    // A plan would not wait for it any more, and a wrong service may have made much of it.
    #[test]
    fn what_is_expected_for_too_long_goes_with_a_refused_request() {
        for (now, is_over) in [(400, false), (401, true)] {
            let (mut holdings, key, uid) =
                holding(DeletionRule::ByUid, state(&[("a", "n1"), ("", "n2")], &["u1"]));
            let now = jiff::Timestamp::new(now, 0).expect("a moment");
            assert_eq!(holdings.drop_planned(&key, now), is_over);
            let left = holdings.get(&key, &uid).expectations;
            assert_eq!(left.is_none(), is_over);
        }
    }

    // D-72: what a plan says is held whole and goes out again unchanged, its time included.
    #[test]
    fn holds_what_the_plan_says() {
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
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, planned.clone());
        assert_eq!(holdings.get(&key, "d1"), planned);
        assert_eq!(holdings.outstanding(&key), (3, 1));
    }

    // D-72: a plan that sets no expectations leaves none to be sent.
    #[test]
    fn holds_no_expectations_where_the_plan_sets_none() {
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, v1::ReconcileState::default());
        assert_eq!(holdings.get(&key, "d1"), v1::ReconcileState::default());
    }

    // D-73: a create is observed by its pod, one without a name by a pod for its node; others change nothing.
    #[test]
    fn creates_are_observed() {
        let (mut holdings, key, _) = holding(
            DeletionRule::ByUid,
            state(&[("a", "n1"), ("b", "n2"), ("", "n3"), ("", "n3")], &[]),
        );
        holdings.observe_create(&key, "a", "n1");
        holdings.observe_create(&key, "someone-elses", "n2");
        holdings.observe_create(&key, "generated", "n3");
        holdings.observe_create(&Key::new("ns", "bar"), "b", "n2");
        assert_eq!(holdings.get(&key, "d1"), state(&[("b", "n2"), ("", "n3")], &[]));
    }

    // D-73, Q-5 mended: only deletes of the pods themselves count, and once.
    #[test]
    fn deletions_are_tracked_by_uid() {
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, state(&[], &["u1", "u2"]));
        for uid in ["u9", "u1", "u1"] {
            holdings.observe_deletion(&key, "p", uid);
        }
        assert_eq!(holdings.get(&key, "d1"), state(&[], &["u2"]));
    }

    // Q-5 as upstream: any deletion lowers, and each event of it again.
    #[test]
    fn deletions_are_counted_as_upstream_does() {
        let (mut holdings, key, _) = holding(DeletionRule::Counted, state(&[], &["u1", "u2", "u3"]));
        holdings.observe_deletion(&key, "p", "u9");
        assert_eq!(holdings.outstanding(&key), (0, 2));
        holdings.observe_deletion(&key, "p", "u9");
        holdings.observe_deletion(&key, "p", "u9");
        holdings.observe_deletion(&key, "p", "u9");
        assert_eq!(holdings.outstanding(&key), (0, 0));
    }

    // A pod that came and went is not waited for.
    #[test]
    fn a_deletion_settles_the_pods_own_creation() {
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        holdings.observe_deletion(&key, "a", "u1");
        assert_eq!(holdings.outstanding(&key), (0, 0));
    }

    // What a watch showed while the plan was under way must not come back with the plan.
    #[test]
    fn observations_during_a_plan_are_kept() {
        let first = state(&[("a", "n1"), ("b", "n2"), ("", "n3")], &["u1", "u2"]);
        let (mut holdings, key, uid) = holding(DeletionRule::ByUid, first);
        let sent = holdings.get(&key, "d1");
        holdings.observe_create(&key, "a", "n1");
        holdings.observe_create(&key, "generated", "n3");
        holdings.observe_deletion(&key, "x", "u1");
        holdings.replace(&key, &uid, sent.clone(), &sent, &BEFORE);
        assert_eq!(holdings.get(&key, "d1"), state(&[("b", "n2")], &["u2"]));
        let next = state(&[("c", "n4")], &["u3"]);
        let sent = holdings.get(&key, "d1");
        holdings.replace(&key, &uid, next.clone(), &sent, &BEFORE);
        assert_eq!(
            holdings.get(&key, "d1"),
            next,
            "new expectations replace the old ones"
        );
    }

    // What the caches show when the plan arrives needs no event: there will be none.
    #[test]
    fn what_is_seen_already_is_not_expected() {
        let sees = Sees {
            pods: &["a"],
            deleting: &[("u2", false), ("u3", true)],
        };
        // upstream waits for an event of a pod that was being deleted before, too.
        for (rule, left) in [
            (DeletionRule::ByUid, vec!["u2"]),
            (DeletionRule::Counted, vec!["u2", "u3"]),
        ] {
            let (mut holdings, key, uid) = holding(rule, v1::ReconcileState::default());
            let planned = state(&[("a", "n1"), ("b", "n2")], &["u1", "u2", "u3"]);
            holdings.replace(&key, &uid, planned, &v1::ReconcileState::default(), &sees);
            assert_eq!(holdings.get(&key, "d1"), state(&[("b", "n2")], &left), "{rule:?}");
        }
    }

    // D-73: failed and skipped calls are settled by the answer to the report, which never adds.
    #[test]
    fn a_report_settles_and_never_adds() {
        let (mut holdings, key, uid) = holding(
            DeletionRule::ByUid,
            state(&[("a", "n1"), ("b", "n2"), ("", "n3"), ("", "n3")], &["u1", "u2"]),
        );
        holdings.observe_create(&key, "a", "n1");
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
        holdings.settle(&key, &uid, settled.clone());
        let held = holdings.get(&key, "d1");
        assert_eq!(held.slow_start, settled.slow_start);
        assert_eq!(held.expectations, state(&[("", "n3")], &["u2"]).expectations);
        assert_eq!(held.pod_name_collisions, settled.pod_name_collisions);
        holdings.settle(&key, &Arc::from("d2"), v1::ReconcileState::default());
        assert_eq!(
            holdings.get(&key, "d1"),
            held,
            "another workload's report changes nothing"
        );
    }

    // S-126: a workload re-created under its name does not inherit.
    #[test]
    fn another_uid_starts_afresh() {
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        assert_eq!(holdings.get(&key, "d2"), v1::ReconcileState::default());
        assert_eq!(holdings.get(&key, "d1"), v1::ReconcileState::default());
    }

    // D-71.2: a workload that is gone leaves nothing behind.
    #[test]
    fn forgotten_is_forgotten() {
        let (mut holdings, key, _) = holding(DeletionRule::ByUid, state(&[("a", "n1")], &[]));
        holdings.forget(&key);
        assert_eq!(holdings.outstanding(&key), (0, 0));
    }
}
