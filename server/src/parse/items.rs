//! Parses nodes and pods.

use std::collections::HashSet;

use nodewise_planner::snapshot::{Labels, Listed, Node, Pod, PodPhase, Taint, TaintEffect, Target};
use nodewise_proto::v1;

use super::{
    Context,
    labels::{self, Odd},
    problems::{Path, Problems},
    shared::{Form, Metadata, Shared, controller},
    time,
};
use crate::{
    cache::{BucketBy, Cacheable},
    limits::Limits,
    refusal::Refusal,
    warnings::{OddKind, OddReason, Warnings},
};

/// An item of a bucket. Its strings are moved out of its message, and its labels are copied once.
pub(super) trait Item: Cacheable + Listed + Clone {
    /// The field name of the items in their bucket.
    const LIST: &'static str;
    /// The message of an item.
    type Message: prost::Message + Default;

    /// Whether the bucket may be in `data_with_shared_labels`.
    const MAY_SHARE_LABELS: bool = false;

    /// Reads what the items of the bucket `data` share; `at` is the bucket.
    fn shared<'a>(
        data: (&'a [u8], Form),
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Shared<'a>, Refusal>;

    /// Adds the labels of the bucket to which the item refers. Returns false if there is a problem. `element` is the encoded message.
    fn add_shared_labels<'a>(
        _message: &Self::Message,
        _element: &'a [u8],
        _shared: &Shared<'a>,
        _labels: &mut Vec<(&'a str, &'a str)>,
        _at: &Path<'_>,
        _context: &mut Context<'_>,
    ) -> bool {
        true
    }

    /// Parses an item. An error of the caller is a problem. An odd object is a warning, and the item is used all the same. The
    /// labels are passed apart from the message.
    fn parse<'a>(
        message: Self::Message,
        labels: &mut Vec<(&'a str, &'a str)>,
        shared: &mut Shared<'_>,
        at: &Path<'_>,
        notes: Notes<'_>,
    ) -> Self;

    /// The name whose hash decides the bucket of the item.
    fn bucket_name(&self, by: BucketBy) -> &str;

    /// Whether the items of a bucket are unique, as far as one bucket alone can show; `at` is the bucket's list.
    fn are_unique(items: &[Self], at: &Path<'_>, context: &mut Context<'_>) -> Result<bool, Refusal>;
}

/// Collects the problems and warnings of an item.
pub(super) struct Notes<'a> {
    pub(super) problems: &'a mut Problems,
    pub(super) warnings: &'a mut Warnings,
}

impl Notes<'_> {
    fn odd(&mut self, kind: OddKind, name: &str, odd: impl IntoIterator<Item = (OddReason, String)>) {
        for (reason, sentence) in odd {
            self.warnings.add(kind, name, reason, || sentence);
        }
    }
}

impl Item for Node {
    const LIST: &'static str = "nodes";
    const MAY_SHARE_LABELS: bool = true;
    type Message = v1::Node;

    fn shared<'a>(
        (data, form): (&'a [u8], Form),
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Shared<'a>, Refusal> {
        Shared::read_labels(data, form, at, context)
    }

    fn add_shared_labels<'a>(
        message: &v1::Node,
        element: &'a [u8],
        shared: &Shared<'a>,
        labels: &mut Vec<(&'a str, &'a str)>,
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> bool {
        if message.shared_labels.is_empty() {
            return true;
        }
        let at = at.field("shared_labels");
        let added = shared.add_labels(&message.shared_labels, element, labels);
        added
            .map_err(|problem| context.problems.add(&at, problem))
            .is_ok()
    }

    /// Labels are not shared in memory: no two nodes have the same labels.
    fn parse<'a>(
        message: v1::Node,
        labels: &mut Vec<(&'a str, &'a str)>,
        _: &mut Shared<'_>,
        at: &Path<'_>,
        mut notes: Notes<'_>,
    ) -> Self {
        notes.problems.require_name(&at.field("name"), &message.name);
        let (labels, mut odd) = labels::read(labels, Labels::of);
        let taints = taints(message.taints, &at.field("taints"), notes.problems, &mut odd);
        let ready_since = message.ready_transition_time;
        let ready_since = ready_since.and_then(|time| time::clamped(time, "ready_transition_time", &mut odd));
        notes.odd(OddKind::Node, &message.name, odd);
        Self {
            labels,
            taints,
            unschedulable: message.unschedulable,
            ready: condition(message.ready, &at.field("ready"), notes.problems),
            ready_since,
            in_maintenance: message.maintenance_in_progress,
            name: message.name,
        }
    }

    fn bucket_name(&self, _: BucketBy) -> &str {
        &self.name
    }

    /// Checks the names: nodes with the same name are always in the same bucket.
    fn are_unique(items: &[Self], at: &Path<'_>, context: &mut Context<'_>) -> Result<bool, Refusal> {
        context.check_stop()?;
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

    fn shared<'a>(
        (data, _): (&'a [u8], Form),
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Shared<'a>, Refusal> {
        Shared::read_metadata(data, at, context)
    }

    fn parse<'a>(
        message: v1::Pod,
        own_labels: &mut Vec<(&'a str, &'a str)>,
        shared: &mut Shared<'_>,
        at: &Path<'_>,
        mut notes: Notes<'_>,
    ) -> Self {
        let problems = &mut *notes.problems;
        problems.require_name(&at.field("name"), &message.name);
        problems.require_name(&at.field("uid"), &message.uid);
        problems.bound_name(&at.field("node_name"), &message.node_name);
        problems.bound_name(&at.field("target_node_name"), &message.target_node_name);
        let mut odd = Odd::new();
        let Metadata { labels, controller } = match message.shared_metadata {
            0 => {
                let labels;
                (labels, odd) = labels::read(own_labels, |labels| shared.labels(labels));
                Metadata {
                    labels,
                    controller: message.controller.map(|message| {
                        shared.controller(controller(message, &at.field("controller"), problems))
                    }),
                }
            }
            number => {
                if !own_labels.is_empty() || message.controller.is_some() {
                    let problem = "is set, and so are labels or a controller of the pod's own";
                    problems.add(&at.field("shared_metadata"), problem);
                }
                odd.extend_from_slice(shared.odd(number));
                shared.numbered(number, &at.field("shared_metadata"), problems)
            }
        };
        let mut timestamp = |field: &str, value| time::clamped(value?, field, &mut odd);
        let (created, ready_since, deleting) = (
            timestamp("creation_time", message.creation_time),
            timestamp("ready_transition_time", message.ready_transition_time),
            // Only the presence of the field matters.
            timestamp("deletion_time", message.deletion_time).is_some(),
        );
        let pod = Self {
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
            ready_since,
            created,
            deleting,
            has_finalizers: message.has_finalizers,
            deletion_cost: Self::deletion_cost_of(&message.deletion_cost),
            restarts: message.restarts,
            sidecar_restarts: message.sidecar_restarts,
            name: message.name,
            uid: message.uid,
        };
        notes.odd(OddKind::Pod, &pod.name, odd);
        pod
    }

    fn bucket_name(&self, by: BucketBy) -> &str {
        match by {
            BucketBy::Node => self.target.node().unwrap_or_default(),
            BucketBy::Name => &self.name,
        }
    }

    /// Pods with the same name may be in different buckets, so all buckets are checked together later.
    fn are_unique(_: &[Self], _: &Path<'_>, _: &mut Context<'_>) -> Result<bool, Refusal> {
        Ok(true)
    }
}

/// Reads all taints, however many. Leaving one out could start a pod on a node that it does not tolerate.
fn taints(messages: Vec<v1::Taint>, at: &Path<'_>, problems: &mut Problems, odd: &mut Odd) -> Vec<Taint> {
    let there = messages.len();
    if there > Limits::LIST_ENTRIES {
        let usual = Limits::LIST_ENTRIES;
        let sentence = format!("taints: there are {there}, more than {usual}; all of them are read");
        odd.push((OddReason::Taints, sentence));
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
