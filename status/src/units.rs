//! The units of a rollout: the nodes of a DaemonSet, or the pods of a ReplicaSet or Deployment.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::{moment, timestamp};
use nodewise_proto::v1::{self, action};

use crate::{facts::PodFacts, inputs::Inputs};

/// A pod that is not ready for so long counts as blocked, also if its status names no failure. Three minutes is the time after which
/// the alert about a used-up budget fires.
const LATE: SignedDuration = SignedDuration::from_mins(3);
/// A pod whose deletion ended so long ago, by its deletionTimestamp, is stuck.
const DELETION_LATE: SignedDuration = SignedDuration::from_secs(30);

/// What a rollout looks like, whatever the kind of the workload.
pub(crate) struct View {
    pub(crate) units: Vec<Unit>,
    /// The number of units that there should be.
    pub(crate) desired: u32,
    pub(crate) strategy: v1::UpdateStrategy,
    pub(crate) revisions: Vec<v1::RevisionStatus>,
    pub(crate) nodes: Vec<v1::NodeStatus>,
    pub(crate) pods: Vec<v1::PodStatus>,
    /// Pods that must still go before the rollout is complete.
    pub(crate) surplus: usize,
    /// When pods of the current revision became ready.
    pub(crate) ready_times: Vec<Timestamp>,
    /// The time at which the rollout began.
    pub(crate) started_at: Option<Timestamp>,
}

/// One node, or one pod.
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) progress: Progress,
}

/// How far a unit is.
pub(crate) enum Progress {
    Done,
    Progressing,
    Blocked(Cause),
    Waiting,
    MustNotRun,
}

impl Progress {
    /// The state, as messages name it.
    pub(crate) fn state(&self) -> v1::UnitState {
        match self {
            Self::Done => v1::UnitState::Done,
            Self::Progressing => v1::UnitState::Progressing,
            Self::Blocked(_) => v1::UnitState::Blocked,
            Self::Waiting => v1::UnitState::Waiting,
            Self::MustNotRun => v1::UnitState::MustNotRun,
        }
    }

    /// The reason of the cause. Empty if the unit is not blocked.
    pub(crate) fn block_reason(&self) -> &str {
        match self {
            Self::Blocked(cause) => &cause.problem.reason,
            _ => "",
        }
    }
}

/// Why a unit is blocked.
pub(crate) struct Cause {
    pub(crate) problem: v1::PodProblem,
    pub(crate) since: Option<Timestamp>,
}

/// How far a unit is whose pod is not available.
pub(crate) fn of_pod(pod: &PodFacts, now: Timestamp) -> Progress {
    if pod.deleted.is_some() {
        return match stuck_deletion(pod, now) {
            Some(cause) => Progress::Blocked(cause),
            None => Progress::Progressing,
        };
    }
    let since = pod.not_ready_since();
    let Some(problem) = &pod.problem else {
        return Progress::Progressing;
    };
    let is_late = since.is_some_and(|since| now.duration_since(since) > LATE);
    if problem.is_failing || is_late {
        return Progress::Blocked(Cause {
            problem: problem.clone(),
            since,
        });
    }
    Progress::Progressing
}

/// When a unit whose pod is not available is blocked although nothing changes. `None` if it is, or if that never happens.
pub(crate) fn blocked_at(pod: &PodFacts, now: Timestamp) -> Option<Timestamp> {
    let late = match pod.deleted {
        Some(deleted) => deleted.saturating_add(DELETION_LATE),
        None => pod.not_ready_since()?.saturating_add(LATE),
    };
    // A second later, because it must take longer than that.
    let at = late.ok()?.saturating_add(SignedDuration::from_secs(1)).ok()?;
    (at > now).then_some(at)
}

/// The reason of the cause if a pod does not end.
pub const DELETION_STUCK: &str = "DeletionStuck";

/// The cause of a deletion that takes longer than it should: a finalizer, or a kubelet that does not end the pod.
fn stuck_deletion(pod: &PodFacts, now: Timestamp) -> Option<Cause> {
    let deleted = pod.deleted?;
    if now.duration_since(deleted) <= DELETION_LATE {
        return None;
    }
    let message = match pod.finalizers.as_slice() {
        [] => format!(
            "the pod should have ended at {deleted}; the kubelet of {} has not ended it",
            pod.node_name
        ),
        finalizers => format!(
            "the pod should have ended at {deleted}; it has the finalizers {}",
            finalizers.join(", ")
        ),
    };
    let problem = v1::PodProblem {
        reason: DELETION_STUCK.to_owned(),
        message,
        is_failing: true,
        ..v1::PodProblem::default()
    };
    Some(Cause {
        problem,
        since: Some(deleted),
    })
}

/// The reason of the cause if the apiserver refuses to create pods.
pub const CREATE_REFUSED: &str = "CreateRefused";

/// The cause of a pod that does not exist because the apiserver refused it.
pub(crate) fn refused(refusal: &v1::Refusal) -> Cause {
    Cause {
        problem: v1::PodProblem {
            reason: CREATE_REFUSED.to_owned(),
            message: format!("the apiserver refused to create the pod: {}", refusal.message),
            is_failing: true,
            ..v1::PodProblem::default()
        },
        since: refusal.since.or(refusal.at).and_then(moment),
    }
}

/// Whether a pod is to be created. Only then does it matter that the apiserver refused one.
#[must_use]
pub fn lacks_a_pod(plan: &v1::Plan, explanation: &v1::ExplainResponse) -> bool {
    let creates = |action: &v1::Action| matches!(action.kind, Some(action::Kind::CreatePod(_)));
    let mut nodes = explanation.nodes.iter();
    nodes.any(|node| node.state() == v1::NodeState::Missing) || plan.actions().any(creates)
}

/// The last refused create or delete: from an Event that is newer than every pod, or from conditions.
pub(crate) fn refusal(inputs: &Inputs<'_>) -> Option<v1::Refusal> {
    let newest_pod = inputs.pods.iter().filter_map(|pod| pod.created).max();
    let needed = inputs
        .refusal
        .filter(|_| lacks_a_pod(inputs.plan, inputs.explanation));
    let event = needed.filter(|refusal| {
        let at = refusal.at.and_then(moment);
        at.is_none_or(|at| newest_pod.is_none_or(|newest| at >= newest))
    });
    let from_sets = inputs.templates.iter().filter_map(|set| set.failure.as_ref());
    let conditions = inputs.workload.failure.iter().chain(from_sets);
    let newest = conditions.max_by_key(|(_, at)| *at);
    newest
        .map(|(message, at)| v1::Refusal {
            message: message.clone(),
            at: at.map(timestamp),
            // The condition keeps its time while pods are refused.
            since: at.map(timestamp),
        })
        .or_else(|| event.map(|event| since_newest(event, newest_pod)))
}

/// An Event is counted on after a while without refusals. Then what it says about the first one is of an earlier time, and the series began
/// after the newest pod was created.
fn since_newest(event: &v1::Refusal, newest_pod: Option<Timestamp>) -> v1::Refusal {
    let since = event.since.and_then(moment).max(newest_pod);
    v1::Refusal {
        since: since.map(timestamp).or(event.at),
        ..event.clone()
    }
}
