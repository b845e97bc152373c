//! The position of an object in the input, and errors about the input.

use std::{fmt, sync::Arc};

/// An error about the input: one line with the position and the field.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {problem}")]
pub(crate) struct InputError {
    position: String,
    problem: String,
}

impl InputError {
    pub(super) fn new(position: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            position: position.to_string(),
            problem: problem.to_string(),
        }
    }
}

/// The position of an object in the input.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The name of the file, or the URL of the apiserver.
    pub(super) source: Arc<str>,
    /// The number of the document in the file, from 1. `None` if there is only one.
    pub(super) document: Option<u32>,
    /// The index in the document's items. `None` if the object is the whole document.
    pub(super) item: Option<u32>,
}

impl Origin {
    /// The position of a field of the object: `cluster.json: items[3].metadata.name`.
    pub(crate) fn at(&self, field: &str) -> String {
        let field = field.trim_start_matches(['.', ':', ' ']);
        match (self.item.is_some(), field.is_empty()) {
            (_, true) => self.to_string(),
            (true, false) => format!("{self}.{field}"),
            (false, false) => format!("{self}: {field}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(document) = self.document {
            write!(f, ": document {document}")?;
        }
        if let Some(item) = self.item {
            write!(f, ": items[{item}]")?;
        }
        Ok(())
    }
}
