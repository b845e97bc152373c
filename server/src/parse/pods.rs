//! Parses the pods of a bucket, and the labels and controllers that they share.

use std::sync::Arc;

use nodewise_planner::snapshot::{
    ControllerRef, KindIndex, Labels, Pod, PodFields, PodPhase, Pods, PodsBuilder, Target,
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
use crate::{cache::BucketBy, refusal::Refusal, warnings::OddKind};

/// The tags of the texts of Pod: name, uid, node_name, target_node_name, deletion_cost.
const TEXT_TAGS: [u32; 5] = [1, 2, 5, 6, 14];

impl Item for Pods {
    const LIST: &'static str = "pods";
    const MAY_SHARE_LABELS: bool = false;
    type Reader<'a> = PodReader<'a>;

    fn count(&self) -> usize {
        self.len()
    }

    fn bucket_name(&self, index: usize, by: BucketBy) -> &str {
        let pod = self.at(index);
        match by {
            BucketBy::Node => pod.target_node().unwrap_or_default(),
            BucketBy::Name => pod.name(),
        }
    }
}

/// Reads pods into a table.
#[derive(Default)]
pub(super) struct PodReader<'a> {
    table: PodsBuilder,
    /// The bucket's `shared_metadata`, to which pods refer by number, with the warnings about each entry.
    shared: Vec<(KindIndex, Odd)>,
    /// The labels of one pod.
    labels: Vec<(&'a str, &'a str)>,
}

impl<'a> Reader<'a> for PodReader<'a> {
    type Table = Pods;

    /// Reads the `shared_metadata` of the PodBucket `data`; `at` is the bucket.
    fn new(
        (data, _): (&'a [u8], Form),
        _: usize,
        at: &Path<'_>,
        context: &mut Context<'_>,
    ) -> Result<Self, Refusal> {
        let mut reader = Self::default();
        let at = at.field("shared_metadata");
        for (index, element) in Elements::shared(data).flatten().enumerate() {
            context.check_stop_at(index)?;
            let (at, problems) = (at.index(index), &mut context.problems);
            reader.labels.clear();
            let metadata = wire::decode::<v1::SharedMetadata, 0>(element, [], &mut reader.labels)
                .map_err(|error| problems.add(&at, error));
            // An invalid entry keeps its number, so that pods that refer to it cause no further errors.
            let message = metadata
                .map(|(message, [])| message)
                .unwrap_or_default()
                .controller;
            let odd = labels::tidy(&mut reader.labels, 0);
            let controller = message.map(|message| controller(message, &at.field("controller"), problems));
            let labels = Labels::of(&mut reader.labels);
            let kind = reader.table.new_kind(labels, controller.map(Arc::new));
            reader.shared.push((kind, odd));
            if problems.is_full() {
                break;
            }
        }
        Ok(reader)
    }

    fn read(
        &mut self,
        element: &'a [u8],
        by: BucketBy,
        at: &Path<'_>,
        mut notes: Notes<'_>,
    ) -> Result<&'a str, String> {
        self.labels.clear();
        let (message, texts) = wire::decode::<v1::Pod, 5>(element, TEXT_TAGS, &mut self.labels)?;
        let [name, uid, node_name, target_node_name, deletion_cost] = texts;
        let problems = &mut *notes.problems;
        problems.require_name(&at.field("name"), name);
        problems.require_name(&at.field("uid"), uid);
        problems.bound_name(&at.field("node_name"), node_name);
        problems.bound_name(&at.field("target_node_name"), target_node_name);
        let (kind, mut odd) = self.kind(message.shared_metadata, message.controller, at, problems);
        let mut timestamp = |field: &str, value| time::clamped(value?, field, &mut odd);
        let (created, ready_since, deleting) = (
            timestamp("creation_time", message.creation_time),
            timestamp("ready_transition_time", message.ready_transition_time),
            // Only the presence of the field matters.
            timestamp("deletion_time", message.deletion_time).is_some(),
        );
        let (target, node) = if !node_name.is_empty() {
            (Target::Bound(node_name), node_name)
        } else if !target_node_name.is_empty() {
            (Target::Meant(target_node_name), target_node_name)
        } else {
            (Target::Nowhere, "")
        };
        let fields = PodFields {
            name,
            uid,
            target,
            phase: phase(message.phase, &at.field("phase"), problems),
            ready: condition(message.ready, &at.field("ready"), problems) == Some(true),
            ready_since,
            created,
            deleting,
            has_finalizers: message.has_finalizers,
            deletion_cost: Pod::deletion_cost_of(deletion_cost),
            restarts: message.restarts,
            sidecar_restarts: message.sidecar_restarts,
        };
        self.table.push(kind, fields);
        notes.odd(OddKind::Pod, name, odd);
        Ok(match by {
            BucketBy::Node => node,
            BucketBy::Name => name,
        })
    }

    /// Pods with the same name may be in different buckets, so all buckets are checked together later.
    fn finish(self, _: &Path<'_>, _: &mut Context<'_>) -> Result<Pods, Refusal> {
        Ok(self.table.build())
    }
}

impl PodReader<'_> {
    /// The kind of a pod with the labels that were read, this `shared_metadata` and this controller, and warnings.
    fn kind(
        &mut self,
        shared: u32,
        own: Option<v1::ControllerReference>,
        at: &Path<'_>,
        problems: &mut Problems,
    ) -> (KindIndex, Odd) {
        if shared == 0 {
            let odd = labels::tidy(&mut self.labels, 0);
            let own = own.map(|message| controller(message, &at.field("controller"), problems));
            return (self.table.kind(&self.labels, own.as_ref()), odd);
        }
        let at = at.field("shared_metadata");
        if !self.labels.is_empty() || own.is_some() {
            problems.add(&at, "is set, and so are labels or a controller of the pod's own");
        }
        let index = usize::try_from(shared).unwrap_or(usize::MAX) - 1;
        if let Some((kind, odd)) = self.shared.get(index) {
            return (*kind, odd.clone());
        }
        let there = self.shared.len();
        problems.add(
            &at,
            format!("is {shared}; the bucket's shared_metadata has {there} entries"),
        );
        (self.table.kind(&[], None), Odd::new())
    }
}

/// Reads a controller, which must have a uid.
fn controller(message: v1::ControllerReference, at: &Path<'_>, problems: &mut Problems) -> ControllerRef {
    problems.require(&at.field("uid"), &message.uid);
    ControllerRef {
        kind: message.kind,
        name: message.name,
        uid: message.uid,
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
