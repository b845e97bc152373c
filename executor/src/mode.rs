//! Whether a controller writes to the cluster.

use std::fmt;

use nodewise_proto::v1;

/// Whether to write to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Apply plans.
    Own,
    /// Only log what would be written.
    Observe,
    /// Apply plans of scope `ROLLOUTS` only, beside the built-in controller.
    Companion,
}

impl Mode {
    /// Whether the mode writes to the cluster.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Observe
    }

    /// The scope of the plans that are requested.
    #[must_use]
    pub fn scope(self) -> v1::Scope {
        match self {
            Self::Own | Self::Observe => v1::Scope::Workload,
            Self::Companion => v1::Scope::Rollouts,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Observe => "observe",
            Self::Companion => "companion",
        })
    }
}
