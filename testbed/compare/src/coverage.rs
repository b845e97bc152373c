//! How much of upstream's sync path a run reached.

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
}
