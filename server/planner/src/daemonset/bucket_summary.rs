//! What a workload has to know of one bucket of nodes and pods: how many nodes are settled, and the other nodes with their pods.
//!
//! A node is settled when it has its one pod, new and available, or may not have one and has none. Nothing is ever decided about settled
//! nodes: they are only counted. In a cluster at rest nearly all nodes are settled. So a plan walks the others, and a bucket that came
//! before, under the same circumstances, is not walked again ([`crate::daemonset::memory`]).

use jiff::Timestamp;

use crate::{
    core::{
        cancellation::Cancellation,
        claims::Claim,
        pod_claims,
        pod_findings::PodFindings,
        snapshot::{Bucket, DaemonSet, Pod},
    },
    daemonset::{
        eligibility::Fit,
        pod_classifier::{PodClassifier, TemplateMatch},
    },
};

/// How many nodes are settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SettledNodes {
    /// Nodes that should run a pod and do: one, which is live, carries the current hash and is available.
    pub(crate) running: usize,
    /// Nodes that should not run a pod and may keep the one, of the same kind, that they have.
    pub(crate) keeping: usize,
}

/// Which nodes have an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Those of which something may be decided.
    Notable,
    /// All.
    Everything,
}

/// A bucket, seen by a workload.
#[derive(Debug)]
pub(crate) struct BucketSummary {
    /// Nodes that should run a pod.
    pub(crate) desired: usize,
    /// Nodes that are only counted.
    pub(crate) settled: SettledNodes,
    /// The others, by name.
    pub(crate) entries: Vec<NodeSummary>,
    /// Pods of the entries.
    pub(crate) pods: Vec<PodSummary>,
    /// Indices of the orphans that become the workload's.
    pub(crate) adopted: Vec<usize>,
    /// Indices of the pods that are let go.
    pub(crate) released: Vec<usize>,
    /// Since when the last of the pods of settled nodes is ready: they are available as long as this suffices.
    available_since: Option<Timestamp>,
    /// Since when the first of the pods is ready that are not available yet: they are not as long as this does not suffice.
    unavailable_since: Option<Timestamp>,
}

/// A node that is not settled, or that is missing. Pods are indices into [`BucketSummary::pods`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeSummary {
    /// Its index in the bucket; `None`: there is no such node.
    pub(crate) node: Option<usize>,
    /// What the workload may do there.
    pub(crate) fit: Fit,
    /// Its first pod.
    pub(crate) start: usize,
    /// The first of its pods that do not occupy it any more.
    pub(crate) gone: usize,
    /// Behind its last pod.
    pub(crate) end: usize,
}

/// A pod of such a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodSummary {
    /// Its index in the bucket.
    pub(crate) index: usize,
    /// Whether it is of the current template.
    pub(crate) age: TemplateMatch,
}

impl BucketSummary {
    /// Looks at a bucket. `fits` are those of its nodes.
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
        // Pods without a target are claimed, and that is all (D-25).
        walk.claim_those_on(None)?;
        walk.summary.pods.clear();
        for (index, (node, fit)) in bucket.nodes.iter().zip(fits).enumerate() {
            cancellation.tick(index)?;
            walk.missing_nodes_before(Some(&node.name))?;
            walk.node(index, &node.name, *fit)?;
        }
        walk.missing_nodes_before(None)?;
        Some(walk.summary)
    }

    /// Whether the passing of time has changed nothing.
    pub(crate) fn holds(&self, classifier: &PodClassifier<'_>) -> bool {
        self.available_since
            .is_none_or(|since| classifier.suffices(since))
            && self
                .unavailable_since
                .is_none_or(|since| !classifier.suffices(since))
    }

    /// Bytes of memory that it takes, with what its lists have left.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
            + self.entries.capacity() * size_of::<NodeSummary>()
            + self.pods.capacity() * size_of::<PodSummary>()
            + (self.adopted.capacity() + self.released.capacity()) * size_of::<usize>()
    }
}

/// A summary in the making: a walk along the nodes and the pods of a bucket, both by name.
struct Walk<'a> {
    pods: &'a [Pod],
    /// Index of the next pod.
    next: usize,
    ds: &'a DaemonSet,
    classifier: &'a PodClassifier<'a>,
    /// Whose pods are, and what their labels say of their template.
    findings: PodFindings<(Claim, TemplateMatch)>,
    detail: Detail,
    cancellation: Cancellation<'a>,
    summary: BucketSummary,
}

impl<'a> Walk<'a> {
    /// The target of the next pod. Those without one come first, so that later there is none only at the end.
    fn target(&self) -> Option<&'a str> {
        self.pods.get(self.next).and_then(|pod| pod.target.node())
    }

    /// Claims the pods that come next and have this target; notes the workload's.
    fn claim_those_on(&mut self, target: Option<&str>) -> Option<()> {
        while let Some(pod) = self.pods.get(self.next).filter(|pod| pod.target.node() == target) {
            let index = self.next;
            self.cancellation.tick(index)?;
            self.next += 1;
            let (ds, classifier) = (self.ds, self.classifier);
            let find = || (pod_claims::claim(ds, pod), classifier.age_by_labels(pod));
            let (claim, age) = self.findings.find(pod, find);
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
                let age = classifier.age(pod, age);
                self.summary.pods.push(PodSummary { index, age });
            }
        }
        Some(())
    }

    /// Adds entries for the missing nodes for which there are pods, up to a name.
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
        if self.detail == Detail::Everything || !self.keep_settled(fit, start) {
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
            .take_while(|seen| self.pods[seen.index].is_gone());
        let gone = end - gone.count();
        for PodSummary { index, .. } in here {
            let pod = &self.pods[*index];
            if pod.ready && !self.classifier.is_available(pod) {
                let first = summary.unavailable_since.into_iter().chain(pod.ready_since).min();
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

    /// Counts an entry whose pods begin at `start`, and forgets them, if nothing is to be decided about it.
    fn keep_settled(&mut self, fit: Fit, start: usize) -> bool {
        let summary = &mut self.summary;
        match &summary.pods[start..] {
            [] => !fit.run,
            [PodSummary { index, age }] if fit.keep && age.hash_new && age.updated => {
                let pod = &self.pods[*index];
                let settled = pod.is_live() && self.classifier.is_available(pod);
                if settled {
                    summary.settled.running += usize::from(fit.run);
                    summary.settled.keeping += usize::from(!fit.run);
                    if self.classifier.waits() {
                        summary.available_since = summary.available_since.max(pod.ready_since);
                    }
                    summary.pods.truncate(start);
                }
                settled
            }
            _ => false,
        }
    }
}
