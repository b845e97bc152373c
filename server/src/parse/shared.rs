//! What the items of a bucket share: the labels of nodes, and the labels and controllers of pods, since most pods belong to few
//! workloads.

use std::{collections::HashSet, sync::Arc};

use nodewise_planner::snapshot::{ControllerRef, Labels};
use nodewise_proto::v1;

use super::{
    Context,
    labels::{self, Odd},
    problems::{Path, Problems},
    wire::{self, Elements},
};
use crate::{limits::Limits, refusal::Refusal, warnings::OddReason};

/// How many recent values are compared: the pods of a workload have few revisions at a time. A value that is no longer remembered
/// is stored a second time, which only costs memory.
const REMEMBERED: usize = 4;

/// The field that has the bytes of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `data`: earlier versions of the service read it, too.
    Plain,
    /// `data_with_shared_labels`.
    SharedLabels,
}

impl Form {
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Plain => "data",
            Self::SharedLabels => "data_with_shared_labels",
        }
    }
}

/// Labels and controller of a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Metadata {
    pub(super) labels: Labels,
    pub(super) controller: Option<Arc<ControllerRef>>,
}

/// An entry of `NodeBucket.shared_labels`.
#[derive(Debug, Clone, Copy)]
struct SharedLabel<'a> {
    key: &'a str,
    value: &'a str,
    /// The value is the name of the node instead.
    is_name: bool,
}

/// The shared values of a bucket.
#[derive(Debug, Default)]
pub(super) struct Shared<'a> {
    /// The bucket's `shared_labels`, to which nodes refer by number.
    of_nodes: Vec<SharedLabel<'a>>,
    /// The bucket's `shared_metadata`, to which pods refer by number, with the warnings about each entry.
    numbered: Vec<(Metadata, Odd)>,
    labels: Vec<Labels>,
    controllers: Vec<Arc<ControllerRef>>,
}

impl<'a> Shared<'a> {
    /// Reads the `shared_labels` of the NodeBucket `data`; `at` is the bucket.
    pub(super) fn read_labels(
        data: &'a [u8],
        form: Form,
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Self, Refusal> {
        let mut shared = Self::default();
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
            shared.of_nodes.push(SharedLabel { key, value, is_name });
            if problems.is_full() {
                break;
            }
        }
        Ok(shared)
    }

    /// Adds the shared labels with these numbers, counted from 1, to the labels of the node that `element` encodes.
    pub(super) fn add_labels(
        &self,
        numbers: &[u32],
        element: &'a [u8],
        labels: &mut Vec<(&'a str, &'a str)>,
    ) -> Result<(), String> {
        let own = labels.len();
        for number in numbers {
            let index = usize::try_from(*number)
                .ok()
                .and_then(|number| number.checked_sub(1));
            let Some(label) = index.and_then(|index| self.of_nodes.get(index)) else {
                let there = self.of_nodes.len();
                return Err(format!(
                    "has {number}; the bucket's shared_labels has {there} entries"
                ));
            };
            let value = if label.is_name {
                // A longer name is an error of its own. It must not be copied once for each label.
                let name = wire::name(element);
                name.filter(|name| name.len() <= Limits::NAME_BYTES)
                    .unwrap_or_default()
            } else {
                label.value
            };
            labels.push((label.key, value));
        }
        match twice(labels, own) {
            None => Ok(()),
            Some(key) => Err(format!("has the key `{}` twice", labels::key_in_short(key))),
        }
    }

    /// Reads the `shared_metadata` of the PodBucket `data`; `at` is the bucket.
    pub(super) fn read_metadata(
        data: &[u8],
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Self, Refusal> {
        let mut shared = Self::default();
        let at = at.field("shared_metadata");
        let mut labels = Vec::new();
        for (index, element) in Elements::shared(data).flatten().enumerate() {
            context.check_stop_at(index)?;
            let (at, problems) = (at.index(index), &mut context.problems);
            labels.clear();
            let metadata = wire::decode::<v1::SharedMetadata>(element, &mut labels)
                .map_err(|error| problems.add(&at, error));
            // An invalid entry keeps its number, so that pods that refer to it cause no further errors.
            let message = metadata.unwrap_or_default().controller;
            let (labels, odd) = labels::read(&mut labels, Labels::of);
            let metadata = Metadata {
                labels,
                controller: message
                    .map(|message| Arc::new(controller(message, &at.field("controller"), problems))),
            };
            shared.numbered.push((metadata, odd));
            if problems.is_full() {
                break;
            }
        }
        Ok(shared)
    }

    /// The shared metadata with this number, counted from 1.
    pub(super) fn numbered(&self, number: u32, at: &Path<'_>, problems: &mut Problems) -> Metadata {
        let found = self.entry(number).map(|(metadata, _)| metadata.clone());
        found.unwrap_or_else(|| {
            let there = self.numbered.len();
            problems.add(
                at,
                format!("is {number}; the bucket's shared_metadata has {there} entries"),
            );
            Metadata::default()
        })
    }

    /// The warnings about the shared metadata with this number.
    pub(super) fn odd(&self, number: u32) -> &[(OddReason, String)] {
        self.entry(number).map_or(&[], |(_, odd)| odd)
    }

    fn entry(&self, number: u32) -> Option<&(Metadata, Odd)> {
        self.numbered.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// The labels as of [`Labels::of`], shared with earlier pods that have the same.
    pub(super) fn labels(&mut self, entries: &mut [(&str, &str)]) -> Labels {
        if !entries.is_sorted_by(|a, b| a.0 <= b.0) {
            entries.sort_by(|a, b| a.0.cmp(b.0));
        }
        let same = |known: &&Labels| known.iter().eq(entries.iter().copied());
        if let Some(known) = self.labels.iter().find(same) {
            return known.clone();
        }
        remember(&mut self.labels, Labels::of(entries))
    }

    /// The controller, shared with earlier pods that have the same.
    pub(super) fn controller(&mut self, controller: ControllerRef) -> Arc<ControllerRef> {
        if let Some(known) = self.controllers.iter().find(|known| ***known == controller) {
            return Arc::clone(known);
        }
        remember(&mut self.controllers, Arc::new(controller))
    }
}

/// A key that is there twice, at least once among the shared labels: those after the first `own` labels.
fn twice<'a>(labels: &[(&'a str, &'a str)], own: usize) -> Option<&'a str> {
    let (own, shared) = labels.split_at(own);
    if own.is_empty() && shared.is_sorted_by(|a, b| a.0 < b.0) {
        return None;
    }
    let mut keys = HashSet::with_capacity(shared.len());
    let again = shared.iter().find(|(key, _)| !keys.insert(*key));
    let again = again.or_else(|| own.iter().find(|(key, _)| keys.contains(key)));
    again.map(|(key, _)| *key)
}

/// Reads a controller, which must have a uid.
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

fn remember<T: Clone>(all: &mut Vec<T>, new: T) -> T {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(new.clone());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_shared() {
        let mut shared = Shared::default();
        let first = shared.labels(&mut [("b", "2"), ("a", "1")]);
        assert_eq!(first, Labels::of(&mut [("a", "1"), ("b", "2")]));
        assert_eq!(shared.labels(&mut [("a", "1"), ("b", "2")]), first);
        assert_eq!(shared.labels.len(), 1);
        for value in ["1", "2", "3", "4"] {
            assert_eq!(shared.labels(&mut [("c", value)]).get("c"), Some(value));
        }
        assert_eq!(shared.labels.len(), REMEMBERED);
        // Of two values for the same key the last one counts.
        assert_eq!(shared.labels(&mut [("c", "1"), ("c", "4")]).get("c"), Some("4"));
        let controller = |uid: &str| ControllerRef {
            kind: "DaemonSet".to_owned(),
            name: "agent".to_owned(),
            uid: uid.to_owned(),
        };
        let [one, other, same] = ["1", "2", "1"].map(|uid| shared.controller(controller(uid)));
        assert!(Arc::ptr_eq(&one, &same) && one != other);
    }
}
