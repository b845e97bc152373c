//! The planning service as a reconcile sees it.

use std::future::Future;

use nodewise_proto::v1;
use tonic::Status;
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

/// What tells a bucket: SHA-256 of its bytes.
pub type Digest = [u8; 32];

/// Builds a request; it is told which buckets the replica that is about to be asked is believed to have.
pub type BuildRequest<'a, Q = v1::PlanRequest> = dyn FnMut(&dyn Fn(&Digest) -> bool) -> Q + Send + 'a;

/// Why there is no answer. Nothing may be written to the cluster then.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No replica answered in time: the same request may succeed later.
    #[error("no replica of the planning service answered: {0}")]
    Unreachable(String),
    /// A replica refused the request itself.
    #[error("the planning service refused the request: {0}")]
    Refused(Refusal),
}

/// Why a replica refuses a request, whoever is asked.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// Which replica, and what it said.
    pub reason: String,
    /// The fields that it complains about, as the detail `google.rpc.BadRequest` of its answer has them.
    pub violations: Vec<FieldViolation>,
}

impl Refusal {
    /// What a status says, and who said it.
    #[must_use]
    pub fn new(reason: String, status: &Status) -> Self {
        let violations = violations(&status.get_error_details());
        Self { reason, violations }
    }

    /// Whether the fault may lie in this field of the request, or below it. A request that is too large says of no field.
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
        }
    }
}

/// The fields that an answer complains about.
pub(crate) fn violations(details: &ErrorDetails) -> Vec<FieldViolation> {
    let request = details.bad_request();
    request.map_or_else(Vec::new, |request| request.field_violations.clone())
}

/// A plan, and the request that it answers.
#[derive(Debug)]
pub struct Answer {
    /// What must happen next.
    pub plan: v1::Plan,
    /// Which of the requests that were built it answers, from 0: a plan is good only together with what it was made from,
    /// and that need not be what was built last.
    pub request: usize,
}

/// Somebody who plans.
pub trait PlanService: Send + Sync + 'static {
    /// Asks what must happen next for the workload of this uid. The request is built anew for each replica that is tried, and
    /// several may be asked at a time.
    fn plan(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_>,
    ) -> impl Future<Output = Result<Answer, ServiceError>> + Send;

    /// Says what became of a plan.
    fn report(
        &self,
        report: v1::ReportRequest,
    ) -> impl Future<Output = Result<v1::ReportResponse, ServiceError>> + Send;
}
