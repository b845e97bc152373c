//! `nodewise-conformance`: tests an executor against the contract.

use std::{collections::BTreeSet, io::Write as _, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use nodewise_conformance::{
    Candidate, Case, Run, all_cases, binaries,
    report::{self, Verdict},
};
use tokio::signal::unix::{SignalKind, signal};

/// Runs the conformance cases against an executor, in any language, on a real control plane; see
/// testbed/conformance/README.md. Exits with status 0 if all cases passed.
#[derive(Debug, Parser)]
#[command(name = "nodewise-conformance", version)]
struct Args {
    /// The executor: a command for `sh -c "exec COMMAND"`, which becomes the executor itself [default: the nodewise-executor
    /// of this repository]
    #[arg(long, env = "EXECUTOR", value_name = "COMMAND")]
    executor: Option<String>,

    /// Cases to run: ids, or beginnings of ids [default: all]
    #[arg(value_name = "CASE")]
    cases: Vec<String>,

    /// Cases to leave out, as ids or beginnings of ids, for features that the executor may lack (see
    /// docs/writing-an-executor.md)
    #[arg(long, value_name = "CASE")]
    without: Vec<String>,

    /// List the cases and run none
    #[arg(long)]
    list: bool,

    /// Keep the logs of all processes in this folder
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,

    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the results, or with --list the cases, as a Markdown table
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Control planes at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    lanes: usize,

    /// How long the kit waits for any condition
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    deadline: Duration,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all cases passed.
fn run(args: &Args) -> Result<bool> {
    let (left_out, cases): (Vec<_>, Vec<_>) = {
        let without = matching_ids(&args.without)?;
        let cases = chosen(&args.cases)?;
        cases.into_iter().partition(|case| without.contains(case.id))
    };
    if args.list {
        write(args.markdown.as_ref(), || Ok(report::markdown_list(&cases)))?;
        let mut out = std::io::stdout().lock();
        for case in &cases {
            writeln!(out, "{}  {}", case.id, case.checks)?;
        }
        return Ok(true);
    }
    let executor = match &args.executor {
        Some(command) => command.clone(),
        None => format!(
            "{} --mode own --http-listen 127.0.0.1:0",
            binaries()?.executor.display()
        ),
    };
    eprintln!("conformance: {} cases for: {executor}", cases.len());
    let run = Run {
        lanes: args.lanes,
        deadline: args.deadline,
        logs: args.logs.clone(),
    };
    let runtime = tokio::runtime::Runtime::new().context("starting the async runtime")?;
    let mut outcomes = runtime.block_on(async {
        // On a signal the run is dropped, which ends all processes that it started.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let told = |outcome: &report::Outcome| {
            eprintln!("{:8}  {:>5.1} s  {}", outcome.word(), outcome.seconds, outcome.id);
        };
        tokio::select! {
            outcomes = run.run(Candidate { executor, cases }, told) => outcomes,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })?;
    outcomes.extend(left_out.iter().map(report::Outcome::left_out));
    println!("\n{}", report::table(&outcomes));
    write(args.json.as_ref(), || {
        Ok(serde_json::to_string_pretty(&outcomes)?)
    })?;
    write(args.markdown.as_ref(), || Ok(report::markdown(&outcomes)))?;
    Ok(outcomes.iter().all(|outcome| outcome.verdict != Verdict::Failed))
}

fn write(file: Option<&PathBuf>, text: impl FnOnce() -> Result<String>) -> Result<()> {
    let Some(file) = file else {
        return Ok(());
    };
    std::fs::write(file, text()?).with_context(|| format!("writing {}", file.display()))
}

/// The cases with these ids; all cases if there are none.
fn chosen(wanted: &[String]) -> Result<Vec<Case>> {
    let ids = matching_ids(wanted)?;
    let mut cases = all_cases();
    cases.retain(|case| wanted.is_empty() || ids.contains(case.id));
    Ok(cases)
}

/// The ids that equal each text, or else the ids that start with it.
fn matching_ids(wanted: &[String]) -> Result<BTreeSet<&'static str>> {
    let cases = all_cases();
    let mut ids = BTreeSet::new();
    for text in wanted {
        let exactly = cases.iter().any(|case| case.id == text);
        let before = ids.len();
        let matches = |id: &&str| id == text || !exactly && id.starts_with(text.as_str());
        ids.extend(cases.iter().map(|case| case.id).filter(matches));
        let known = ids.len() > before || ids.iter().any(matches);
        ensure!(known, "there is no case {text:?}; --list lists them");
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(wanted: &[&str]) -> Result<Vec<&'static str>> {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        Ok(chosen(&wanted)?.iter().map(|case| case.id).collect())
    }

    #[test]
    fn cases_are_chosen_by_id_or_prefix() -> Result<()> {
        assert_eq!(ids(&[])?.len(), all_cases().len());
        assert_eq!(
            ids(&["sigterm", "idle", "idle"])?,
            [
                "idle",
                "sigterm-at-rest",
                "sigterm-at-work",
                "sigterm-service-away",
                "sigterm-service-hangs"
            ]
        );
        assert_eq!(ids(&["idle", "id"])?, ["idle"]);
        let error = ids(&["idle", "nothing"]).expect_err("no case begins so");
        assert!(error.to_string().contains("\"nothing\""), "{error}");
        Ok(())
    }
}
