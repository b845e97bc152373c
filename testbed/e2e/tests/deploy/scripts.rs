//! The scripts do no harm when they fail.

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

/// If there is no temporary folder, the script writes no key into the present folder, and leaves the folder alone.
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
    // A relative path, which is valid only in the present folder.
    let output = run("temporary")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(names_in(&temporary)?.is_empty(), "it left keys behind");
    Ok(())
}

/// A tag must not be able to run commands in the release workflow.
#[test]
fn release_rejects_tags_that_are_no_version() -> Result<()> {
    let here = tempfile::tempdir()?;
    let file = here.path().join("file").display().to_string();
    for tag in [
        "",
        "0.1.0",
        "v0.1",
        "v0.1.0-rc.1",
        &format!("v0\";touch${{IFS}}{file};\""),
        &format!("$(touch {file})"),
        &format!("v0.1.0\ntouch {file}"),
    ] {
        let mut script = Command::new(render::file("deploy/release.sh"));
        let mut make = Command::new("make");
        make.arg("-C").arg(render::file(".")).arg("release");
        for command in [script.arg(tag), make.env("TAG", tag)] {
            let output = command.output()?;
            let complaint = String::from_utf8_lossy(&output.stderr);
            ensure!(
                !output.status.success() && complaint.contains("v0.1.0"),
                "{tag}: {complaint}"
            );
        }
    }
    ensure!(names_in(here.path())?.is_empty(), "a tag was a command");
    Ok(())
}

/// The packaged chart contains all files that the chart uses.
#[test]
fn the_packaged_chart_is_whole() -> Result<()> {
    let here = tempfile::tempdir()?;
    let folder = here.path().display().to_string();
    render::helm(&["package", "--destination", &folder])?;
    let package = format!("{folder}/nodewise-{}.tgz", env!("CARGO_PKG_VERSION"));
    let monitored = ["--set", "monitoring.rules=true,monitoring.dashboard=true"];
    let arguments = [&render::TEMPLATE[..], &monitored[..]].concat();
    ensure!(
        render::helm_for(&package, &arguments)? == render::template(&monitored)?,
        "it says something else"
    );
    Ok(())
}
