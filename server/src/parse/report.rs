//! Parses reports: the outcomes of a plan's actions.

use nodewise_planner::report::{Outcome, OutcomeResult, Subject};
use nodewise_proto::v1;

use super::{
    Context,
    problems::{Path, Problems},
    state,
};
use crate::refusal::Refusal;

/// Checks the fields that identify a report: its workload and its plan. Returns the workload's uid. `at` is the path of the report;
/// `None` if it is the request itself.
pub(super) fn identity(report: &v1::ReportRequest, at: Option<&Path<'_>>, problems: &mut Problems) -> String {
    let workload = Path::member(at, "workload");
    let uid = report.workload.as_ref().map(|reference| reference.uid.clone());
    if let Some(uid) = &uid {
        problems.require(&workload.field("uid"), uid);
    } else {
        problems.add(&workload, "is required");
    }
    problems.require(&Path::member(at, "plan_id"), &report.plan_id);
    uid.unwrap_or_default()
}

/// Reads outcomes and appends them to `outcomes`.
pub(super) fn outcomes(
    messages: Vec<v1::Outcome>,
    at: &Path<'_>,
    outcomes: &mut Vec<Outcome>,
    context: &mut Context<'_>,
) -> Result<(), Refusal> {
    let count = outcomes.len() + messages.len();
    Context::bound(at, count, context.limits.actions())?;
    outcomes.reserve_exact(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        context.check_stop_at(index)?;
        outcomes.extend(outcome(message, &at.index(index), context));
    }
    Ok(())
}

fn outcome(message: v1::Outcome, at: &Path<'_>, context: &mut Context<'_>) -> Option<Outcome> {
    if message.action_id == 0 {
        context
            .problems
            .add(&at.field("action_id"), "is required; ids begin at 1");
    }
    let subject = message.subject.map(|subject| match subject {
        v1::outcome::Subject::CreatedPod(create) => {
            Subject::CreatedPod(state::expected_create(create, &at.field("created_pod"), context))
        }
        v1::outcome::Subject::DeletedPodUid(uid) => {
            context.problems.require(&at.field("deleted_pod_uid"), &uid);
            Subject::DeletedPodUid(uid)
        }
    });
    Some(Outcome {
        action_id: message.action_id,
        result: result(message.result, &at.field("result"), &mut context.problems)?,
        message: message.message,
        http_status: message.http_status,
        subject,
        ignored: message.ignored,
    })
}

fn result(value: i32, at: &Path<'_>, problems: &mut Problems) -> Option<OutcomeResult> {
    match v1::Result::try_from(value) {
        Ok(v1::Result::Succeeded) => Some(OutcomeResult::Succeeded),
        Ok(v1::Result::AlreadyExists) => Some(OutcomeResult::AlreadyExists),
        Ok(v1::Result::NameTaken) => Some(OutcomeResult::NameTaken),
        Ok(v1::Result::NotFound) => Some(OutcomeResult::NotFound),
        Ok(v1::Result::NamespaceTerminating) => Some(OutcomeResult::NamespaceTerminating),
        Ok(v1::Result::Failed) => Some(OutcomeResult::Failed),
        Ok(v1::Result::Skipped) => Some(OutcomeResult::Skipped),
        Ok(v1::Result::Blocked) => Some(OutcomeResult::Blocked),
        Ok(v1::Result::Unspecified) => {
            problems.add(at, "is required");
            None
        }
        Err(_) => {
            problems.add(at, format!("{value} is no Result that this server knows"));
            None
        }
    }
}
