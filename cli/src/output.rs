//! The output format of a command.

use clap::ValueEnum;

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The output format of what has no more detail than its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataOutput {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

/// The output format of views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewOutput {
    /// For people
    #[default]
    Text,
    /// For people, with more: columns of a table, or each node and pod of a rollout
    Wide,
    /// For programs
    Json,
    /// For programs
    Yaml,
}
