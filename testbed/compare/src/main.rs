//! Compares Nodewise with upstream's own DaemonSet controller over random clusters, or over those in files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use nodewise_compare::coverage::{self, Coverage, Reason};
use nodewise_compare::run::{self, Plan, Summary};
use nodewise_compare::{case::Case, found, generate};
use nodewise_testbed::Tool;
use rand::random;

/// Puts the same clusters to upstream's DaemonSet controller and to Nodewise, and tells what differs.
#[derive(Debug, Parser)]
struct Args {
    /// How many random clusters.
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// The seed of the first cluster; the others follow it. Random when not given.
    #[arg(long)]
    seed: Option<u64>,
    /// How many threads, each with a process of upstream's.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Fails when less of upstream's sync path was run, in percent of its statements.
    #[arg(long, value_name = "PERCENT")]
    coverage_at_least: Option<f64>,
    /// Fails when more clusters than this, in percent, were found equal by a rule and not to the letter.
    #[arg(long, value_name = "PERCENT")]
    by_rule_at_most: Option<f64>,
    /// Fails when a statement never ran that this file gives no reason for, or one ran that it says never does.
    #[arg(long, value_name = "FILE")]
    uncovered: Option<PathBuf>,
    /// Fails when comparing the clusters took longer.
    #[arg(long, value_name = "SECONDS")]
    at_most: Option<u64>,
    /// Where clusters that differ are kept, made small.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions"))]
    found: PathBuf,
    /// Upstream's program. Built when not given.
    #[arg(long, value_name = "FILE")]
    upstream: Option<PathBuf>,
    /// Clusters in files, in place of random ones.
    files: Vec<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let coverage = tempfile::tempdir().context("making a folder for coverage data")?;
    let seed = args.seed.unwrap_or_else(random);
    let from_seed = |number: u64| Ok(generate::case(seed.wrapping_add(number)));
    let from_file = |number: u64| -> Result<Case> { found::read(&args.files[usize::try_from(number)?]) };
    let name = |number: u64| match usize::try_from(number).ok().and_then(|n| args.files.get(n)) {
        Some(file) => file.display().to_string(),
        None => format!("seed {}", seed.wrapping_add(number)),
    };
    let draw: &(dyn Fn(u64) -> Result<Case> + Sync) = if args.files.is_empty() {
        &from_seed
    } else {
        &from_file
    };
    let cases = if args.files.is_empty() {
        args.cases
    } else {
        args.files.len() as u64
    };
    if args.files.is_empty() {
        println!("{cases} random clusters, seeds from {seed} on (--seed {seed} --cases {cases})");
    }
    // Before hours have gone by.
    let reasons = args.uncovered.as_deref().map(coverage::reasons).transpose()?;
    let upstream = args.upstream.clone().map_or_else(|| Tool::Upstream.path(), Ok)?;
    let started = Instant::now();
    let summary = run::run(&Plan {
        cases,
        name: &name,
        draw,
        threads: args.threads,
        upstream: &upstream,
        coverage: coverage.path(),
        found: Some(&args.found),
    })?;
    let took = started.elapsed();
    tell(&summary, took);
    let coverage = Coverage::read(&upstream, coverage.path())?;
    let mut complaints = complaints(&args, reasons.as_deref(), &coverage, took);
    let by_rule = summary.by_rule();
    if let Some(most) = args.by_rule_at_most.filter(|most| by_rule > *most) {
        complaints.push(format!(
            "{by_rule:.2} % of the clusters were equal by a rule only, more than the {most} % of --by-rule-at-most"
        ));
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    Ok(if complaints.is_empty() && summary.found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Tells how much of upstream ran, and answers what is not as the arguments want it.
fn complaints(args: &Args, reasons: Option<&[Reason]>, coverage: &Coverage, took: Duration) -> Vec<String> {
    let (covered, statements) = coverage.statements();
    let percent = coverage.percent();
    println!("upstream's sync path: {covered} of {statements} statements ran ({percent:.1} %)");
    for block in &coverage.uncovered {
        println!("  never ran: {block}");
    }
    let mut complaints = Vec::new();
    if let Some(least) = args.coverage_at_least.filter(|least| percent < *least) {
        complaints.push(format!(
            "{percent:.1} % of upstream's sync path is less than the {least} % of --coverage-at-least"
        ));
    }
    complaints.extend(reasons.into_iter().flat_map(|reasons| coverage.wrong(reasons)));
    if let Some(most) = args.at_most.filter(|most| took > Duration::from_secs(*most)) {
        complaints.push(format!(
            "comparing took {took:.1?}, longer than the {most} s of --at-most"
        ));
    }
    complaints
}

fn tell(summary: &Summary, took: Duration) {
    let Summary {
        cases,
        at_once,
        searched,
        most_runs,
        mended,
        went_on,
        by_counts,
        deviations,
        found,
    } = summary;
    println!("{cases} clusters in {took:.1?}");
    println!("  {at_once} equal at once");
    println!(
        "  {searched} equal to another of upstream's possible outcomes (found within {most_runs} syncs)"
    );
    println!("  {mended} equal but for what crashes upstream");
    println!("  {went_on} equal, upstream being a step ahead in the rollout");
    println!("  {by_counts} equal by counts and eligibility");
    println!("  {} differ or panicked; see above", found.len());
    println!("the default profile differs by these deviations:");
    for (deviation, times) in deviations {
        println!("  {deviation}: {times} clusters");
    }
}
