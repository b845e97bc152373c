//! The workload's pods one by one (the terms of chapter 0): what is true of each.

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::snapshot::{Pod, Snapshot},
    daemonset::{
        manifest::{self, GENERATION_LABEL, HASH_LABEL},
        revisions::Resolution,
    },
};

/// A pod of the workload, and what is true of it in this plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPod<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// What its labels say.
    pub(crate) age: TemplateMatch,
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
        self.pod.is_live()
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
pub(crate) struct TemplateMatch {
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
pub(crate) struct PodClassifier<'a> {
    now: Timestamp,
    min_ready: SignedDuration,
    generation: Option<String>,
    resolution: &'a Resolution<'a>,
}

impl<'a> PodClassifier<'a> {
    /// For the pods of a snapshot.
    pub(crate) fn new(snapshot: &'a Snapshot, resolution: &'a Resolution<'a>) -> Self {
        Self {
            now: snapshot.now,
            min_ready: SignedDuration::from_secs(snapshot.daemon_set.min_ready_seconds.into()),
            generation: manifest::template_generation(&snapshot.daemon_set).map(|number| number.to_string()),
            resolution,
        }
    }

    /// Whether a pod is of the current template, of which its labels say `by_labels`.
    pub(crate) fn age(&self, pod: &Pod, by_labels: TemplateMatch) -> TemplateMatch {
        if is_relabelled(pod, self.resolution) {
            self.age_of(pod, &self.resolution.current_hash)
        } else {
            by_labels
        }
    }

    /// Whether the labels of a pod are those of the current template. Depends on nothing else.
    pub(crate) fn age_by_labels(&self, pod: &Pod) -> TemplateMatch {
        self.age_of(pod, pod.labels.get(HASH_LABEL).unwrap_or_default())
    }

    fn age_of(&self, pod: &Pod, hash: &str) -> TemplateMatch {
        let current = self.resolution.current_hash.as_str();
        // Without a current hash, which a revision of that name that was found can be, the pods without one are new.
        let hash_new = hash == current;
        let of_generation =
            || self.generation.is_some() && pod.labels.get(GENERATION_LABEL) == self.generation.as_deref();
        TemplateMatch {
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
