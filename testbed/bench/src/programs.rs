//! The programs that are measured: those of the same build as this one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The program of this name beside this one.
///
/// # Errors
/// It was not built.
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

/// The command of a program of ours. Its flags may also be variables, and variables say where its traces go; nothing but what
/// is said here counts.
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
