//! Shares equal labels and controllers among the pods of a bucket, since most pods belong to few workloads.

use std::sync::Arc;

use nodewise_planner::snapshot::{ControllerRef, Labels};
use nodewise_proto::v1;

use super::{
    Context,
    labels::{self, Odd},
    problems::{Path, Problems},
    wire::{self, Elements},
};
use crate::{refusal::Refusal, warnings::OddReason};

/// How many recent values are compared: the pods of a workload have few revisions at a time. A value that is no longer remembered
/// is stored a second time, which only costs memory.
const REMEMBERED: usize = 4;

/// Labels and controller of a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Metadata {
    pub(super) labels: Labels,
    pub(super) controller: Option<Arc<ControllerRef>>,
}

/// The shared values of a bucket.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The bucket's `shared_metadata`, to which pods refer by number, with the warnings about each entry.
    numbered: Vec<(Metadata, Odd)>,
    labels: Vec<Labels>,
    controllers: Vec<Arc<ControllerRef>>,
}

impl Shared {
    /// Reads the `shared_metadata` of the PodBucket `data`; `at` is the bucket.
    pub(super) fn read(data: &[u8], at: &Path<'_>, context: &mut Context<'_>) -> Result<Self, Refusal> {
        let mut shared = Self::default();
        let at = at.field("shared_metadata");
        let mut labels = Vec::new();
        for (index, element) in Elements::shared_metadata(data).flatten().enumerate() {
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
