//! Parses each kind of request.

use std::time::Duration;

use nodewise_planner::{
    daemonset::{
        DaemonSet,
        plan_cache::PlanCache,
        report::{self as planner, Outcome},
    },
    snapshot::{Options, Snapshot, State},
};
use nodewise_proto::v1;

use super::{
    Context, Path, Problems, options, report,
    snapshot::{self, Parsed},
    state, time,
};
use crate::{limits::Limits, refusal::Refusal};

/// Reads a PlanRequest. Undelivered reports are folded into the state.
pub(crate) fn plan(
    request: v1::PlanRequest,
    mut context: Context<'_>,
    recall: impl FnOnce(&str) -> PlanCache,
) -> Result<Parsed, Refusal> {
    let stop = context.stop;
    let options = options::options(request.options, &Path::root("options"), &mut context.problems);
    let reports = undelivered(request.undelivered_reports, &mut context)?;
    let mut parsed = snapshot::snapshot(request.snapshot, options, context, recall)?;
    let snapshot = &mut parsed.snapshot;
    let mut problems = Problems::default();
    let at = Path::root("undelivered_reports");
    for (index, uid) in reports.workloads.iter().enumerate() {
        if *uid != snapshot.workload.uid {
            let at = at.index(index);
            let at = at.field("workload");
            problems.add(&at.field("uid"), format!("`{uid}` is another workload"));
        }
    }
    problems.into_result()?;
    if !reports.outcomes.is_empty() {
        let state = std::mem::take(&mut snapshot.state);
        snapshot.state =
            planner::fold_until(state, &reports.outcomes, &snapshot.options, stop).ok_or(Refusal::Stopped)?;
    }
    Ok(parsed)
}

/// The undelivered reports of a PlanRequest, merged into one: the result does not depend on which report has an outcome.
#[derive(Default)]
struct Undelivered {
    /// The uid of each report's workload.
    workloads: Vec<String>,
    outcomes: Vec<Outcome>,
}

fn undelivered(messages: Vec<v1::ReportRequest>, context: &mut Context<'_>) -> Result<Undelivered, Refusal> {
    let at = Path::root("undelivered_reports");
    Context::bound(&at, messages.len(), Limits::UNDELIVERED_REPORTS)?;
    let mut reports = Undelivered::default();
    for (index, message) in messages.into_iter().enumerate() {
        let at = at.index(index);
        let uid = report::identity(&message, Some(&at), &mut context.problems);
        reports.workloads.push(uid);
        report::outcomes(
            message.outcomes,
            &at.field("outcomes"),
            &mut reports.outcomes,
            context,
        )?;
    }
    Ok(reports)
}

/// Reads an ExplainRequest. Returns the snapshot, and the node to explain; `None` for all nodes.
pub(crate) fn explain(
    request: v1::ExplainRequest,
    mut context: Context<'_>,
) -> Result<(Snapshot<DaemonSet>, Option<String>), Refusal> {
    let options = options::options(request.options, &Path::root("options"), &mut context.problems);
    let parsed = snapshot::snapshot(request.snapshot, options, context, |_| PlanCache::default())?;
    Ok((
        parsed.snapshot,
        Some(request.node_name).filter(|name| !name.is_empty()),
    ))
}

/// A parsed ReportRequest.
pub(crate) struct Report {
    pub(crate) state: State,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) options: Options,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) plan_error: String,
}

/// Reads a ReportRequest.
pub(crate) fn report(request: v1::ReportRequest, mut context: Context<'_>) -> Result<Report, Refusal> {
    report::identity(&request, None, &mut context.problems);
    let state = state::state(request.state, &Path::root("state"), &mut context)?;
    let mut outcomes = Vec::new();
    report::outcomes(
        request.outcomes,
        &Path::root("outcomes"),
        &mut outcomes,
        &mut context,
    )?;
    let problems = &mut context.problems;
    let options = options::options(request.options, &Path::root("options"), problems);
    let at = Path::root("requeue_after");
    let requeue_after = request
        .requeue_after
        .and_then(|after| time::duration(Some(&after), Limits::LONGEST_REQUEUE, &at, problems));
    context.problems.into_result()?;
    Ok(Report {
        state,
        outcomes,
        options,
        requeue_after,
        plan_error: request.plan_error,
    })
}
