//! How much of upstream's sync path a run reached, and why the rest cannot be.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// Upstream's functions that a sync can reach, and what of them never ran.
#[derive(Clone, Debug, Deserialize)]
pub struct Coverage {
    /// Every function.
    pub functions: Vec<Function>,
    /// Runs of statements that never ran, in the order of the source.
    pub uncovered: Vec<Block>,
}

/// One function.
#[derive(Clone, Debug, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Statements that ran.
    pub covered: usize,
    /// All of its statements.
    pub statements: usize,
}

/// Statements that never ran.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// The file in upstream's package.
    pub file: String,
    /// The first line.
    pub line: usize,
    /// The last line.
    pub end_line: usize,
    /// The function.
    pub function: String,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            end_line,
            function,
        } = self;
        write!(f, "{file}:{line}-{end_line} ({function})")
    }
}

/// Why statements never run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason, for people.
    why: String,
    /// The blocks, as a run tells them.
    never: Vec<String>,
}

/// The reasons in a file.
///
/// # Errors
/// It is not there, is no list of reasons, or leaves one out.
pub fn reasons(path: &Path) -> Result<Vec<Reason>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let reasons: Vec<Reason> =
        serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    for Reason { why, never } in &reasons {
        ensure!(!why.is_empty(), "{}: no reason for {never:?}", path.display());
    }
    Ok(reasons)
}

impl Coverage {
    /// Of the runs of `program` that left their data in `folder`.
    ///
    /// # Errors
    /// There are no data, or the program cannot read them.
    pub fn read(program: &Path, folder: &Path) -> Result<Self> {
        let output = Command::new(program)
            .arg("coverage")
            .arg(folder)
            .env("GOCOVERDIR", folder)
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        ensure!(
            output.status.success(),
            "reading the coverage of upstream's controller: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("the coverage of upstream's controller")
    }

    /// Statements that ran, and all.
    #[must_use]
    pub fn statements(&self) -> (usize, usize) {
        let covered = self.functions.iter().map(|function| function.covered).sum();
        let all = self.functions.iter().map(|function| function.statements).sum();
        (covered, all)
    }

    /// In percent.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "some hundred statements")]
    pub fn percent(&self) -> f64 {
        let (covered, all) = self.statements();
        covered as f64 * 100.0 / all.max(1) as f64
    }

    /// What is wrong with `reasons`: a line for each block that never ran and has none, and for each that has one and ran.
    #[must_use]
    pub fn wrong(&self, reasons: &[Reason]) -> Vec<String> {
        let never: Vec<String> = self.uncovered.iter().map(Block::to_string).collect();
        let given: Vec<&String> = reasons.iter().flat_map(|reason| &reason.never).collect();
        let missing = never
            .iter()
            .filter(|block| !given.contains(block))
            .map(|block| format!("{block} never ran, and no reason is given"));
        let obsolete = given
            .iter()
            .filter(|block| !never.contains(block))
            .map(|block| format!("{block} is said to never run, and ran or is not there"));
        missing.chain(obsolete).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_that_never_runs_has_a_reason_and_no_other() {
        let block = |line| Block {
            file: "update.go".to_owned(),
            line,
            end_line: line + 2,
            function: "Match".to_owned(),
        };
        let coverage = Coverage {
            functions: Vec::new(),
            uncovered: vec![block(10), block(20)],
        };
        let reasons = |text| serde_saphyr::from_str::<Vec<Reason>>(text).expect("a list of reasons");
        let right = reasons(
            "[{why: one, never: ['update.go:20-22 (Match)']}, {why: other, never: ['update.go:10-12 (Match)']}]",
        );
        assert_eq!(coverage.wrong(&right), [] as [String; 0]);
        let wrong = reasons("[{why: one, never: ['update.go:20-22 (Match)', 'update.go:10-13 (Match)']}]");
        assert_eq!(
            coverage.wrong(&wrong),
            [
                "update.go:10-12 (Match) never ran, and no reason is given",
                "update.go:10-13 (Match) is said to never run, and ran or is not there",
            ]
        );
    }
}
