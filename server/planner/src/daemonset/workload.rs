//! A DaemonSet, as a snapshot holds it.

use crate::core::{
    json::Json,
    owner::Owner,
    snapshot::{ControllerRef, IntOrString, Labels, Selector},
    status::DaemonSetStatus,
};
use crate::rollout::{Policy, measurement::Measurement};

/// A DaemonSet. The values are as served: the planner does not rely on the apiserver's validation (D-120).
#[derive(Debug, Clone, PartialEq)]
pub struct DaemonSet {
    /// metadata.name.
    pub name: String,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.generation.
    pub generation: i64,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.annotations, sorted by key.
    pub annotations: Vec<(String, String)>,
    /// spec.selector; `None` when absent.
    pub selector: Option<Selector>,
    /// spec.template as served.
    pub template: Json,
    /// The scheduling constraints of `template`.
    pub scheduling: Scheduling,
    /// spec.updateStrategy.
    pub strategy: UpdateStrategy,
    /// spec.minReadySeconds.
    pub min_ready_seconds: i32,
    /// spec.revisionHistoryLimit; `None` when absent.
    pub revision_history_limit: Option<i32>,
    /// status.
    pub status: DaemonSetStatus,
    /// status.collisionCount.
    pub collision_count: Option<i32>,
    /// What progressive rollouts depend on.
    pub rollout: RolloutInputs,
}

/// What progressive rollouts of a DaemonSet depend on. Without policies the rest is not read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutInputs {
    /// metadata.labels of the DaemonSet.
    pub labels: Labels,
    /// The RolloutPolicies of the namespace that may target it.
    pub policies: Vec<Policy>,
    /// The measurements that were made for its policies.
    pub measurements: Vec<Measurement>,
}

impl DaemonSet {
    /// Whether planning reads a revision with these labels and this controller (D-51): the workload controls the revision, or the
    /// revision has no controller and the selector matches.
    #[must_use]
    pub fn reads_revision(&self, labels: &Labels, controller: Option<&ControllerRef>) -> bool {
        match controller {
            Some(controller) => controller.uid == self.uid,
            None => self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.selects(labels)),
        }
    }

    /// The workload as the owner of its pods and revisions.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner {
            kind: "DaemonSet",
            name: &self.name,
            uid: &self.uid,
            selector: self.selector.as_ref(),
            deleting: self.deleting,
        }
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        let found = self.annotations.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// The scheduling constraints of a pod template.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scheduling {
    /// spec.nodeName; empty when absent.
    pub node_name: String,
    /// spec.nodeSelector.
    pub node_selector: Vec<(String, String)>,
    /// spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms; `None` when the
    /// required part is absent.
    pub required_terms: Option<Vec<NodeSelectorTerm>>,
    /// spec.tolerations, without the automatic ones.
    pub tolerations: Vec<Toleration>,
    /// spec.hostNetwork.
    pub host_network: bool,
}

/// One term of a required node affinity, as served. Invalid expressions are kept because they make the term fail (D-16).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSelectorTerm {
    /// Expressions on the node's labels.
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Expressions on the node's fields.
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// One expression of a term, as served.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeSelectorRequirement {
    /// The label or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt` or anything else.
    pub operator: String,
    /// The operands.
    pub values: Vec<String>,
}

/// A toleration, as served. Absent strings are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Toleration {
    /// Empty: every key.
    pub key: String,
    /// Empty: `Equal`.
    pub operator: String,
    /// The value.
    pub value: String,
    /// Empty: every effect.
    pub effect: String,
}

/// spec.updateStrategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// Type `RollingUpdate`, with the field rollingUpdate if present.
    RollingUpdate(Option<RollingUpdate>),
    /// Type `OnDelete`, or an unknown type (D-50).
    OnDelete,
}

/// spec.updateStrategy.rollingUpdate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollingUpdate {
    /// maxUnavailable.
    pub max_unavailable: Option<IntOrString>,
    /// maxSurge.
    pub max_surge: Option<IntOrString>,
}
