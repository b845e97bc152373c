//! The inputs and the result of a decision about a rollout.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::{
        measurement::{Measurement, MeasurementRequest},
        plan::EventType,
        snapshot::IntOrString,
    },
    rollout::{
        nodes::{NodeFacts, in_seconds},
        policy::{Order, Stage},
        status::TargetStatus,
    },
};

/// The cluster, as the rollout sees it.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    /// The time.
    pub(crate) now: Timestamp,
    /// minReadySeconds.
    pub(crate) min_ready: SignedDuration,
    /// The nodes that should run a pod. If the rollout is settled: only those on which not all is well.
    pub(crate) nodes: Vec<NodeFacts<'a>>,
    /// How many nodes should run a pod.
    pub(crate) desired: usize,
    /// How many of these have a pod of the update revision.
    pub(crate) updated: usize,
    /// How many pods there are of each revision. Empty if the stable revision is known, which is why they are counted.
    pub(crate) pods: BTreeMap<&'a str, usize>,
    /// What executors measured since the last status.
    pub(crate) measurements: &'a [Measurement],
}

/// The decision about a rollout.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decision {
    /// The next status of the workload.
    pub(crate) status: TargetStatus,
    /// Which nodes are admitted to the update revision.
    pub(crate) admitted: Admitted,
    /// Whether pods that run may be replaced now.
    pub(crate) replaces: bool,
    /// What the decision says about single nodes.
    pub(crate) nodes: NodeDecisions,
    /// The stage whose limits apply.
    pub(crate) limits: StageLimits,
    /// How many further nodes may be begun now; `None` without a limit.
    pub(crate) pace_left: Option<usize>,
    /// In which order nodes are updated.
    pub(crate) order: Option<Order>,
    /// Whether pods are evicted, not deleted.
    pub(crate) evicts: bool,
    /// Whether nodes that are not admitted get pods of the stable revision.
    pub(crate) keeps_stable: bool,
    /// The Events about the transitions of this plan.
    pub(crate) events: Vec<RolloutEvent>,
    /// The measurements to make.
    pub(crate) due: Vec<MeasurementRequest>,
    /// When to decide again, and why.
    pub(crate) again: Vec<(Duration, String)>,
}

/// The nodes that are admitted to the update revision (L-5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Admitted {
    /// No node.
    #[default]
    None,
    /// Every node.
    All,
    /// The nodes of these entries.
    Some(Vec<bool>),
}

impl Admitted {
    /// Whether the node of this entry is admitted.
    pub(crate) fn has(&self, entry: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(entries) => entries.get(entry).copied().unwrap_or_default(),
        }
    }
}

/// What a decision says about one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one answer about the node, and all combinations occur"
)]
pub(crate) struct NodeDecision {
    /// It is neither waited for nor touched.
    pub(crate) is_exempt: bool,
    /// It does not use the budget, whatever its pods are.
    pub(crate) is_free: bool,
    /// It comes before others.
    pub(crate) is_first: bool,
    /// The index of its wave in the status; `None` if no rollout is going on.
    pub(crate) wave: Option<usize>,
    /// The partition withholds it.
    pub(crate) is_withheld: bool,
}

/// What a decision says about single nodes, by the index of their entries. A node of which nothing is said is like any other.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeDecisions(Vec<NodeDecision>);

impl NodeDecisions {
    /// What is said about the node of an entry.
    pub(crate) fn of(&self, entry: usize) -> NodeDecision {
        self.0.get(entry).copied().unwrap_or_default()
    }

    /// Says something about the node of an entry.
    pub(crate) fn set(&mut self, entry: usize, decision: NodeDecision) {
        if self.0.len() <= entry {
            self.0.resize(entry + 1, NodeDecision::default());
        }
        self.0[entry] = decision;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &NodeDecision> {
        self.0.iter()
    }
}

/// The limits of a stage, within those of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StageLimits {
    /// maxUnavailable.
    pub(crate) max_unavailable: Option<IntOrString>,
    /// maxSurge.
    pub(crate) max_surge: Option<IntOrString>,
}

/// An Event on the workload and on its policy (L-37).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RolloutEvent {
    /// The type.
    pub(crate) event_type: EventType,
    /// For programs.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
}

impl StageLimits {
    /// The limits of a stage.
    pub(crate) fn of(stage: Option<&Stage>) -> Self {
        Self {
            max_unavailable: stage.and_then(|stage| stage.max_unavailable.clone()),
            max_surge: stage.and_then(|stage| stage.max_surge.clone()),
        }
    }
}

/// Says when a window opens.
pub(crate) fn outside(opens_in: Option<Duration>, now: Timestamp) -> String {
    match opens_in {
        Some(left) => {
            let opens = now.saturating_add(left).unwrap_or(now);
            format!("no window is open; the next one opens at {}", in_seconds(opens))
        }
        None => "no window is open, and none opens within a week".to_owned(),
    }
}

/// A count, as a status has it.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
