//! The sentences of an explanation.

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::status::{Condition, DeploymentStatus},
    deployment::{
        conditions::{self, CREATE_ERROR, PROGRESSING, REPLICA_FAILURE, TIMED_OUT},
        plan_builder::{Ending, PlanBuilder},
        recreate, rollback, rolling, scaling, status,
        workload::{Deployment, Set, Strategy},
    },
};

/// The most ReplicaSets that a sentence names.
const NAMED: usize = 3;

/// Writes the sentences of one explanation.
pub(super) struct Sentences<'b, 'a> {
    builder: &'b PlanBuilder<'a>,
    ending: &'b Ending,
    status: DeploymentStatus,
}

impl<'b, 'a> Sentences<'b, 'a> {
    pub(super) fn new(builder: &'b PlanBuilder<'a>, ending: &'b Ending) -> Self {
        let counted = status::count(
            builder.deployment,
            builder.counted(),
            (builder.fenceposts, &builder.numbers),
            builder.snapshot.options.terminating_replicas,
            builder.conditions.clone(),
            builder.snapshot.now,
        );
        Self {
            builder,
            ending,
            status: counted,
        }
    }

    fn deployment(&self) -> &'a Deployment {
        self.builder.deployment
    }

    /// One sentence on the state of the Deployment.
    pub(super) fn state(&self) -> String {
        let deployment = self.deployment();
        if deployment.deleting {
            return "The Deployment is being deleted: only its status is kept up to date.".to_owned();
        }
        if let Ending::Error(error) = self.ending {
            return format!("The plan ends with an error: {error}.");
        }
        if deployment.paused {
            return format!(
                "Paused: nothing is rolled out while spec.paused is true. {} of {} have the present template.",
                self.status.updated_replicas,
                plural(deployment.replicas.into(), "replica")
            );
        }
        if let Some(revision) = rollback::requested(deployment) {
            return match revision {
                0 => "A rollback to the last revision is requested.".to_owned(),
                revision => format!("A rollback to revision {revision} is requested."),
            };
        }
        if scaling::is_due(self.builder) {
            let replicas = deployment.replicas;
            return format!(
                "spec.replicas is now {replicas}: the ReplicaSets follow before the rollout goes on."
            );
        }
        if status::is_complete(deployment, &self.status) {
            return match deployment.replicas {
                0 => "Complete: no replicas are wanted, and there are none.".to_owned(),
                1 => "Complete: the replica has the present template and is available.".to_owned(),
                all => format!("Complete: all {all} replicas have the present template and are available."),
            };
        }
        self.progress()
    }

    /// A sentence on a rollout that is not complete.
    fn progress(&self) -> String {
        let waits = self.waits();
        let condition = conditions::find(&self.deployment().status.conditions, PROGRESSING);
        match condition {
            Some(condition) if condition.reason == TIMED_OUT => {
                let since = since(condition);
                format!("No progress: the deadline was exceeded{since}. The rollout still {waits}.")
            }
            Some(condition) if condition.reason == CREATE_ERROR && self.builder.new.is_none() => {
                format!("The new ReplicaSet could not be created: {}.", condition.message)
            }
            _ => format!("Not complete: the rollout {waits}."),
        }
    }

    /// What the rollout waits for, after "the rollout".
    fn waits(&self) -> String {
        let builder = self.builder;
        let replicas = self.deployment().replicas;
        if self.deployment().strategy == Strategy::Recreate && recreate::has_old_pods(builder) {
            let reported: i64 = builder.old.iter().map(|set| i64::from(set.status.replicas)).sum();
            let unfinished: i64 = builder.old.iter().map(|set| i64::from(set.unfinished_pods)).sum();
            let count = reported.max(unfinished);
            let (pods, are) = (plural(count, "pod"), are(count));
            return format!("waits until {pods} of older templates {are} gone");
        }
        let Some(new) = &builder.new else {
            return "waits until its new ReplicaSet can be created".to_owned();
        };
        if new.set.is_none() {
            return format!("waits until its new ReplicaSet {} is created", new.name);
        }
        let left: i64 = builder.old.iter().map(|set| i64::from(set.replicas.max(0))).sum();
        let missing = i64::from(new.size) - i64::from(new.status.available_replicas);
        if missing > 0 {
            let (pods, are) = (plural(missing, "pod"), are(missing));
            return format!("waits until {pods} of {} {are} available", new.name);
        }
        if left > 0 {
            let old = plural(left, "old replica");
            return format!(
                "goes on: {} has {} of {replicas} replicas, and there are {old}",
                new.name, new.size
            );
        }
        let pods = i64::from(self.status.replicas) - i64::from(self.status.updated_replicas);
        if pods > 0 {
            return gone(pods, "old pod");
        }
        format!("goes on: {} has {} of {replicas} replicas", new.name, new.size)
    }

    /// Further sentences.
    pub(super) fn details(&self) -> Vec<String> {
        let (deployment, builder, status) = (self.deployment(), self.builder, &self.status);
        let mut details = vec![format!(
            "{} wanted; {}, of which {} updated, {} ready and {} available",
            plural(deployment.replicas.into(), "replica"),
            plural(status.replicas.into(), "pod"),
            status.updated_replicas,
            status.ready_replicas,
            status.available_replicas
        )];
        details.push(match &deployment.strategy {
            Strategy::RollingUpdate(_) => format!(
                "RollingUpdate: maxSurge allows {}, and maxUnavailable requires {} available",
                plural(builder.max_replicas().into(), "replica"),
                self.least_available()
            ),
            Strategy::Recreate => "Recreate: all old pods stop before new ones start".to_owned(),
            Strategy::Unknown(strategy) => format!("strategy {strategy:?} is not known"),
        });
        let condition = conditions::find(&deployment.status.conditions, PROGRESSING);
        details.extend(condition.and_then(|condition| self.deadline(condition)));
        let (generation, observed) = (deployment.generation, deployment.status.observed_generation);
        // A sync that cannot create the new set does not count as having observed the generation.
        let is_refused = condition.is_some_and(|condition| condition.reason == conditions::CREATE_ERROR);
        if observed < generation && !is_refused {
            details.push(format!(
                "no controller has acted on the last change yet: metadata.generation is {generation}, and status.observedGeneration \
                 is {observed}"
            ));
        }
        let mut failures = self.status_failures();
        details.append(&mut failures);
        details
    }

    fn least_available(&self) -> i32 {
        let builder = self.builder;
        builder
            .fenceposts
            .min_available(builder.deployment.replicas, &builder.numbers)
    }

    /// When the progress deadline passes.
    fn deadline(&self, condition: &Condition) -> Option<String> {
        let seconds = self.deployment().deadline()?;
        let is_over = matches!(
            condition.reason.as_str(),
            TIMED_OUT | conditions::NEW_SET_AVAILABLE
        );
        let passes = condition
            .last_update_time?
            .checked_add(SignedDuration::from_secs(seconds.into()))
            .ok()?;
        (!is_over && !self.deployment().paused).then(|| {
            let verb = if passes < self.builder.snapshot.now {
                "passed"
            } else {
                "passes"
            };
            format!("without progress the deadline of {seconds} s {verb} at {passes}")
        })
    }

    /// The sets that cannot create or delete pods.
    fn status_failures(&self) -> Vec<String> {
        let failure = |set: &Set| {
            let condition = conditions::find(&set.status.conditions, REPLICA_FAILURE)?;
            Some(format!("{}: {}", set.name, condition.message))
        };
        self.builder.all_sets().filter_map(failure).take(NAMED).collect()
    }

    /// What the new set waits for.
    pub(super) fn new_set(&self, set: &Set) -> String {
        let replicas = self.deployment().replicas;
        let missing = i64::from(set.replicas) - i64::from(set.status.available_replicas);
        if set.replicas < replicas && self.is_rolling_out() {
            let active = self.builder.active_old();
            let more = if missing > 0 {
                format!(
                    "; {} of {} {} not available",
                    plural(missing, "pod"),
                    set.name,
                    are(missing)
                )
            } else {
                String::new()
            };
            return format!(
                "has {} of {replicas} replicas: maxSurge is used up by {}{more}",
                set.replicas,
                names(&active)
            );
        }
        if missing > 0 {
            return format!(
                "waits until {} {} available",
                plural(missing, "pod"),
                are(missing)
            );
        }
        if missing < 0 {
            return gone(-missing, "pod");
        }
        format!("has {}, all available", plural(set.replicas.into(), "replica"))
    }

    /// What an old set waits for.
    pub(super) fn old_set(&self, set: &Set) -> String {
        let pods = i64::from(set.status.replicas);
        match (set.replicas, pods) {
            (..=0, 1..) => return gone(pods, "pod"),
            (..=0, _) if set.unfinished_pods > 0 => {
                return gone(set.unfinished_pods.into(), "pod");
            }
            (..=0, _) => return "is kept for a rollback".to_owned(),
            _ => {}
        }
        if !self.is_rolling_out() {
            return "keeps its size".to_owned();
        }
        if rolling::old_budget(self.builder) <= 0 {
            let (unavailable, name) = self.builder.new.as_ref().map_or((0, ""), |new| {
                let unavailable = i64::from(new.size) - i64::from(new.status.available_replicas);
                (unavailable.max(0), &*new.name)
            });
            return format!(
                "cannot shrink: maxUnavailable requires {} available pods, and {} of {name} {} not available",
                self.least_available(),
                plural(unavailable, "pod"),
                are(unavailable)
            );
        }
        if set.status.available_replicas > set.replicas {
            return "cannot shrink: its status shows more available pods than it has replicas".to_owned();
        }
        format!(
            "cannot shrink now: maxUnavailable requires {} available pods, and there are {}",
            self.least_available(),
            self.status.available_replicas
        )
    }

    /// Whether the plan takes a step of a rolling update.
    fn is_rolling_out(&self) -> bool {
        *self.ending == Ending::RolloutStatus && self.deployment().is_rolling()
    }
}

/// When a condition was set, as part of a sentence.
fn since(condition: &Condition) -> String {
    let since = |time: Timestamp| format!(" at {time}");
    condition.last_update_time.map_or_else(String::new, since)
}

/// A number with a noun.
fn plural(count: i64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// What waits for pods to go.
fn gone(count: i64, noun: &str) -> String {
    format!("waits until {} {} gone", plural(count, noun), are(count))
}

/// The verb for a number of things.
fn are(count: i64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The names of sets. There may be thousands, so only a few are named.
fn names(sets: &[&Set]) -> String {
    let mut names: Vec<String> = sets.iter().take(NAMED).map(|set| set.name.clone()).collect();
    if sets.len() > NAMED {
        names.push(format!("{} more", sets.len() - NAMED));
    }
    if names.is_empty() {
        return "nothing else".to_owned();
    }
    names.join(", ")
}
