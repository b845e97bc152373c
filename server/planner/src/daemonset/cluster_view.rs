//! The cluster as one DaemonSet sees it: its pods, by node. It is put together from the summaries of the buckets.

use crate::{
    core::{
        pod_claims::Claims,
        snapshot::{Bucket, Node},
    },
    daemonset::{
        bucket_summary::{BucketSummary, SettledNodes},
        eligibility::Fit,
        pod_classifier::{OwnPod, PodClassifier},
    },
};

/// A node that exists, or that pods are on or meant for.
#[derive(Debug, Clone)]
pub(crate) struct NodeEntry<'a> {
    /// The node's name.
    pub(crate) name: &'a str,
    /// `None`: there is no such node.
    pub(crate) node: Option<&'a Node>,
    /// What the workload may do there; on a missing node nothing.
    pub(crate) fit: Fit,
    /// Its pods in [`ClusterView::pods`]: first those of the map, then those that are gone.
    start: usize,
    gone: usize,
    end: usize,
}

/// The workload's pods, by node.
#[derive(Debug, Default)]
pub(crate) struct ClusterView<'a> {
    /// The nodes that are not settled, by name.
    pub(crate) entries: Vec<NodeEntry<'a>>,
    /// How many nodes are settled.
    pub(crate) settled: SettledNodes,
    /// Nodes that should run a pod.
    pub(crate) desired: usize,
    /// Pods whose owner changes.
    pub(crate) claims: Claims<'a>,
    pods: Vec<OwnPod<'a>>,
}

impl<'a> ClusterView<'a> {
    /// Adds a bucket.
    pub(crate) fn add(
        &mut self,
        bucket: &'a Bucket,
        summary: &BucketSummary,
        classifier: &PodClassifier<'_>,
    ) {
        let pod = |index: &usize| &bucket.pods[*index];
        self.desired += summary.desired;
        self.settled.running += summary.settled.running;
        self.settled.keeping += summary.settled.keeping;
        self.claims.adopted.extend(summary.adopted.iter().map(pod));
        self.claims.released.extend(summary.released.iter().map(pod));
        let before = self.pods.len();
        self.pods.extend(summary.pods.iter().map(|seen| OwnPod {
            pod: pod(&seen.index),
            age: seen.age,
            available: classifier.is_available(pod(&seen.index)),
        }));
        self.entries.extend(summary.entries.iter().map(|entry| {
            let node = entry.node.map(|index| &bucket.nodes[index]);
            let start = before + entry.start;
            NodeEntry {
                // An entry without a node has a pod.
                name: node.map_or_else(
                    || self.pods[start].pod.target.node().unwrap_or_default(),
                    |node| &node.name,
                ),
                node,
                fit: entry.fit,
                start,
                gone: before + entry.gone,
                end: before + entry.end,
            }
        }));
    }

    /// Puts everything in the order of names, when all buckets are there.
    pub(crate) fn sort(&mut self) {
        // Stable, because that sort merges the runs in which the buckets come.
        self.entries.sort_by(|a, b| a.name.cmp(b.name));
        self.claims.sort();
    }

    /// The pods of the entry (D-26), in the order of D-38.
    pub(crate) fn pods(&self, entry: &NodeEntry<'a>) -> &[OwnPod<'a>] {
        &self.pods[entry.start..entry.gone]
    }

    /// The entry, and the pods that are finished and being deleted.
    pub(crate) fn all_pods(&self, entry: &NodeEntry<'a>) -> &[OwnPod<'a>] {
        &self.pods[entry.start..entry.end]
    }

    /// Every pod of a node that is not settled, those that are gone included.
    pub(crate) fn every_pod(&self) -> impl Iterator<Item = &OwnPod<'a>> {
        self.entries.iter().flat_map(|entry| self.all_pods(entry))
    }

    /// The nodes that a rolling update looks at and that are not settled: those with pods, and those that should have one (D-39).
    pub(crate) fn rollout_entries(&self) -> impl Iterator<Item = (usize, &NodeEntry<'a>, &[OwnPod<'a>])> {
        let entries = self.entries.iter().enumerate();
        entries
            .map(|(index, entry)| (index, entry, self.pods(entry)))
            .filter(|(_, entry, pods)| entry.fit.run || !pods.is_empty())
    }
}
