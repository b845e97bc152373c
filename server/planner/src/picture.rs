//! The map from nodes to pods (chapter 3), put together from what is known of the buckets.

use crate::{
    eligibility::Fit,
    pods::{Claims, Judge, OwnPod},
    sketch::{Quiet, Sketch},
    snapshot::{Bucket, Node},
};

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
#[derive(Debug, Default)]
pub(crate) struct Picture<'a> {
    /// The places of note, by name.
    pub(crate) places: Vec<Place<'a>>,
    /// The other places.
    pub(crate) quiet: Quiet,
    /// Nodes that should run a pod.
    pub(crate) desired: usize,
    /// Pods whose owner changes.
    pub(crate) claims: Claims<'a>,
    pods: Vec<OwnPod<'a>>,
}

impl<'a> Picture<'a> {
    /// Adds a bucket.
    pub(crate) fn add(&mut self, bucket: &'a Bucket, sketch: &Sketch, judge: &Judge<'_>) {
        let pod = |index: &usize| &bucket.pods[*index];
        self.desired += sketch.desired;
        self.quiet.running += sketch.quiet.running;
        self.quiet.keeping += sketch.quiet.keeping;
        self.claims.adopted.extend(sketch.adopted.iter().map(pod));
        self.claims.released.extend(sketch.released.iter().map(pod));
        let before = self.pods.len();
        self.pods.extend(sketch.pods.iter().map(|seen| OwnPod {
            pod: pod(&seen.index),
            age: seen.age,
            available: judge.is_available(pod(&seen.index)),
        }));
        self.places.extend(sketch.spots.iter().map(|spot| {
            let node = spot.node.map(|index| &bucket.nodes[index]);
            let start = before + spot.start;
            Place {
                // A place without a node has a pod.
                name: node.map_or_else(
                    || self.pods[start].pod.target.node().unwrap_or_default(),
                    |node| &node.name,
                ),
                node,
                fit: spot.fit,
                start,
                gone: before + spot.gone,
                end: before + spot.end,
            }
        }));
    }

    /// Puts everything in the order of names, when all buckets are there.
    pub(crate) fn sort(&mut self) {
        // Stable, because that sort merges the runs in which the buckets come.
        self.places.sort_by(|a, b| a.name.cmp(b.name));
        self.claims.sort();
    }

    /// The place's entry of the map (D-26), in the order of D-38.
    pub(crate) fn pods(&self, place: &Place<'a>) -> &[OwnPod<'a>] {
        &self.pods[place.start..place.gone]
    }

    /// The entry, and the pods that are finished and being deleted.
    pub(crate) fn all_pods(&self, place: &Place<'a>) -> &[OwnPod<'a>] {
        &self.pods[place.start..place.end]
    }

    /// Every pod of a place of note, those that are gone included.
    pub(crate) fn every_pod(&self) -> impl Iterator<Item = &OwnPod<'a>> {
        self.places.iter().flat_map(|place| self.all_pods(place))
    }

    /// The entries of note that a rolling update looks at: nodes with pods, and nodes that should have one (D-39).
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &Place<'a>, &[OwnPod<'a>])> {
        let places = self.places.iter().enumerate();
        places
            .map(|(index, place)| (index, place, self.pods(place)))
            .filter(|(_, place, pods)| place.fit.run || !pods.is_empty())
    }
}
