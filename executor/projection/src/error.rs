//! The error for an object that cannot be read.

/// An object does not have the form that its API specifies.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ProjectError {
    /// The path in the object, for example `metadata.creationTimestamp`; `.` for the whole object.
    pub path: String,
    /// The problem.
    pub message: String,
}

impl ProjectError {
    pub(crate) fn at(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}
