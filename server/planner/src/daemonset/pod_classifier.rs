//! Classifies the workload's pods: of the current template or not, available or not.

use crate::{
    core::{
        availability::Availability,
        snapshot::{PodView, Snapshot},
    },
    daemonset::{
        manifest::{self, GENERATION_LABEL, HASH_LABEL},
        revisions::Resolution,
        workload::DaemonSet,
    },
};

/// A pod of the workload with its classification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPod<'a> {
    /// The pod.
    pub(crate) pod: PodView<'a>,
    /// Whether the pod is of the current template.
    pub(crate) template: TemplateMatch,
    /// Whether the pod has been ready for minReadySeconds.
    pub(crate) available: bool,
}

impl<'a> OwnPod<'a> {
    /// The hash label after the plan's relabels.
    pub(crate) fn hash(&self, resolution: &'a Resolution<'_>) -> Option<&'a str> {
        hash(self.pod, resolution)
    }

    /// Whether the pod is neither finished nor being deleted (D-30).
    pub(crate) fn is_live(&self) -> bool {
        self.pod.is_live()
    }

    /// Whether the pod has the current hash. D-34 uses this test.
    pub(crate) fn hash_new(&self) -> bool {
        self.template.hash_new
    }

    /// Whether the pod is as the rollout wants it: of the current template, by hash or by template generation. All other rules use
    /// this test. While a policy rolls back, the stable revision is what the rollout wants.
    pub(crate) fn updated(&self) -> bool {
        self.template.updated
    }

    /// Whether the pod is of the current template, also while a policy rolls back. Counts for people use this test.
    pub(crate) fn current(&self) -> bool {
        self.template.current
    }
}

/// Whether a pod is of the current template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TemplateMatch {
    /// The pod has the current hash.
    pub(crate) hash_new: bool,
    /// The pod is of the current template, by hash or by template generation.
    pub(crate) updated: bool,
    /// As `updated`, also while a policy rolls back to another revision.
    pub(crate) current: bool,
}

/// A pod's hash label after the plan's relabels (D-57).
fn hash<'a>(pod: PodView<'a>, resolution: &'a Resolution<'_>) -> Option<&'a str> {
    if is_relabelled(pod, resolution) {
        return Some(&resolution.current_hash);
    }
    pod.labels().get(HASH_LABEL)
}

fn is_relabelled(pod: PodView<'_>, resolution: &Resolution<'_>) -> bool {
    !resolution.relabelled.is_empty() && resolution.relabelled.contains(pod.uid())
}

/// Classifies single pods.
pub(crate) struct PodClassifier<'a> {
    /// Whether pods are available.
    pub(crate) availability: Availability,
    generation: Option<String>,
    resolution: &'a Resolution<'a>,
    /// The hash of the stable revision, while a policy rolls back to it.
    back_to: Option<&'a str>,
}

impl<'a> PodClassifier<'a> {
    /// A classifier for the pods of a snapshot. `goal` is the hash that a policy wants pods to have.
    pub(crate) fn new(
        snapshot: &'a Snapshot<DaemonSet>,
        resolution: &'a Resolution<'a>,
        goal: Option<&'a str>,
    ) -> Self {
        Self {
            availability: Availability::new(snapshot.now, snapshot.workload.min_ready_seconds),
            generation: manifest::template_generation(&snapshot.workload).map(|number| number.to_string()),
            resolution,
            back_to: goal.filter(|goal| *goal != resolution.current_hash),
        }
    }

    /// The hash of the stable revision, while a policy rolls back to it.
    pub(crate) fn back_to(&self) -> Option<&'a str> {
        self.back_to
    }

    /// Whether a pod is of the current template. `by_labels` is the result of [`Self::match_labels`] for this pod.
    pub(crate) fn match_pod(&self, pod: PodView<'_>, by_labels: TemplateMatch) -> TemplateMatch {
        if is_relabelled(pod, self.resolution) {
            self.match_hash(pod, &self.resolution.current_hash)
        } else {
            by_labels
        }
    }

    /// Whether a pod is of the current template by its labels. The result depends on nothing but the labels.
    pub(crate) fn match_labels(&self, pod: PodView<'_>) -> TemplateMatch {
        self.match_hash(pod, pod.labels().get(HASH_LABEL).unwrap_or_default())
    }

    fn match_hash(&self, pod: PodView<'_>, hash: &str) -> TemplateMatch {
        let current = self.resolution.current_hash.as_str();
        // The current hash is empty if a revision without hash label was found under the name. Then pods without a hash match
        //
        let hash_new = hash == current;
        let of_generation =
            || self.generation.is_some() && pod.labels().get(GENERATION_LABEL) == self.generation.as_deref();
        let is_current = (hash_new && !current.is_empty()) || of_generation();
        match self.back_to {
            None => TemplateMatch {
                hash_new,
                updated: is_current,
                current: is_current,
            },
            Some(stable) => TemplateMatch {
                hash_new: hash == stable,
                updated: hash == stable,
                current: is_current,
            },
        }
    }
}
