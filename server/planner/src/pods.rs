//! The workload's pods one by one (chapter 3, and the terms of chapter 0): who is claimed, what is true of each, and which is
//! kept first.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

use crate::{
    alike::Alike,
    claims::{self, Claim},
    manifest::{self, GENERATION_LABEL, HASH_LABEL},
    plan::{Action, ActionKind, Batch, ObjectRef, Reason},
    revisions::Resolution,
    snapshot::{DaemonSet, Listed as _, Pod, Snapshot, Target},
};

/// The pods whose owner changes (D-28).
#[derive(Debug, Default)]
pub(crate) struct Claims<'a> {
    /// Orphans that become the workload's.
    pub(crate) adopted: Vec<&'a Pod>,
    /// Pods that are let go.
    pub(crate) released: Vec<&'a Pod>,
}

impl Claims<'_> {
    /// By name, whatever the buckets.
    pub(crate) fn sort(&mut self) {
        for pods in [&mut self.adopted, &mut self.released] {
            pods.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }

    /// The batches of phase Claims, with so many actions at most. All go out together, so that a claim which fails holds up no
    /// other (D-23.4).
    pub(crate) fn batches(&self, ds: &DaemonSet, most: usize) -> Vec<Batch> {
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

/// What becomes of a pod.
pub(crate) fn claim(ds: &DaemonSet, pod: &Pod) -> Claim {
    claims::claim(ds, &pod.labels, pod.controller.as_deref(), pod.deleting)
}

/// All pods that are the workload's once they are claimed, by node, those without one first.
pub(crate) fn owned(snapshot: &Snapshot) -> Vec<&Pod> {
    let mut alike = Alike::default();
    let owned = |pod: &&Pod| {
        let claim = alike.find(pod, || claim(&snapshot.daemon_set, pod));
        matches!(claim, Claim::Owned | Claim::Adopt)
    };
    let mut pods: Vec<_> = snapshot.pods().filter(owned).collect();
    pods.sort_by(|a, b| Pod::order(a, b));
    pods
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

/// The order in which pods of a node are kept (D-38): bound first, then older, then by name; last those that do not occupy
/// the node any more. The uid only makes the order total where names repeat.
pub(crate) fn order(a: &Pod, b: &Pod) -> Ordering {
    let unbound = |pod: &Pod| !matches!(pod.target, Target::Bound(_));
    is_gone(a)
        .cmp(&is_gone(b))
        .then_with(|| unbound(a).cmp(&unbound(b)))
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.name.cmp(&b.name))
        .then_with(|| a.uid.cmp(&b.uid))
}

/// Finished and being deleted: such a pod does not occupy its node any more (D-26).
pub(crate) fn is_gone(pod: &Pod) -> bool {
    pod.deleting && pod.phase.is_terminal()
}

/// Neither finished nor being deleted (D-30).
pub(crate) fn is_live(pod: &Pod) -> bool {
    !pod.deleting && !pod.phase.is_terminal()
}

/// A pod of the workload, and what is true of it in this plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPod<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// What its labels say.
    pub(crate) age: Age,
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
        is_live(self.pod)
    }

    /// Carries the current hash: the narrow notion of D-34.
    pub(crate) fn hash_new(&self) -> bool {
        self.age.hash_new
    }

    /// Of the current template, by hash or by template generation: "new" everywhere else.
    pub(crate) fn updated(&self) -> bool {
        self.age.updated
    }
}

/// Whether a pod is of the current template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age {
    /// Carries the current hash.
    pub(crate) hash_new: bool,
    /// Of the current template, by hash or by template generation.
    pub(crate) updated: bool,
}

/// A pod's hash label, as it is after the plan's relabels (D-57).
fn hash<'a>(pod: &'a Pod, resolution: &'a Resolution<'_>) -> Option<&'a str> {
    if is_relabelled(pod, resolution) {
        return Some(&resolution.current_hash);
    }
    pod.labels.get(HASH_LABEL)
}

fn is_relabelled(pod: &Pod, resolution: &Resolution<'_>) -> bool {
    !resolution.relabelled.is_empty() && resolution.relabelled.contains(pod.uid.as_str())
}

/// Judges single pods.
pub(crate) struct Judge<'a> {
    now: Timestamp,
    min_ready: SignedDuration,
    generation: Option<String>,
    resolution: &'a Resolution<'a>,
}

impl<'a> Judge<'a> {
    /// A judge of the pods of a snapshot.
    pub(crate) fn new(snapshot: &'a Snapshot, resolution: &'a Resolution<'a>) -> Self {
        Self {
            now: snapshot.now,
            min_ready: SignedDuration::from_secs(snapshot.daemon_set.min_ready_seconds.into()),
            generation: manifest::template_generation(&snapshot.daemon_set).map(|number| number.to_string()),
            resolution,
        }
    }

    /// Whether a pod is of the current template, of which its labels say `by_labels`.
    pub(crate) fn age(&self, pod: &Pod, by_labels: Age) -> Age {
        if is_relabelled(pod, self.resolution) {
            self.age_of(pod, &self.resolution.current_hash)
        } else {
            by_labels
        }
    }

    /// Whether the labels of a pod are those of the current template. Depends on nothing else.
    pub(crate) fn age_by_labels(&self, pod: &Pod) -> Age {
        self.age_of(pod, pod.labels.get(HASH_LABEL).unwrap_or_default())
    }

    fn age_of(&self, pod: &Pod, hash: &str) -> Age {
        let current = self.resolution.current_hash.as_str();
        // Without a current hash, which a revision of that name that was found can be, the pods without one are new.
        let hash_new = hash == current;
        let of_generation =
            || self.generation.is_some() && pod.labels.get(GENERATION_LABEL) == self.generation.as_deref();
        Age {
            hash_new,
            updated: (hash_new && !current.is_empty()) || of_generation(),
        }
    }

    /// Whether a pod is ready for long enough.
    pub(crate) fn is_available(&self, pod: &Pod) -> bool {
        pod.ready && (!self.waits() || pod.ready_since.is_some_and(|since| self.suffices(since)))
    }

    /// Whether ready pods have to wait until they are available, so that time decides.
    pub(crate) fn waits(&self) -> bool {
        !self.min_ready.is_zero()
    }

    /// Whether what is ready since then is ready for long enough.
    pub(crate) fn suffices(&self, since: Timestamp) -> bool {
        self.now.duration_since(since) >= self.min_ready
    }
}
