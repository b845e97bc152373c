//! Finds the programs to measure, in the same build folder as this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The path of a program next to this one.
///
/// # Errors
/// The program was not built.
pub fn find(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().context("where this program is")?;
    let path = this.with_file_name(name);
    ensure!(
        path.is_file(),
        "{} is not there: cargo build --release --bin {name}",
        path.display()
    );
    Ok(path)
}

/// A command for a program of Nodewise, without the environment variables that set its flags or its exporter.
#[must_use]
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let ours = |name: &str| name.starts_with("NODEWISE_") || name.starts_with("OTEL_");
        if name.to_str().is_some_and(ours) {
            command.env_remove(name);
        }
    }
    command
}
