//! The status of a RolloutPolicy: all that a rollout must remember (L-34). The service keeps nothing; it reads the status from the
//! snapshot, and its plan writes the new one.
//!
//! A status that is lost, or that somebody else wrote, never makes a plan fail: unknown parts are ignored, and what is missing is
//! found out anew (L-35).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The most nodes that a status names. The CRD has the same limit.
const MOST_BLOCKING: usize = 10;
/// The most entries of `pace`. The CRD has the same limit.
const MOST_PACE: usize = 256;

/// status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// The generation of the policy that the status reflects.
    pub observed_generation: i64,
    /// The conditions, in the order in which they are written.
    pub conditions: Vec<Condition>,
    /// What `kubectl get` prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The state of each workload that the policy rolls out, by name.
    pub targets: Vec<TargetStatus>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// For programs.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The generation of the policy that it reflects.
    pub observed_generation: i64,
    /// When `status` changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// What `kubectl get` prints.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The workload, or how many there are.
    pub target: String,
    /// The present stage.
    pub stage: String,
    /// Nodes with the update revision, of those that should run a pod: `12/100`.
    pub updated: String,
    /// The state.
    pub state: String,
}

/// The rollout of one workload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetStatus {
    /// metadata.name of the workload.
    pub name: String,
    /// metadata.uid of the workload.
    pub uid: String,
    /// The revision of the present template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<RevisionRef>,
    /// The last revision whose rollout succeeded (L-4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_revision: Option<RevisionRef>,
    /// The update revision, if it must not be rolled out any further (L-26).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_revision: Option<Rejection>,
    /// The revision that a person let go on after it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
    /// What the annotation `nodewise.dev/rollback` must be to reject the update revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The state.
    pub state: State,
    /// The state, for people.
    pub message: String,
    /// Nodes that should run a pod.
    pub desired: u32,
    /// Nodes of these with a pod of the update revision.
    pub updated: u32,
    /// Nodes of these with an available pod of any revision.
    pub available: u32,
    /// maxUnavailable as a number of nodes.
    pub max_unavailable: u32,
    /// What the policy asks for that the executor's mode cannot do (L-38).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<String>,
    /// When the rollout of the update revision began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Since when nodes may be without a pod because the rollout deleted it. Absent when a rollout is over and every node has a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disrupted_since: Option<Timestamp>,
    /// When this entry was written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// The stages of the rollout, in order; of a stage with groupBy, its waves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageStatus>,
    /// The approvals that were given for this update revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// The approval that is waited for (L-30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_approval: Option<PendingApproval>,
    /// How many nodes were begun, and when; only as far back as the pace's interval reaches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pace: Vec<Begun>,
    /// Nodes that hold the rollout up: at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<Blocking>,
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionRef {
    /// The value of the label `controller-revision-hash`.
    pub hash: String,
    /// The revision number.
    pub number: i64,
}

/// A rejected revision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rejection {
    /// The value of the label `controller-revision-hash`.
    pub hash: String,
    /// The revision number.
    pub number: i64,
    /// Why, for programs: `FailureThreshold`, `AnalysisFailed`, `ApprovalDenied` or `Requested`.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Whether a person asked for the way back, whatever onFailure says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub roll_back: bool,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// What the annotation `nodewise.dev/resume` must be to let the revision go on.
    pub digest: String,
}

/// A revision that was let go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resumed {
    /// The value of the label `controller-revision-hash`.
    pub hash: String,
    /// When. Failures before do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// The state of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented once, in docs/rollouts.md")]
pub enum State {
    /// Every node has the update revision, or should not.
    #[default]
    Complete,
    /// Another policy counts for this workload (L-1).
    Conflict,
    /// The update revision went back to the stable one.
    RolledBack,
    Progressing,
    Soaking,
    Analyzing,
    OutsideWindow,
    AwaitingApproval,
    /// Only nodes of the partition are left.
    Partitioned,
    Paused,
    /// A check can neither pass nor fail.
    AnalysisHeld,
    TooManyNodesNotReady,
    ProgressDeadlineExceeded,
    /// Nodes go back to the stable revision.
    RollingBack,
    /// The update revision is rejected, and a person has to decide.
    Rejected,
    /// The policy cannot be used.
    #[serde(other)]
    Invalid,
}

impl State {
    /// The name, as the status has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Conflict => "Conflict",
            Self::RolledBack => "RolledBack",
            Self::Progressing => "Progressing",
            Self::Soaking => "Soaking",
            Self::Analyzing => "Analyzing",
            Self::OutsideWindow => "OutsideWindow",
            Self::AwaitingApproval => "AwaitingApproval",
            Self::Partitioned => "Partitioned",
            Self::Paused => "Paused",
            Self::AnalysisHeld => "AnalysisHeld",
            Self::TooManyNodesNotReady => "TooManyNodesNotReady",
            Self::ProgressDeadlineExceeded => "ProgressDeadlineExceeded",
            Self::RollingBack => "RollingBack",
            Self::Rejected => "Rejected",
            Self::Invalid => "Invalid",
        }
    }
}

/// One stage, or one wave of a stage with groupBy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageStatus {
    /// The name; of a wave, with the value of its label: `zones/eu-1a`.
    pub name: String,
    /// Its nodes.
    pub nodes: u32,
    /// Nodes with a pod of the update revision.
    pub updated: u32,
    /// Nodes whose pod of the update revision is available.
    pub available: u32,
    /// Nodes that are not waited for.
    pub exempt: u32,
    /// Nodes that failed.
    pub failed: u32,
    /// The state.
    pub state: StageState,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Since when all its pods are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak_start_time: Option<Timestamp>,
    /// When it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// The counts of its checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analysis: Vec<CheckStatus>,
}

/// The state of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented once, in docs/rollouts.md")]
pub enum StageState {
    #[default]
    Pending,
    OutsideWindow,
    AwaitingApproval,
    Analyzing,
    Progressing,
    Soaking,
    Complete,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// The counts of one check of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckStatus {
    /// The name of the check.
    pub name: String,
    /// Measurements so far. The next one has this number.
    pub measurements: u32,
    /// Those that passed.
    pub successful: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that said neither.
    pub inconclusive: u32,
    /// Those that could not be made.
    pub errors: u32,
    /// How many of the last ones could not be made.
    pub consecutive_errors: u32,
    /// When the last one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The last value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What the last one said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An approval that was given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Approval {
    /// The name of the stage.
    pub stage: String,
    /// The digest that was approved.
    pub digest: String,
    /// When it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// An approval that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PendingApproval {
    /// The name of the stage.
    pub stage: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// What to approve: a digest over the policy, the update revision, the stage and its nodes.
    pub digest: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// An approval of another digest that was found, and that an Event was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_digest: Option<String>,
}

/// How many nodes were begun at a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Begun {
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// How many.
    pub nodes: u32,
}

/// A node that holds the rollout up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocking {
    /// The node.
    pub node: String,
    /// Why, in words.
    pub reason: String,
}

impl PolicyStatus {
    /// The entry of a workload. An entry of a workload of another uid is not it.
    #[must_use]
    pub fn target(&self, name: &str, uid: &str) -> Option<&TargetStatus> {
        self.targets
            .iter()
            .find(|target| target.name == name && target.uid == uid)
    }
}

impl TargetStatus {
    /// Names a node that holds the rollout up. Of many only the first are named.
    pub(crate) fn block(&mut self, node: &str, reason: String) {
        if self.blocking.len() < MOST_BLOCKING && self.blocking.iter().all(|known| known.node != node) {
            self.blocking.push(Blocking {
                node: node.to_owned(),
                reason,
            });
        }
    }

    /// Notes that so many nodes are begun. Of many entries the two oldest become one, at the later time.
    pub(crate) fn note_begun(&mut self, nodes: usize, now: Timestamp) {
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        self.pace.push(Begun {
            time: Some(now),
            nodes,
        });
        while self.pace.len() > MOST_PACE {
            let oldest = self.pace.remove(0);
            let next = &mut self.pace[0];
            next.nodes = next.nodes.saturating_add(oldest.nodes);
        }
    }

    /// The entry of a stage or wave.
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<&StageStatus> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

impl StageStatus {
    /// Whether it was found complete once.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == StageState::Complete
    }

    /// Whether its nodes are admitted.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.start_time.is_some()
    }
}
