//! The programs that are measured: those of the same build as this one.

use std::path::PathBuf;

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
