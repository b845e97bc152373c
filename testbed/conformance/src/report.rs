//! The report of a run, as text, Markdown and JSON.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::case::Case;

/// The outcome of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The case's id.
    pub id: &'static str,
    /// What it checks.
    pub checks: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// How long the case took.
    pub seconds: f64,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The case passed.
    Passed,
    /// The case failed.
    Failed,
    /// The case was not run, because the executor lacks the feature.
    LeftOut,
}

impl Outcome {
    pub(crate) fn new(case: &Case, result: anyhow::Result<()>, took: Duration) -> Self {
        Self {
            id: case.id,
            checks: case.checks,
            verdict: if result.is_ok() {
                Verdict::Passed
            } else {
                Verdict::Failed
            },
            failure: result.err().map(|error| format!("{error:#}")),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
        }
    }

    /// The outcome of a case that was not run.
    #[must_use]
    pub fn left_out(case: &Case) -> Self {
        Self {
            id: case.id,
            checks: case.checks,
            verdict: Verdict::LeftOut,
            failure: None,
            seconds: 0.0,
        }
    }

    /// The verdict in the tables.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::LeftOut => "left out",
        }
    }
}

/// The table at the end of a run, followed by the failures.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let width = outcomes.iter().map(|outcome| outcome.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for outcome in outcomes {
        let (id, word, seconds, checks) = (outcome.id, outcome.word(), outcome.seconds, outcome.checks);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word:8}  {seconds:>5.1} s  {id:width$}  {checks}");
    }
    for outcome in outcomes {
        if let Some(why) = &outcome.failure {
            let _ = writeln!(text, "\n{}: {why}", outcome.id);
        }
    }
    let count = |verdict| {
        outcomes
            .iter()
            .filter(|outcome| outcome.verdict == verdict)
            .count()
    };
    let (passed, left_out) = (count(Verdict::Passed), count(Verdict::LeftOut));
    let _ = write!(text, "\n{passed} of {} cases passed", outcomes.len());
    if left_out > 0 {
        let _ = write!(text, ", {left_out} left out");
    }
    text.push('.');
    text
}

/// A table in Markdown.
#[must_use]
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = "| case | checks | result | seconds |\n|---|---|---|--:|\n".to_owned();
    for outcome in outcomes {
        let why = outcome.failure.as_deref().map(first_line).unwrap_or_default();
        let (id, checks, word, seconds) = (outcome.id, outcome.checks, outcome.word(), outcome.seconds);
        let _ = writeln!(
            text,
            "| `{id}` | {} | {word}{} | {seconds:.1} |",
            cell(checks),
            cell(&why)
        );
    }
    text
}

fn first_line(why: &str) -> String {
    format!(": {}", why.lines().next().unwrap_or_default())
}

/// The list of cases in Markdown, as in the README.
#[must_use]
pub fn markdown_list(cases: &[Case]) -> String {
    let mut text = "| case | checks |\n|---|---|\n".to_owned();
    for case in cases {
        let _ = writeln!(text, "| `{}` | {} |", case.id, cell(case.checks));
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> Vec<Outcome> {
        let outcome = |id, failure: Option<&str>| Outcome {
            id,
            checks: "That a|b holds.",
            verdict: if failure.is_some() {
                Verdict::Failed
            } else {
                Verdict::Passed
            },
            failure: failure.map(str::to_owned),
            seconds: 1.25,
        };
        vec![
            Outcome {
                seconds: 0.0,
                verdict: Verdict::LeftOut,
                ..outcome("third", None)
            },
            outcome("one", None),
            outcome("another", Some("two pods\non a node | of mine")),
        ]
    }

    #[test]
    fn table_has_all_outcomes_and_failures() {
        assert_eq!(
            table(&outcomes()),
            "left out    0.0 s  third    That a|b holds.\n\
             passed      1.2 s  one      That a|b holds.\n\
             FAILED      1.2 s  another  That a|b holds.\n\
             \nanother: two pods\non a node | of mine\n\
             \n1 of 3 cases passed, 1 left out."
        );
    }

    #[test]
    fn markdown_escapes_cells() {
        assert_eq!(
            markdown(&outcomes()),
            "| case | checks | result | seconds |\n|---|---|---|--:|\n\
             | `third` | That a\\|b holds. | left out | 0.0 |\n\
             | `one` | That a\\|b holds. | passed | 1.2 |\n\
             | `another` | That a\\|b holds. | FAILED: two pods | 1.2 |\n"
        );
    }
}
