//! Where the planner and the controller that is observed disagree: what would be done, and is not.
//!
//! Each of the two may be the first to act, so nothing counts that has not stood for a while. What the other one did and the
//! planner would not have done shows as well: as something that would be undone, or as another status.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nodewise_proto::v1::{self, action::Kind};
use nodewise_telemetry::in_short;
use tokio::time::Instant;

use crate::{apply, event::Key};

/// How long the same has to be left undone before the two disagree: many times what a controller takes to act.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Actions of a workload that a report tells, and nodes or names that a line of the log tells; the others are counted.
const TOLD: usize = 5;

/// The workloads that are observed.
#[derive(Debug, Default)]
pub(crate) struct Divergences(Mutex<BTreeMap<Key, Undone>>);

/// What would be done for a workload.
#[derive(Debug)]
struct Undone {
    /// A line for each action; empty when nothing would be done.
    actions: Vec<String>,
    /// All of them in one line.
    summary: String,
    /// Since when it is these.
    since: Instant,
    /// What the log had last; empty when it had nothing, or that both agree again.
    told: String,
}

impl Undone {
    fn diverges(&self, now: Instant) -> bool {
        !self.actions.is_empty() && now.saturating_duration_since(self.since) >= PATIENCE
    }
}

impl Divergences {
    /// Takes note of a plan that is not applied. Gives when to look at the workload again, though nothing happens.
    pub(crate) fn look(&self, key: &Key, plan: &v1::Plan, now: Instant) -> Option<Duration> {
        let actions = actions(plan);
        let mut all = self.lock();
        let undone = all.entry(key.clone()).or_insert_with(|| Undone {
            actions: Vec::new(),
            summary: String::new(),
            since: now,
            told: String::new(),
        });
        if undone.actions != actions {
            (undone.actions, undone.summary, undone.since) = (actions, summary(plan), now);
        }
        if undone.actions.is_empty() {
            if !std::mem::take(&mut undone.told).is_empty() {
                tracing::info!("agrees with the other controller again");
            }
            return None;
        }
        if undone.diverges(now) && undone.told != undone.summary {
            undone.told.clone_from(&undone.summary);
            let (count, actions) = (undone.actions.len(), &undone.summary);
            tracing::warn!(
                count,
                "diverges: the other controller has not done this for {PATIENCE:?}: {actions}"
            );
        }
        Some(PATIENCE)
    }

    /// The workload is there no more.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// How many actions of a workload are left undone.
    pub(crate) fn count(&self, key: &Key, now: Instant) -> usize {
        let all = self.lock();
        let undone = all.get(key).filter(|undone| undone.diverges(now));
        undone.map_or(0, |undone| undone.actions.len())
    }

    /// All of it, for people.
    pub(crate) fn report(&self, now: Instant) -> String {
        let all = self.lock();
        let diverging: Vec<_> = all.iter().filter(|(_, undone)| undone.diverges(now)).collect();
        let mut text = format!(
            "{} of {} DaemonSets diverge: what would be done has not been done for {PATIENCE:?}\n",
            diverging.len(),
            all.len()
        );
        // Writing to a String cannot fail.
        for (key, undone) in diverging {
            let age = Duration::from_secs(now.saturating_duration_since(undone.since).as_secs());
            let age = humantime::format_duration(age);
            let _ = writeln!(text, "\n{key}, for {age}:");
            for action in undone.actions.iter().take(TOLD) {
                let _ = writeln!(text, "  {action}");
            }
            let more = undone.actions.len().saturating_sub(TOLD);
            if more > 0 {
                let _ = writeln!(text, "  and {more} more");
            }
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Undone>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actions of a plan that change something. Events do not.
fn changes(plan: &v1::Plan) -> impl Iterator<Item = &v1::Action> {
    plan.actions()
        .filter(|action| !matches!(action.kind, Some(Kind::EmitEvent(_))))
}

/// What a plan would do, one line each.
fn actions(plan: &v1::Plan) -> Vec<String> {
    changes(plan)
        .map(|action| format!("{}: {}", what(action), in_short(&action.message)))
        .collect()
}

/// What a plan would do in one line: kinds of actions with their reasons, and of each the first nodes or names.
fn summary(plan: &v1::Plan) -> String {
    let mut subjects = BTreeMap::<_, Vec<_>>::new();
    for action in changes(plan) {
        subjects.entry(what(action)).or_default().push(subject(action));
    }
    let told = subjects.into_iter().map(|(what, subjects)| {
        let first = subjects
            .iter()
            .take(TOLD)
            .map(|subject| in_short(subject))
            .collect::<Vec<_>>()
            .join(", ");
        let more = subjects.len().saturating_sub(TOLD);
        match (&*first, more) {
            ("", _) => what,
            (first, 0) => format!("{what} for {first}"),
            (first, more) => format!("{what} for {first} and {more} more"),
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The kind of an action and its reason.
fn what(action: &v1::Action) -> String {
    let reason = action.reason().as_str_name().trim_start_matches("REASON_");
    format!("{} {reason}", apply::kind_name(action))
}

/// What an action is about: the node of a pod that is created or deleted, the name of another object; nothing for the workload itself.
fn subject(action: &v1::Action) -> &str {
    match &action.kind {
        Some(Kind::CreatePod(create)) => &create.node_name,
        Some(Kind::DeletePod(delete)) if !delete.node_name.is_empty() => &delete.node_name,
        Some(Kind::CreateRevision(create)) => &create.name,
        _ => apply::object(action).map_or("", |(_, reference)| {
            reference.map_or("", |reference| &reference.name)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{creating, key, with_actions};

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
    async fn only_what_stays_undone_is_a_divergence() {
        let divergences = Divergences::default();
        let nothing = v1::Plan::default();
        let look = |plan: &v1::Plan| divergences.look(&key(), plan, Instant::now());
        let diverging = || divergences.count(&key(), Instant::now());

        assert_eq!(look(&nothing), None);
        assert_eq!(
            look(&plan(&["a", "b"])),
            Some(PATIENCE),
            "it has to be looked at again"
        );
        assert_eq!(diverging(), 0);
        tokio::time::advance(PATIENCE.mul_f64(0.9)).await;
        look(&plan(&["b"]));
        tokio::time::advance(PATIENCE.mul_f64(0.2)).await;
        assert_eq!(diverging(), 0, "the other controller is at it");
        tokio::time::advance(PATIENCE).await;
        assert_eq!(look(&plan(&["b"])), Some(PATIENCE));
        assert_eq!(diverging(), 1);
        look(&nothing);
        assert_eq!(diverging(), 0);
        divergences.forget(&key());
        assert!(
            divergences
                .report(Instant::now())
                .starts_with("0 of 0 DaemonSets")
        );
    }

    #[test]
    fn a_line_of_the_log_tells_reasons_and_nodes() {
        assert_eq!(summary(&v1::Plan::default()), "");
        assert_eq!(summary(&plan(&["a", "b"])), "CreatePod NODE_WITHOUT_POD for a, b");
        let mut both = plan(&["a", "b", "c", "d", "e", "f", "g"]);
        let status = Kind::UpdateStatus(v1::UpdateStatus::default());
        both.phases
            .extend(with_actions(v1::PhaseKind::Status, vec![status]).phases);
        let expected = "CreatePod NODE_WITHOUT_POD for a, b, c, d, e and 2 more; UpdateStatus UNSPECIFIED";
        assert_eq!(summary(&both), expected);
    }

    // A controller's log must not have a line for each time that a plan is made.
    #[tokio::test(start_paused = true)]
    async fn the_log_has_one_line_for_each_change_of_what_diverges() {
        let divergences = Divergences::default();
        let told = || divergences.lock()[&key()].told.clone();
        let look = |nodes: &[&str]| divergences.look(&key(), &plan(nodes), Instant::now());
        look(&["a", "b"]);
        assert_eq!(told(), "");
        tokio::time::advance(PATIENCE).await;
        look(&["a", "b"]);
        assert_eq!(told(), "CreatePod NODE_WITHOUT_POD for a, b");
        look(&["b"]);
        assert_eq!(
            told(),
            "CreatePod NODE_WITHOUT_POD for a, b",
            "not before it has stood for a while"
        );
        tokio::time::advance(PATIENCE).await;
        look(&["b"]);
        assert_eq!(told(), "CreatePod NODE_WITHOUT_POD for b");
        divergences.look(&key(), &v1::Plan::default(), Instant::now());
        assert_eq!(told(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn the_report_is_for_people() {
        let divergences = Divergences::default();
        divergences.look(
            &key(),
            &plan(&["a", "b", "c", "d", "e", "f", "g"]),
            Instant::now(),
        );
        divergences.look(&Key::new("ns", "fine"), &v1::Plan::default(), Instant::now());
        tokio::time::advance(Duration::from_secs(125)).await;
        let expected = "\
1 of 2 DaemonSets diverge: what would be done has not been done for 30s

ns/foo, for 2m 5s:
  CreatePod NODE_WITHOUT_POD: node a has no pod
  CreatePod NODE_WITHOUT_POD: node b has no pod
  CreatePod NODE_WITHOUT_POD: node c has no pod
  CreatePod NODE_WITHOUT_POD: node d has no pod
  CreatePod NODE_WITHOUT_POD: node e has no pod
  and 2 more
";
        assert_eq!(divergences.report(Instant::now()), expected);
    }

    // A service may say anything: it gets no line of its own in the log, and little memory.
    #[tokio::test(start_paused = true)]
    async fn what_a_plan_says_is_told_in_short() {
        let divergences = Divergences::default();
        let forged = format!("n1\nlevel=ERROR forged{}", "x".repeat(100_000));
        let delete = v1::DeletePod {
            node_name: forged.clone(),
            ..Default::default()
        };
        let mut plan = with_actions(v1::PhaseKind::Deletes, vec![Kind::DeletePod(delete)]);
        plan.phases[0].batches[0].actions[0].message = forged;
        divergences.look(&key(), &plan, Instant::now());
        tokio::time::advance(PATIENCE).await;
        divergences.look(&key(), &plan, Instant::now());
        let report = divergences.report(Instant::now());
        let told = divergences.lock()[&key()].told.clone();
        assert!(
            report.len() < 3_000 && told.len() < 3_000,
            "{} {}",
            report.len(),
            told.len()
        );
        assert!(!report.contains("\nlevel") && !told.contains('\n'), "{told}");
    }
}
