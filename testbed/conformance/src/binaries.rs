//! Builds the programs of this workspace that are needed, and finds them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Where the program of this name is, which is also the name of its package. Builds it once per process; cargo's own lock
/// serializes processes, and a second build finds nothing to do.
pub fn program(name: &str) -> Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = built.get(name) {
        return Ok(path.clone());
    }
    let path = build(name)?;
    built.insert(name.to_owned(), path.clone());
    Ok(path)
}

fn build(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Cargo tells a test about its package. Build scripts that look at these (ring's does) would run again in here, and once
    // more in the next build outside, each time with everything that depends on them.
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
        .args(["--package", name, "--bin", name])
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo build")?;
    ensure!(output.status.success(), "cargo build of {name} failed");
    let printed = String::from_utf8(output.stdout)?;
    let mut executables = printed.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        line.get("executable")?.as_str().map(PathBuf::from)
    });
    executables
        .find(|path| path.file_stem().is_some_and(|stem| stem == name))
        .with_context(|| format!("cargo build made no {name}"))
}
