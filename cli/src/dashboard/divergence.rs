//! What the planner would do and the controller in charge has not done: as the executor in mode observe tells it, without an executor.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp, Unit};
use nodewise_dashboard::Divergence;
use nodewise_executor::divergence::{Divergences, MIN_AGE};
use nodewise_projection::Key;
use nodewise_proto::v1;
use tokio::time::Instant;

/// The most actions of a workload that are shown.
const MAX_ACTIONS: usize = 20;

/// What an action that stays pending means, by its kind. The table in docs/install.md says the same.
const VERDICTS: [(&str, &str); 5] = [
    (
        "CreatePod",
        "The controller in charge is late, or it cannot create the pod either: a quota, an admission webhook or a missing right. The Events \
         of the workload say which.",
    ),
    (
        "DeletePod",
        "The controller in charge is late, or it cannot delete the pod either. A rollout that the controller does not continue is a \
         difference between the two: see docs/upstream-differences.md.",
    ),
    (
        "UpdateStatus",
        "One of the two controllers writes the status less often. During a rollout this ends with the rollout.",
    ),
    (
        "PatchObject",
        "The controller in charge is late with a write of a ReplicaSet, of the Deployment or of a status. The reason says which.",
    ),
    (
        "CreateRevision",
        "The controller in charge has not written the revision of the present template. It may not run.",
    ),
];
/// The meaning of everything else.
const OTHER: &str =
    "The controller in charge is late, does not run, or differs here: see docs/upstream-differences.md.";

/// The divergences of all workloads.
#[derive(Default)]
pub(super) struct Watched {
    divergences: Divergences,
    /// The last ones that were shown, so that their times stay equal.
    shown: HashMap<Key, Divergence>,
}

impl Watched {
    /// Records the plan of a workload at a time, which is given for people and for measuring. Returns the divergence, and whether the
    /// workload must be looked at again.
    pub(super) fn record(
        &mut self,
        key: &Key,
        plan: &v1::Plan,
        (now, instant): (Timestamp, Instant),
    ) -> (Option<Divergence>, bool) {
        let again = self.divergences.record(key, plan, instant).is_some();
        let found = self
            .divergences
            .pending(key, instant)
            .filter(|(_, age)| *age >= MIN_AGE);
        let Some((actions, age)) = found else {
            self.shown.remove(key);
            return (None, again);
        };
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        let since = now.checked_sub(age).unwrap_or(now);
        let mut divergence = Divergence {
            since: since.round(Unit::Second).unwrap_or(since).to_string(),
            verdict: verdict(&actions),
            more: actions.len().saturating_sub(MAX_ACTIONS),
            actions: actions.into_iter().take(MAX_ACTIONS).collect(),
        };
        if let Some(shown) = self
            .shown
            .get(key)
            .filter(|shown| shown.actions == divergence.actions)
        {
            divergence.since.clone_from(&shown.since);
        }
        self.shown.insert(key.clone(), divergence.clone());
        (Some(divergence), again)
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.divergences.forget(key);
        self.shown.remove(key);
    }
}

/// What the first action means: the others follow from it.
fn verdict(actions: &[String]) -> String {
    let first = actions.first().map_or("", String::as_str);
    let known = VERDICTS.iter().find(|(kind, _)| first.starts_with(kind));
    known.map_or(OTHER, |(_, verdict)| verdict).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_proto::v1::action::Kind;

    use super::*;

    /// A plan that creates a pod on each of so many nodes.
    fn creates(nodes: usize) -> v1::Plan {
        let create = |node| v1::Action {
            message: format!("node-{node} has no pod"),
            kind: Some(Kind::CreatePod(v1::CreatePod {
                node_name: format!("node-{node}"),
                ..v1::CreatePod::default()
            })),
            ..v1::Action::default()
        };
        v1::Plan {
            phases: vec![v1::Phase {
                batches: vec![v1::Batch {
                    actions: (0..nodes).map(create).collect(),
                    ..v1::Batch::default()
                }],
                ..v1::Phase::default()
            }],
            ..v1::Plan::default()
        }
    }

    #[test]
    fn what_stays_pending_is_a_divergence_since_the_same_time() {
        let (begin, instant) = (Timestamp::UNIX_EPOCH, Instant::now());
        // The clock for people may be a little late.
        let at = |seconds: u64, millis: i64| {
            let now = begin + SignedDuration::from_millis(millis);
            (
                now + Duration::from_secs(seconds),
                instant + Duration::from_secs(seconds),
            )
        };
        let key = Key::new("DaemonSet", "shop", "agent");
        let mut watched = Watched::default();
        let plan = creates(MAX_ACTIONS + 3);
        assert_eq!(watched.record(&key, &plan, at(0, 0)), (None, true));
        assert_eq!(
            watched.record(&key, &plan, at(29, 0)),
            (None, true),
            "it may be late"
        );
        let (found, again) = watched.record(&key, &plan, at(31, 0));
        let found = found.expect("it diverges");
        assert!(again);
        assert_eq!(found.since, "1970-01-01T00:00:00Z");
        assert_eq!((found.actions.len(), found.more), (MAX_ACTIONS, 3));
        assert!(
            found.actions[0].starts_with("CreatePod"),
            "{:?}",
            found.actions[0]
        );
        assert!(found.verdict.contains("a quota"), "{}", found.verdict);
        let (same, _) = watched.record(&key, &plan, at(60, 900));
        assert_eq!(same, Some(found), "the time does not move with the clock");

        let (other, _) = watched.record(&key, &creates(1), at(61, 0));
        assert_eq!(other, None, "other actions are pending since now");
        let (other, _) = watched.record(&key, &creates(1), at(92, 0));
        assert_eq!(
            other.map(|other| other.since).as_deref(),
            Some("1970-01-01T00:01:01Z")
        );
        assert_eq!(
            watched.record(&key, &v1::Plan::default(), at(93, 0)),
            (None, false)
        );
        watched.forget(&key);
        assert_eq!(watched.record(&key, &creates(1), at(200, 0)), (None, true));
    }

    #[test]
    fn the_first_action_says_what_it_means() {
        for (action, expected) in [
            ("DeletePod agent-x: old", "cannot delete"),
            ("UpdateStatus: differs", "less often"),
            ("CreateRevision agent-2: new", "present template"),
            ("Unheard of", "does not run"),
        ] {
            let verdict = verdict(&[action.to_owned(), "CreatePod".to_owned()]);
            assert!(verdict.contains(expected), "{action}: {verdict}");
        }
        assert_eq!(verdict(&[]), OTHER);
    }
}
