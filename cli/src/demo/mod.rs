//! `nodewise demo`: the service and the executor at work on a simulated cluster.
//!
//! Everything is in this process, but nothing is short-circuited: the executor watches the simulated cluster, asks the
//! service over gRPC on loopback, and applies what it is told. What is reported about pods was counted by the cluster itself.

mod progress;
mod report;
mod script;
mod stage;
mod trace;
mod tracing;
mod waterfall;

use std::process::ExitCode;

use crate::{
    args::{DemoArgs, Output},
    print,
    text::{self, Page},
};

use progress::Progress;
use report::Report;
use stage::Stage;
use tracing::Tracing;

pub(crate) async fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let nodes = args.nodes as usize;
    let people = args.output == Output::Text;
    let traced = Tracing::start(args)?;
    let mut stage = Stage::start(nodes).await?;
    if people {
        print::text(&page(|page| report::introduction(page, nodes, &stage.server)))?;
    }
    let mut report = Report::new(nodes);
    for act in script::acts(nodes) {
        let progress = Progress::new(people, &act.title, nodes);
        let phase = act.play(&mut stage, &progress).await?;
        progress.finish();
        if people {
            print::text(&page(|page| report::phase(page, &act.title, &phase)))?;
        }
        let converged = phase.converged;
        report.add(phase);
        if !converged {
            break;
        }
    }
    report.duplicates = stage.picture().duplicates;
    stage.stop().await?;
    if args.trace {
        report.slowest_reconcile = traced.slowest();
    }
    let lost = traced.stop().await;
    if people {
        print::text(&page(|page| {
            report::conclusion(page, &report);
            if args.trace {
                waterfall::show(page, report.slowest_reconcile.as_ref());
            }
        }))?;
    } else {
        print::json(&report)?;
    }
    lost?;
    Ok(if report.succeeded() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn page(write: impl FnOnce(&mut Page)) -> String {
    let mut page = Page::new(text::terminal_width());
    write(&mut page);
    page.into_text()
}
