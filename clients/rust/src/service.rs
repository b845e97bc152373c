//! The planning service as an executor sees it: the trait [`PlanService`], its answers and its errors.

use std::future::Future;

use nodewise_proto::v1;
use tonic::Status;
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

pub use nodewise_proto::bucket::{Digest, Receiver};

/// Builds the request for one replica. The argument says which buckets that replica is expected to have; such a bucket should be sent
/// without data. It also says whether nodes may share labels.
pub type BuildRequest<'a, Q = v1::PlanRequest> = dyn FnMut(&Receiver<'_>) -> Q + Send + 'a;

/// A call without an answer. The executor must not write to the cluster then.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No replica answered in time. The same request may succeed later.
    #[error("no replica of the planning service answered: {0}")]
    Unreachable(String),
    /// A replica rejected the request as wrong or too large, or the client did not send it because no replica knows a feature that it
    /// needs. The same request would fail again.
    #[error("the planning service refused the request: {0}")]
    Refused(Refusal),
}

/// Why the service rejects a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The replica and its error message.
    pub reason: String,
    /// The rejected fields, from `google.rpc.BadRequest` in the status details. May be empty.
    pub violations: Vec<FieldViolation>,
    /// The feature in `GetCapabilitiesResponse.features` that the request needs and the service lacks, if that is the reason.
    pub lacks: Option<&'static str>,
}

impl Refusal {
    /// A refusal with this reason and the violations of the status.
    #[must_use]
    pub fn new(reason: String, status: &Status) -> Self {
        let violations = violations(&status.get_error_details());
        Self {
            reason,
            violations,
            lacks: None,
        }
    }

    /// Whether a violation names this field of the request or a field below it. True if there are no violations, for example
    /// because the message was too large.
    #[must_use]
    pub fn may_be_of(&self, field: &str) -> bool {
        let is_below = |violation: &FieldViolation| violation.field.starts_with(field);
        self.violations.is_empty() || self.violations.iter().any(is_below)
    }
}

impl<S: Into<String>> From<S> for Refusal {
    fn from(reason: S) -> Self {
        Self {
            reason: reason.into(),
            violations: Vec::new(),
            lacks: None,
        }
    }
}

/// The field violations in the status details.
pub(crate) fn violations(details: &ErrorDetails) -> Vec<FieldViolation> {
    let request = details.bad_request();
    request.map_or_else(Vec::new, |request| request.field_violations.clone())
}

/// A plan, and the request that it answers.
#[derive(Debug)]
pub struct Answer {
    /// The plan.
    pub plan: v1::Plan,
    /// The number of the request that the plan answers, counted from 0 in the order of the `build` calls. With hedging this need
    /// not be the last one. Apply the plan only together with the snapshot of that request.
    pub request: usize,
}

/// A planning service: [`crate::PlanClient`], or a fake in tests.
pub trait PlanService: Send + Sync + 'static {
    /// Asks for the plan of the workload with this uid. `build` is called for each request; several replicas may be asked at the
    /// same time.
    fn plan(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_>,
    ) -> impl Future<Output = Result<Answer, ServiceError>> + Send;

    /// Reports the outcomes of a plan.
    fn report(
        &self,
        report: v1::ReportRequest,
    ) -> impl Future<Output = Result<v1::ReportResponse, ServiceError>> + Send;
}
