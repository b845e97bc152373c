//! The cluster as one DaemonSet sees it: its pods by node, merged from the summaries of the buckets.

use crate::{
    core::{
        pod_claims::Claims,
        snapshot::{Bucket, NodeView},
    },
    daemonset::{
        bucket_summary::{BucketSummary, SettledNodes},
        eligibility::Fit,
        pod_classifier::{OwnPod, PodClassifier},
    },
    rollout::selection::StageSet,
};

/// A node that exists, or a missing node that pods are on or meant for.
#[derive(Debug, Clone)]
pub(crate) struct NodeEntry<'a> {
    /// The node's name.
    pub(crate) name: &'a str,
    /// The node; `None` if it does not exist.
    pub(crate) node: Option<NodeView<'a>>,
    /// What the workload may do on the node: nothing on a missing node.
    pub(crate) fit: Fit,
    /// Which stages of the policy select the node, if a rollout is going on.
    pub(crate) selected: StageSet,
    /// The range of its pods in [`ClusterView::pods`]. Pods from `gone` on no longer occupy the node (D-26).
    start: usize,
    gone: usize,
    end: usize,
}

/// The workload's pods, by node.
#[derive(Debug, Default)]
pub(crate) struct ClusterView<'a> {
    /// The nodes that are not settled, by name.
    pub(crate) entries: Vec<NodeEntry<'a>>,
    /// Counts of the settled nodes.
    pub(crate) settled: SettledNodes,
    /// The number of nodes that should run a pod.
    pub(crate) desired: usize,
    /// The pods that the workload adopts or releases.
    pub(crate) claims: Claims<'a>,
    pods: Vec<OwnPod<'a>>,
}

impl<'a> ClusterView<'a> {
    /// Adds the summary of a bucket. `selected` says for each node which stages select it; it may be empty.
    pub(crate) fn add(
        &mut self,
        bucket: &'a Bucket,
        summary: &BucketSummary,
        selected: &[StageSet],
        classifier: &PodClassifier<'_>,
    ) {
        let pod = |index: &usize| bucket.pods.at(*index);
        self.desired += summary.desired;
        self.settled.running += summary.settled.running;
        self.settled.keeping += summary.settled.keeping;
        self.claims.adopted.extend(summary.adopted.iter().map(pod));
        self.claims.released.extend(summary.released.iter().map(pod));
        let before = self.pods.len();
        self.pods.extend(summary.pods.iter().map(|seen| OwnPod {
            pod: pod(&seen.index),
            template: seen.template,
            available: classifier.availability.is_available(pod(&seen.index)),
        }));
        self.entries.extend(summary.entries.iter().map(|entry| {
            let node = entry.node.map(|index| bucket.nodes.at(index));
            let start = before + entry.start;
            NodeEntry {
                // An entry of a missing node has at least one pod.
                name: node.map_or_else(
                    || self.pods[start].pod.target_node().unwrap_or_default(),
                    NodeView::name,
                ),
                node,
                fit: entry.fit,
                selected: entry
                    .node
                    .and_then(|index| selected.get(index).copied())
                    .unwrap_or_default(),
                start,
                gone: before + entry.gone,
                end: before + entry.end,
            }
        }));
    }

    /// Sorts everything by name. Call it after the last bucket was added.
    pub(crate) fn sort(&mut self) {
        // The stable sort is faster here: it merges the sorted runs that the buckets are.
        self.entries.sort_by(|a, b| a.name.cmp(b.name));
        self.claims.sort();
    }

    /// The pods that occupy the node (D-26), in the order of D-38.
    pub(crate) fn pods(&self, entry: &NodeEntry<'a>) -> &[OwnPod<'a>] {
        &self.pods[entry.start..entry.gone]
    }

    /// The pods that occupy the node, then those that no longer do.
    pub(crate) fn all_pods(&self, entry: &NodeEntry<'a>) -> &[OwnPod<'a>] {
        &self.pods[entry.start..entry.end]
    }

    /// All pods of the nodes that are not settled, including those that no longer occupy their node.
    pub(crate) fn every_pod(&self) -> impl Iterator<Item = &OwnPod<'a>> {
        self.entries.iter().flat_map(|entry| self.all_pods(entry))
    }

    /// The nodes that a rolling update considers, without settled nodes: nodes with pods, and nodes that should run a pod (D-39).
    pub(crate) fn rollout_entries(&self) -> impl Iterator<Item = (usize, &NodeEntry<'a>, &[OwnPod<'a>])> {
        let entries = self.entries.iter().enumerate();
        entries
            .map(|(index, entry)| (index, entry, self.pods(entry)))
            .filter(|(_, entry, pods)| entry.fit.run || !pods.is_empty())
    }
}
