//! The paths of the programs of this workspace, which are built first if necessary.

use std::{
    path::{Path, PathBuf},
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

/// A folder with programs that are already built. `make test` sets it, because it compiles everything only once.
const PROGRAMS: &str = "NODEWISE_PROGRAMS";

static BUILT: OnceLock<Binaries> = OnceLock::new();

/// The programs in the folder that the environment variable `NODEWISE_PROGRAMS` names. Without it, builds the programs
/// once per process. Cargo's lock serializes processes, and a second build finds nothing to do. All
/// programs are always built together: a build of a single program selects other features of the dependencies, so
/// everything would be compiled again.
///
/// # Errors
/// The build fails, or the folder has no such programs.
pub fn binaries() -> Result<&'static Binaries> {
    first(|| match std::env::var_os(PROGRAMS) {
        Some(folder) => in_folder(Path::new(&folder)),
        None => build("dev"),
    })
}

/// Builds the programs with the release profile, for measurements. Call it before [`binaries`], which then returns the
/// same programs in this process. The build takes minutes.
///
/// # Errors
/// The build fails.
pub fn release_binaries() -> Result<&'static Binaries> {
    first(|| build("release"))
}

fn first(find: impl FnOnce() -> Result<Binaries>) -> Result<&'static Binaries> {
    if let Some(found) = BUILT.get() {
        return Ok(found);
    }
    let found = find()?;
    Ok(BUILT.get_or_init(|| found))
}

fn in_folder(folder: &Path) -> Result<Binaries> {
    let find = |name: &str| {
        let program = folder.join(name);
        ensure!(
            program.is_file(),
            "{PROGRAMS} has no {name}: {}",
            folder.display()
        );
        Ok(program)
    };
    Ok(Binaries {
        server: find("nodewise-server")?,
        executor: find("nodewise-executor")?,
        cli: find("nodewise")?,
    })
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
