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

use nodewise_proto::v1;
use tokio::time::Instant;

use crate::{apply, event::Key};

/// How long the same has to be left undone before the two disagree: many times what a controller takes to act.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Actions of a workload that a report tells; the others are counted.
const TOLD: usize = 5;

/// The workloads that are observed.
#[derive(Debug, Default)]
pub(crate) struct Divergences(Mutex<BTreeMap<Key, Undone>>);

/// What would be done for a workload.
#[derive(Debug)]
struct Undone {
    /// A line for each action; empty when nothing would be done.
    actions: Vec<String>,
    /// Since when it is these.
    since: Instant,
    /// Whether the log has it.
    told: bool,
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
            since: now,
            told: false,
        });
        if undone.actions != actions {
            if undone.told && actions.is_empty() {
                tracing::info!(%key, "agrees with the other controller again");
            }
            *undone = Undone {
                told: undone.told && !actions.is_empty(),
                actions,
                since: now,
            };
        }
        if undone.actions.is_empty() {
            return None;
        }
        if undone.diverges(now) && !undone.told {
            undone.told = true;
            let (count, first) = (undone.actions.len(), &undone.actions[0]);
            tracing::warn!(%key, count, first, "diverges: the other controller has not done this for {PATIENCE:?}");
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

/// What a plan would do, one line each. Events change nothing.
fn actions(plan: &v1::Plan) -> Vec<String> {
    plan.actions()
        .filter(|action| !matches!(action.kind, Some(v1::action::Kind::EmitEvent(_))))
        .map(|action| {
            let reason = action.reason().as_str_name().trim_start_matches("REASON_");
            format!("{} {reason}: {}", apply::kind_name(action), action.message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{creating, key};

    fn plan(nodes: &[&str]) -> v1::Plan {
        let pods: Vec<_> = nodes.iter().map(|node| (*node, *node)).collect();
        let mut plan = creating(&pods);
        let batches = plan.phases.iter_mut().flat_map(|phase| &mut phase.batches);
        for action in batches.flat_map(|batch| &mut batch.actions) {
            if let Some(v1::action::Kind::CreatePod(create)) = &action.kind {
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
}
