//! The programs under test.

use std::{path::PathBuf, sync::OnceLock};

use anyhow::Result;
use nodewise_conformance::program;

/// The programs under test.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// `nodewise-server`.
    pub server: PathBuf,
    /// `nodewise-executor`.
    pub executor: PathBuf,
    /// `nodewise`.
    pub cli: PathBuf,
}

/// Builds them once per process.
pub fn binaries() -> Result<&'static Binaries> {
    static BUILT: OnceLock<Binaries> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built);
    }
    let built = Binaries {
        server: program("nodewise-server")?,
        executor: program("nodewise-executor")?,
        cli: program("nodewise")?,
    };
    Ok(BUILT.get_or_init(|| built))
}
