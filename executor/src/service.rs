//! The planning service as a reconcile sees it.

use std::future::Future;

use nodewise_proto::v1;

pub use crate::buckets::Digest;

/// Builds a request; it is told which buckets the replica that is about to be asked is believed to have.
pub type BuildRequest<'a> = dyn FnMut(&dyn Fn(&Digest) -> bool) -> v1::PlanRequest + Send + 'a;

/// Why there is no answer. Nothing may be written to the cluster then.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No replica answered in time: the same request may succeed later.
    #[error("no replica of the planning service answered: {0}")]
    Unreachable(String),
    /// A replica refused the request itself.
    #[error("the planning service refused the request: {0}")]
    Refused(String),
}

/// Somebody who plans.
pub trait PlanService: Send + Sync + 'static {
    /// Asks what must happen next for the workload of this uid. The request is built anew for each replica that is tried.
    fn plan(
        &self,
        uid: &str,
        build: &mut BuildRequest<'_>,
    ) -> impl Future<Output = Result<v1::Plan, ServiceError>> + Send;

    /// Says what became of a plan.
    fn report(
        &self,
        report: v1::ReportRequest,
    ) -> impl Future<Output = Result<v1::ReportResponse, ServiceError>> + Send;
}
