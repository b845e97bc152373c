//! What is done with plans besides printing them, and the exit code.

use std::process::ExitCode;

use nodewise_proto::v1;

use super::{
    compare,
    kept::{self, Content},
};
use crate::{
    args::PlanArgs,
    input::{Cluster, Served},
    request::RequestFactory,
    text,
};

/// The exit code of `--detailed-exitcode` if something would change.
const CHANGES: u8 = 2;

/// Compares plans with the kept ones, and keeps them. Returns the exit code of a comparison.
pub(super) fn keep_or_compare<'a>(
    args: &PlanArgs,
    requests: &RequestFactory<'_>,
    cluster: &'a Cluster,
    planned: impl Iterator<Item = (&'a Served, &'a v1::Plan)>,
) -> anyhow::Result<Option<ExitCode>> {
    if args.out.is_none() && args.compare.is_none() {
        return Ok(None);
    }
    let now = Content::of(args, requests, cluster, planned)?;
    let before = args.compare.as_deref().map(kept::read).transpose()?;
    if let Some(file) = &args.out {
        kept::write(file, &now)?;
    }
    let Some(before) = before else { return Ok(None) };
    compare::print(&before, &now, args.output).map(Some)
}

pub(super) fn exit_code(args: &PlanArgs, plans: &[v1::Plan]) -> ExitCode {
    let changes = plans.iter().any(text::plan::changes_something);
    if changes && args.detailed_exitcode {
        ExitCode::from(CHANGES)
    } else {
        ExitCode::SUCCESS
    }
}
