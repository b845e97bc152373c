//! What a status is computed from.

use jiff::Timestamp;
use nodewise_proto::v1;

use crate::facts::{NodeFacts, PodFacts, PolicyFacts, TemplateFacts, WorkloadFacts};

/// What a status is computed from. All of it describes the same moment.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The workload.
    pub workload: &'a WorkloadFacts,
    /// Its next plan.
    pub plan: &'a v1::Plan,
    /// Its explanation, of all nodes.
    pub explanation: &'a v1::ExplainResponse,
    /// Its pods; of a Deployment, those of its ReplicaSets.
    pub pods: &'a [&'a PodFacts],
    /// Facts about a node by its name.
    pub node: &'a dyn Fn(&str) -> Option<&'a NodeFacts>,
    /// Its ControllerRevisions or ReplicaSets.
    pub templates: &'a [TemplateFacts],
    /// The RolloutPolicies of its namespace.
    pub policies: &'a [PolicyFacts],
    /// The last create or delete that the apiserver refused, if an Event says so. Conditions of the workload are read here.
    pub refusal: Option<&'a v1::Refusal>,
    /// The time of the snapshot.
    pub now: Timestamp,
}
