//! The response to a report.

use nodewise_planner::{report::ComeBack, snapshot::State};
use nodewise_proto::v1;

use super::{duration, state};

/// The new state and when to reconcile again, as a message.
pub(crate) fn report(new_state: State, come_back: ComeBack) -> v1::ReportResponse {
    let requeue = match (come_back.backoff, come_back.after) {
        (true, _) => v1::Requeue::Backoff,
        (false, Some(_)) => v1::Requeue::After,
        (false, None) => v1::Requeue::None,
    };
    v1::ReportResponse {
        state: Some(state(new_state)),
        requeue: requeue.into(),
        requeue_after: come_back.after.map(duration),
        message: come_back.message,
    }
}
