//! The custom resource `rolloutpolicies.nodewise.dev/v1alpha1`: a policy says how the new revision of a DaemonSet
//! reaches the nodes.
//!
//! This crate owns the shape of the object and nothing else: the Rust types, and the CRD that is made from them
//! ([`RolloutPolicy::crd`]). What a policy means for a rollout is decided elsewhere. The comments of the fields are the
//! descriptions that `kubectl explain rolloutpolicy` prints.
//!
//! Fields that this version does not know are ignored, so that an older program can read a newer object. Values
//! that it cannot understand are errors: a policy must not be followed in part.

#![expect(
    rustdoc::bare_urls,
    reason = "the comments of fields are texts of kubectl too"
)]

mod analysis;
mod crd;
mod duration;
mod int_or_percent;
mod policy;
mod schema;
mod stage;
mod status;
mod time_of_day;

pub use analysis::{Analysis, AnalysisTime, GrpcVerdict, PrometheusQuery, Webhook};
pub use duration::{Duration, ParseDurationError};
pub use int_or_percent::{IntOrPercent, ParseIntOrPercentError};
pub use kube_core::CustomResourceExt;
pub use policy::{
    Disruption, Maintenance, NodeOrder, Nodes, NotReady, OnFailure, Pace, RolloutPolicy, RolloutPolicySpec,
    Targets, Unadmitted, Weekday, Window,
};
pub use stage::{Approval, Stage};
pub use status::{
    AnalysisStatus, ApprovalRecord, BlockedNode, PaceRecord, PendingApproval, RejectedRevision,
    ResumedRevision, Revision, RolloutPolicyStatus, StageState, StageStatus, Summary, TargetStatus, accepted,
    condition, host_not_allowed,
};
pub use time_of_day::{ParseTimeOfDayError, TimeOfDay};

/// The values that count where a policy says nothing.
pub mod defaults {
    use crate::{Duration, IntOrPercent};

    /// `partition`: every node is updated.
    pub const PARTITION: IntOrPercent = IntOrPercent::Number(0);
    /// `nodes.maxExempt`.
    pub const MAX_EXEMPT: IntOrPercent = IntOrPercent::Percent(10);
    /// `progressDeadlineSeconds`.
    pub const PROGRESS_DEADLINE_SECONDS: u32 = 600;
    /// `failureThreshold`: the first node that fails.
    pub const FAILURE_THRESHOLD: IntOrPercent = IntOrPercent::Number(1);
    /// `windows[].timeZone`.
    pub const TIME_ZONE: &str = "UTC";
    /// `analysis[].interval`.
    pub const ANALYSIS_INTERVAL: Duration = Duration::from_secs(60);
    /// `analysis[].count`.
    pub const ANALYSIS_COUNT: u32 = 1;
    /// `analysis[].failureLimit`.
    pub const FAILURE_LIMIT: u32 = 0;
    /// `analysis[].inconclusiveLimit`.
    pub const INCONCLUSIVE_LIMIT: u32 = 0;
    /// `analysis[].consecutiveErrorLimit`.
    pub const CONSECUTIVE_ERROR_LIMIT: u32 = 4;
}
