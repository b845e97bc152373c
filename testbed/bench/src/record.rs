//! What was found, kept beside the document, so that one section can be measured again without the others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::report::Finding;

/// What a section found, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// On what.
    pub machine: Machine,
    /// What.
    pub finding: Finding,
}

/// What the sections found, by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(pub BTreeMap<String, Measured>);

impl Record {
    /// Reads it; there is none before the first run.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not what a bench wrote", path.display()))
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}
