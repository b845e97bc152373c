//! `nodewise rollout diff`, and the difference of two templates that other commands show.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::{
    args::DiffArgs,
    revisions::{self, History},
};
use crate::{
    print,
    text::{ADD, BOLD, DIM, PLAIN, Page, REMOVE},
};

/// The exit status if both differ, as that of `plan --detailed-exitcode`.
const DIFFERS: u8 = 2;
/// The lines that are shown around a difference.
const CONTEXT: usize = 3;

pub(super) async fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let history = History::of(&cluster, workload)?;
    let before = history.find(args.revision)?;
    let (after, name) = match args.with {
        Some(number) => (
            history.find(Some(number))?.template.clone(),
            format!("revision {number}"),
        ),
        None => (history.present(), "the present template".to_owned()),
    };
    let mut page = Page::new(None);
    let title = format!("{}: revision {} and {name}", workload.title(), before.number);
    page.line(0, BOLD, &title);
    let differs = render(&mut page, &before.template, &after)?;
    print::text(&page.into_text())?;
    Ok(if differs {
        ExitCode::from(DIFFERS)
    } else {
        ExitCode::SUCCESS
    })
}

/// Adds the lines of YAML that differ. Returns whether there are any.
pub(crate) fn render(page: &mut Page, before: &Value, after: &Value) -> anyhow::Result<bool> {
    if before == after {
        page.line(2, DIM, "no difference");
        return Ok(false);
    }
    let yaml = |value: &Value| serde_saphyr::to_string(value).context("cannot write a template as YAML");
    let (before, after) = (yaml(before)?, yaml(after)?);
    let diff = TextDiff::from_lines(&before, &after);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            page.line(2, DIM, "…");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("- ", REMOVE),
                ChangeTag::Insert => ("+ ", ADD),
                ChangeTag::Equal => ("  ", PLAIN),
            };
            page.row(&[(style, sign), (style, change.value().trim_end_matches('\n'))]);
        }
    }
    Ok(true)
}
