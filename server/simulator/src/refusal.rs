//! Why the apiserver refuses a call.

/// A call that the apiserver refused. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason, for programs.
    pub reason: Reason,
    /// The message of the status, for people.
    pub message: String,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An object of that name exists.
    AlreadyExists,
    /// A precondition does not hold: the uid or the resourceVersion is another one.
    Conflict,
    /// The object is not valid.
    Invalid,
    /// There is no such object.
    NotFound,
}

impl Reason {
    /// The HTTP status of the response.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Invalid => 422,
            Self::NotFound => 404,
        }
    }
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
