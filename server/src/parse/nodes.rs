//! Parses the nodes of a bucket.

use std::collections::HashSet;

use nodewise_planner::snapshot::{
    ClassIndex, LabelIndex, NodeFields, Nodes, NodesBuilder, Taint, TaintEffect,
};
use nodewise_proto::v1;

use super::{
    Context,
    items::{Form, Item, Notes, Reader, condition},
    labels::{self, Odd},
    problems::{Path, Problems},
    time,
    wire::{self, Elements},
};
use crate::{
    cache::BucketBy,
    limits::Limits,
    refusal::Refusal,
    warnings::{OddKind, OddReason},
};

/// The tag of `Node.name`.
const NAME_TAG: u32 = 1;
/// The tag of `Node.uid`, which no rule reads.
const UID_TAG: u32 = 2;

impl Item for Nodes {
    const LIST: &'static str = "nodes";
    const MAY_SHARE_LABELS: bool = true;
    type Reader<'a> = NodeReader<'a>;

    fn count(&self) -> usize {
        self.len()
    }

    fn bucket_name(&self, index: usize, _: BucketBy) -> &str {
        self.at(index).name()
    }
}

/// Reads nodes into a table.
#[derive(Default)]
pub(super) struct NodeReader<'a> {
    table: NodesBuilder,
    /// The bucket's `shared_labels`, to which nodes refer by number.
    shared: Vec<SharedLabel<'a>>,
    /// In the order of the message.
    names: Vec<&'a str>,
    /// The labels of one node's own.
    labels: Vec<(&'a str, &'a str)>,
    /// The last numbers of shared labels of a node without labels of its own, and their class: most nodes are like the one before.
    last: Option<(Vec<u32>, ClassIndex)>,
    /// All labels of one node.
    all: Vec<SharedLabel<'a>>,
    /// The same without their keys.
    indices: Vec<LabelIndex>,
}

/// A label of the table, with its key.
#[derive(Clone, Copy)]
struct SharedLabel<'a> {
    key: &'a str,
    index: LabelIndex,
}

impl<'a> Reader<'a> for NodeReader<'a> {
    type Table = Nodes;

    /// Reads the `shared_labels` of the NodeBucket `data`; `at` is the bucket.
    fn new(
        (data, form): (&'a [u8], Form),
        items: usize,
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Self, Refusal> {
        let mut reader = Self {
            names: Vec::with_capacity(items),
            ..Self::default()
        };
        let at = at.field("shared_labels");
        for (index, element) in Elements::shared(data).flatten().enumerate() {
            context.check_stop_at(index)?;
            if form == Form::Plain && index == 0 {
                let problem = "is allowed in data_with_shared_labels only: earlier versions of the service would ignore it";
                context.problems.add(&at, problem);
            }
            let (at, problems) = (at.index(index), &mut context.problems);
            let label = wire::shared_label(element).map_err(|error| problems.add(&at, error));
            let (key, value, is_name) = label.unwrap_or(("", "", false));
            if label.is_ok() {
                problems.require(&at.field("key"), key);
            }
            if is_name && !value.is_empty() {
                problems.add(&at.field("value"), "is set, and so is value_is_node_name");
            }
            // An invalid entry keeps its number, so that nodes that refer to it cause no further errors.
            let index = reader.table.label(key, (!is_name).then_some(value));
            reader.shared.push(SharedLabel { key, index });
            if problems.is_full() {
                break;
            }
        }
        Ok(reader)
    }

    fn read(
        &mut self,
        element: &'a [u8],
        _: BucketBy,
        at: &Path<'_>,
        mut notes: Notes<'_>,
    ) -> Result<&'a str, String> {
        self.labels.clear();
        let (message, [name, _]) =
            wire::decode::<v1::Node, 2>(element, [NAME_TAG, UID_TAG], &mut self.labels)?;
        notes.problems.require_name(&at.field("name"), name);
        let mut odd = labels::tidy(&mut self.labels, message.shared_labels.len());
        let taints = taints(message.taints, &at.field("taints"), notes.problems, &mut odd);
        let ready_since = message.ready_transition_time;
        let ready_since = ready_since.and_then(|time| time::clamped(time, "ready_transition_time", &mut odd));
        notes.odd(OddKind::Node, name, odd);
        let class = match &self.last {
            _ if message.shared_labels.is_empty() => self.table.class(name, &self.labels),
            Some((numbers, class)) if self.labels.is_empty() && *numbers == message.shared_labels => *class,
            _ => {
                let at = at.field("shared_labels");
                let added = self.collect(name, &message.shared_labels);
                // A node with a problem has no labels.
                added.unwrap_or_else(|problem| {
                    notes.problems.add(&at, problem);
                    self.indices.clear();
                });
                let class = self.table.class_of(&self.indices);
                self.last = (self.labels.is_empty() && !self.indices.is_empty())
                    .then_some((message.shared_labels, class));
                class
            }
        };
        self.names.push(name);
        self.table.push(
            class,
            NodeFields {
                name,
                taints,
                unschedulable: message.unschedulable,
                ready: condition(message.ready, &at.field("ready"), notes.problems),
                ready_since,
                in_maintenance: message.maintenance_in_progress,
            },
        );
        Ok(name)
    }

    /// Checks the names: nodes with the same name are always in the same bucket.
    fn finish(self, at: &Path<'_>, context: &mut Context<'_>) -> Result<Nodes, Refusal> {
        context.check_stop()?;
        if !self.names.is_sorted_by(|a, b| a < b) {
            let mut names = HashSet::with_capacity(self.names.len());
            for (index, name) in self.names.iter().enumerate() {
                if !names.insert(name) {
                    let problem = format!("`{name}` is there twice");
                    context.problems.add(&at.index(index).field("name"), problem);
                }
            }
        }
        Ok(self.table.build())
    }
}

impl NodeReader<'_> {
    /// Collects the labels of a node: its own, and the shared ones with these numbers, counted from 1.
    fn collect(&mut self, name: &str, numbers: &[u32]) -> Result<(), String> {
        let Self {
            table,
            shared,
            labels,
            all,
            indices,
            ..
        } = self;
        all.clear();
        let there = shared.len();
        // Their keys must be unique, so there cannot be more. Do not even collect them.
        if numbers.len() > there {
            let count = numbers.len();
            return Err(format!(
                "has {count} numbers; the bucket's shared_labels has {there} entries, and no two may have the same key"
            ));
        }
        for number in numbers {
            let index = usize::try_from(*number).ok();
            let label = index.and_then(|number| shared.get(number.checked_sub(1)?));
            all.push(
                *label
                    .ok_or_else(|| format!("has {number}; the bucket's shared_labels has {there} entries"))?,
            );
        }
        all.extend(labels.iter().map(|(key, value)| SharedLabel {
            key,
            index: table.label(key, (value != &name).then_some(*value)),
        }));
        if !all.is_sorted_by(|a, b| a.key < b.key) {
            all.sort_by_key(|label| label.key);
            if let Some(twice) = all.windows(2).find(|pair| pair[0].key == pair[1].key) {
                return Err(format!(
                    "has the key `{}` twice",
                    labels::key_in_short(twice[0].key)
                ));
            }
        }
        indices.clear();
        indices.extend(all.iter().map(|label| label.index));
        Ok(())
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
