//! `nodewise rollout history`.

use std::process::ExitCode;

use super::{
    args::HistoryArgs,
    revisions::{self, History},
};
use crate::{
    output::DataOutput,
    print,
    text::{BOLD, PLAIN, Page, terminal_width},
};

pub(super) async fn run(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let history = History::of(&cluster, workload)?;
    match args.output {
        DataOutput::Json => print::json(&history.revisions)?,
        DataOutput::Yaml => print::yaml(&history.revisions)?,
        DataOutput::Text => print::text(&render(&history).into_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn render(history: &History<'_>) -> Page {
    let mut page = Page::new(terminal_width());
    page.line(0, BOLD, &history.workload.title());
    for revision in &history.revisions {
        let created = revision
            .created
            .map(|time| format!(", created {time}"))
            .unwrap_or_default();
        let present = if revision.is_current {
            ", the present one"
        } else {
            ""
        };
        let number = revision.number;
        page.line(
            2,
            PLAIN,
            &format!("revision {number} ({}{created}{present})", revision.name),
        );
        page.line(4, PLAIN, &revision.images.join(", "));
        if !revision.change_cause.is_empty() {
            page.line(4, PLAIN, &format!("change cause: {}", revision.change_cause));
        }
    }
    if !history.revisions.iter().any(|revision| revision.is_current) {
        page.line(2, PLAIN, "the present template has no revision yet");
    }
    page
}
