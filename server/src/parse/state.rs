//! Parses the state that the executor keeps between calls.

use std::{collections::HashSet, time::Duration};

use nodewise_planner::snapshot::{
    BlockedEviction, Expectations, ExpectedCreate, FailedPodBackoff, OwnWrite, PodNameCollision, SlowStart,
    State, UsedPodName,
};
use nodewise_proto::v1;

use super::{
    Context,
    problems::{Path, Problems},
    time,
};
use crate::{limits::Limits, refusal::Refusal};

/// The longest valid back-off of a failed pod.
const LONGEST_BACKOFF: Duration = Duration::from_mins(15);

/// Reads the state. An absent state is empty.
pub(super) fn state(
    message: Option<v1::ReconcileState>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<State, Refusal> {
    let message = message.unwrap_or_default();
    let expectations = message
        .expectations
        .map(|message| expectations(message, &at.field("expectations"), context))
        .transpose()?
        .flatten();
    Ok(State {
        expectations,
        failed_pod_backoffs: backoffs(
            message.failed_pod_backoffs,
            &at.field("failed_pod_backoffs"),
            context,
        )?,
        pod_name_collisions: collisions(
            message.pod_name_collisions,
            &at.field("pod_name_collisions"),
            context,
        )?,
        slow_start: message
            .slow_start
            .and_then(|message| slow_start(message, &at.field("slow_start"), &mut context.problems)),
        used_pod_names: used_pod_names(message.used_pod_names, &at.field("used_pod_names"), context)?,
        blocked_evictions: blocked_evictions(
            message.blocked_evictions,
            &at.field("blocked_evictions"),
            context,
        )?,
    })
}

fn expectations(
    message: v1::Expectations,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Option<Expectations>, Refusal> {
    // An executor that removes what its watches show may end with empty lists.
    if message == v1::Expectations::default() {
        return Ok(None);
    }
    let most = context.limits.actions();
    let set_at = time::required(message.set_at, &at.field("set_at"), &mut context.problems);
    let at_creates = at.field("creates");
    Context::bound(&at_creates, message.creates.len(), most)?;
    let mut creates = Vec::with_capacity(message.creates.len());
    for (index, message) in message.creates.into_iter().enumerate() {
        context.check_stop_at(index)?;
        creates.push(expected_create(message, &at_creates.index(index), context));
    }
    let at_deletes = at.field("delete_uids");
    Context::bound(&at_deletes, message.delete_uids.len(), most)?;
    for (index, uid) in message.delete_uids.iter().enumerate() {
        context.check_stop_at(index)?;
        context.problems.require(&at_deletes.index(index), uid);
    }
    Ok(set_at.map(|set_at| Expectations {
        set_at,
        creates,
        delete_uids: message.delete_uids,
    }))
}

/// Reads one expected create.
pub(super) fn expected_create(
    message: v1::ExpectedCreate,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> ExpectedCreate {
    context.require_node(at, &message.node_name);
    ExpectedCreate {
        pod_name: message.pod_name,
        node_name: message.node_name,
    }
}

fn slow_start(message: v1::SlowStart, at: &Path<'_>, problems: &mut Problems) -> Option<SlowStart> {
    if message.size == 0 {
        problems.add(&at.field("size"), "is required; 1 is the beginning");
    }
    problems.bound_name(&at.field("revision_hash"), &message.revision_hash);
    let last = time::required(message.last, &at.field("last"), problems)?;
    Some(SlowStart {
        size: message.size,
        revision_hash: message.revision_hash,
        last,
    })
}

fn backoffs(
    messages: Vec<v1::FailedPodBackoff>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<FailedPodBackoff>, Refusal> {
    Context::bound(at, messages.len(), context.limits.actions())?;
    let mut keys = HashSet::new();
    let mut backoffs = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        context.check_stop_at(index)?;
        let problems = &mut context.problems;
        let at = at.index(index);
        problems.require(&at.field("node_name"), &message.node_name);
        if !keys.insert((message.observed_generation, message.node_name.clone())) {
            problems.add(&at, "has the observed generation and node of an earlier entry");
        }
        let delay = time::duration(
            message.delay.as_ref(),
            LONGEST_BACKOFF,
            &at.field("delay"),
            problems,
        );
        let last = time::required(message.last, &at.field("last"), problems);
        if let (Some(delay), Some(last)) = (delay, last) {
            backoffs.push(FailedPodBackoff {
                observed_generation: message.observed_generation,
                node_name: message.node_name,
                delay,
                last,
            });
        }
    }
    Ok(backoffs)
}

fn collisions(
    messages: Vec<v1::PodNameCollision>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<PodNameCollision>, Refusal> {
    Context::bound(at, messages.len(), context.limits.actions())?;
    let mut nodes = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        context.check_stop_at(index)?;
        let at = at.index(index);
        context.require_node(&at, &message.node_name);
        let problems = &mut context.problems;
        if !nodes.insert(message.node_name.as_str()) {
            problems.add(
                &at.field("node_name"),
                format!("`{}` is there twice", message.node_name),
            );
        }
    }
    drop(nodes);
    Ok(messages
        .into_iter()
        .map(|message| PodNameCollision {
            node_name: message.node_name,
            count: message.count,
            refused: message.refused_count,
        })
        .collect())
}

fn blocked_evictions(
    messages: Vec<v1::BlockedEviction>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<BlockedEviction>, Refusal> {
    Context::bound(at, messages.len(), context.limits.actions())?;
    let mut evictions = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        context.check_stop_at(index)?;
        let at = at.index(index);
        context.problems.require(&at.field("pod_uid"), &message.pod_uid);
        let retry_at = time::required(message.retry_time, &at.field("retry_time"), &mut context.problems);
        evictions.extend(retry_at.map(|retry_at| BlockedEviction {
            pod_uid: message.pod_uid,
            message: message.message,
            retry_at,
            attempts: message.attempts,
        }));
    }
    Ok(evictions)
}

fn used_pod_names(
    messages: Vec<v1::UsedPodName>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<UsedPodName>, Refusal> {
    Context::bound(at, messages.len(), context.limits.actions())?;
    let mut used = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        context.check_stop_at(index)?;
        let at = at.index(index);
        context.require_node(&at, &message.node_name);
        context.problems.require(&at.field("pod_name"), &message.pod_name);
        used.push(UsedPodName {
            node_name: message.node_name,
            pod_name: message.pod_name,
        });
    }
    Ok(used)
}

/// Reads the own writes. Resource versions are not validated here; the planner compares them (D-111).
pub(super) fn own_writes(
    messages: Vec<v1::OwnWrite>,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<OwnWrite>, Refusal> {
    Context::bound(at, messages.len(), Limits::LIST_ENTRIES)?;
    let own_write = |(index, message): (usize, v1::OwnWrite)| {
        context
            .problems
            .require(&at.index(index).field("resource"), &message.resource);
        OwnWrite {
            resource: message.resource,
            written: message.written_resource_version,
            observed: message.observed_resource_version,
        }
    };
    Ok(messages.into_iter().enumerate().map(own_write).collect())
}
