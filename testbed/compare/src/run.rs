//! Compares many cases on several threads and prints the progress.
//!
//! A problem is printed and kept at once, so that it is not lost if the run fails later.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::case::Case;
use crate::compare::{Agreement, Comparison, Difference, How, Verdict};
use crate::nodewise::Nodewise;
use crate::problem::{Problem, ProblemKind, caught, keep};
use crate::shrink::shrink;
use crate::upstream::Upstream;

/// The interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The number of problems after which the run ends.
const MAX_PROBLEMS: usize = 5;

/// The settings of a run.
pub struct Plan<'a> {
    /// The number of cases.
    pub cases: u64,
    /// The name of a case in errors: its seed or its file.
    pub name: &'a (dyn Fn(u64) -> String + Sync),
    /// The case with this number.
    pub draw: &'a (dyn Fn(u64) -> Result<Case> + Sync),
    /// The number of threads.
    pub threads: usize,
    /// Upstream's program.
    pub upstream: &'a Path,
    /// The folder for upstream's coverage data.
    pub coverage: &'a Path,
    /// The folder for cases with problems, if they are to be kept.
    pub found: Option<&'a Path>,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of compared cases.
    pub cases: u64,
    /// Cases in which upstream's first sync was equal.
    pub at_once: u64,
    /// Cases in which upstream was run again, because it decides at random.
    pub searched: u64,
    /// The most syncs of upstream for one case.
    pub most_runs: u32,
    /// Cases in which upstream crashes, and is equal without the cause of the crash.
    pub mended: u64,
    /// Cases in which upstream continues the rollout in the same sync.
    pub went_on: u64,
    /// Cases that were accepted by counts and eligibility.
    pub by_counts: u64,
    /// Cases that differ by design, by the rule.
    pub by_design: BTreeMap<&'static str, u64>,
    /// The number of cases in which each deviation changed the outcome of the default profile.
    pub deviations: BTreeMap<&'static str, u64>,
    /// Cases with problems. They are already printed and kept.
    pub found: Vec<Problem>,
}

impl Summary {
    /// The percentage of cases that were equal only by a rule.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    pub fn by_rule(&self) -> f64 {
        let by_design: u64 = self.by_design.values().sum();
        100.0 * (self.went_on + self.by_counts + by_design) as f64 / self.cases.max(1) as f64
    }

    fn take(&mut self, agreement: Agreement) {
        match agreement.how {
            How::Exact { runs: 1 } => self.at_once += 1,
            How::Exact { runs } => {
                self.searched += 1;
                self.most_runs = self.most_runs.max(runs);
            }
            How::WithoutCrash => self.mended += 1,
            How::StepAhead => self.went_on += 1,
            How::ByCounts => self.by_counts += 1,
            How::ByDesign(rule) => *self.by_design.entry(rule).or_default() += 1,
        }
        for deviation in agreement.deviations {
            let name = deviation.as_str_name();
            let name = name.strip_prefix("DEVIATION_").unwrap_or(name);
            *self.deviations.entry(name).or_default() += 1;
        }
    }
}

/// Runs the comparison.
///
/// # Errors
/// A case cannot be generated or read, or a program ended. Problems found before are printed and kept.
pub fn run(plan: &Plan<'_>) -> Result<Summary> {
    check_all(plan, &|| {
        let upstream = Upstream::new(plan.upstream, plan.coverage);
        Ok(Comparison::new(upstream, Nodewise::new()?))
    })
}

/// Decides whether the controllers agree on a case. Each thread has its own.
trait Checker: Sized {
    fn check(&mut self, case: &Case) -> Result<Verdict>;
    fn stop(self) -> Result<()>;
}

impl Checker for Comparison {
    fn check(&mut self, case: &Case) -> Result<Verdict> {
        Comparison::check(self, case)
    }

    fn stop(self) -> Result<()> {
        Comparison::stop(self)
    }
}

fn check_all<C: Checker>(plan: &Plan<'_>, checker: &(dyn Fn() -> Result<C> + Sync)) -> Result<Summary> {
    let run = Run {
        plan,
        checker,
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        summary: Mutex::default(),
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads.max(1))
            .map(|_| scope.spawn(|| run.work()))
            .collect();
        run.print_progress(|| workers.iter().all(thread::ScopedJoinHandle::is_finished));
        // Join all threads, even if the first one failed.
        let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let mut errors = ended
            .into_iter()
            .filter_map(|ended| ended.unwrap_or_else(|_| Err(anyhow!("a thread panicked"))).err());
        let first = errors.next();
        errors.for_each(|error| eprintln!("Error: {error:#}"));
        first.map_or(Ok(()), Err)
    })?;
    Ok(run.summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// A run in progress.
struct Run<'a, C> {
    plan: &'a Plan<'a>,
    checker: &'a (dyn Fn() -> Result<C> + Sync),
    next: AtomicU64,
    /// Whether no thread may start another case.
    over: AtomicBool,
    summary: Mutex<Summary>,
}

impl<C: Checker> Run<'_, C> {
    /// Checks cases until none is left or a thread fails.
    fn work(&self) -> Result<()> {
        let ended =
            caught(|| self.cases()).unwrap_or_else(|message| Err(anyhow!("a thread panicked: {message}")));
        if ended.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        ended
    }

    fn cases(&self) -> Result<()> {
        let mut checker = (self.checker)()?;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.cases {
                break;
            }
            self.case(&mut checker, number)
                .with_context(|| format!("case {number}, {}", (self.plan.name)(number)))?;
        }
        checker.stop()
    }

    fn case(&self, checker: &mut C, number: u64) -> Result<()> {
        let case = caught(|| (self.plan.draw)(number))
            .unwrap_or_else(|message| Err(anyhow!("drawing it panicked: {message}")))?;
        let seed = case.seed;
        match self.check(checker, &case)? {
            Ok(Verdict::Equal(agreement)) => self.count(|summary| summary.take(agreement)),
            Ok(Verdict::Differs(difference)) => {
                eprintln!(
                    "seed {seed}: they differ in {:?}; looking for a smaller case",
                    difference.fields
                );
                let (case, difference) = self.smallest(checker, &case, difference);
                let what = ProblemKind::Differs(difference);
                self.find(Problem { case, what })?;
            }
            Err(message) => {
                let what = ProblemKind::Panicked(message);
                self.find(Problem { case, what })?;
            }
        }
        Ok(())
    }

    /// The verdict, or the message of a panic. After a panic there is a new checker.
    fn check(&self, checker: &mut C, case: &Case) -> Result<Result<Verdict, String>> {
        match caught(|| checker.check(case)) {
            Ok(verdict) => verdict.map(Ok),
            Err(message) => {
                // Stop it regularly, so that upstream writes its coverage data.
                std::mem::replace(checker, (self.checker)()?).stop()?;
                Ok(Err(message))
            }
        }
    }

    /// The smallest case that has the same kind of difference.
    fn smallest(&self, checker: &mut C, case: &Case, difference: Difference) -> (Case, Difference) {
        let mut last = difference;
        let small = shrink(case, |smaller| match self.check(checker, smaller) {
            Ok(Ok(Verdict::Differs(same)))
                if same.sides == last.sides && same.fields.first() == last.fields.first() =>
            {
                last = same;
                true
            }
            _ => false,
        });
        (small, last)
    }

    /// Prints and keeps a problem.
    fn find(&self, found: Problem) -> Result<()> {
        let kept = self.plan.found.map(|folder| keep(&found.case, folder));
        println!("\n{found}");
        if let Some(Ok(path)) = &kept {
            println!("kept as {}", path.display());
        }
        self.count(|summary| {
            summary.found.push(found);
            if summary.found.len() >= MAX_PROBLEMS {
                self.over.store(true, Ordering::Relaxed);
            }
        });
        kept.transpose().map(drop)
    }

    fn count(&self, count: impl FnOnce(&mut Summary)) {
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        summary.cases += 1;
        count(&mut summary);
    }

    /// Prints the progress until `done`.
    fn print_progress(&self, done: impl Fn() -> bool) {
        let started = Instant::now();
        let mut said = started;
        while !done() {
            thread::park_timeout(Duration::from_millis(50));
            if said.elapsed() > PROGRESS_INTERVAL {
                said = Instant::now();
                eprintln!(
                    "{} of {} clusters after {:.0?}",
                    self.next.load(Ordering::Relaxed).min(self.plan.cases),
                    self.plan.cases,
                    started.elapsed()
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Field;
    use crate::problem::read;

    /// Decides by the seed alone, which is the number of the case.
    struct BySeed(fn(u64) -> Result<Verdict>);

    impl Checker for BySeed {
        fn check(&mut self, case: &Case) -> Result<Verdict> {
            (self.0)(case.seed)
        }

        fn stop(self) -> Result<()> {
            Ok(())
        }
    }

    fn equal() -> Verdict {
        Verdict::Equal(Agreement {
            how: How::Exact { runs: 1 },
            deviations: Vec::new(),
        })
    }

    fn differs() -> Verdict {
        Verdict::Differs(Difference {
            sides: ["left", "right"],
            fields: vec![Field::Events],
            report: String::new(),
        })
    }

    fn numbered(number: u64) -> Result<Case> {
        Ok(serde_json::from_value(serde_json::json!({
            "seed": number, "now": "2026-01-01T00:00:00Z", "daemonSets": [], "burst": 1, "echo": true,
        }))?)
    }

    /// Checks a hundred cases.
    fn checked(
        found: &Path,
        draw: &(dyn Fn(u64) -> Result<Case> + Sync),
        verdict: fn(u64) -> Result<Verdict>,
    ) -> Result<Summary> {
        let plan = Plan {
            cases: 100,
            name: &|number| format!("seed {number}"),
            draw,
            threads: 2,
            upstream: Path::new("no program"),
            coverage: Path::new("no folder"),
            found: Some(found),
        };
        check_all(&plan, &|| Ok(BySeed(verdict)))
    }

    /// The seeds of the cases in a folder.
    fn kept(folder: &Path) -> Vec<u64> {
        let files = folder.read_dir().into_iter().flatten();
        let mut seeds: Vec<_> = files
            .map(|file| read(&file.expect("a file").path()).expect("a case").seed)
            .collect();
        seeds.sort_unstable();
        seeds
    }

    #[test]
    fn panic_is_a_problem_and_does_not_end_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let summary = checked(folder.path(), &numbered, |seed| match seed {
            7 => panic!("it is {seed}"),
            8 => panic!("no format"),
            _ => Ok(equal()),
        })
        .expect("a run");
        assert_eq!((summary.cases, summary.at_once), (100, 98));
        let mut told: Vec<_> = summary.found.iter().map(Problem::to_string).collect();
        told.sort();
        assert_eq!(
            told,
            [
                "Comparing them panicked: seed 7\nit is 7",
                "Comparing them panicked: seed 8\nno format",
            ]
        );
        assert_eq!(kept(folder.path()), [7, 8]);
    }

    #[test]
    fn error_names_its_case_and_keeps_earlier_problems() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = checked(folder.path(), &numbered, |seed| match seed {
            3 => Ok(differs()),
            50 => Err(anyhow!("it ended")),
            _ => Ok(equal()),
        });
        let error = format!("{:#}", error.expect_err("a failed run"));
        assert_eq!(error, "case 50, seed 50: it ended");
        assert!(kept(folder.path()).contains(&3));
    }

    #[test]
    fn failed_generation_ends_the_run_and_names_the_case() {
        let folder = tempfile::tempdir().expect("a folder");
        let draws: [(&(dyn Fn(u64) -> Result<Case> + Sync), _); 2] = [
            (
                &|number| {
                    assert!(number != 9, "no such luck");
                    numbered(number)
                },
                "case 9, seed 9: drawing it panicked: no such luck",
            ),
            (
                &|number| match number {
                    9 => Err(anyhow!("no such file")),
                    _ => numbered(number),
                },
                "case 9, seed 9: no such file",
            ),
        ];
        for (draw, told) in draws {
            let error = checked(folder.path(), draw, |_| Ok(equal())).expect_err("a failed run");
            assert_eq!(format!("{error:#}"), told);
        }
    }

    #[test]
    fn run_ends_after_max_problems() {
        let folder = tempfile::tempdir().expect("a folder");
        let summary = checked(folder.path(), &numbered, |_| Ok(differs())).expect("a run");
        // The other thread may complete one more case.
        assert!((MAX_PROBLEMS..=MAX_PROBLEMS + 1).contains(&summary.found.len()));
        assert_eq!(summary.cases, summary.found.len() as u64);
    }
}
