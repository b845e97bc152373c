//! One step of a rolling update (P-32 to P-37).

use crate::{
    core::plan::Reason,
    deployment::{cleanup, fenceposts, lookup, plan_builder::PlanBuilder, status, workload::Set},
};

/// Plans one step. An error ends the sync.
pub(crate) fn plan(builder: &mut PlanBuilder<'_>) -> Result<(), String> {
    lookup::create_if_missing(builder)?;
    if scale_new(builder)? || scale_old(builder) {
        return Ok(());
    }
    if status::is_complete(builder.deployment, &builder.deployment.status) {
        let old = builder.old.clone();
        cleanup::plan(builder, old);
    }
    Ok(())
}

/// Scales the new set (P-32). Returns whether it has another size then.
fn scale_new(builder: &mut PlanBuilder<'_>) -> Result<bool, String> {
    // A set that this plan creates already has its size.
    let Some(set) = builder.new.as_ref().and_then(|new| new.set) else {
        return Ok(false);
    };
    let (name, size, replicas) = (&set.name, set.replicas, builder.deployment.replicas);
    if size == replicas {
        return Ok(false);
    }
    if size > replicas {
        let message = format!("{name} has {size} replicas, and spec.replicas is {replicas}");
        return Ok(builder.scale(set, replicas, Reason::ScaleDownNew, message));
    }
    let total = builder.numbers.sum(builder.counted().sizes());
    let to = fenceposts::new_set_size(builder.deployment, size, total, &builder.numbers)?;
    let message = format!(
        "{name} grows from {size} to {to}: with maxSurge there may be {} replicas, and there are {total}",
        builder.max_replicas()
    );
    Ok(builder.scale(set, to, Reason::ScaleUpNew, message))
}

/// How many replicas the old sets may lose in one step (P-33).
pub(crate) fn old_budget(builder: &PlanBuilder<'_>) -> i32 {
    let numbers = &builder.numbers;
    let total = numbers.sum(builder.counted().sizes());
    let unavailable = builder.new.as_ref().map_or(0, |new| {
        numbers.int32(i64::from(new.size) - i64::from(new.status.available_replicas))
    });
    let least = builder
        .fenceposts
        .min_available(builder.deployment.replicas, numbers);
    numbers.int32(i64::from(total) - i64::from(least) - i64::from(unavailable))
}

/// Scales the old sets down (P-33). Returns whether anything was scaled.
fn scale_old(builder: &mut PlanBuilder<'_>) -> bool {
    let active = builder.active_old();
    if builder.numbers.sum(active.iter().map(|set| set.replicas)) == 0 {
        return false;
    }
    let budget = old_budget(builder);
    if budget <= 0 {
        return false;
    }
    let mut sizes: Vec<i32> = active.iter().map(|set| set.replicas).collect();
    let unhealthy = scale_unhealthy(builder, &active, &mut sizes, budget);
    let healthy = unhealthy.and_then(|_| scale_healthy(builder, &active, &sizes));
    match (unhealthy, healthy) {
        (Some(unhealthy), Some(healthy)) => builder.numbers.sum([unhealthy, healthy]) > 0,
        _ => false,
    }
}

/// Removes replicas that are not available, the oldest set first (P-34). Returns how many, or `None` if the step is abandoned: a set
/// has more available pods than replicas, because its status lags behind.
fn scale_unhealthy<'a>(
    builder: &mut PlanBuilder<'a>,
    active: &[&'a Set],
    sizes: &mut [i32],
    budget: i32,
) -> Option<i32> {
    let mut done = 0;
    for (set, size) in active.iter().zip(sizes) {
        if done >= budget {
            break;
        }
        let available = set.status.available_replicas;
        if *size == available {
            continue;
        }
        let numbers = &builder.numbers;
        let unavailable = numbers.int32(i64::from(*size) - i64::from(available));
        let loss = numbers
            .int32(i64::from(budget) - i64::from(done))
            .min(unavailable);
        let to = numbers.int32(i64::from(*size) - i64::from(loss));
        done = numbers.sum([done, loss]);
        if to > *size {
            return None;
        }
        let message = format!(
            "{} has {unavailable} {} not available: they go first",
            set.name,
            if unavailable == 1 {
                "replica that is"
            } else {
                "replicas that are"
            },
        );
        builder.scale_old(set, (*size, to), Reason::ScaleDownUnhealthy, message);
        *size = to;
    }
    Some(done)
}

/// Removes replicas as far as enough pods stay available, the oldest set first (P-35). Returns how many, or `None` if the step is
/// abandoned.
fn scale_healthy<'a>(builder: &mut PlanBuilder<'a>, active: &[&'a Set], sizes: &[i32]) -> Option<i32> {
    let numbers = &builder.numbers;
    let new = builder
        .new
        .as_ref()
        .map_or(0, |new| new.status.available_replicas);
    let old = active.iter().map(|set| set.status.available_replicas);
    let available = numbers.sum(old.chain([new]));
    let least = builder
        .fenceposts
        .min_available(builder.deployment.replicas, numbers);
    if available <= least {
        return Some(0);
    }
    let spare = numbers.int32(i64::from(available) - i64::from(least));
    let mut done = 0;
    for (set, size) in active.iter().zip(sizes) {
        if done >= spare {
            break;
        }
        if *size == 0 {
            continue;
        }
        let numbers = &builder.numbers;
        let loss = numbers.int32(i64::from(spare) - i64::from(done)).min(*size);
        let to = numbers.int32(i64::from(*size) - i64::from(loss));
        if to > *size {
            return None;
        }
        done = numbers.sum([done, loss]);
        let message = format!(
            "{} shrinks from {size} to {to}: {available} pods are available, and {least} must be",
            set.name
        );
        builder.scale_old(set, (*size, to), Reason::ScaleDownOld, message);
    }
    Some(done)
}
