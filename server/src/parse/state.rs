//! What the executor holds between calls.

use std::{collections::HashSet, time::Duration};

use nodewise_planner::snapshot::{Expectations, ExpectedCreate, FailedPodBackoff, OwnWrite, State};
use nodewise_proto::v1;

use super::{
    problems::{Path, Problems},
    time,
};

/// The longest back-off of a failed pod.
const LONGEST_BACKOFF: Duration = Duration::from_mins(15);

/// Reads the state; an absent one is empty.
pub(super) fn state(message: Option<v1::ReconcileState>, at: &Path<'_>, problems: &mut Problems) -> State {
    let message = message.unwrap_or_default();
    State {
        expectations: message
            .expectations
            .and_then(|message| expectations(message, &at.field("expectations"), problems)),
        failed_pod_backoffs: backoffs(
            message.failed_pod_backoffs,
            &at.field("failed_pod_backoffs"),
            problems,
        ),
        pod_name_collisions: collisions(
            message.pod_name_collisions,
            &at.field("pod_name_collisions"),
            problems,
        ),
    }
}

fn expectations(message: v1::Expectations, at: &Path<'_>, problems: &mut Problems) -> Option<Expectations> {
    let set_at = time::required(message.set_at, &at.field("set_at"), problems);
    let at_creates = at.field("creates");
    let creates = message
        .creates
        .into_iter()
        .enumerate()
        .map(|(index, message)| expected_create(message, &at_creates.index(index), problems))
        .collect();
    for (index, uid) in message.delete_uids.iter().enumerate() {
        problems.require(&at.field("delete_uids").index(index), uid);
    }
    Some(Expectations {
        set_at: set_at?,
        creates,
        delete_uids: message.delete_uids,
    })
}

/// Reads one create outstanding.
pub(super) fn expected_create(
    message: v1::ExpectedCreate,
    at: &Path<'_>,
    problems: &mut Problems,
) -> ExpectedCreate {
    problems.require(&at.field("node_name"), &message.node_name);
    ExpectedCreate {
        pod_name: message.pod_name,
        node_name: message.node_name,
    }
}

fn backoffs(
    messages: Vec<v1::FailedPodBackoff>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Vec<FailedPodBackoff> {
    let mut keys = HashSet::new();
    let mut backoffs = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
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
    backoffs
}

fn collisions(
    messages: Vec<v1::PodNameCollision>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Vec<(String, u32)> {
    let mut nodes = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = at.index(index);
        problems.require(&at.field("node_name"), &message.node_name);
        if !nodes.insert(message.node_name.as_str()) {
            problems.add(
                &at.field("node_name"),
                format!("`{}` is there twice", message.node_name),
            );
        }
    }
    drop(nodes);
    messages
        .into_iter()
        .map(|message| (message.node_name, message.count))
        .collect()
}

/// Reads the own writes. Versions are opaque until they are compared (D-111).
pub(super) fn own_writes(
    messages: Vec<v1::OwnWrite>,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Vec<OwnWrite> {
    messages
        .into_iter()
        .enumerate()
        .map(|(index, message)| {
            problems.require(&at.index(index).field("resource"), &message.resource);
            OwnWrite {
                resource: message.resource,
                written: message.written_resource_version,
                observed: message.observed_resource_version,
            }
        })
        .collect()
}
