//! A step of a rollout, and its end.

use std::time::Duration;

use nodewise_planner::plan::Reason;

/// What happens at one virtual time.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The time since the change.
    pub at: Duration,
    /// The writes, in order. Writes of statuses and Events are left out.
    pub changes: Vec<Change>,
    /// The counts after the writes, as the last plan at this time sees them. A pod that is being deleted counts until it is gone.
    pub counts: Counts,
    /// The most nodes or replicas without an available pod while this step is under way: those that are unavailable now, and those
    /// whose available pod this step deletes.
    pub worst_unavailable: u32,
    /// The most surging nodes or replicas while this step is under way, see [`Counts::surging`].
    pub worst_surging: u32,
    /// What the strategy allows.
    pub budget: Budget,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is done.
    pub verb: Verb,
    /// The resource, such as `pods`.
    pub resource: &'static str,
    /// The name of the object; empty if the apiserver chooses it.
    pub name: String,
    /// The node of a pod; empty for other objects and for pods that the scheduler places.
    pub node: String,
    /// Why, for programs; `None` if another program made the play and did not say.
    pub reason: Option<Reason>,
    /// Why, for people.
    pub message: String,
}

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Create.
    Create,
    /// Patch.
    Patch,
    /// Delete.
    Delete,
}

/// Counts of nodes of a DaemonSet, or of replicas of a Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Those that should have a pod.
    pub desired: u32,
    /// Those with a pod of the current template.
    pub updated: u32,
    /// Those with a ready pod.
    pub ready: u32,
    /// Those with an available pod.
    pub available: u32,
    /// Those without an available pod.
    pub unavailable: u32,
    /// Nodes with a second pod that replaces the first; of a Deployment, pods beyond `desired`. Pods that are being deleted do not
    /// count.
    pub surging: u32,
}

/// What the strategy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// maxUnavailable as a number.
    pub max_unavailable: u32,
    /// maxSurge as a number.
    pub max_surge: u32,
}

/// How a play ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Everything is updated and available.
    Done,
    /// Nothing changes any more, and the rollout is not done.
    Stuck {
        /// Why, for people.
        cause: String,
        /// The pods that are not ready, and their nodes: `POD` or `POD on NODE`. At most 20.
        blocking: Vec<String>,
    },
    /// A bound was reached before the end.
    Bound(Limit),
    /// The caller stopped the play.
    Cancelled,
}

/// The bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Virtual time.
    Time,
    /// Steps.
    Steps,
}

/// The result of a play.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// How it ended.
    pub end: End,
    /// The virtual time at the end.
    pub took: Duration,
    /// The number of steps.
    pub steps: usize,
    /// The number of plans.
    pub plans: usize,
    /// The counts at the end.
    pub counts: Counts,
    /// The greatest `worst_unavailable` of all steps.
    pub worst_unavailable: u32,
    /// The greatest `worst_surging` of all steps.
    pub worst_surging: u32,
    /// New pods that never become ready.
    pub failed_pods: usize,
    /// The nodes of a DaemonSet whose new pods never become ready, by the assumptions. Empty if another program made the play.
    pub failing_nodes: Vec<String>,
    /// The greatest budget of all steps.
    pub budget: Budget,
}
