//! `nodewise check`: looks for what keeps Nodewise from working, before and after it is installed.
//!
//! `gather` reads facts from the cluster. Each check is a pure function from facts to findings.

pub(crate) mod args;
mod certificates;
mod facts;
mod finding;
mod gather;
mod install;
mod lease;
mod needs;
mod owners;
mod policies;
mod quotas;
mod rights;
mod text;
mod versions;
mod webhooks;

use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;

use crate::{
    args::Output,
    input::{connect, one_line},
    print,
    text::terminal_width,
};
use args::CheckArgs;
use facts::Facts;
use finding::{Finding, Outcome};

/// The exit status when a check failed. 1 means that the cluster could not be checked.
const FAILED: u8 = 2;

/// The results, for programs.
#[derive(Serialize)]
struct Report<'a> {
    /// The worst result.
    result: Outcome,
    apiserver: &'a str,
    namespace: &'a str,
    checks: &'a [Finding],
}

pub(crate) async fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (client, source) = connect(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let facts = gather::gather(&client, args)
        .await
        .map_err(|error| anyhow!("{source}: {}", one_line(&error)))?;
    let findings = check(&facts);
    let result = findings
        .iter()
        .map(|finding| finding.result)
        .max()
        .unwrap_or(Outcome::Ok);
    match args.output {
        Output::Text => print::text(&text::render(&findings, terminal_width()))?,
        Output::Json => print::json(&Report {
            result,
            apiserver: &source,
            namespace: &facts.namespace,
            checks: &findings,
        })?,
    }
    Ok(match result {
        Outcome::Ok | Outcome::Warning => ExitCode::SUCCESS,
        Outcome::Error => ExitCode::from(FAILED),
    })
}

/// All checks, in the order of the sections.
fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![versions::apiserver(facts), lease::clock(&facts.clock)];
    if !facts.pre {
        findings.extend(versions::installed(facts));
        findings.extend(versions::programs(facts));
    }
    findings.extend(quotas::priorities(facts));
    findings.extend(owners::check(facts));
    findings.extend(rights::check(facts));
    if !facts.pre {
        findings.extend(certificates::check(facts));
        findings.extend(lease::check(facts));
        findings.extend(policies::check(facts));
    }
    findings.extend(webhooks::check(facts));
    findings.extend(quotas::check(facts));
    findings
}
