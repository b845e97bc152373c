//! What a run found: a case that shows something wrong, for people and for later runs.

use std::any::Any;
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::case::Case;
use crate::compare::Difference;

/// A case that shows something wrong.
#[derive(Clone, Debug)]
pub struct Found {
    /// The case, made small where that could be done.
    pub case: Case,
    /// What is wrong.
    pub what: What,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub enum What {
    /// The controllers differ.
    Differs(Difference),
    /// Comparing them panicked; with the panic's message.
    Panicked(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.case.seed;
        match &self.what {
            What::Differs(difference) => write!(f, "They differ: seed {seed}\n{difference}"),
            What::Panicked(message) => write!(f, "Comparing them panicked: seed {seed}\n{message}"),
        }
    }
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

/// What `work` makes, or the message with which it panicked.
///
/// # Errors
/// It panicked. Nothing that it was changing may be used again.
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
