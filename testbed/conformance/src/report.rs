//! What came of a run, for people and for programs.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::case::Case;

/// What came of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The case's id.
    pub id: &'static str,
    /// What it checks.
    pub checks: &'static str,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

impl Outcome {
    pub(crate) fn new(case: &Case, result: anyhow::Result<()>, took: Duration) -> Self {
        Self {
            id: case.id,
            checks: case.checks,
            failure: result.err().map(|error| format!("{error:#}")),
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
        }
    }

    /// Whether it went well.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failure.is_none()
    }

    /// The word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.passed() { "passed" } else { "FAILED" }
    }
}

/// The table that is printed at the end, with the failures below it.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let width = outcomes.iter().map(|outcome| outcome.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for outcome in outcomes {
        let (id, word, seconds, checks) = (outcome.id, outcome.word(), outcome.seconds, outcome.checks);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{word}  {seconds:>5.1} s  {id:width$}  {checks}");
    }
    for outcome in outcomes {
        if let Some(why) = &outcome.failure {
            let _ = writeln!(text, "\n{}: {why}", outcome.id);
        }
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let _ = write!(text, "\n{passed} of {} cases passed.", outcomes.len());
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

/// The cases in Markdown, as the README has them.
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
            failure: failure.map(str::to_owned),
            seconds: 1.25,
        };
        vec![
            outcome("one", None),
            outcome("another", Some("two pods\non a node | of mine")),
        ]
    }

    #[test]
    fn the_table_tells_all_and_why() {
        assert_eq!(
            table(&outcomes()),
            "passed    1.2 s  one      That a|b holds.\n\
             FAILED    1.2 s  another  That a|b holds.\n\
             \nanother: two pods\non a node | of mine\n\
             \n1 of 2 cases passed."
        );
    }

    #[test]
    fn markdown_keeps_its_cells() {
        assert_eq!(
            markdown(&outcomes()),
            "| case | checks | result | seconds |\n|---|---|---|--:|\n\
             | `one` | That a\\|b holds. | passed | 1.2 |\n\
             | `another` | That a\\|b holds. | FAILED: two pods | 1.2 |\n"
        );
    }
}
