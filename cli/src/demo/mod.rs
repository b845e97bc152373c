//! `nodewise demo`: runs the service and the executor on a simulated cluster.
//!
//! Everything runs in this process, with the real interfaces: the executor watches the simulated cluster, calls the service over
//! gRPC on loopback, and applies the plans. The simulated cluster itself counts the pods in the report.

mod progress;
mod report;
mod script;
mod simulation;
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
use simulation::{Simulation, Subject};
use tracing::Tracing;

pub(crate) async fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let nodes = args.nodes as usize;
    let people = args.output == Output::Text;
    let traced = Tracing::start(args)?;
    let mut simulation = Simulation::start(nodes).await?;
    if people {
        print::text(&page(|page| {
            report::introduction(page, nodes, &simulation.server);
        }))?;
    }
    let mut report = Report::new(nodes, script::replicas(nodes));
    for script in script::phases(nodes) {
        let progress = Progress::new(people, &script.title, script.size(nodes));
        let phase = script.run(&mut simulation, &progress).await?;
        progress.finish();
        if people {
            print::text(&page(|page| report::phase(page, &script.title, &phase)))?;
        }
        let converged = phase.converged;
        report.add(phase);
        if !converged {
            break;
        }
    }
    report.duplicates = simulation.counts(Subject::DaemonSet).duplicates;
    simulation.stop().await?;
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
