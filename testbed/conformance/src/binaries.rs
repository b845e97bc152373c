//! Builds the programs of this workspace, and returns their paths.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The paths of the programs of this workspace.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// `nodewise-server`.
    pub server: PathBuf,
    /// `nodewise-executor`.
    pub executor: PathBuf,
    /// `nodewise`.
    pub cli: PathBuf,
}

static BUILT: OnceLock<Binaries> = OnceLock::new();

/// Builds the programs once per process. Cargo's lock serializes processes, and a second build finds nothing to do. All
/// programs are always built together: a build of a single program selects other features of the dependencies, so
/// everything would be compiled again.
///
/// # Errors
/// The build fails.
pub fn binaries() -> Result<&'static Binaries> {
    first_built("dev")
}

/// Builds the programs with the release profile, for measurements. Call it before [`binaries`], which then returns the
/// same programs in this process. The build takes minutes.
///
/// # Errors
/// The build fails.
pub fn release_binaries() -> Result<&'static Binaries> {
    first_built("release")
}

fn first_built(profile: &str) -> Result<&'static Binaries> {
    if let Some(built) = BUILT.get() {
        return Ok(built);
    }
    let built = build(profile)?;
    Ok(BUILT.get_or_init(|| built))
}

fn build(profile: &str) -> Result<Binaries> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Cargo sets these variables for a test. Build scripts that read them (such as ring's) would run again here, and
    // once more in the next build outside of tests, together with everything that depends on them.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--locked", "--message-format=json-render-diagnostics"])
        .args([
            "--package=nodewise-server",
            "--package=nodewise-executor",
            "--package=nodewise",
            "--bins",
            "--profile",
            profile,
        ])
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo build")?;
    ensure!(
        output.status.success(),
        "cargo build of the programs under test failed"
    );
    let executables: Vec<PathBuf> = String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            line.get("executable")?.as_str().map(PathBuf::from)
        })
        .collect();
    let find = |name: &str| {
        let found = executables
            .iter()
            .find(|path| path.file_stem().is_some_and(|stem| stem == name));
        found
            .cloned()
            .with_context(|| format!("cargo build made no {name}"))
    };
    Ok(Binaries {
        server: find("nodewise-server")?,
        executor: find("nodewise-executor")?,
        cli: find("nodewise")?,
    })
}
