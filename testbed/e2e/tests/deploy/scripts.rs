//! The scripts do no harm where they cannot do their work.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Result, ensure};

use crate::render;

fn names_in(folder: &Path) -> Result<Vec<String>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// No key lands in the folder where somebody runs it, which stays.
#[test]
fn certificates_need_a_folder_for_temporary_files() -> Result<()> {
    let here = tempfile::tempdir()?;
    fs::write(here.path().join("mine"), "")?;
    let run = |temporary: &str| -> Result<Output> {
        let mut script = Command::new(render::file("deploy/certificates.sh").canonicalize()?);
        script.current_dir(here.path()).env("TMPDIR", temporary);
        Ok(script.output()?)
    };
    let output = run("missing")?;
    ensure!(
        !output.status.success() && output.stdout.is_empty(),
        "it went on, {}",
        output.status
    );
    assert_eq!(names_in(here.path())?, ["mine"]);

    let temporary = here.path().join("temporary");
    fs::create_dir(&temporary)?;
    // As a path that is right here only.
    let output = run("temporary")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(names_in(&temporary)?.is_empty(), "it left keys behind");
    Ok(())
}
