//! The summary of one bucket for a workload: the number of settled nodes, and the other nodes with their pods.
//!
//! A node is settled if it has exactly one pod, which is live, of the current template and available, or if it may not run a pod
//! and has none. No decision concerns a settled node; it is only counted. In a stable cluster nearly all nodes are settled, so a
//! plan visits few nodes. Summaries are cached from plan to plan ([`crate::daemonset::plan_cache`]).

use jiff::Timestamp;

use crate::{
    core::{
        cancellation::Cancellation,
        claims::Claim,
        pod_claims,
        pod_findings::PodFindings,
        snapshot::{Bucket, PodView, Pods},
    },
    daemonset::{
        eligibility::Fit,
        pod_classifier::{PodClassifier, TemplateMatch},
        workload::DaemonSet,
    },
};

/// Counts of settled nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SettledNodes {
    /// Nodes that should run a pod and have one: live, with the current hash, and available.
    pub(crate) running: usize,
    /// Nodes that should not run a pod, but may keep the one that they have: live, with the current hash, and available.
    pub(crate) keeping: usize,
}

/// The nodes that have an entry in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Detail {
    /// Nodes that are not settled.
    Notable,
    /// All nodes.
    Everything,
}

/// The summary of one bucket for a workload.
#[derive(Debug)]
pub(crate) struct BucketSummary {
    /// The number of nodes that should run a pod.
    pub(crate) desired: usize,
    /// The settled nodes, which are only counted.
    pub(crate) settled: SettledNodes,
    /// The other nodes, by name.
    pub(crate) entries: Vec<NodeSummary>,
    /// The pods of the entries.
    pub(crate) pods: Vec<PodSummary>,
    /// Indices of the orphans that the workload adopts.
    pub(crate) adopted: Vec<usize>,
    /// Indices of the pods that the workload releases.
    pub(crate) released: Vec<usize>,
    /// The latest time since which a pod of a settled node is ready. If that is long enough, all of them are available.
    available_since: Option<Timestamp>,
    /// The earliest time since which a pod is ready but not available. Until that is long enough, none of them is available.
    unavailable_since: Option<Timestamp>,
}

/// A node that is not settled, or a missing node that has pods. Its pods are a range of [`BucketSummary::pods`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeSummary {
    /// Index of the node in the bucket; `None` if the node does not exist.
    pub(crate) node: Option<usize>,
    /// What the workload may do on the node.
    pub(crate) fit: Fit,
    /// Start of its pods.
    pub(crate) start: usize,
    /// Start of its pods that no longer occupy it (D-26).
    pub(crate) gone: usize,
    /// End of its pods.
    pub(crate) end: usize,
}

/// A pod of a node that is not settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodSummary {
    /// Index of the pod in the bucket.
    pub(crate) index: usize,
    /// Whether the pod is of the current template.
    pub(crate) template: TemplateMatch,
}

impl BucketSummary {
    /// Summarizes a bucket. `fits` are the results of eligibility for its nodes, in order. `None` if cancelled.
    pub(crate) fn of(
        bucket: &Bucket,
        fits: &[Fit],
        ds: &DaemonSet,
        classifier: &PodClassifier<'_>,
        detail: Detail,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let mut walk = Walk {
            pods: &bucket.pods,
            next: 0,
            ds,
            classifier,
            findings: PodFindings::default(),
            detail,
            cancellation,
            summary: Self {
                desired: 0,
                settled: SettledNodes::default(),
                entries: Vec::new(),
                pods: Vec::new(),
                adopted: Vec::new(),
                released: Vec::new(),
                available_since: None,
                unavailable_since: None,
            },
        };
        // Pods without a node are only claimed (D-25).
        walk.claim_those_on(None)?;
        walk.summary.pods.clear();
        for (index, (node, fit)) in bucket.nodes.iter().zip(fits).enumerate() {
            cancellation.tick(index)?;
            walk.missing_nodes_before(Some(node.name()))?;
            walk.node(index, node.name(), *fit)?;
        }
        walk.missing_nodes_before(None)?;
        Some(walk.summary)
    }

    /// Whether the summary is still valid at the present time.
    pub(crate) fn is_valid(&self, classifier: &PodClassifier<'_>) -> bool {
        self.available_since
            .is_none_or(|since| classifier.availability.is_long_enough(since))
            && self
                .unavailable_since
                .is_none_or(|since| !classifier.availability.is_long_enough(since))
    }

    /// Memory that the summary takes, in bytes, with the spare capacity of its lists.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.entries.capacity() * size_of::<NodeSummary>()
            + self.pods.capacity() * size_of::<PodSummary>()
            + (self.adopted.capacity() + self.released.capacity()) * size_of::<usize>()
    }
}

/// Builds a summary: walks the nodes and the pods of a bucket in parallel, both sorted by node name.
struct Walk<'a> {
    pods: &'a Pods,
    /// Index of the next pod.
    next: usize,
    ds: &'a DaemonSet,
    classifier: &'a PodClassifier<'a>,
    /// Cached claims and template matches of pods.
    findings: PodFindings<(Claim, TemplateMatch)>,
    detail: Detail,
    cancellation: Cancellation<'a>,
    summary: BucketSummary,
}

impl<'a> Walk<'a> {
    /// The node of the next pod; `None` after the last pod. (Pods without a node come first and are done by then.)
    fn target(&self) -> Option<&'a str> {
        self.pods.get(self.next).and_then(PodView::target_node)
    }

    /// Claims the next pods as long as they have this node, and keeps those that the workload owns.
    fn claim_those_on(&mut self, target: Option<&str>) -> Option<()> {
        while let Some(pod) = self.pods.get(self.next).filter(|pod| pod.target_node() == target) {
            let index = self.next;
            self.cancellation.tick(index)?;
            self.next += 1;
            let (ds, classifier) = (self.ds, self.classifier);
            let find = || (pod_claims::claim(ds.owner(), pod), classifier.match_labels(pod));
            let (claim, by_labels) = self.findings.find(pod, find);
            let owned = match claim {
                Claim::Owned => true,
                Claim::Adopt => {
                    self.summary.adopted.push(index);
                    true
                }
                Claim::Release => {
                    self.summary.released.push(index);
                    false
                }
                Claim::Ignore => false,
            };
            if owned {
                let template = classifier.match_pod(pod, by_labels);
                self.summary.pods.push(PodSummary { index, template });
            }
        }
        Some(())
    }

    /// Adds entries for missing nodes that have pods, up to the node name `end`.
    fn missing_nodes_before(&mut self, end: Option<&str>) -> Option<()> {
        while let Some(name) = self.target() {
            if end.is_some_and(|end| name >= end) {
                break;
            }
            let start = self.summary.pods.len();
            self.claim_those_on(Some(name))?;
            if self.summary.pods.len() > start {
                self.note(None, Fit::NEITHER, start);
            }
        }
        Some(())
    }

    fn node(&mut self, index: usize, name: &str, fit: Fit) -> Option<()> {
        self.summary.desired += usize::from(fit.run);
        let start = self.summary.pods.len();
        self.claim_those_on(Some(name))?;
        if self.detail == Detail::Everything || !self.count_if_settled(fit, start) {
            self.note(Some(index), fit, start);
        }
        Some(())
    }

    fn note(&mut self, node: Option<usize>, fit: Fit, start: usize) {
        let summary = &mut self.summary;
        let (end, here) = (summary.pods.len(), &summary.pods[start..]);
        let gone = here
            .iter()
            .rev()
            .take_while(|seen| self.pods.at(seen.index).is_gone());
        let gone = end - gone.count();
        for PodSummary { index, .. } in here {
            let pod = self.pods.at(*index);
            if pod.ready() && !self.classifier.availability.is_available(pod) {
                let first = summary
                    .unavailable_since
                    .into_iter()
                    .chain(pod.ready_since())
                    .min();
                summary.unavailable_since = first;
            }
        }
        summary.entries.push(NodeSummary {
            node,
            fit,
            start,
            gone,
            end,
        });
    }

    /// If a node is settled, counts it and drops its pods, which begin at `start`. Returns whether it is settled.
    fn count_if_settled(&mut self, fit: Fit, start: usize) -> bool {
        let summary = &mut self.summary;
        match &summary.pods[start..] {
            [] => !fit.run,
            [PodSummary { index, template }] if fit.keep && template.hash_new && template.updated => {
                let pod = self.pods.at(*index);
                let settled = pod.is_live() && self.classifier.availability.is_available(pod);
                if settled {
                    summary.settled.running += usize::from(fit.run);
                    summary.settled.keeping += usize::from(!fit.run);
                    if self.classifier.availability.has_min_ready() {
                        summary.available_since = summary.available_since.max(pod.ready_since());
                    }
                    summary.pods.truncate(start);
                }
                settled
            }
            _ => false,
        }
    }
}
