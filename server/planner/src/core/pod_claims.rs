//! The pods that the workload owns, adopts and releases, and the actions for that.

use crate::core::{
    claims::{self, Claim},
    owner::Owner,
    plan::{Action, ActionKind, Batch, ObjectRef, Reason},
    pod_findings::PodFindings,
    snapshot::{PodView, Snapshot},
};

/// The pods that the plan adopts or releases (D-28).
#[derive(Debug, Default)]
pub(crate) struct Claims<'a> {
    /// Orphans that the workload adopts.
    pub(crate) adopted: Vec<PodView<'a>>,
    /// Pods that the workload releases.
    pub(crate) released: Vec<PodView<'a>>,
}

impl Claims<'_> {
    /// Sorts by name, so that the order does not depend on the buckets.
    pub(crate) fn sort(&mut self) {
        for pods in [&mut self.adopted, &mut self.released] {
            pods.sort_by_key(|pod| pod.name());
        }
    }

    /// The batches of phase Claims, with at most `most` actions. All claims are in one batch, so that a failed claim does not stop
    /// the others (D-23).
    pub(crate) fn batches(&self, owner: Owner<'_>, most: usize) -> Vec<Batch> {
        let released = self.released.iter().map(|pod| Action {
            reason: Reason::SelectorDoesNotMatch,
            message: format!("pod {} no longer matches the selector", pod.name()),
            kind: ActionKind::ReleasePod {
                pod: reference(*pod),
                patch: claims::release_patch(owner, pod.uid()),
            },
        });
        let adopted = self.adopted.iter().map(|pod| Action {
            reason: Reason::SelectorMatches,
            message: format!("pod {} has no controller and matches the selector", pod.name()),
            kind: ActionKind::AdoptPod {
                pod: reference(*pod),
                patch: claims::adopt_patch(owner, pod.uid()),
            },
        });
        let actions: Vec<_> = released.chain(adopted).take(most).collect();
        if actions.is_empty() {
            return Vec::new();
        }
        vec![Batch {
            actions,
            confirm_workload: !self.adopted.is_empty(),
        }]
    }
}

/// The claim of a pod.
pub(crate) fn claim(owner: Owner<'_>, pod: PodView<'_>) -> Claim {
    claims::claim(owner, pod.labels(), pod.controller(), pod.deleting())
}

/// All pods that the workload owns after its claims, by node. Pods without a node come first.
pub(crate) fn owned<'a, W>(snapshot: &'a Snapshot<W>, owner: Owner<'_>) -> Vec<PodView<'a>> {
    let mut pods = Vec::new();
    for bucket in &snapshot.buckets {
        let mut findings = PodFindings::default();
        pods.extend(bucket.pods.iter().filter(|pod| {
            let claim = findings.find(*pod, || self::claim(owner, *pod));
            matches!(claim, Claim::Owned | Claim::Adopt)
        }));
    }
    pods.sort_by(|a, b| a.order(*b));
    pods
}

/// A reference to a pod.
pub(crate) fn reference(pod: PodView<'_>) -> ObjectRef {
    ObjectRef {
        name: pod.name().to_owned(),
        uid: pod.uid().to_owned(),
    }
}

/// For a pod that the workload owns or adopts: whether this plan adopts it. Upstream handles adopted pods after owned ones.
pub(crate) fn is_adopted(pod: PodView<'_>) -> bool {
    pod.controller().is_none()
}
