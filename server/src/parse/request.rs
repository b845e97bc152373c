//! The requests.

use std::time::Duration;

use nodewise_planner::{
    report::{self as planner, Outcome},
    snapshot::{Options, Snapshot, State},
};
use nodewise_proto::v1;

use super::{Context, Path, Problems, options, report, snapshot, state, time};
use crate::refusal::Refusal;

/// The longest time after which a plan may ask to be made again: much longer than any rule of the planner.
const LONGEST_REQUEUE: Duration = Duration::from_hours(10 * 365 * 24);

/// Reads a PlanRequest. Reports that could not be delivered are folded into the state.
pub(crate) fn plan(request: v1::PlanRequest, mut context: Context<'_>) -> Result<Snapshot, Refusal> {
    let options = options::options(request.options, &Path::root("options"), &mut context.problems);
    let reports = undelivered(request.undelivered_reports, &mut context.problems);
    let mut snapshot = snapshot::snapshot(request.snapshot, options, context)?;
    let mut problems = Problems::default();
    for (index, (uid, outcomes)) in reports.iter().enumerate() {
        if *uid != snapshot.daemon_set.uid {
            let at = Path::root("undelivered_reports");
            let at = at.index(index);
            let at = at.field("workload");
            problems.add(&at.field("uid"), format!("`{uid}` is another workload"));
        }
        snapshot.state = planner::fold(&snapshot.state, outcomes, &snapshot.options);
    }
    problems.into_result()?;
    Ok(snapshot)
}

fn undelivered(reports: Vec<v1::ReportRequest>, problems: &mut Problems) -> Vec<(String, Vec<Outcome>)> {
    let at = Path::root("undelivered_reports");
    let read = |(index, message): (usize, v1::ReportRequest)| {
        let at = at.index(index);
        let uid = report::identity(&message, Some(&at), problems);
        (
            uid,
            report::outcomes(message.outcomes, &at.field("outcomes"), problems),
        )
    };
    reports.into_iter().enumerate().map(read).collect()
}

/// Reads an ExplainRequest; besides the snapshot the node to explain, unless all are.
pub(crate) fn explain(
    request: v1::ExplainRequest,
    mut context: Context<'_>,
) -> Result<(Snapshot, Option<String>), Refusal> {
    let options = options::options(request.options, &Path::root("options"), &mut context.problems);
    let snapshot = snapshot::snapshot(request.snapshot, options, context)?;
    Ok((snapshot, Some(request.node_name).filter(|name| !name.is_empty())))
}

/// What a ReportRequest tells.
pub(crate) struct Report {
    pub(crate) state: State,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) options: Options,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) plan_error: String,
}

/// Reads a ReportRequest.
pub(crate) fn report(request: v1::ReportRequest, mut context: Context<'_>) -> Result<Report, Refusal> {
    let problems = &mut context.problems;
    report::identity(&request, None, problems);
    let requeue_after = request.requeue_after.as_ref();
    let report = Report {
        state: state::state(request.state, &Path::root("state"), problems),
        outcomes: report::outcomes(request.outcomes, &Path::root("outcomes"), problems),
        options: options::options(request.options, &Path::root("options"), problems),
        requeue_after: requeue_after.and_then(|after| {
            time::duration(
                Some(after),
                LONGEST_REQUEUE,
                &Path::root("requeue_after"),
                problems,
            )
        }),
        plan_error: request.plan_error,
    };
    context.problems.into_result()?;
    Ok(report)
}
