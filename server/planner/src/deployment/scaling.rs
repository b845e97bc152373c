//! Follows a change of spec.replicas while a rollout is under way or paused (P-41 to P-45).

use std::cmp::Reverse;

use crate::{
    core::{plan::Reason, snapshot::Deviation},
    deployment::{
        annotations::{self, DESIRED_REPLICAS, MAX_REPLICAS},
        plan_builder::PlanBuilder,
        workload::Set,
    },
};

/// Whether spec.replicas has changed since the sets were last resized (P-41).
pub(crate) fn is_due(builder: &PlanBuilder<'_>) -> bool {
    let replicas = builder.deployment.replicas;
    builder.all_sets().any(|set| is_behind(set, replicas))
}

/// Whether a set was last resized for another value of spec.replicas.
fn is_behind(set: &Set, replicas: i32) -> bool {
    set.is_active()
        && annotations::replicas(set.annotation(DESIRED_REPLICAS)).is_some_and(|desired| desired != replicas)
}

/// Scales the sets (P-42).
pub(crate) fn plan(builder: &mut PlanBuilder<'_>) {
    let active: Vec<&Set> = builder.all_sets().filter(|set| set.is_active()).collect();
    if active.len() <= 1 {
        let new = builder.new.as_ref().and_then(|new| new.set);
        let newest = builder.old.last().copied();
        if let Some(set) = active.first().copied().or(new).or(newest) {
            scale_single(builder, set);
        }
    } else if let Some(new) = saturated(builder) {
        for set in builder.active_old().into_iter().rev() {
            let message = format!(
                "all {} replicas of {} are available: {} is not needed any more",
                new.replicas, new.name, set.name
            );
            builder.scale(set, 0, Reason::ReplicasChanged, message);
        }
    } else if builder.deployment.is_rolling() {
        scale_proportionally(builder, active);
    } else {
        refresh(builder, &active);
    }
}

/// Scales the only set that counts.
fn scale_single<'a>(builder: &mut PlanBuilder<'a>, set: &'a Set) {
    let replicas = builder.deployment.replicas;
    let message = format!(
        "spec.replicas is {replicas}, and {} has {}",
        set.name, set.replicas
    );
    if !builder.scale(set, replicas, Reason::ReplicasChanged, message) {
        refresh(builder, &[set]);
    }
}

/// Refreshes the annotations of sets that keep their size. Upstream does not, so it finds the same change in every sync, and never
/// comes to the rollout.
fn refresh<'a>(builder: &mut PlanBuilder<'a>, sets: &[&'a Set]) {
    if !builder.deviates(Deviation::RefreshDesiredReplicas) {
        return;
    }
    let replicas = builder.deployment.replicas;
    for set in sets.iter().filter(|set| is_behind(set, replicas)) {
        if builder.refresh_annotations(set) {
            builder.deviations.insert(Deviation::RefreshDesiredReplicas);
        }
    }
}

/// The new set, if it has all the replicas and all of them are available.
fn saturated<'a>(builder: &PlanBuilder<'a>) -> Option<&'a Set> {
    let replicas = builder.deployment.replicas;
    builder.new.as_ref().and_then(|new| new.set).filter(|set| {
        set.replicas == replicas
            && annotations::replicas(set.annotation(DESIRED_REPLICAS)) == Some(replicas)
            && set.status.available_replicas == replicas
    })
}

/// Gives each set its share of the change (P-43 to P-45). `active` are the old sets by age, then the new one.
fn scale_proportionally<'a>(builder: &mut PlanBuilder<'a>, mut active: Vec<&'a Set>) {
    let (replicas, max) = (builder.deployment.replicas, builder.max_replicas());
    let numbers = &builder.numbers;
    let allowed = if replicas > 0 { max } else { 0 };
    let total = numbers.sum(active.iter().map(|set| set.replicas));
    let add = numbers.int32(i64::from(allowed) - i64::from(total));
    let new = builder.new.as_ref().and_then(|new| new.set);
    match add.signum() {
        // The largest set first; of equal ones the newest.
        1 => active.sort_by(|a, b| b.replicas.cmp(&a.replicas).then_with(|| Set::by_age(b, a))),
        -1 => active.sort_by(|a, b| b.replicas.cmp(&a.replicas).then_with(|| Set::by_age(a, b))),
        _ => {
            // The old sets, the newest first; then the new one.
            let old = active.len() - usize::from(new.is_some_and(Set::is_active));
            active[..old].reverse();
        }
    }
    let mut done = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for set in &active {
        let share = share(builder, set, add, done);
        sizes.push(builder.numbers.sum([set.replicas, share]));
        done = builder.numbers.sum([done, share]);
    }
    if let (Some(first), true) = (sizes.first_mut(), add != 0) {
        let left = builder.numbers.int32(i64::from(add) - i64::from(done));
        *first = builder.numbers.sum([*first, left]).max(0);
    }
    for (set, size) in active.into_iter().zip(sizes) {
        let message = format!(
            "spec.replicas is {replicas}: the ReplicaSets may have {allowed} replicas together, and {} gets its share",
            set.name
        );
        if !builder.scale(set, size, Reason::ReplicasChanged, message) {
            builder.refresh_annotations(set);
        }
    }
}

/// The share of one set, of which `done` of `add` replicas are given already (P-44).
fn share(builder: &PlanBuilder<'_>, set: &Set, add: i32, done: i32) -> i32 {
    if add == 0 || add == done {
        return 0;
    }
    let left = builder.numbers.int32(i64::from(add) - i64::from(done));
    let fraction = fraction(builder, set);
    if add > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

/// By how much a set would grow if its part of all replicas stayed the same (P-44).
pub(crate) fn fraction(builder: &PlanBuilder<'_>, set: &Set) -> i32 {
    let (deployment, numbers) = (builder.deployment, &builder.numbers);
    if deployment.replicas == 0 {
        return numbers.int32(-i64::from(set.replicas));
    }
    let before = annotations::replicas(set.annotation(MAX_REPLICAS)).filter(|max| *max != 0);
    let base = before.unwrap_or(deployment.status.replicas);
    if base == 0 {
        return 0;
    }
    let size = numbers.proportion(set.replicas, builder.max_replicas(), base);
    numbers.int32(i64::from(size) - i64::from(set.replicas))
}

/// The old sets in the order in which the scale path leaves them for the clean-up: the newest first.
pub(crate) fn newest_first<'a>(builder: &PlanBuilder<'a>) -> Vec<&'a Set> {
    let mut old = builder.old.clone();
    old.sort_by_key(|set| Reverse((set.created, &set.name, &set.uid)));
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::{
            cancellation::Cancellation,
            snapshot::{IntOrString, Options, Snapshot, State},
        },
        deployment::{
            fixtures::{deployment, set},
            workload::{RollingUpdate, Strategy},
        },
    };

    #[test]
    fn p_44_fractions_of_sets() {
        // (scenario, replicas, maxSurge, size, annotation, status.replicas, fraction)
        let table = [
            ("PS-26", 0, 0, 10, "", 0, -10),
            ("PS-27", 10, 0, 5, "", 0, 0),
            ("PS-27", 10, 0, 5, "0", 0, 0),
            ("PS-28", 120, 0, 50, "", 100, 10),
            ("PS-28", 120, 0, 50, "0", 100, 10),
            ("PS-28", 120, 0, 50, "100", 0, 10),
            ("PS-28, invalid", 120, 0, 50, "x", 100, 10),
            ("PS-29", 120, 10, 50, "110", 0, 9),
            ("PS-30", 10, 0, 6, "12", 0, -1),
            ("PS-30", 100, 10, 50, "130", 0, -8),
            ("a negative status", 10, 0, 5, "", -5, -15),
        ];
        for (what, replicas, surge, size, max, has, expected) in table {
            let mut deployment = deployment(replicas);
            deployment.strategy = Strategy::RollingUpdate(Some(RollingUpdate {
                max_unavailable: Some(IntOrString::Int(1)),
                max_surge: Some(IntOrString::Int(surge)),
            }));
            deployment.status.replicas = has;
            let mut set = set("a", &[(MAX_REPLICAS, max)], 1);
            set.replicas = size;
            let snapshot = Snapshot {
                now: jiff::Timestamp::UNIX_EPOCH,
                workload: deployment,
                revisions: vec![],
                buckets: vec![],
                state: State::default(),
                own_writes: vec![],
                options: Options::upstream_strict(),
            };
            let builder = PlanBuilder::new(&snapshot, "", Cancellation::new(&|| false)).expect("not stopped");
            assert_eq!(fraction(&builder, &set), expected, "{what}");
        }
    }
}
