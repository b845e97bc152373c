//! May the workload run on a node, may it stay there, and why.

use crate::snapshot::{Node, Scheduling};

/// What a workload may do on a node. `run` implies `keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    /// A pod may be started here.
    pub(crate) run: bool,
    /// A pod that is here may stay.
    pub(crate) keep: bool,
}

/// The constraint that decides about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constraint {
    /// None: all are met.
    Eligible,
    /// The template's nodeName.
    NodeName,
    /// The template's nodeSelector.
    NodeSelector,
    /// The template's required node affinity.
    NodeAffinity,
    /// A taint with effect `NoSchedule` (no untolerated `NoExecute` taint besides).
    TaintNoSchedule,
    /// A taint with effect `NoExecute`.
    TaintNoExecute,
}

/// A fit, and what decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The outcome; equals that of [`Eligibility::evaluate`].
    pub(crate) fit: Fit,
    /// The constraint that decides.
    pub(crate) constraint: Constraint,
    /// One sentence for people that names what decides.
    pub(crate) message: String,
    /// Each constraint that was looked at and how it came out, one sentence each.
    pub(crate) details: Vec<String>,
}

/// The constraints of a pod template, compiled for many nodes.
#[derive(Debug, Clone)]
pub(crate) struct Eligibility {}

impl Eligibility {
    /// Compiles the constraints. `comparison_operators`: tolerations may use `Gt` and `Lt`.
    pub(crate) fn compile(_scheduling: &Scheduling, _comparison_operators: bool) -> Self {
        todo!()
    }

    /// Whether the workload may run on, and stay on, a node.
    pub(crate) fn evaluate(&self, _node: &Node) -> Fit {
        todo!()
    }

    /// The same as [`Self::evaluate`], with the reasons.
    pub(crate) fn decide(&self, _node: &Node) -> Decision {
        todo!()
    }
}
