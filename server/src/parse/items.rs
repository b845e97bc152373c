//! One node, one pod.

use std::collections::HashSet;

use nodewise_planner::snapshot::{
    ControllerRef, Labels, Listed, Node, Pod, PodPhase, Taint, TaintEffect, Target,
};
use nodewise_proto::v1;

use super::{
    Context,
    problems::{Path, Problems},
    repeats::Claims,
    shared::{Metadata, Shared},
    time,
};
use crate::{cache::Cacheable, limits::Limits, refusal::Refusal};

/// What a bucket holds: its strings are moved from its message, and its labels are copied once.
pub(super) trait Item: Cacheable + Listed + Clone {
    /// The name of the bucket's list.
    const LIST: &'static str;
    /// The message.
    type Message: prost::Message + Default;

    /// What items of the bucket `data` share and is there once; `at` is the bucket.
    fn shared(_data: &[u8], _at: &Path<'_>, _context: &mut Context<'_>) -> Result<Shared, Refusal> {
        Ok(Shared::default())
    }

    /// The item; what is wrong with it is noted. Its labels come apart from the message.
    fn parse(
        message: Self::Message,
        labels: &mut [(&str, &str)],
        shared: &mut Shared,
        at: &Path<'_>,
        problems: &mut Problems,
    ) -> Self;

    /// The name whose hash says which bucket the item belongs to.
    fn bucket_name(&self) -> &str;

    /// What the answer may name the workload for among the items.
    fn claims(_: &[Self]) -> Claims {
        Claims::default()
    }

    /// Whether no two items of a bucket share what they must not, as far as that can be told from one bucket alone; `at` is the
    /// bucket's list.
    fn are_unique(items: &[Self], at: &Path<'_>, context: &mut Context<'_>) -> Result<bool, Refusal>;
}

impl Item for Node {
    const LIST: &'static str = "nodes";
    type Message = v1::Node;

    /// No two nodes have the same labels.
    fn parse(
        message: v1::Node,
        labels: &mut [(&str, &str)],
        _: &mut Shared,
        at: &Path<'_>,
        problems: &mut Problems,
    ) -> Self {
        problems.require_name(&at.field("name"), &message.name);
        Self {
            labels: unique(labels, &at.field("labels"), problems, Labels::of),
            taints: taints(message.taints, &at.field("taints"), problems),
            unschedulable: message.unschedulable,
            ready: condition(message.ready, &at.field("ready"), problems),
            name: message.name,
        }
    }

    fn bucket_name(&self) -> &str {
        &self.name
    }

    /// Nodes of one name are in one bucket.
    fn are_unique(items: &[Self], at: &Path<'_>, context: &mut Context<'_>) -> Result<bool, Refusal> {
        context.look()?;
        if items.is_sorted_by(|a, b| a.name < b.name) {
            return Ok(true);
        }
        let mut names = HashSet::with_capacity(items.len());
        let mut unique = true;
        for (index, node) in items.iter().enumerate() {
            if !names.insert(&node.name) {
                let problem = format!("`{}` is there twice", node.name);
                context.problems.add(&at.index(index).field("name"), problem);
                unique = false;
            }
        }
        Ok(unique)
    }
}

impl Item for Pod {
    const LIST: &'static str = "pods";
    type Message = v1::Pod;

    fn shared(data: &[u8], at: &Path<'_>, context: &mut Context<'_>) -> Result<Shared, Refusal> {
        Shared::read(data, at, context)
    }

    fn parse(
        message: v1::Pod,
        labels: &mut [(&str, &str)],
        shared: &mut Shared,
        at: &Path<'_>,
        problems: &mut Problems,
    ) -> Self {
        problems.require_name(&at.field("name"), &message.name);
        problems.require_name(&at.field("uid"), &message.uid);
        problems.bound_name(&at.field("node_name"), &message.node_name);
        problems.bound_name(&at.field("target_node_name"), &message.target_node_name);
        // Checked like the others, though only its presence counts.
        time::optional(message.deletion_time, &at.field("deletion_time"), problems);
        let Metadata { labels, controller } = match message.shared_metadata {
            0 => Metadata {
                labels: unique(labels, &at.field("labels"), problems, |labels| {
                    shared.labels(labels)
                }),
                controller: message
                    .controller
                    .map(|message| shared.controller(controller(message, &at.field("controller"), problems))),
            },
            number => {
                if !labels.is_empty() || message.controller.is_some() {
                    let problem = "is set, and so are labels or a controller of the pod's own";
                    problems.add(&at.field("shared_metadata"), problem);
                }
                shared.numbered(number, &at.field("shared_metadata"), problems)
            }
        };
        Self {
            labels,
            controller,
            target: if !message.node_name.is_empty() {
                Target::Bound(message.node_name)
            } else if !message.target_node_name.is_empty() {
                Target::Meant(message.target_node_name)
            } else {
                Target::Nowhere
            },
            phase: phase(message.phase, &at.field("phase"), problems),
            ready: condition(message.ready, &at.field("ready"), problems) == Some(true),
            ready_since: time::optional(
                message.ready_transition_time,
                &at.field("ready_transition_time"),
                problems,
            ),
            created: time::optional(message.creation_time, &at.field("creation_time"), problems),
            deleting: message.deletion_time.is_some(),
            has_finalizers: message.has_finalizers,
            name: message.name,
            uid: message.uid,
        }
    }

    fn bucket_name(&self) -> &str {
        self.target.node().unwrap_or_default()
    }

    fn claims(items: &[Self]) -> Claims {
        Claims::of(items)
    }

    /// Pods of one name may be in two buckets, so all are looked at together, later.
    fn are_unique(_: &[Self], _: &Path<'_>, _: &mut Context<'_>) -> Result<bool, Refusal> {
        Ok(true)
    }
}

/// Labels of which each has a key, and each key is there once.
pub(super) fn unique(
    entries: &mut [(&str, &str)],
    at: &Path<'_>,
    problems: &mut Problems,
    make: impl FnOnce(&mut [(&str, &str)]) -> Labels,
) -> Labels {
    if !problems.bound(at, entries.len(), Limits::LIST_ENTRIES) {
        return Labels::default();
    }
    for (index, (key, _)) in entries.iter().enumerate() {
        problems.require(&at.index(index).field("key"), key);
    }
    let labels = make(entries);
    if labels.len() != entries.len() {
        problems.add(at, "has a key twice");
    }
    labels
}

fn taints(messages: Vec<v1::Taint>, at: &Path<'_>, problems: &mut Problems) -> Vec<Taint> {
    if !problems.bound(at, messages.len(), Limits::LIST_ENTRIES) {
        return Vec::new();
    }
    let one = |(index, message)| taint(message, &at.index(index), problems);
    messages.into_iter().enumerate().map(one).collect()
}

fn taint(message: v1::Taint, at: &Path<'_>, problems: &mut Problems) -> Taint {
    problems.require(&at.field("key"), &message.key);
    Taint {
        key: message.key,
        value: message.value,
        effect: match message.effect.as_str() {
            "NoSchedule" => TaintEffect::NoSchedule,
            "NoExecute" => TaintEffect::NoExecute,
            _ => TaintEffect::Other,
        },
    }
}

/// A controller that has a uid.
pub(super) fn controller(
    message: v1::ControllerReference,
    at: &Path<'_>,
    problems: &mut Problems,
) -> ControllerRef {
    problems.require(&at.field("uid"), &message.uid);
    ControllerRef {
        kind: message.kind,
        name: message.name,
        uid: message.uid,
    }
}

fn condition(value: i32, at: &Path<'_>, problems: &mut Problems) -> Option<bool> {
    match v1::ConditionStatus::try_from(value) {
        Ok(v1::ConditionStatus::Unspecified) => None,
        Ok(v1::ConditionStatus::True) => Some(true),
        Ok(v1::ConditionStatus::False | v1::ConditionStatus::Unknown) => Some(false),
        Err(_) => {
            problems.add(
                at,
                format!("{value} is no ConditionStatus that this server knows"),
            );
            None
        }
    }
}

fn phase(value: i32, at: &Path<'_>, problems: &mut Problems) -> PodPhase {
    match v1::PodPhase::try_from(value) {
        Ok(v1::PodPhase::Pending) => PodPhase::Pending,
        Ok(v1::PodPhase::Running) => PodPhase::Running,
        Ok(v1::PodPhase::Succeeded) => PodPhase::Succeeded,
        Ok(v1::PodPhase::Failed) => PodPhase::Failed,
        Ok(v1::PodPhase::Unspecified | v1::PodPhase::Unknown) => PodPhase::Unknown,
        Err(_) => {
            problems.add(at, format!("{value} is no PodPhase that this server knows"));
            PodPhase::Unknown
        }
    }
}
