//! A case for which a run found a difference or a panic, and its file.

use std::any::Any;
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::case::Case;
use crate::compare::Difference;

/// A case for which a run found a difference or a panic.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The case, shrunk if possible.
    pub case: Case,
    /// The problem.
    pub what: ProblemKind,
}

/// The problem with a case.
#[derive(Clone, Debug)]
pub enum ProblemKind {
    /// The controllers differ.
    Differs(Difference),
    /// The comparison panicked with this message.
    Panicked(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.case.seed;
        match &self.what {
            ProblemKind::Differs(difference) => write!(f, "They differ: seed {seed}\n{difference}"),
            ProblemKind::Panicked(message) => write!(f, "Comparing them panicked: seed {seed}\n{message}"),
        }
    }
}

/// Writes a case to a file for people and later runs. Returns the path.
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
/// The file does not exist or is not a case.
pub fn read(path: &Path) -> Result<Case> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("reading {}: not a case", path.display()))
}

/// Runs `work` and returns its result, or the message of its panic.
///
/// # Errors
/// `work` panicked. The values that it was changing must not be used again.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
        .to_owned()
}
