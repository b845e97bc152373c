//! Compares Nodewise with upstream's own controllers on random clusters or clusters from files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use nodewise_compare::coverage::{self, Coverage, Reason};
use nodewise_compare::run::{self, Plan, Summary};
use nodewise_compare::{
    case::{Case, Kind},
    generate, problem,
};
use nodewise_testbed::Tool;
use rand::random;

/// Runs upstream's controller and Nodewise on the same clusters, and prints the differences.
#[derive(Debug, Parser)]
struct Args {
    /// The kind of workload in random clusters. Files say their own.
    #[arg(long, value_enum, default_value_t = Kind::DaemonSet)]
    kind: Kind,
    /// The number of random clusters.
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// The seed of the first cluster; the others have the next seeds. Random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// The number of threads. Each has its own upstream process.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    threads: usize,
    /// Fail if less than this percentage of the statements in upstream's sync path ran.
    #[arg(long, value_name = "PERCENT")]
    coverage_at_least: Option<f64>,
    /// Fail if more than this percentage of the clusters were equal only by a rule, not exactly.
    #[arg(long, value_name = "PERCENT")]
    by_rule_at_most: Option<f64>,
    /// Fail if a statement never ran without a reason in this file, or one ran that has a reason.
    #[arg(long, value_name = "FILE")]
    uncovered: Option<PathBuf>,
    /// Fail if the comparison took longer than this.
    #[arg(long, value_name = "SECONDS")]
    at_most: Option<u64>,
    /// The folder for clusters that differ, after shrinking. By default the kind's folder in regressions/.
    #[arg(long, value_name = "DIR")]
    found: Option<PathBuf>,
    /// Upstream's program. Built by default.
    #[arg(long, value_name = "FILE")]
    upstream: Option<PathBuf>,
    /// Files with clusters, instead of random ones.
    files: Vec<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let coverage = tempfile::tempdir().context("making a folder for coverage data")?;
    let seed = args.seed.unwrap_or_else(random);
    let from_seed = |number: u64| Ok(generate::case_of(args.kind, seed.wrapping_add(number)));
    let from_file = |number: u64| -> Result<Case> { problem::read(&args.files[usize::try_from(number)?]) };
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
        println!(
            "{cases} random clusters with a {kind}, seeds from {seed} on (--kind {kind} --seed {seed} --cases {cases})",
            kind = args.kind.name()
        );
    }
    // Read early, so that a mistake is reported before a long run.
    let reasons = args.uncovered.as_deref().map(coverage::reasons).transpose()?;
    let upstream = args.upstream.clone().map_or_else(|| Tool::Upstream.path(), Ok)?;
    let found = args.found.clone().unwrap_or_else(|| {
        let all = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/regressions"));
        all.join(args.kind.name())
    });
    let started = Instant::now();
    let summary = run::run(&Plan {
        cases,
        name: &name,
        draw,
        threads: args.threads,
        upstream: &upstream,
        coverage: coverage.path(),
        found: Some(&found),
    })?;
    let took = started.elapsed();
    tell(&summary, took);
    let coverage = Coverage::read(&upstream, coverage.path(), args.kind)?;
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

/// Prints the coverage of upstream, and returns the violated limits.
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
        by_design,
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
    for (rule, times) in by_design {
        println!("  {times} differ by design: {rule}");
    }
    println!("  {} differ or panicked; see above", found.len());
    println!("the default profile differs by these deviations:");
    for (deviation, times) in deviations {
        println!("  {deviation}: {times} clusters");
    }
}
