//! What the pods of a bucket have in common, kept once: most of them belong to one workload, and so do their labels.

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

/// Different ones that are remembered: a workload has pods of few revisions at a time. What comes back later than that is kept
/// once more, which costs memory only.
const REMEMBERED: usize = 4;

/// Labels and controller of a pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Metadata {
    pub(super) labels: Labels,
    pub(super) controller: Option<Arc<ControllerRef>>,
}

/// What was seen in a bucket.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// What the bucket has once, for pods to refer to, and what is odd about it.
    numbered: Vec<(Metadata, Odd)>,
    labels: Vec<Labels>,
    controllers: Vec<Arc<ControllerRef>>,
}

impl Shared {
    /// What the PodBucket `data` has once; `at` is the bucket.
    pub(super) fn read(data: &[u8], at: &Path<'_>, context: &mut Context<'_>) -> Result<Self, Refusal> {
        let mut shared = Self::default();
        let at = at.field("shared_metadata");
        let mut labels = Vec::new();
        for (index, element) in Elements::shared_metadata(data).flatten().enumerate() {
            context.tick(index)?;
            let (at, problems) = (at.index(index), &mut context.problems);
            labels.clear();
            let metadata = wire::decode::<v1::SharedMetadata>(element, &mut labels)
                .map_err(|error| problems.add(&at, error));
            // What is wrong has its number, too: pods that refer to it are not wrong besides.
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

    /// What a pod refers to by this number, counted from 1.
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

    /// What is odd about that.
    pub(super) fn odd(&self, number: u32) -> &[(OddReason, String)] {
        self.entry(number).map_or(&[], |(_, odd)| odd)
    }

    fn entry(&self, number: u32) -> Option<&(Metadata, Odd)> {
        self.numbered.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Labels like [`Labels::of`].
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

    /// A controller.
    pub(super) fn controller(&mut self, controller: ControllerRef) -> Arc<ControllerRef> {
        if let Some(known) = self.controllers.iter().find(|known| ***known == controller) {
            return Arc::clone(known);
        }
        remember(&mut self.controllers, Arc::new(controller))
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
    fn what_is_equal_is_kept_once() {
        let mut shared = Shared::default();
        let first = shared.labels(&mut [("b", "2"), ("a", "1")]);
        assert_eq!(first, Labels::of(&mut [("a", "1"), ("b", "2")]));
        assert_eq!(shared.labels(&mut [("a", "1"), ("b", "2")]), first);
        assert_eq!(shared.labels.len(), 1);
        for value in ["1", "2", "3", "4"] {
            assert_eq!(shared.labels(&mut [("c", value)]).get("c"), Some(value));
        }
        assert_eq!(shared.labels.len(), REMEMBERED);
        // Of two values of one key the last one stays, as everywhere.
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
