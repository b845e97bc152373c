//! The coverage of upstream's sync path, and the reasons for the statements that never run.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::case::Kind;

/// The functions of upstream that a sync can reach, and the statements that never ran.
#[derive(Clone, Debug, Deserialize)]
pub struct Coverage {
    /// All functions.
    pub functions: Vec<Function>,
    /// Blocks of statements that never ran, in source order.
    pub uncovered: Vec<Block>,
}

/// A function.
#[derive(Clone, Debug, Deserialize)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The number of statements that ran.
    pub covered: usize,
    /// The number of statements.
    pub statements: usize,
}

/// A block of statements that never ran.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// The file in upstream's package.
    pub file: String,
    /// The first line.
    pub line: usize,
    /// The last line.
    pub end_line: usize,
    /// The name of the function.
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

/// A reason why statements never run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason, as text.
    why: String,
    /// The blocks, as a run prints them.
    never: Vec<String>,
}

/// Reads the reasons in a file.
///
/// # Errors
/// The file does not exist, is not a list of reasons, or has an entry without a reason.
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
    /// The coverage of the sync path of a kind, by the runs of `program` that wrote their data to `folder`.
    ///
    /// # Errors
    /// There is no data, or the program cannot read it.
    pub fn read(program: &Path, folder: &Path, kind: Kind) -> Result<Self> {
        let output = Command::new(program)
            .arg("coverage")
            .arg(folder)
            .arg(kind.name())
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

    /// The number of statements that ran, and of all statements.
    #[must_use]
    pub fn statements(&self) -> (usize, usize) {
        let covered = self.functions.iter().map(|function| function.covered).sum();
        let all = self.functions.iter().map(|function| function.statements).sum();
        (covered, all)
    }

    /// The statements that ran, in percent.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "some hundred statements")]
    pub fn percent(&self) -> f64 {
        let (covered, all) = self.statements();
        covered as f64 * 100.0 / all.max(1) as f64
    }

    /// One line for each block that never ran and has no reason, and for each block that has a reason but ran or does
    /// not exist.
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
    fn reasons_must_match_the_uncovered_blocks() {
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
