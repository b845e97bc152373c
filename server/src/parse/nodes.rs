//! Parses the nodes of a bucket.

use std::collections::HashSet;

use nodewise_planner::snapshot::{NodeFields, Nodes, NodesBuilder, Taint, TaintEffect};
use nodewise_proto::v1;

use super::{
    Context,
    items::{Item, Notes, Reader, condition},
    labels::{self, Odd},
    problems::{Path, Problems},
    time, wire,
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
    /// In the order of the message.
    names: Vec<&'a str>,
    /// The labels of one node.
    labels: Vec<(&'a str, &'a str)>,
}

impl<'a> Reader<'a> for NodeReader<'a> {
    type Table = Nodes;

    fn new(_: &'a [u8], items: usize, _: &Path<'_>, _: &mut Context<'_>) -> Result<Self, Refusal> {
        Ok(Self {
            names: Vec::with_capacity(items),
            ..Self::default()
        })
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
        let mut odd = labels::tidy(&mut self.labels);
        let taints = taints(message.taints, &at.field("taints"), notes.problems, &mut odd);
        let ready_since = message.ready_transition_time;
        let ready_since = ready_since.and_then(|time| time::clamped(time, "ready_transition_time", &mut odd));
        notes.odd(OddKind::Node, name, odd);
        let class = self.table.class(name, &self.labels);
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
