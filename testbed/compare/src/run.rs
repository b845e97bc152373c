//! Many cases, on several threads, with a word now and then about how far it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result};

use crate::case::Case;
use crate::compare::{Comparison, Difference, Verdict};
use crate::nodewise::Nodewise;
use crate::shrink::shrink;
use crate::upstream::Upstream;

/// How often to say how far it is.
const NEWS: Duration = Duration::from_secs(10);
/// Differences after which the run ends: more of them rarely tell more.
const ENOUGH: usize = 5;

/// What to compare.
pub struct Plan<'a> {
    /// How many cases.
    pub cases: u64,
    /// The case of a number.
    pub draw: &'a (dyn Fn(u64) -> Result<Case> + Sync),
    /// On how many threads.
    pub threads: usize,
    /// Upstream's program.
    pub upstream: &'a Path,
    /// Where upstream's program leaves its coverage.
    pub coverage: &'a Path,
}

/// What a run showed.
#[derive(Debug, Default)]
pub struct Summary {
    /// Cases compared.
    pub cases: u64,
    /// Those whose first sync of upstream did the same.
    pub at_once: u64,
    /// Those for which upstream had to be asked again, since it decides at random.
    pub searched: u64,
    /// The most syncs that took.
    pub most_runs: u32,
    /// Those that were decided by counts and eligibility.
    pub by_counts: u64,
    /// In how many cases each deviation changed what the default profile does.
    pub deviations: BTreeMap<&'static str, u64>,
    /// Cases that differ, made small, with what differs.
    pub differing: Vec<(Case, Difference)>,
}

/// Compares.
///
/// # Errors
/// A case cannot be read, or a program died.
pub fn run(plan: &Plan<'_>) -> Result<Summary> {
    let next = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let summary = Mutex::new(Summary::default());
    let started = Instant::now();
    let worker = || -> Result<()> {
        let mut comparison =
            Comparison::new(Upstream::start(plan.upstream, plan.coverage)?, Nodewise::new()?);
        while !over.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.cases {
                break;
            }
            let case = (plan.draw)(number)?;
            let verdict = comparison
                .check(&case)
                .with_context(|| format!("case {number}, seed {}", case.seed))?;
            let verdict = match verdict {
                Verdict::Differs(difference) => {
                    eprintln!(
                        "seed {}: they differ in {:?}; looking for a smaller case",
                        case.seed, difference.fields
                    );
                    Err(smallest(&mut comparison, &case, difference))
                }
                Verdict::Equal(agreement) => Ok(agreement),
            };
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.take(verdict);
            if summary.differing.len() >= ENOUGH {
                over.store(true, Ordering::Relaxed);
            }
        }
        comparison.stop()
    };
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..plan.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut said = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::park_timeout(Duration::from_millis(50));
            if said.elapsed() > NEWS {
                said = Instant::now();
                let done = next.load(Ordering::Relaxed).min(plan.cases);
                eprintln!(
                    "{done} of {} clusters after {:.0?}",
                    plan.cases,
                    started.elapsed()
                );
            }
        }
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))
                .and_then(|ended| ended)
                .inspect_err(|_| over.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    })?;
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Summary {
    fn take(&mut self, verdict: Result<crate::compare::Agreement, (Case, Difference)>) {
        self.cases += 1;
        let agreement = match verdict {
            Ok(agreement) => agreement,
            Err(differing) => return self.differing.push(differing),
        };
        match agreement.runs {
            Some(1) => self.at_once += 1,
            Some(runs) => {
                self.searched += 1;
                self.most_runs = self.most_runs.max(runs);
            }
            None => self.by_counts += 1,
        }
        for deviation in agreement.deviations {
            let name = deviation.as_str_name();
            let name = name.strip_prefix("DEVIATION_").unwrap_or(name);
            *self.deviations.entry(name).or_default() += 1;
        }
    }
}

/// The smallest case that differs in the same.
fn smallest(comparison: &mut Comparison, case: &Case, difference: Difference) -> (Case, Difference) {
    let mut last = difference;
    let small = shrink(case, |smaller| match comparison.check(smaller) {
        Ok(Verdict::Differs(same))
            if same.sides == last.sides && same.fields.first() == last.fields.first() =>
        {
            last = same;
            true
        }
        _ => false,
    });
    (small, last)
}

/// Writes a case for people and for later runs; answers where.
///
/// # Errors
/// The folder cannot be written.
pub fn keep(case: &Case, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let path = folder.join(format!("{:016x}.json", case.seed));
    let mut text = serde_json::to_string_pretty(case)?;
    text.push('\n');
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Reads a case.
///
/// # Errors
/// It is not there or is none.
pub fn read(path: &Path) -> Result<Case> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("reading {}: not a case", path.display()))
}
