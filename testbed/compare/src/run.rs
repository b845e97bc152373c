//! Many cases, on several threads, with a word now and then about how far it is.
//!
//! What is found is told and kept at once, so that nothing that goes wrong later can lose it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::case::Case;
use crate::compare::{Agreement, Comparison, Difference, How, Verdict};
use crate::found::{Found, What, caught, keep};
use crate::nodewise::Nodewise;
use crate::shrink::shrink;
use crate::upstream::Upstream;

/// How often to say how far it is.
const NEWS: Duration = Duration::from_secs(10);
/// Finds after which the run ends: more of them rarely tell more.
const ENOUGH: usize = 5;

/// What to compare.
pub struct Plan<'a> {
    /// How many cases.
    pub cases: u64,
    /// What the case of a number goes by in an error: its seed, or its file.
    pub name: &'a (dyn Fn(u64) -> String + Sync),
    /// The case of a number.
    pub draw: &'a (dyn Fn(u64) -> Result<Case> + Sync),
    /// On how many threads.
    pub threads: usize,
    /// Upstream's program.
    pub upstream: &'a Path,
    /// Where upstream's program leaves its coverage.
    pub coverage: &'a Path,
    /// Where to keep the cases that are found, if anywhere.
    pub found: Option<&'a Path>,
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
    /// Those that upstream crashes on, and does the same without what crashes it.
    pub mended: u64,
    /// Those where upstream goes on with the rollout in the same sync.
    pub went_on: u64,
    /// Those that were decided by counts and eligibility.
    pub by_counts: u64,
    /// In how many cases each deviation changed what the default profile does.
    pub deviations: BTreeMap<&'static str, u64>,
    /// Cases that show something wrong. They are told and kept already.
    pub found: Vec<Found>,
}

impl Summary {
    /// How many of the clusters were equal by a rule and not to the letter, in percent.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    pub fn by_rule(&self) -> f64 {
        100.0 * (self.went_on + self.by_counts) as f64 / self.cases.max(1) as f64
    }

    fn take(&mut self, agreement: Agreement) {
        match agreement.how {
            How::Found { runs: 1 } => self.at_once += 1,
            How::Found { runs } => {
                self.searched += 1;
                self.most_runs = self.most_runs.max(runs);
            }
            How::CrashMended => self.mended += 1,
            How::WentOn => self.went_on += 1,
            How::ByCounts => self.by_counts += 1,
        }
        for deviation in agreement.deviations {
            let name = deviation.as_str_name();
            let name = name.strip_prefix("DEVIATION_").unwrap_or(name);
            *self.deviations.entry(name).or_default() += 1;
        }
    }
}

/// Compares.
///
/// # Errors
/// A case cannot be drawn or read, or a program died. What was found before is told and kept all the same.
pub fn run(plan: &Plan<'_>) -> Result<Summary> {
    judge_all(plan, &|| {
        let upstream = Upstream::new(plan.upstream, plan.coverage);
        Ok(Comparison::new(upstream, Nodewise::new()?))
    })
}

/// Who says whether the controllers agree. There is one for each thread.
trait Judge: Sized {
    fn check(&mut self, case: &Case) -> Result<Verdict>;
    fn stop(self) -> Result<()>;
}

impl Judge for Comparison {
    fn check(&mut self, case: &Case) -> Result<Verdict> {
        Comparison::check(self, case)
    }

    fn stop(self) -> Result<()> {
        Comparison::stop(self)
    }
}

fn judge_all<J: Judge>(plan: &Plan<'_>, judge: &(dyn Fn() -> Result<J> + Sync)) -> Result<Summary> {
    let run = Run {
        plan,
        judge,
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        summary: Mutex::default(),
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.threads.max(1))
            .map(|_| scope.spawn(|| run.work()))
            .collect();
        run.news(|| workers.iter().all(thread::ScopedJoinHandle::is_finished));
        // All of them, whatever the first says.
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

/// A run under way.
struct Run<'a, J> {
    plan: &'a Plan<'a>,
    judge: &'a (dyn Fn() -> Result<J> + Sync),
    next: AtomicU64,
    /// Nobody begins another case.
    over: AtomicBool,
    summary: Mutex<Summary>,
}

impl<J: Judge> Run<'_, J> {
    /// Judges cases until there are no more, or something goes wrong on this thread or another.
    fn work(&self) -> Result<()> {
        let ended =
            caught(|| self.cases()).unwrap_or_else(|message| Err(anyhow!("a thread panicked: {message}")));
        if ended.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        ended
    }

    fn cases(&self) -> Result<()> {
        let mut judge = (self.judge)()?;
        while !self.over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.cases {
                break;
            }
            self.case(&mut judge, number)
                .with_context(|| format!("case {number}, {}", (self.plan.name)(number)))?;
        }
        judge.stop()
    }

    fn case(&self, judge: &mut J, number: u64) -> Result<()> {
        let case = caught(|| (self.plan.draw)(number))
            .unwrap_or_else(|message| Err(anyhow!("drawing it panicked: {message}")))?;
        let seed = case.seed;
        match self.check(judge, &case)? {
            Ok(Verdict::Equal(agreement)) => self.count(|summary| summary.take(agreement)),
            Ok(Verdict::Differs(difference)) => {
                eprintln!(
                    "seed {seed}: they differ in {:?}; looking for a smaller case",
                    difference.fields
                );
                let (case, difference) = self.smallest(judge, &case, difference);
                let what = What::Differs(difference);
                self.find(Found { case, what })?;
            }
            Err(message) => {
                let what = What::Panicked(message);
                self.find(Found { case, what })?;
            }
        }
        Ok(())
    }

    /// The verdict, or the message of a panic. Then there is a new judge.
    fn check(&self, judge: &mut J, case: &Case) -> Result<Result<Verdict, String>> {
        match caught(|| judge.check(case)) {
            Ok(verdict) => verdict.map(Ok),
            Err(message) => {
                // Ended in peace, so that the coverage of upstream is not lost.
                std::mem::replace(judge, (self.judge)()?).stop()?;
                Ok(Err(message))
            }
        }
    }

    /// The smallest case that differs in the same.
    fn smallest(&self, judge: &mut J, case: &Case, difference: Difference) -> (Case, Difference) {
        let mut last = difference;
        let small = shrink(case, |smaller| match self.check(judge, smaller) {
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

    /// Tells and keeps what was found.
    fn find(&self, found: Found) -> Result<()> {
        let kept = self.plan.found.map(|folder| keep(&found.case, folder));
        println!("\n{found}");
        if let Some(Ok(path)) = &kept {
            println!("kept as {}", path.display());
        }
        self.count(|summary| {
            summary.found.push(found);
            if summary.found.len() >= ENOUGH {
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

    /// Says now and then how far it is, until it is done.
    fn news(&self, done: impl Fn() -> bool) {
        let started = Instant::now();
        let mut said = started;
        while !done() {
            thread::park_timeout(Duration::from_millis(50));
            if said.elapsed() > NEWS {
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
    use crate::found::read;

    /// Judges by the seed alone, which is the case's number.
    struct BySeed(fn(u64) -> Result<Verdict>);

    impl Judge for BySeed {
        fn check(&mut self, case: &Case) -> Result<Verdict> {
            (self.0)(case.seed)
        }

        fn stop(self) -> Result<()> {
            Ok(())
        }
    }

    fn equal() -> Verdict {
        Verdict::Equal(Agreement {
            how: How::Found { runs: 1 },
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

    /// Judges a hundred cases.
    fn judged(
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
        judge_all(&plan, &|| Ok(BySeed(verdict)))
    }

    /// The seeds of the cases that are kept in a folder.
    fn kept(folder: &Path) -> Vec<u64> {
        let files = folder.read_dir().into_iter().flatten();
        let mut seeds: Vec<_> = files
            .map(|file| read(&file.expect("a file").path()).expect("a case").seed)
            .collect();
        seeds.sort_unstable();
        seeds
    }

    #[test]
    fn a_panic_is_found_with_its_case_and_ends_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let summary = judged(folder.path(), &numbered, |seed| match seed {
            7 => panic!("it is {seed}"),
            8 => panic!("no format"),
            _ => Ok(equal()),
        })
        .expect("a run");
        assert_eq!((summary.cases, summary.at_once), (100, 98));
        let mut told: Vec<_> = summary.found.iter().map(Found::to_string).collect();
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
    fn an_error_names_its_case_and_loses_nothing_that_was_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = judged(folder.path(), &numbered, |seed| match seed {
            3 => Ok(differs()),
            50 => Err(anyhow!("it ended")),
            _ => Ok(equal()),
        });
        let error = format!("{:#}", error.expect_err("a failed run"));
        assert_eq!(error, "case 50, seed 50: it ended");
        assert!(kept(folder.path()).contains(&3));
    }

    #[test]
    fn what_cannot_be_drawn_ends_the_run_by_name() {
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
            let error = judged(folder.path(), draw, |_| Ok(equal())).expect_err("a failed run");
            assert_eq!(format!("{error:#}"), told);
        }
    }

    #[test]
    fn enough_is_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        let summary = judged(folder.path(), &numbered, |_| Ok(differs())).expect("a run");
        // The other thread may be in the middle of one more.
        assert!((ENOUGH..=ENOUGH + 1).contains(&summary.found.len()));
        assert_eq!(summary.cases, summary.found.len() as u64);
    }
}
