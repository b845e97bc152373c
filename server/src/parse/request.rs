//! Parses each kind of request.

use std::time::Duration;

use nodewise_planner::{
    report::{self as planner, Outcome},
    snapshot::{Options, Scope, State},
};
use nodewise_proto::{
    v1,
    workload::{DEPLOYMENT, REPLICA_SET, kind_of},
};

use super::{
    Context, Path, Problems, options, report,
    snapshot::{self, Parsed},
    state, time, workload,
};
use crate::{
    limits::Limits,
    refusal::Refusal,
    workload::{AnySnapshot, Memory},
};

/// Reads a PlanRequest. Undelivered reports are folded into the state.
pub(crate) fn plan(
    request: v1::PlanRequest,
    mut context: Context<'_>,
    recall: impl FnOnce(&str) -> Option<Memory>,
) -> Result<Parsed, Refusal> {
    let stop = context.stop;
    let kind = request.snapshot.as_ref().and_then(kind_of);
    context.has_nodes = has_nodes(kind);
    let options = options_for(kind, request.options, &mut context);
    if options.scope == Scope::Rollouts && !context.has_nodes {
        let problem = "SCOPE_ROLLOUTS is for DaemonSets only";
        context
            .problems
            .add(&Path::root("options").field("scope"), problem);
    }
    let reports = undelivered(request.undelivered_reports, &mut context)?;
    let mut parsed = snapshot::snapshot(request.snapshot, options, context, recall)?;
    let snapshot = &mut parsed.snapshot;
    let mut problems = Problems::default();
    let at = Path::root("undelivered_reports");
    for (index, uid) in reports.workloads.iter().enumerate() {
        if *uid != *snapshot.uid() {
            let at = at.index(index);
            let at = at.field("workload");
            problems.add(&at.field("uid"), format!("`{uid}` is another workload"));
        }
    }
    problems.into_result()?;
    if !reports.outcomes.is_empty() {
        let state = std::mem::take(snapshot.state_mut());
        *snapshot.state_mut() = planner::fold_until(state, &reports.outcomes, snapshot.options(), stop)
            .ok_or(Refusal::Stopped)?;
    }
    Ok(parsed)
}

/// Whether the pods of this kind of workload are for nodes. An absent or unknown kind is refused elsewhere.
fn has_nodes(kind: Option<&str>) -> bool {
    !matches!(kind, Some(REPLICA_SET | DEPLOYMENT))
}

/// Reads the options of a request about a workload of this kind.
fn options_for(kind: Option<&str>, message: Option<v1::PlanOptions>, context: &mut Context<'_>) -> Options {
    let burst = workload::burst_of(kind);
    options::options(message, burst, &Path::root("options"), &mut context.problems)
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
) -> Result<(AnySnapshot, Option<String>), Refusal> {
    let kind = request.snapshot.as_ref().and_then(kind_of);
    context.has_nodes = has_nodes(kind);
    let options = options_for(kind, request.options, &mut context);
    if !request.node_name.is_empty() && !context.has_nodes {
        let problem = "must be empty: only a DaemonSet is explained by node";
        context.problems.add(&Path::root("node_name"), problem);
    }
    let parsed = snapshot::snapshot(request.snapshot, options, context, |_| None)?;
    Ok((
        parsed.snapshot,
        Some(request.node_name).filter(|name| !name.is_empty()),
    ))
}

/// Reads the snapshot of a SimulateRequest.
pub(crate) fn simulate(
    snapshot: Option<v1::Snapshot>,
    options: Option<v1::PlanOptions>,
    mut context: Context<'_>,
) -> Result<Parsed, Refusal> {
    let kind = snapshot.as_ref().and_then(kind_of);
    context.has_nodes = has_nodes(kind);
    context.has_pods_of_sets = true;
    let options = options_for(kind, options, &mut context);
    snapshot::snapshot(snapshot, options, context, |_| None)
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
    let kind = request.workload.as_ref().map(|workload| workload.kind.clone());
    context.has_nodes = has_nodes(kind.as_deref());
    let state = state::state(request.state, &Path::root("state"), &mut context)?;
    let mut outcomes = Vec::new();
    report::outcomes(
        request.outcomes,
        &Path::root("outcomes"),
        &mut outcomes,
        &mut context,
    )?;
    let options = options_for(kind.as_deref(), request.options, &mut context);
    let problems = &mut context.problems;
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
