//! Where something was read, and what is wrong with it there.

use std::{fmt, sync::Arc};

/// Something is wrong with the input. One line that names the place and the field.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub(crate) struct InputError {
    place: String,
    problem: String,
}

impl InputError {
    pub(super) fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self {
            place: place.to_string(),
            problem: problem.to_string(),
        }
    }
}

/// Where an object was read.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The file or the apiserver.
    pub(super) source: Arc<str>,
    /// The document within the file, from 1, when there are several.
    pub(super) document: Option<u32>,
    /// The index among the document's items; `None` when the object is the whole document.
    pub(super) item: Option<u32>,
}

impl Origin {
    /// A field of the object, given as a path below it: `cluster.json: items[3].metadata.name`.
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
