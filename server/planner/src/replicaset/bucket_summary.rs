//! The summary of one bucket of pods for a ReplicaSet: counts, claims, and the times at which the counts change.
//!
//! A plan that deletes nothing needs only summaries. They are cached from plan to plan ([`crate::replicaset::plan_cache`]).

use std::ops::AddAssign;

use jiff::Timestamp;

use crate::{
    core::{
        availability::Availability,
        cancellation::Cancellation,
        claims::Claim,
        pod_claims,
        pod_findings::PodFindings,
        snapshot::{PodView, Pods},
    },
    replicaset::{pod_names::PodNames, workload::ReplicaSet},
};

/// Counts of pods. All but `terminating` are of active pods: neither finished nor being deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Active pods that the ReplicaSet owns after its claims.
    pub(crate) active: usize,
    /// Those that have all labels of the template.
    pub(crate) fully_labeled: usize,
    /// Those that are ready.
    pub(crate) ready: usize,
    /// Those that have been ready for minReadySeconds.
    pub(crate) available: usize,
    /// Pods that are being deleted and have not finished.
    pub(crate) terminating: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.active += other.active;
        self.fully_labeled += other.fully_labeled;
        self.ready += other.ready;
        self.available += other.available;
        self.terminating += other.terminating;
    }
}

/// The summary of one bucket for a ReplicaSet.
#[derive(Debug, Default)]
pub(crate) struct BucketSummary {
    /// The counts.
    pub(crate) counts: Counts,
    /// Indices of the orphans that the ReplicaSet adopts.
    pub(crate) adopted: Vec<usize>,
    /// Indices of the pods that the ReplicaSet releases.
    pub(crate) released: Vec<usize>,
    /// The pod that becomes available next, if no pod changes: the index, and the time since which the pod is ready.
    pub(crate) next_available: Option<(Timestamp, usize)>,
    /// The latest time since which an available pod is ready. If that is long enough, all of them are available.
    available_since: Option<Timestamp>,
    /// The numbers in the names of all pods of the bucket; `None` until a plan needs them.
    numbers: Option<Box<[u32]>>,
}

/// What the ReplicaSet has to do with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The pod counts towards spec.replicas.
    Active(Claim),
    /// The pod is being deleted and has not finished.
    Terminating,
    /// The ReplicaSet releases the pod.
    Released,
    /// Nothing.
    None,
}

/// The role of a pod with this claim. Only active pods are adopted and released.
pub(crate) fn role(pod: PodView<'_>, claim: Claim) -> Role {
    match claim {
        Claim::Owned | Claim::Adopt if pod.is_live() => Role::Active(claim),
        Claim::Release if pod.is_live() => Role::Released,
        // it must be controlled and selected, like a pod that is claimed.
        Claim::Owned if pod.deleting() && !pod.phase().is_terminal() => Role::Terminating,
        _ => Role::None,
    }
}

impl BucketSummary {
    /// Summarizes the pods of a bucket. `None` if cancelled.
    pub(crate) fn of(
        pods: &Pods,
        rs: &ReplicaSet,
        availability: Availability,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let mut summary = Self::default();
        let mut findings = PodFindings::default();
        for (index, pod) in pods.iter().enumerate() {
            cancellation.tick(index)?;
            let find = || (pod_claims::claim(rs.owner(), pod), is_fully_labeled(pod, rs));
            let (claim, fully_labeled) = findings.find(pod, find);
            match role(pod, claim) {
                Role::Active(claim) => {
                    if claim == Claim::Adopt {
                        summary.adopted.push(index);
                    }
                    summary.count(pods, index, fully_labeled, availability);
                }
                Role::Terminating => summary.counts.terminating += 1,
                Role::Released => summary.released.push(index),
                Role::None => {}
            }
        }
        Some(summary)
    }

    /// Counts the pod with this index.
    fn count(&mut self, pods: &Pods, index: usize, fully_labeled: bool, availability: Availability) {
        let pod = pods.at(index);
        let available = availability.is_available(pod);
        self.counts += Counts {
            active: 1,
            fully_labeled: usize::from(fully_labeled),
            ready: usize::from(pod.ready()),
            available: usize::from(available),
            terminating: 0,
        };
        // A pod with an unknown transition time never becomes available by waiting.
        let (true, Some(since)) = (availability.has_min_ready() && pod.ready(), pod.ready_since()) else {
            return;
        };
        // Of several such pods the first by name, so that the order of the pods does not matter.
        let is_next =
            |(earliest, next): (Timestamp, usize)| (since, pod.name()) < (earliest, pods.at(next).name());
        if available {
            self.available_since = self.available_since.max(Some(since));
        } else if self.next_available.is_none_or(is_next) {
            self.next_available = Some((since, index));
        }
    }

    /// Whether the summary is still valid at the present time.
    pub(crate) fn is_valid(&self, availability: Availability) -> bool {
        self.available_since
            .is_none_or(|since| availability.is_long_enough(since))
            && self
                .next_available
                .is_none_or(|(since, _)| !availability.is_long_enough(since))
    }

    /// The numbers in the names of the bucket's pods, whoever owns them.
    pub(crate) fn numbers(&mut self, pods: &Pods, names: &PodNames) -> &[u32] {
        self.numbers
            .get_or_insert_with(|| pods.iter().filter_map(|pod| names.number(pod.name())).collect())
    }

    /// Memory that the summary takes, in bytes, with the spare capacity of its lists.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = self.numbers.as_deref().map_or(0, size_of_val);
        let claims = (self.adopted.capacity() + self.released.capacity()) * size_of::<usize>();
        size_of_val(self) + claims + numbers
    }
}

/// Whether a pod has all labels of the template.
fn is_fully_labeled(pod: PodView<'_>, rs: &ReplicaSet) -> bool {
    let mut labels = rs.template_labels.iter();
    labels.all(|(key, value)| pod.labels().get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The memory is that of the summary and of what its lists have reserved.
    #[test]
    fn memory() {
        let mut summary = BucketSummary::default();
        let empty = size_of::<BucketSummary>();
        assert_eq!(summary.bytes(), empty);
        summary.adopted = Vec::with_capacity(100);
        let adopted = summary.adopted.capacity() * size_of::<usize>();
        assert_eq!(summary.bytes(), empty + adopted);
        summary.released = Vec::with_capacity(10);
        let released = summary.released.capacity() * size_of::<usize>();
        assert_eq!(summary.bytes(), empty + adopted + released);
        summary.numbers = Some(Box::new([1, 2, 3]));
        assert_eq!(summary.bytes(), empty + adopted + released + 12);
    }
}
