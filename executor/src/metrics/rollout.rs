//! The rollout metrics of each workload.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use nodewise_projection::{Key, StatusCounts, Strategy, Workload};
use nodewise_proto::v1;
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::labels::{BudgetLabels, StateLabels, WorkloadLabels};
use nodewise_runtime::store::Stalled;

/// The states of a node that should run a pod. Each node is in exactly one.
const STATES: [&str; 4] = [
    "without_pod",
    "outdated",
    "updated_unavailable",
    "updated_available",
];
/// The budgets of a rollout.
const BUDGETS: [&str; 2] = ["max_unavailable", "max_surge"];

/// The metric families.
#[derive(Default)]
pub(super) struct Rollouts {
    nodes: Family<StateLabels, Gauge>,
    budget: Family<BudgetLabels, Gauge>,
    budget_used: Family<BudgetLabels, Gauge>,
    since_progress: Family<WorkloadLabels, Gauge<f64, AtomicU64>>,
    progress: Mutex<HashMap<Key, Progress>>,
}

/// The progress of the rollout of one template.
struct Progress {
    uid: Arc<str>,
    generation: i64,
    /// A hash of the template.
    template: u64,
    /// The lowest numbers so far of pods that are missing, that are not updated, that are not available, and that are left of
    /// older templates.
    fewest: [i64; 4],
    /// The rollout has begun in an earlier generation, so that the first numbers of this one are no progress.
    continues: bool,
    /// The rollout is complete, or somebody has paused it. Pods that become unavailable later do not belong to it.
    done: bool,
    since: Instant,
    /// How long the rollout had made no progress before `since`, when this executor was not running.
    before: Duration,
}

/// Placeholder until a status of the generation is seen.
const UNKNOWN: [i64; 4] = [i64::MAX; 4];

impl Progress {
    /// The rollout of a workload that is new to this executor.
    fn new(workload: &Workload, now: Instant) -> Self {
        Self {
            template: template_hash(workload),
            ..Self::of(workload, now)
        }
    }

    /// The state of a rollout, without the hash of its template, which takes some time.
    fn of(workload: &Workload, now: Instant) -> Self {
        let StatusCounts {
            observed_generation,
            desired,
            current,
            updated,
            available,
        } = workload.status;
        // With OnDelete, people replace the pods, unless a companion does so.
        let updated = if workload.strategy == Strategy::OnDelete {
            desired
        } else {
            updated
        };
        // The status is of an earlier generation.
        let fewest = if observed_generation >= workload.generation {
            // The available pods of a Deployment may be old ones.
            let left = current - updated;
            [desired - current, desired - updated, desired - available, left].map(|count| count.max(0))
        } else {
            UNKNOWN
        };
        Self {
            uid: Arc::clone(&workload.uid),
            generation: workload.generation,
            template: 0,
            fewest,
            continues: false,
            done: fewest == [0; 4] || workload.is_paused,
            since: now,
            before: Duration::ZERO,
        }
    }

    /// Merges a newer state. Only new lowest numbers are progress: a number that rises and falls again is not, and nor
    /// are nodes that come and go. A change of the workload, such as another number of replicas, is no progress as long as the
    /// template stays the same.
    fn advance(&mut self, workload: &Workload, now: Instant) {
        let mut now = Self::of(workload, now);
        if now.generation != self.generation || now.uid != self.uid {
            now.template = template_hash(workload);
            if now.uid == self.uid && now.template == self.template && !self.done {
                (now.since, now.before, now.continues) = (self.since, self.before, true);
            }
            *self = now;
            return;
        }
        self.done |= now.done;
        if self.continues && self.fewest == UNKNOWN {
            self.fewest = now.fewest;
        }
        if now
            .fewest
            .iter()
            .zip(&self.fewest)
            .any(|(now, fewest)| now < fewest)
        {
            (self.since, self.before) = (now.since, now.before);
            for (fewest, now) in self.fewest.iter_mut().zip(now.fewest) {
                *fewest = now.min(*fewest);
            }
        }
    }

    fn age(&self, now: Instant) -> Duration {
        if self.done {
            return Duration::ZERO;
        }
        self.before + now.saturating_duration_since(self.since)
    }
}

/// A hash of spec.template, as the apiserver wrote it. 0 if there is none.
fn template_hash(workload: &Workload) -> u64 {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(borrow)]
        template: &'a RawValue,
    }
    serde_json::from_slice::<Object<'_>>(&workload.object).map_or(0, |object| {
        let mut hasher = DefaultHasher::new();
        object.spec.template.get().hash(&mut hasher);
        hasher.finish()
    })
}

impl Rollouts {
    /// Updates the metrics from a plan.
    pub(super) fn plan(&self, key: &Key, rollout: &v1::Rollout) {
        let counts = [
            rollout.without_pod,
            rollout.outdated,
            rollout.updated_unavailable,
            rollout.updated_available,
        ];
        for (state, count) in STATES.into_iter().zip(counts) {
            let labels = StateLabels::of(key, state);
            self.nodes.get_or_create(&labels).set(count.into());
        }
        let [unavailable, surge] = BUDGETS;
        for (budget, limit, used) in [
            (unavailable, rollout.max_unavailable, rollout.unavailable),
            (surge, rollout.max_surge, rollout.surging),
        ] {
            let labels = BudgetLabels::of(key, budget);
            self.budget.get_or_create(&labels).set(limit.into());
            self.budget_used.get_or_create(&labels).set(used.into());
        }
    }

    /// Removes the series that a plan sets: no plan decides about the rollout any more, as when a companion's
    /// annotation is removed.
    pub(super) fn not_planned(&self, key: &Key) {
        for state in STATES {
            self.nodes.remove(&StateLabels::of(key, state));
        }
        for budget in BUDGETS {
            let labels = BudgetLabels::of(key, budget);
            self.budget.remove(&labels);
            self.budget_used.remove(&labels);
        }
    }

    /// Updates the progress from a status.
    pub(super) fn status(&self, workload: &Workload, now: Instant) {
        match self.progress().entry(workload.key.clone()) {
            Entry::Occupied(mut before) => before.get_mut().advance(workload, now),
            Entry::Vacant(first) => _ = first.insert(Progress::new(workload, now)),
        }
    }

    /// Records a workload that is new to this executor. `stalled` is called at most once, and only if the rollout is
    /// not complete. If only pods are missing that were ready before their nodes broke, the rollout counts as complete.
    pub(super) fn found(&self, key: &Key, now: Instant, stalled: impl FnOnce() -> Stalled) {
        let mut all = self.progress();
        let progress = all.get_mut(key);
        if let Some(progress) = progress.filter(|progress| !progress.done && progress.fewest != UNKNOWN) {
            let Stalled { age, lost } = stalled();
            (progress.since, progress.before) = (now, age);
            let [missing, outdated, unavailable, left] = progress.fewest;
            progress.done = [missing, outdated, left] == [0; 3]
                && usize::try_from(unavailable).is_ok_and(|unavailable| unavailable <= lost);
        }
    }

    /// Removes the series of a workload.
    pub(super) fn forget(&self, key: &Key) {
        self.not_planned(key);
        self.progress().remove(key);
        self.since_progress.remove(&WorkloadLabels::of(key));
    }

    /// Removes the series of every workload.
    pub(super) fn forget_all(&self) {
        self.progress().clear();
        self.nodes.clear();
        self.budget.clear();
        self.budget_used.clear();
        self.since_progress.clear();
    }

    /// Updates the times since the last progress.
    pub(super) fn observe_ages(&self, now: Instant) {
        for (key, progress) in self.progress().iter() {
            let age = self.since_progress.get_or_create(&WorkloadLabels::of(key));
            age.set(progress.age(now).as_secs_f64());
        }
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<Key, Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Nodes that should run a pod of a DaemonSet, each counted once, by state: without_pod; outdated (only pods of older \
                    templates); updated_unavailable (a pod of the current template that is not available); updated_available";
        own.register("rollout_nodes", help, self.nodes.clone());
        let help = "Value of max_unavailable or max_surge of a DaemonSet, as a number of nodes";
        own.register("rollout_budget", help, self.budget.clone());
        let help = "Number of nodes that use up max_unavailable or max_surge of a DaemonSet; may exceed it";
        own.register("rollout_budget_used", help, self.budget_used.clone());
        let help = "Time since the rollout of a workload last made progress towards an available pod of the current template on every \
                    node or, of a ReplicaSet or Deployment, for every replica; 0 once it is complete, and while it is paused. A new \
                    leader takes the start from the times of revisions and pods";
        own.register(
            "rollout_since_progress_seconds",
            help,
            self.since_progress.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_proto::workload::DAEMON_SET;

    fn workload(generation: i64, observed: i64, [desired, updated, available]: [u32; 3]) -> Workload {
        let object = serde_json::json!({
            "metadata": {"namespace": "a", "name": "agent", "uid": "u1", "generation": generation},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}},
            "status": {
                "observedGeneration": observed, "desiredNumberScheduled": desired, "currentNumberScheduled": desired,
                "updatedNumberScheduled": updated, "numberAvailable": available,
            },
        });
        Workload::daemon_set_from_json(&object).expect("a DaemonSet")
    }

    // A minute passes before each status. The age is that at the time of the status.
    #[test]
    fn a_rollout_ages_until_it_makes_progress() {
        let (start, minute) = (Instant::now(), Duration::from_mins(1));
        let mut progress = Progress::new(&workload(2, 1, [3, 3, 3]), start);
        let steps = [
            ("the status is of the generation before", (2, 1), [3, 3, 3], 1),
            ("pods of the new template are counted", (2, 2), [3, 0, 3], 0),
            ("a pod is away", (2, 2), [3, 0, 2], 1),
            ("it comes back", (2, 2), [3, 0, 3], 2),
            ("a node comes", (2, 2), [4, 0, 3], 3),
            ("and goes", (2, 2), [3, 0, 3], 4),
            ("one is new", (2, 2), [3, 1, 3], 0),
        ];
        for (minutes, (what, (generation, observed), counts, age)) in (1..).zip(steps) {
            let now = start + minute * minutes;
            progress.advance(&workload(generation, observed, counts), now);
            assert_eq!(progress.age(now), minute * age, "{what}");
        }
    }

    #[test]
    fn progress_resets_the_age_and_a_complete_rollout_has_none() {
        let (start, minute) = (Instant::now(), Duration::from_mins(1));
        let mut progress = Progress::new(&workload(2, 2, [3, 0, 3]), start);
        let steps = [
            ("one more is new", 2, [3, 1, 2], 0),
            ("nothing", 2, [3, 1, 2], 60),
            ("the others", 2, [3, 3, 2], 0),
            ("it is done", 2, [3, 3, 3], 0),
            ("a node is broken later", 2, [3, 3, 2], 0),
            ("another rollout", 3, [3, 0, 2], 0),
            ("which stands still", 3, [3, 0, 2], 60),
        ];
        for (minutes, (what, generation, counts, age)) in (1..).zip(steps) {
            let now = start + minute * minutes;
            progress.advance(&workload(generation, generation, counts), now);
            assert_eq!(progress.age(now), Duration::from_secs(age), "{what}");
        }
    }

    #[test]
    fn a_paused_rollout_does_not_age() {
        let deployment = |generation: i64, paused: bool| {
            let object = serde_json::json!({
                "metadata": {"namespace": "a", "name": "web", "uid": "u1", "generation": generation},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "paused": paused},
                "status": {
                    "observedGeneration": generation, "replicas": 4, "updatedReplicas": 1, "availableReplicas": 3,
                },
            });
            Workload::deployment_from_json(&object).expect("a Deployment")
        };
        let (start, hour) = (Instant::now(), Duration::from_hours(1));
        let mut progress = Progress::new(&deployment(2, true), start);
        assert_eq!(progress.age(start + hour), Duration::ZERO);
        progress.advance(&deployment(3, false), start + hour);
        assert_eq!(progress.age(start + hour * 2), hour, "somebody has resumed it");
    }

    fn scaled(
        generation: i64,
        observed: i64,
        replicas: i64,
        [current, updated, available]: [i64; 3],
        image: &str,
    ) -> Workload {
        let object = serde_json::json!({
            "metadata": {"namespace": "a", "name": "web", "uid": "u1", "generation": generation},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [{"image": image}]}},
            },
            "status": {
                "observedGeneration": observed, "replicas": current, "updatedReplicas": updated, "availableReplicas": available,
            },
        });
        Workload::deployment_from_json(&object).expect("a Deployment")
    }

    // Pods of the template before, which are available, do not make a rollout complete.
    #[test]
    fn a_stuck_rollout_that_is_scaled_keeps_its_age() {
        let (start, minute) = (Instant::now(), Duration::from_mins(1));
        let mut progress = Progress::new(&scaled(2, 2, 4, [5, 2, 3], "b"), start);
        let steps = [
            ("it is scaled", (3, 2, 2), [5, 2, 3], "b", 1),
            ("the controller has seen it", (3, 3, 2), [4, 2, 2], "b", 2),
            ("it is scaled again", (4, 3, 9), [4, 2, 2], "b", 3),
            ("more pods are wanted", (4, 4, 9), [11, 4, 2], "b", 4),
            ("one more is available", (4, 4, 9), [11, 4, 3], "b", 0),
            ("another template", (5, 4, 9), [11, 4, 3], "c", 0),
            ("it is not seen", (5, 4, 9), [11, 4, 3], "c", 1),
            ("the controller has seen it", (5, 5, 9), [11, 0, 3], "c", 0),
            ("it is done", (5, 5, 9), [9, 9, 9], "c", 0),
            ("a larger number", (6, 6, 12), [9, 9, 9], "c", 0),
            ("which nothing comes of", (6, 6, 12), [9, 9, 9], "c", 1),
        ];
        for (minutes, (what, (generation, observed, replicas), counts, image, age)) in (1..).zip(steps) {
            let now = start + minute * minutes;
            progress.advance(&scaled(generation, observed, replicas, counts, image), now);
            assert_eq!(progress.age(now), minute * age, "{what}");
        }
    }

    // An executor has not seen what happened before its start.
    #[test]
    fn a_stalled_rollout_keeps_its_age_until_it_makes_progress() {
        let hour = Duration::from_hours(1);
        for (what, observed, counts, found, [then, later]) in [
            ("it stands still", 2, [3, 1, 3], hour, [hour, Duration::ZERO]),
            ("it is done", 2, [3, 3, 3], Duration::ZERO, [Duration::ZERO; 2]),
            (
                "nobody has begun",
                1,
                [3, 3, 3],
                Duration::ZERO,
                [hour, Duration::ZERO],
            ),
        ] {
            let rollouts = Rollouts::default();
            let (start, key) = (Instant::now(), Key::new(DAEMON_SET, "a", "agent"));
            let age = |now| rollouts.progress()[&key].age(now);
            rollouts.status(&workload(2, observed, counts), start);
            rollouts.found(&key, start, || Stalled { age: hour, lost: 0 });
            assert_eq!(age(start), found, "{what}");
            rollouts.status(&workload(2, observed, counts), start + hour);
            assert_eq!(age(start + hour), found + then, "{what}");
            rollouts.status(&workload(2, 2, [3, 2, 3]), start + hour);
            assert_eq!(age(start + hour), later, "{what}");
        }
    }

    #[test]
    fn a_rollout_whose_pods_were_ready_until_their_nodes_broke_was_done() {
        let hour = Duration::from_hours(1);
        for (what, counts, lost, done) in [
            ("both were", [5, 5, 3], 2, true),
            ("one was", [5, 5, 3], 1, false),
            ("they have the old template", [5, 3, 3], 2, false),
        ] {
            let rollouts = Rollouts::default();
            let (start, key) = (Instant::now(), Key::new(DAEMON_SET, "a", "agent"));
            rollouts.status(&workload(2, 2, counts), start);
            rollouts.found(&key, start, || Stalled { age: hour, lost });
            let age = rollouts.progress()[&key].age(start);
            assert_eq!(age, if done { Duration::ZERO } else { hour }, "{what}");
        }
    }

    // After a restore of etcd all objects are listed again.
    #[test]
    fn a_rollout_that_is_found_again_is_no_older() {
        let hour = Duration::from_hours(1);
        let rollouts = Rollouts::default();
        let (start, key) = (Instant::now(), Key::new(DAEMON_SET, "a", "agent"));
        rollouts.status(&workload(2, 2, [3, 1, 3]), start);
        rollouts.found(&key, start, || Stalled { age: hour, lost: 0 });
        rollouts.found(&key, start + hour, || Stalled {
            age: 2 * hour,
            lost: 0,
        });
        assert_eq!(rollouts.progress()[&key].age(start + hour), 2 * hour);
    }

    #[test]
    fn on_delete_makes_no_progress_of_its_own_unless_a_companion_acts() {
        for (annotations, done) in [
            (serde_json::json!({}), true),
            (serde_json::json!({"nodewise.dev/rollout": "manual"}), true),
            (serde_json::json!({"nodewise.dev/rollout": "managed"}), false),
        ] {
            let object = serde_json::json!({
                "metadata": {"namespace": "a", "name": "agent", "uid": "u1", "generation": 2, "annotations": annotations},
                "spec": {"selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": {"type": "OnDelete"}},
                "status": {
                    "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                    "updatedNumberScheduled": 0, "numberAvailable": 3,
                },
            });
            let workload = Workload::daemon_set_from_json(&object).expect("a DaemonSet");
            assert_eq!(
                Progress::of(&workload, Instant::now()).done,
                done,
                "{annotations}"
            );
        }
    }
}
