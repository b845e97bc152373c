//! The results of checks.

use serde::Serialize;

use super::facts::Unread;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Nothing to do.
    Ok,
    /// Something may need a change, or could not be checked.
    Warning,
    /// Something must be changed.
    Error,
}

/// The group that a check is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Section {
    Cluster,
    Installation,
    Owners,
    Rights,
    Certificates,
    Lease,
    Policies,
    Admission,
}

impl Section {
    /// Every section, in the order of the output.
    pub(crate) const ALL: [Self; 8] = [
        Self::Cluster,
        Self::Installation,
        Self::Owners,
        Self::Rights,
        Self::Certificates,
        Self::Lease,
        Self::Policies,
        Self::Admission,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Installation => "Installation",
            Self::Owners => "Owners of workloads",
            Self::Rights => "Rights",
            Self::Certificates => "Certificates",
            Self::Lease => "Lease",
            Self::Policies => "RolloutPolicies",
            Self::Admission => "Admission: webhooks and quotas",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) section: Section,
    pub(crate) result: Outcome,
    /// What was found.
    pub(crate) message: String,
    /// What to do about it. `None` if the result is ok.
    pub(crate) hint: Option<String>,
}

impl Section {
    pub(crate) fn ok(self, message: impl Into<String>) -> Finding {
        Finding {
            section: self,
            result: Outcome::Ok,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn warning(self, message: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.with_hint(Outcome::Warning, message.into(), hint.into())
    }

    pub(crate) fn error(self, message: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.with_hint(Outcome::Error, message.into(), hint.into())
    }

    /// A warning that something could not be read, so that a check could not be made.
    pub(crate) fn unread(self, what: &str, unread: &Unread) -> Finding {
        let hint = match unread {
            Unread::Forbidden(_) => {
                "run the check as a user who may read this, such as a cluster administrator"
            }
            Unread::Failed(_) => "run the check again; if this stays, look at the apiserver's log",
        };
        self.warning(format!("{what} could not be read: {unread}"), hint)
    }

    fn with_hint(self, result: Outcome, message: String, hint: String) -> Finding {
        Finding {
            section: self,
            result,
            message,
            hint: Some(hint),
        }
    }
}
