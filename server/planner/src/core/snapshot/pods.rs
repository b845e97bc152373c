//! The pods of one bucket, as a table.
//!
//! The pods of a workload have few different labels and controllers, so a table holds each combination once, as a kind of pods.

use std::{cmp::Ordering, sync::Arc};

use jiff::Timestamp;

use super::{ControllerRef, Pod, PodPhase, Target, list::Table, times::Times};
use crate::core::{
    labels::Labels,
    texts::{Texts, TextsBuilder},
};

/// The pods of one bucket, sorted by node, pods without a node first. The pods of one node are in the order of D-38.
#[derive(Debug, Default)]
pub struct Pods {
    names: Texts,
    uids: Texts,
    /// The nodes that the pods are on or meant for; empty for nowhere.
    targets: Texts,
    rows: Box<[Row]>,
    created: Times,
    ready_since: Times,
    /// The numbers of those pods that have some, by the index of the pod.
    numbers: Box<[(u32, Numbers)]>,
    kinds: Box<[PodKind]>,
}

/// What a pod has in a few bytes.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a field of the pod")]
struct Row {
    kind: u32,
    /// The target without the node's name.
    target: Target<()>,
    phase: PodPhase,
    ready: bool,
    deleting: bool,
    has_finalizers: bool,
    has_numbers: bool,
}

/// Numbers that are 0 for most pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Numbers {
    deletion_cost: i32,
    restarts: u32,
    sidecar_restarts: u32,
}

/// Labels and controller that some pods of a bucket have in common.
#[derive(Debug, Clone, Default)]
struct PodKind {
    labels: Labels,
    controller: Option<Arc<ControllerRef>>,
}

/// A kind of a table or of its [`PodsBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindIndex(u32);

impl KindIndex {
    /// The number of the kind in its table, from 0.
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }
}

/// A pod of a table.
#[derive(Clone, Copy)]
pub struct PodView<'a> {
    table: &'a Pods,
    index: u32,
}

impl<'a> PodView<'a> {
    fn row(self) -> Row {
        self.table.rows[self.index as usize]
    }

    fn numbers(self) -> Numbers {
        if !self.row().has_numbers {
            return Numbers::default();
        }
        let numbers = &self.table.numbers;
        let found = numbers.binary_search_by_key(&self.index, |(index, _)| *index);
        found.map_or_else(|_| Numbers::default(), |found| numbers[found].1)
    }

    /// metadata.name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.table.names.get(self.index as usize)
    }

    /// metadata.uid.
    #[must_use]
    pub fn uid(self) -> &'a str {
        self.table.uids.get(self.index as usize)
    }

    /// The kind of the pod in its table: pods of one kind have equal labels and the same controller.
    pub(crate) fn kind(self) -> KindIndex {
        KindIndex(self.row().kind)
    }

    /// metadata.labels.
    #[must_use]
    pub fn labels(self) -> &'a Labels {
        &self.table.kinds[self.kind().number()].labels
    }

    /// The controller; `None` for an orphan.
    #[must_use]
    pub fn controller(self) -> Option<&'a ControllerRef> {
        self.table.kinds[self.kind().number()].controller.as_deref()
    }

    /// The node that the pod is on or meant for.
    #[must_use]
    pub fn target(self) -> Target<&'a str> {
        let name = self.table.targets.get(self.index as usize);
        self.row().target.map(|()| name)
    }

    /// The name of the node that the pod is on or meant for.
    #[must_use]
    pub fn target_node(self) -> Option<&'a str> {
        match self.row().target {
            Target::Nowhere => None,
            Target::Bound(()) | Target::Meant(()) => Some(self.table.targets.get(self.index as usize)),
        }
    }

    /// status.phase.
    #[must_use]
    pub fn phase(self) -> PodPhase {
        self.row().phase
    }

    /// The Ready condition is `True`.
    #[must_use]
    pub fn ready(self) -> bool {
        self.row().ready
    }

    /// lastTransitionTime of the Ready condition.
    #[must_use]
    pub fn ready_since(self) -> Option<Timestamp> {
        self.table.ready_since.get(self.index as usize)
    }

    /// metadata.creationTimestamp.
    #[must_use]
    pub fn created(self) -> Option<Timestamp> {
        self.table.created.get(self.index as usize)
    }

    /// metadata.deletionTimestamp is set.
    #[must_use]
    pub fn deleting(self) -> bool {
        self.row().deleting
    }

    /// metadata.finalizers is not empty. No decision depends on it.
    #[must_use]
    pub fn has_finalizers(self) -> bool {
        self.row().has_finalizers
    }

    /// The annotation with the deletion cost.
    #[must_use]
    pub fn deletion_cost(self) -> i32 {
        self.numbers().deletion_cost
    }

    /// The most restarts of a container.
    #[must_use]
    pub fn restarts(self) -> u32 {
        self.numbers().restarts
    }

    /// The most restarts of a sidecar.
    #[must_use]
    pub fn sidecar_restarts(self) -> u32 {
        self.numbers().sidecar_restarts
    }

    /// Finished and being deleted: the pod no longer occupies its node (D-26).
    pub(crate) fn is_gone(self) -> bool {
        let row = self.row();
        row.deleting && row.phase.is_terminal()
    }

    /// Neither finished nor being deleted (D-30).
    pub(crate) fn is_live(self) -> bool {
        let row = self.row();
        !row.deleting && !row.phase.is_terminal()
    }

    /// The order of pods: by node, pods without a node first; then by D-38.
    pub(crate) fn order(self, other: Self) -> Ordering {
        let nodes = self.target_node().cmp(&other.target_node());
        nodes.then_with(|| self.order_on_node(other))
    }

    /// The order of the pods of one node (D-38): bound pods first, then older ones, then by name. Pods that no longer occupy the node
    /// come last. The first pod is the one that stays. The uid makes the order total if names repeat.
    fn order_on_node(self, other: Self) -> Ordering {
        let unbound = |pod: Self| !matches!(pod.row().target, Target::Bound(()));
        self.is_gone()
            .cmp(&other.is_gone())
            .then_with(|| unbound(self).cmp(&unbound(other)))
            .then_with(|| self.created().cmp(&other.created()))
            .then_with(|| self.name().cmp(other.name()))
            .then_with(|| self.uid().cmp(other.uid()))
    }

    /// The fields of the pod but for its labels and its controller.
    fn fields(self) -> PodFields<'a> {
        let numbers = self.numbers();
        PodFields {
            name: self.name(),
            uid: self.uid(),
            target: self.target(),
            phase: self.phase(),
            ready: self.ready(),
            ready_since: self.ready_since(),
            created: self.created(),
            deleting: self.deleting(),
            has_finalizers: self.has_finalizers(),
            deletion_cost: numbers.deletion_cost,
            restarts: numbers.restarts,
            sidecar_restarts: numbers.sidecar_restarts,
        }
    }

    /// The pod as an object of its own.
    #[must_use]
    pub fn to_pod(self) -> Pod {
        Pod {
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            labels: self.labels().clone(),
            controller: self.table.kinds[self.kind().number()].controller.clone(),
            target: self.target().map(ToOwned::to_owned),
            phase: self.phase(),
            ready: self.ready(),
            ready_since: self.ready_since(),
            created: self.created(),
            deleting: self.deleting(),
            has_finalizers: self.has_finalizers(),
            deletion_cost: self.deletion_cost(),
            restarts: self.restarts(),
            sidecar_restarts: self.sidecar_restarts(),
        }
    }
}

impl std::fmt::Debug for PodView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_pod().fmt(f)
    }
}

impl Pods {
    /// The number of pods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The pod with this index.
    ///
    /// # Panics
    /// The methods of the view panic if there is none.
    #[must_use]
    pub fn at(&self, index: usize) -> PodView<'_> {
        PodView {
            table: self,
            // A table with more pods would not fit in memory.
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }
    }

    /// The pod with this index, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<PodView<'_>> {
        (index < self.len()).then(|| self.at(index))
    }

    /// The pods that are on the node of this name or meant for it.
    pub(crate) fn on_node<'a>(&'a self, name: &'a str) -> impl Iterator<Item = PodView<'a>> {
        let (mut start, mut end) = (0, self.len());
        while start < end {
            let middle = start.midpoint(end);
            if self.at(middle).target_node() < Some(name) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        let from = (start..self.len()).map(|index| self.at(index));
        from.take_while(move |pod| pod.target_node() == Some(name))
    }

    /// All pods, in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PodView<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|index| self.at(index))
    }

    /// All pods as objects of their own.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Pod> {
        self.iter().map(PodView::to_pod).collect()
    }

    /// Memory of the pods, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let kind =
            |kind: &PodKind| kind.labels.bytes() + kind.controller.as_deref().map_or(0, ControllerRef::bytes);
        let lists = [
            self.names.bytes(),
            self.uids.bytes(),
            self.targets.bytes(),
            size_of_val(&*self.rows),
            self.created.bytes(),
            self.ready_since.bytes(),
            size_of_val(&*self.numbers),
            size_of_val(&*self.kinds),
        ];
        lists.into_iter().chain(self.kinds.iter().map(kind)).sum()
    }
}

/// The fields of a pod but for its labels and its controller.
#[derive(Debug, Clone, Copy)]
pub struct PodFields<'a> {
    /// metadata.name.
    pub name: &'a str,
    /// metadata.uid.
    pub uid: &'a str,
    /// The node that the pod is on or meant for.
    pub target: Target<&'a str>,
    /// status.phase.
    pub phase: PodPhase,
    /// The Ready condition is `True`.
    pub ready: bool,
    /// lastTransitionTime of the Ready condition.
    pub ready_since: Option<Timestamp>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.finalizers is not empty.
    pub has_finalizers: bool,
    /// The annotation with the deletion cost.
    pub deletion_cost: i32,
    /// The most restarts of a container.
    pub restarts: u32,
    /// The most restarts of a sidecar.
    pub sidecar_restarts: u32,
}

/// Builds a table of pods.
#[derive(Debug, Default)]
pub struct PodsBuilder {
    names: TextsBuilder,
    uids: TextsBuilder,
    targets: TextsBuilder,
    rows: Vec<Row>,
    created: Vec<Option<Timestamp>>,
    ready_since: Vec<Option<Timestamp>>,
    numbers: Vec<(u32, Numbers)>,
    kinds: Vec<PodKind>,
}

/// How many recent kinds are compared: the pods of a workload have few revisions at a time. A kind that is no longer compared is
/// stored a second time, which only costs memory.
const COMPARED: usize = 4;

impl PodsBuilder {
    /// The kind of the pods with these labels and this controller. The labels must be sorted by key; keys must be unique.
    pub fn kind(&mut self, labels: &[(&str, &str)], controller: Option<&ControllerRef>) -> KindIndex {
        debug_assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        let is_it = |kind: &PodKind| {
            kind.controller.as_deref() == controller && kind.labels.iter().eq(labels.iter().copied())
        };
        let recent = self.kinds.len().saturating_sub(COMPARED);
        if let Some(found) = self.kinds[recent..].iter().rposition(is_it) {
            return index_of(recent + found);
        }
        self.new_kind(
            Labels::of(&mut labels.to_vec()),
            controller.cloned().map(Arc::new),
        )
    }

    /// A kind for the pods with these labels and this controller.
    pub fn new_kind(&mut self, labels: Labels, controller: Option<Arc<ControllerRef>>) -> KindIndex {
        self.kinds.push(PodKind { labels, controller });
        index_of(self.kinds.len() - 1)
    }

    /// Adds a pod.
    pub fn push(&mut self, kind: KindIndex, fields: PodFields<'_>) {
        let numbers = Numbers {
            deletion_cost: fields.deletion_cost,
            restarts: fields.restarts,
            sidecar_restarts: fields.sidecar_restarts,
        };
        let has_numbers = numbers != Numbers::default();
        if has_numbers {
            let index = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            self.numbers.push((index, numbers));
        }
        self.names.push(fields.name);
        self.uids.push(fields.uid);
        self.targets.push(match fields.target {
            Target::Bound(name) | Target::Meant(name) => name,
            Target::Nowhere => "",
        });
        self.rows.push(Row {
            kind: kind.0,
            target: fields.target.map(|_| ()),
            phase: fields.phase,
            ready: fields.ready,
            deleting: fields.deleting,
            has_finalizers: fields.has_finalizers,
            has_numbers,
        });
        self.created.push(fields.created);
        self.ready_since.push(fields.ready_since);
    }

    /// The table. The pods may have been added in any order.
    #[must_use]
    pub fn build(self) -> Pods {
        let pods = Pods {
            names: self.names.build(),
            uids: self.uids.build(),
            targets: self.targets.build(),
            rows: self.rows.into(),
            created: self.created.into_iter().collect(),
            ready_since: self.ready_since.into_iter().collect(),
            numbers: self.numbers.into(),
            kinds: self.kinds.into(),
        };
        if pods.iter().is_sorted_by(|a, b| a.order(*b).is_le()) {
            return pods;
        }
        let mut order: Vec<PodView<'_>> = pods.iter().collect();
        order.sort_by(|a, b| a.order(*b));
        let mut sorted = Self::default();
        for pod in &order {
            sorted.push(pod.kind(), pod.fields());
        }
        let sorted = sorted.build();
        Pods {
            kinds: pods.kinds,
            ..sorted
        }
    }
}

fn index_of(kind: usize) -> KindIndex {
    KindIndex(u32::try_from(kind).unwrap_or(u32::MAX))
}

impl Table for Pods {
    type Item = Pod;

    fn of(items: Vec<Pod>) -> Self {
        let mut builder = PodsBuilder::default();
        for pod in items {
            let labels: Vec<_> = pod.labels.iter().collect();
            let kind = builder.kind(&labels, pod.controller.as_deref());
            builder.push(
                kind,
                PodFields {
                    name: &pod.name,
                    uid: &pod.uid,
                    target: pod.target.as_deref(),
                    phase: pod.phase,
                    ready: pod.ready,
                    ready_since: pod.ready_since,
                    created: pod.created,
                    deleting: pod.deleting,
                    has_finalizers: pod.has_finalizers,
                    deletion_cost: pod.deletion_cost,
                    restarts: pod.restarts,
                    sidecar_restarts: pod.sidecar_restarts,
                },
            );
        }
        builder.build()
    }
}
