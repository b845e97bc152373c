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
    /// Records the plan of a workload. Returns the divergence, and whether the workload must be looked at again.
    pub(super) fn record(
        &mut self,
        key: &Key,
        plan: &v1::Plan,
        now: Timestamp,
    ) -> (Option<Divergence>, bool) {
        let instant = Instant::now();
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
            lasts: true,
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
