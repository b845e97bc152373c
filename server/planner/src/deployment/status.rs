//! Computes the status from the statuses of the ReplicaSets (P-52 to P-56, P-58).

use jiff::Timestamp;

use crate::{
    core::status::{Condition, DeploymentStatus, ReplicaSetStatus},
    deployment::{
        conditions::{self, AVAILABLE, REPLICA_FAILURE},
        fenceposts::Fenceposts,
        numbers::Numbers,
        sets::NewSet,
        workload::{Deployment, Set},
    },
};

/// Whether a status says that the Deployment is complete (P-52).
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = deployment.replicas;
    status.updated_replicas == replicas
        && status.replicas == replicas
        && status.available_replicas == replicas
        && status.observed_generation >= deployment.generation
}

/// The ReplicaSets that a status counts, with the sizes before the plan (P-55).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted<'s, 'a> {
    /// The old sets by age.
    pub(crate) old: &'s [&'a Set],
    /// The new set.
    pub(crate) new: Option<&'s NewSet<'a>>,
}

impl<'s> Counted<'s, '_> {
    /// The status of each set, old sets first.
    fn statuses(self) -> impl Iterator<Item = &'s ReplicaSetStatus> {
        let old = self.old.iter().map(|set| &set.status);
        old.chain(self.new.map(|new| &*new.status))
    }

    /// The size of each set, old sets first.
    pub(crate) fn sizes(self) -> impl Iterator<Item = i32> {
        let old = self.old.iter().map(|set| set.replicas);
        old.chain(self.new.map(|new| new.size))
    }
}

/// The counts, and the condition `Available` (P-53, P-56). `conditions` are those of the status as it stands.
pub(crate) fn count(
    deployment: &Deployment,
    sets: Counted<'_, '_>,
    (fenceposts, numbers): (Fenceposts, &Numbers),
    gate: bool,
    mut conditions: Vec<Condition>,
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |field: fn(&ReplicaSetStatus) -> i32| numbers.sum(sets.statuses().map(field));
    let available = sum(|status| status.available_replicas);
    let size = numbers.sum(sets.sizes());
    let unavailable = numbers.int32(i64::from(size) - i64::from(available));
    let (status, reason, message) = if available >= fenceposts.min_available(deployment.replicas, numbers) {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    conditions::set(
        &mut conditions,
        conditions::new(AVAILABLE, status, reason, message, now),
    );
    DeploymentStatus {
        replicas: sum(|status| status.replicas),
        updated_replicas: sets.new.map_or(0, |new| new.status.replicas),
        ready_replicas: sum(|status| status.ready_replicas),
        available_replicas: available,
        unavailable_replicas: unavailable.max(0),
        terminating_replicas: if gate { terminating(sets, numbers) } else { None },
        collision_count: deployment.status.collision_count,
        observed_generation: deployment.generation,
        conditions,
    }
}

/// The pods that are being deleted (P-54). A set that its controller has not seen yet has none. `None` if any other set does not say.
fn terminating(sets: Counted<'_, '_>, numbers: &Numbers) -> Option<i32> {
    let of = |status: &ReplicaSetStatus| match status.terminating_replicas {
        None if status.observed_generation == 0 => Some(0),
        count => count,
    };
    let counts: Vec<i32> = sets.statuses().map(of).collect::<Option<_>>()?;
    Some(numbers.sum(counts))
}

/// Takes over the condition of a ReplicaSet that cannot create or delete pods; the new set's comes first (P-58).
pub(crate) fn take_over_failure(sets: Counted<'_, '_>, conditions: &mut Vec<Condition>) {
    let old = sets.old.iter().map(|set| &set.status);
    let mut statuses = sets.new.map(|new| &*new.status).into_iter().chain(old);
    let failure = statuses.find_map(|status| conditions::find(&status.conditions, REPLICA_FAILURE));
    match failure {
        Some(failure) => conditions::set(
            conditions,
            Condition {
                last_update_time: failure.last_transition_time,
                served: None,
                ..failure.clone()
            },
        ),
        None => conditions::remove(conditions, REPLICA_FAILURE),
    }
}
