//! Differences between the planner and the controller that is observed: actions that a plan would do and that have not
//! been done.
//!
//! Either of the two may act first, so an action counts only after it has been pending for a while. What the other
//! controller did and the planner would not have done shows as well: as an action that would undo it, or as another
//! status.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nodewise_projection::Key;
use nodewise_proto::v1::{self, action::Kind};
use nodewise_telemetry::in_short;
use tokio::time::Instant;

use nodewise_runtime::apply;

/// An action counts as divergent after it has been pending for this long: many times what a controller takes to act.
pub const MIN_AGE: Duration = Duration::from_secs(30);
/// Maximum actions of a workload in a report, and maximum nodes or names in a log line. The rest is counted.
const MAX_LISTED: usize = 5;

/// The workloads that are observed.
#[derive(Debug, Default)]
pub struct Divergences(Mutex<BTreeMap<Key, PendingActions>>);

/// The actions that are pending for a workload.
#[derive(Debug)]
struct PendingActions {
    /// A line for each action; empty when nothing would be done.
    actions: Vec<String>,
    /// All actions in one line.
    summary: String,
    /// When the pending actions became these.
    since: Instant,
    /// The summary in the last log line. Empty if nothing was logged, or if the last line said that both agree again.
    logged: String,
}

impl PendingActions {
    fn diverges(&self, now: Instant) -> bool {
        !self.actions.is_empty() && now.saturating_duration_since(self.since) >= MIN_AGE
    }
}

impl Divergences {
    /// Records a plan that is not applied. Returns the delay after which to reconcile the workload again even if no
    /// event comes.
    pub fn record(&self, key: &Key, plan: &v1::Plan, now: Instant) -> Option<Duration> {
        let actions = actions(plan);
        let mut all = self.lock();
        let pending = all.entry(key.clone()).or_insert_with(|| PendingActions {
            actions: Vec::new(),
            summary: String::new(),
            since: now,
            logged: String::new(),
        });
        if pending.actions != actions {
            (pending.actions, pending.summary, pending.since) = (actions, summary(plan), now);
        }
        if pending.actions.is_empty() {
            if !std::mem::take(&mut pending.logged).is_empty() {
                tracing::info!("agrees with the other controller again");
            }
            return None;
        }
        if pending.diverges(now) && pending.logged != pending.summary {
            pending.logged.clone_from(&pending.summary);
            let (count, actions) = (pending.actions.len(), &pending.summary);
            tracing::warn!(
                count,
                "diverges: the other controller has not done this for {MIN_AGE:?}: {actions}"
            );
        }
        Some(MIN_AGE)
    }

    /// The actions that are pending for a workload, and for how long they have been these. `None` if nothing would be done.
    #[must_use]
    pub fn pending(&self, key: &Key, now: Instant) -> Option<(Vec<String>, Duration)> {
        let all = self.lock();
        let pending = all.get(key).filter(|pending| !pending.actions.is_empty())?;
        let age = now.saturating_duration_since(pending.since);
        Some((pending.actions.clone(), age))
    }

    /// Forgets a workload that is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Forgets all workloads: another executor may observe them.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    /// How many actions of a workload are divergent.
    pub(crate) fn count(&self, key: &Key, now: Instant) -> usize {
        let all = self.lock();
        let pending = all.get(key).filter(|pending| pending.diverges(now));
        pending.map_or(0, |pending| pending.actions.len())
    }

    /// A report about all workloads, for people.
    pub(crate) fn report(&self, now: Instant) -> String {
        let all = self.lock();
        let diverging: Vec<_> = all.iter().filter(|(_, pending)| pending.diverges(now)).collect();
        let mut text = format!(
            "{} of {} workloads diverge: what would be done has not been done for {MIN_AGE:?}\n",
            diverging.len(),
            all.len()
        );
        // Writing to a String cannot fail.
        for (key, pending) in diverging {
            let age = Duration::from_secs(now.saturating_duration_since(pending.since).as_secs());
            let age = humantime::format_duration(age);
            let _ = writeln!(text, "\n{} {key}, for {age}:", key.kind);
            for action in pending.actions.iter().take(MAX_LISTED) {
                let _ = writeln!(text, "  {action}");
            }
            let more = pending.actions.len().saturating_sub(MAX_LISTED);
            if more > 0 {
                let _ = writeln!(text, "  and {more} more");
            }
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, PendingActions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actions of a plan that change something which another controller changes as well. Events do not, nor measurements and
/// statuses of RolloutPolicies, and neither does what the plan would do only after a failure.
fn changes(plan: &v1::Plan) -> impl Iterator<Item = &v1::Action> {
    let is_own = |phase: &v1::Phase| {
        matches!(
            phase.kind(),
            v1::PhaseKind::RolloutPolicies | v1::PhaseKind::Analysis
        )
    };
    let phases = plan.phases.iter();
    let phases = phases.filter(move |phase| !phase.requires_failure && !is_own(phase));
    let batches = phases.flat_map(|phase| &phase.batches);
    batches
        .flat_map(|batch| &batch.actions)
        .filter(|action| !matches!(action.kind, Some(Kind::EmitEvent(_))))
}

/// What a plan would do, one line each.
fn actions(plan: &v1::Plan) -> Vec<String> {
    changes(plan)
        .map(|action| format!("{}: {}", what(action), in_short(&action.message)))
        .collect()
}

/// A plan's actions in one line: the kinds of actions with their reasons, and for each the first nodes or names.
fn summary(plan: &v1::Plan) -> String {
    let mut subjects = BTreeMap::<_, Vec<_>>::new();
    for action in changes(plan) {
        subjects.entry(what(action)).or_default().push(subject(action));
    }
    let logged = subjects.into_iter().map(|(what, subjects)| {
        let first = subjects
            .iter()
            .take(MAX_LISTED)
            .map(|subject| in_short(subject))
            .collect::<Vec<_>>()
            .join(", ");
        let more = subjects.len().saturating_sub(MAX_LISTED);
        match (&*first, more) {
            ("", _) => what,
            (first, 0) => format!("{what} for {first}"),
            (first, more) => format!("{what} for {first} and {more} more"),
        }
    });
    logged.collect::<Vec<_>>().join("; ")
}

/// The kind of an action and its reason.
fn what(action: &v1::Action) -> String {
    let reason = action.reason().as_str_name().trim_start_matches("REASON_");
    format!("{} {reason}", action.kind_name())
}

/// The object of an action: the node of a pod of a DaemonSet that is created or deleted, the name of another object, or
/// nothing for the workload itself.
fn subject(action: &v1::Action) -> &str {
    match &action.kind {
        Some(Kind::CreatePod(create)) if create.node_name.is_empty() => &create.pod_name,
        Some(Kind::CreatePod(create)) => &create.node_name,
        Some(Kind::CreateRevision(create)) => &create.name,
        Some(Kind::CreateObject(create)) => &create.name,
        Some(Kind::PatchObject(patch)) => patch.object.as_ref().map_or("", |object| &object.name),
        Some(Kind::DeleteObject(delete)) => delete.object.as_ref().map_or("", |object| &object.name),
        _ => match apply::removed_pod(action) {
            Some((_, node_name)) if !node_name.is_empty() => node_name,
            _ => apply::object(action).map_or("", |(_, reference)| {
                reference.map_or("", |reference| &reference.name)
            }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{creating, key, with_actions};
    use nodewise_proto::workload::DAEMON_SET;

    fn plan(nodes: &[&str]) -> v1::Plan {
        let pods: Vec<_> = nodes.iter().map(|node| (*node, *node)).collect();
        let mut plan = creating(&pods);
        let batches = plan.phases.iter_mut().flat_map(|phase| &mut phase.batches);
        for action in batches.flat_map(|batch| &mut batch.actions) {
            if let Some(Kind::CreatePod(create)) = &action.kind {
                action.message = format!("node {} has no pod", create.node_name);
            }
            action.set_reason(v1::Reason::NodeWithoutPod);
        }
        plan
    }

    #[tokio::test(start_paused = true)]
    async fn only_lasting_differences_are_divergences() {
        let divergences = Divergences::default();
        let nothing = v1::Plan::default();
        let record = |plan: &v1::Plan| divergences.record(&key(), plan, Instant::now());
        let diverging = || divergences.count(&key(), Instant::now());

        assert_eq!(record(&nothing), None);
        assert_eq!(
            record(&plan(&["a", "b"])),
            Some(MIN_AGE),
            "it has to be looked at again"
        );
        assert_eq!(diverging(), 0);
        tokio::time::advance(MIN_AGE.mul_f64(0.9)).await;
        record(&plan(&["b"]));
        tokio::time::advance(MIN_AGE.mul_f64(0.2)).await;
        assert_eq!(diverging(), 0, "the other controller is at it");
        tokio::time::advance(MIN_AGE).await;
        assert_eq!(record(&plan(&["b"])), Some(MIN_AGE));
        assert_eq!(diverging(), 1);
        record(&nothing);
        assert_eq!(diverging(), 0);
        divergences.forget(&key());
        assert!(divergences.report(Instant::now()).starts_with("0 of 0 workloads"));
    }

    #[test]
    fn a_log_line_has_reasons_and_nodes() {
        assert_eq!(summary(&v1::Plan::default()), "");
        assert_eq!(summary(&plan(&["a", "b"])), "CreatePod NODE_WITHOUT_POD for a, b");
        let mut both = plan(&["a", "b", "c", "d", "e", "f", "g"]);
        let status = Kind::UpdateStatus(v1::UpdateStatus::default());
        both.phases
            .extend(with_actions(v1::PhaseKind::Status, vec![status]).phases);
        let expected = "CreatePod NODE_WITHOUT_POD for a, b, c, d, e and 2 more; UpdateStatus UNSPECIFIED";
        assert_eq!(summary(&both), expected);
        let mut of_replica_set = creating(&[("web-1", "")]);
        of_replica_set.phases[0].batches[0].actions[0].set_reason(v1::Reason::TooFewPods);
        assert_eq!(summary(&of_replica_set), "CreatePod TOO_FEW_PODS for web-1");
    }

    // The log must not get a line for each plan.
    #[tokio::test(start_paused = true)]
    async fn the_log_has_one_line_for_each_change_of_what_diverges() {
        let divergences = Divergences::default();
        let logged = || divergences.lock()[&key()].logged.clone();
        let record = |nodes: &[&str]| divergences.record(&key(), &plan(nodes), Instant::now());
        record(&["a", "b"]);
        assert_eq!(logged(), "");
        tokio::time::advance(MIN_AGE).await;
        record(&["a", "b"]);
        assert_eq!(logged(), "CreatePod NODE_WITHOUT_POD for a, b");
        record(&["b"]);
        assert_eq!(
            logged(),
            "CreatePod NODE_WITHOUT_POD for a, b",
            "not before it has stood for a while"
        );
        tokio::time::advance(MIN_AGE).await;
        record(&["b"]);
        assert_eq!(logged(), "CreatePod NODE_WITHOUT_POD for b");
        divergences.record(&key(), &v1::Plan::default(), Instant::now());
        assert_eq!(logged(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn the_report_is_for_people() {
        let divergences = Divergences::default();
        divergences.record(
            &key(),
            &plan(&["a", "b", "c", "d", "e", "f", "g"]),
            Instant::now(),
        );
        divergences.record(
            &Key::new(DAEMON_SET, "ns", "fine"),
            &v1::Plan::default(),
            Instant::now(),
        );
        tokio::time::advance(Duration::from_secs(125)).await;
        let expected = "\
1 of 2 workloads diverge: what would be done has not been done for 30s

DaemonSet ns/foo, for 2m 5s:
  CreatePod NODE_WITHOUT_POD: node a has no pod
  CreatePod NODE_WITHOUT_POD: node b has no pod
  CreatePod NODE_WITHOUT_POD: node c has no pod
  CreatePod NODE_WITHOUT_POD: node d has no pod
  CreatePod NODE_WITHOUT_POD: node e has no pod
  and 2 more
";
        assert_eq!(divergences.report(Instant::now()), expected);
    }

    // No other controller writes the statuses of policies, so that they would be differences for ever.
    #[test]
    fn evictions_are_divergences_and_statuses_of_policies_are_not() {
        let evict = Kind::EvictPod(v1::EvictPod {
            pod: Some(v1::ObjectReference::default()),
            node_name: "n1".into(),
        });
        let mut plan = with_actions(v1::PhaseKind::Deletes, vec![evict]);
        for (phase, kind) in [
            (v1::PhaseKind::RolloutPolicies, Kind::PatchObject(Box::default())),
            (v1::PhaseKind::Analysis, Kind::Measure(Box::default())),
        ] {
            plan.phases.extend(with_actions(phase, vec![kind]).phases);
        }
        assert_eq!(summary(&plan), "EvictPod UNSPECIFIED for n1");
    }

    // Strings from a service are cut and cannot add lines to the log.
    #[tokio::test(start_paused = true)]
    async fn strings_of_a_plan_are_truncated() {
        let divergences = Divergences::default();
        let forged = format!("n1\nlevel=ERROR forged{}", "x".repeat(100_000));
        let delete = v1::DeletePod {
            pod: Some(v1::ObjectReference::default()),
            node_name: forged.clone(),
            ..Default::default()
        };
        let mut plan = with_actions(v1::PhaseKind::Deletes, vec![Kind::DeletePod(delete)]);
        plan.phases[0].batches[0].actions[0].message = forged;
        divergences.record(&key(), &plan, Instant::now());
        tokio::time::advance(MIN_AGE).await;
        divergences.record(&key(), &plan, Instant::now());
        let report = divergences.report(Instant::now());
        let logged = divergences.lock()[&key()].logged.clone();
        assert!(
            report.len() < 3_000 && logged.len() < 3_000,
            "{} {}",
            report.len(),
            logged.len()
        );
        assert!(!report.contains("\nlevel") && !logged.contains('\n'), "{logged}");
    }
}
