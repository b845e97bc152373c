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

/// The output format of views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewOutput {
    /// For people
    #[default]
    Text,
    /// For people, with more columns
    Wide,
    /// For programs
    Json,
    /// For programs
    Yaml,
}
