//! The workload's pods, node by node (chapter 3, and the terms of chapter 0).
//!
//! Owns which pods count as the workload's in this plan, what is true of each (available, of the current template) and
//! the map from nodes to pods. Decides nothing about them.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

use crate::{
    claims::{self, Claim},
    eligibility::{Eligibility, Fit},
    manifest::{self, GENERATION_LABEL, HASH_LABEL},
    patience::Patience,
    plan::{Action, ActionKind, Batch, ObjectRef, Reason},
    revisions::Resolution,
    snapshot::{DaemonSet, Node, Pod, Snapshot, Target},
};

/// Who is claimed: decided once per plan (D-28).
#[derive(Debug)]
pub(crate) struct Claims<'a> {
    /// The workload's pods, adopted ones included and released ones not, by (target node, [`order`]); those without a
    /// target come first.
    pub(crate) owned: Vec<&'a Pod>,
    /// Orphans that become the workload's, by name.
    adopted: Vec<&'a Pod>,
    /// Pods that are let go, by name.
    released: Vec<&'a Pod>,
}

impl<'a> Claims<'a> {
    /// Claims the pods of a snapshot.
    pub(crate) fn of(snapshot: &'a Snapshot, patience: Patience<'_>) -> Option<Self> {
        let ds = &snapshot.daemon_set;
        let size = snapshot.pods.iter().map(|bucket| bucket.len()).sum();
        let (mut owned, mut adopted, mut released) = (Vec::with_capacity(size), Vec::new(), Vec::new());
        for (index, pod) in snapshot.pods.iter().flat_map(|bucket| bucket.iter()).enumerate() {
            patience.tick(index)?;
            match claims::claim(ds, &pod.labels, pod.controller.as_ref(), pod.deleting) {
                Claim::Owned => owned.push(pod),
                Claim::Adopt => {
                    owned.push(pod);
                    adopted.push(pod);
                }
                Claim::Release => released.push(pod),
                Claim::Ignore => {}
            }
        }
        // Stable, because that sort merges the runs in which pods arrive.
        owned.sort_by(|a, b| {
            let target = a.target.node().cmp(&b.target.node());
            target
                .then_with(|| is_gone(a).cmp(&is_gone(b)))
                .then_with(|| order(a, b))
        });
        for pods in [&mut adopted, &mut released] {
            pods.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Some(Self {
            owned,
            adopted,
            released,
        })
    }

    /// The batches of phase Claims. All go out together, so that a claim which fails holds up no other (D-23.4).
    pub(crate) fn batches(&self, ds: &DaemonSet) -> Vec<Batch> {
        let released = self.released.iter().map(|pod| Action {
            reason: Reason::SelectorDoesNotMatch,
            message: format!("pod {} no longer matches the selector", pod.name),
            kind: ActionKind::ReleasePod {
                pod: reference(pod),
                patch: claims::release_patch(ds, &pod.uid),
            },
        });
        let adopted = self.adopted.iter().map(|pod| Action {
            reason: Reason::SelectorMatches,
            message: format!("pod {} has no controller and matches the selector", pod.name),
            kind: ActionKind::AdoptPod {
                pod: reference(pod),
                patch: claims::adopt_patch(ds, &pod.uid),
            },
        });
        let actions: Vec<_> = released.chain(adopted).collect();
        if actions.is_empty() {
            return Vec::new();
        }
        vec![Batch {
            actions,
            confirm_workload: !self.adopted.is_empty(),
        }]
    }
}

/// A reference to a pod.
pub(crate) fn reference(pod: &Pod) -> ObjectRef {
    ObjectRef {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

/// Adopted in this plan, for one of the workload's pods. Upstream decides about such pods after its own.
pub(crate) fn is_adopted(pod: &Pod) -> bool {
    pod.controller.is_none()
}

/// The order in which pods of a node are kept (D-38): bound first, then older, then by name. The uid only makes the order
/// total where names repeat.
fn order(a: &Pod, b: &Pod) -> Ordering {
    let unbound = |pod: &Pod| !matches!(pod.target, Target::Bound(_));
    unbound(a)
        .cmp(&unbound(b))
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.name.cmp(&b.name))
        .then_with(|| a.uid.cmp(&b.uid))
}

/// Finished and being deleted: such a pod does not occupy its node any more (D-26).
fn is_gone(pod: &Pod) -> bool {
    pod.deleting && pod.phase.is_terminal()
}

/// A pod of the workload, and what is true of it in this plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPod<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// Carries the current hash: the narrow notion of D-34.
    pub(crate) hash_new: bool,
    /// Of the current template, by hash or by template generation: "new" everywhere else.
    pub(crate) updated: bool,
    /// Ready for minReadySeconds.
    pub(crate) available: bool,
}

impl<'a> OwnPod<'a> {
    /// The hash label, as it is after the plan's relabels.
    pub(crate) fn hash(&self, resolution: &'a Resolution<'_>) -> Option<&'a str> {
        hash(self.pod, resolution)
    }

    /// Neither finished nor being deleted (D-30).
    pub(crate) fn is_live(&self) -> bool {
        !self.pod.deleting && !self.pod.phase.is_terminal()
    }
}

/// A pod's hash label, as it is after the plan's relabels (D-57).
fn hash<'a>(pod: &'a Pod, resolution: &'a Resolution<'_>) -> Option<&'a str> {
    if !resolution.relabelled.is_empty() && resolution.relabelled.contains(pod.uid.as_str()) {
        return Some(&resolution.current_hash);
    }
    pod.labels.get(HASH_LABEL)
}

/// Judges single pods.
struct Judge<'a> {
    now: Timestamp,
    min_ready: SignedDuration,
    generation: Option<String>,
    resolution: &'a Resolution<'a>,
}

impl<'a> Judge<'a> {
    fn new(snapshot: &'a Snapshot, resolution: &'a Resolution<'a>) -> Self {
        Self {
            now: snapshot.now,
            min_ready: SignedDuration::from_secs(snapshot.daemon_set.min_ready_seconds.into()),
            generation: manifest::template_generation(&snapshot.daemon_set).map(|number| number.to_string()),
            resolution,
        }
    }

    fn judge<'p>(&self, pod: &'p Pod) -> OwnPod<'p> {
        let current = self.resolution.current_hash.as_str();
        // Without a current hash, which a revision of that name that was found can be, the pods without one are new.
        let hash_new = hash(pod, self.resolution).unwrap_or_default() == current;
        let of_generation =
            || self.generation.is_some() && pod.labels.get(GENERATION_LABEL) == self.generation.as_deref();
        OwnPod {
            pod,
            hash_new,
            updated: (hash_new && !current.is_empty()) || of_generation(),
            available: self.is_available(pod),
        }
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let long_enough = |since: Timestamp| self.now.duration_since(since) >= self.min_ready;
        pod.ready && (self.min_ready.is_zero() || pod.ready_since.is_some_and(long_enough))
    }
}

/// A node that exists, or that pods are on or meant for.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    /// The node's name.
    pub(crate) name: &'a str,
    /// `None`: there is no such node.
    pub(crate) node: Option<&'a Node>,
    /// Neither may be, on a missing node.
    pub(crate) fit: Fit,
    /// Its pods in [`Picture::pods`]: first those of the map, then those that are gone.
    start: usize,
    gone: usize,
    end: usize,
}

/// The map from nodes to pods.
#[derive(Debug)]
pub(crate) struct Picture<'a> {
    /// By name.
    pub(crate) places: Vec<Place<'a>>,
    /// Nodes that should run a pod.
    pub(crate) desired: usize,
    pods: Vec<OwnPod<'a>>,
}

impl<'a> Picture<'a> {
    /// Draws the map. Pods without a target are left out (D-25).
    pub(crate) fn draw(
        snapshot: &'a Snapshot,
        claims: &Claims<'a>,
        resolution: &Resolution<'a>,
        eligibility: &Eligibility,
        patience: Patience<'_>,
    ) -> Option<Self> {
        let judge = Judge::new(snapshot, resolution);
        let nodes = sorted_nodes(snapshot);
        let targeted = claims.owned.partition_point(|pod| pod.target.node().is_none());
        let mut picture = Self {
            places: Vec::with_capacity(nodes.len()),
            desired: 0,
            pods: Vec::with_capacity(claims.owned.len() - targeted),
        };
        let mut rest = &claims.owned[targeted..];
        for (index, node) in nodes.into_iter().enumerate() {
            patience.tick(index)?;
            while let Some(name) = rest
                .first()
                .and_then(|pod| pod.target.node())
                .filter(|name| **name < *node.name)
            {
                rest = picture.place(name, None, MUST_NOT, rest, &judge);
            }
            let fit = eligibility.evaluate(node);
            picture.desired += usize::from(fit.run);
            rest = picture.place(&node.name, Some(node), fit, rest, &judge);
        }
        while let Some(name) = rest.first().and_then(|pod| pod.target.node()) {
            rest = picture.place(name, None, MUST_NOT, rest, &judge);
        }
        Some(picture)
    }

    /// Adds a place with the pods for it, which lead `pods`; returns the others.
    fn place<'p>(
        &mut self,
        name: &'a str,
        node: Option<&'a Node>,
        fit: Fit,
        pods: &'p [&'a Pod],
        judge: &Judge<'_>,
    ) -> &'p [&'a Pod] {
        let count = pods
            .iter()
            .take_while(|pod| pod.target.node() == Some(name))
            .count();
        let (here, others) = pods.split_at(count);
        let start = self.pods.len();
        self.pods.extend(here.iter().map(|pod| judge.judge(pod)));
        let end = self.pods.len();
        let gone = end - here.iter().rev().take_while(|pod| is_gone(pod)).count();
        self.places.push(Place {
            name,
            node,
            fit,
            start,
            gone,
            end,
        });
        others
    }

    /// The place's entry of the map (D-26), in the order of D-38.
    pub(crate) fn pods(&self, place: &Place<'a>) -> &[OwnPod<'a>] {
        &self.pods[place.start..place.gone]
    }

    /// The entry, and the pods that are finished and being deleted.
    pub(crate) fn all_pods(&self, place: &Place<'a>) -> &[OwnPod<'a>] {
        &self.pods[place.start..place.end]
    }

    /// Every pod with a target, those that are gone included.
    pub(crate) fn every_pod(&self) -> &[OwnPod<'a>] {
        &self.pods
    }

    /// The entries that a rolling update looks at: nodes with pods, and nodes that should have one (D-39).
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &Place<'a>, &[OwnPod<'a>])> {
        let places = self.places.iter().enumerate();
        places
            .map(|(index, place)| (index, place, self.pods(place)))
            .filter(|(_, place, pods)| place.fit.run || !pods.is_empty())
    }
}

const MUST_NOT: Fit = Fit {
    run: false,
    keep: false,
};

fn sorted_nodes(snapshot: &Snapshot) -> Vec<&Node> {
    let size = snapshot.nodes.iter().map(|bucket| bucket.len()).sum();
    let mut nodes = Vec::with_capacity(size);
    nodes.extend(snapshot.nodes.iter().flat_map(|bucket| bucket.iter()));
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes.dedup_by(|a, b| a.name == b.name);
    nodes
}
