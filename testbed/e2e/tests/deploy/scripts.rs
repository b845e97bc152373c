//! The scripts do no harm when they fail.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

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

/// krew refuses an archive whose checksum differs, and starts the file that the manifest names.
#[test]
fn archives_and_the_krew_manifest_agree() -> Result<()> {
    let (here, extra) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let pages = ["man1/nodewise.1", "completions/nodewise.bash"];
    for page in pages {
        let path = extra.path().join(page);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(path, page)?;
    }
    let run = || {
        let mut script = Command::new(render::file("deploy/archives.sh"));
        script.arg(here.path()).arg("1.2.3").arg(extra.path()).output()
    };
    let output = run()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && error.contains("has no program nodewise-1.2.3-OS-MACHINE"),
        "{error}"
    );
    for program in ["linux-amd64", "darwin-arm64", "windows-amd64.exe"] {
        fs::write(here.path().join(format!("nodewise-1.2.3-{program}")), program)?;
    }
    let output = run()?;
    ensure!(output.status.success(), "{output:?}");
    let manifest: Value = serde_saphyr::from_str(&fs::read_to_string(here.path().join("krew.yaml"))?)?;
    assert_eq!(manifest["spec"]["version"], "v1.2.3");
    let description = manifest["spec"]["description"]
        .as_str()
        .context("a description")?;
    for command in [
        "status",
        "rollout",
        "plan",
        "simulate",
        "explain",
        "check",
        "dashboard",
        "overhead",
    ] {
        let has = description
            .lines()
            .any(|line| line.split(' ').next() == Some(command));
        ensure!(has, "the description does not name {command}:\n{description}");
    }
    let platforms = manifest["spec"]["platforms"].as_array().context("platforms")?;
    let mut found = Vec::new();
    for platform in platforms {
        let text = |key: &str| platform[key].as_str().context("a text").map(str::to_owned);
        let (uri, bin) = (text("uri")?, text("bin")?);
        let archive = uri
            .strip_prefix("https://github.com/nodewise/nodewise/releases/download/v1.2.3/")
            .context("the release's folder")?;
        let archive = here.path().join(archive);
        let sum = Command::new("sha256sum").arg(&archive).output()?;
        ensure!(
            String::from_utf8_lossy(&sum.stdout).starts_with(&format!("{} ", text("sha256")?)),
            "{platform}: {sum:?}"
        );
        // Python reads both kinds of archive.
        let folder = tempfile::tempdir()?;
        let unpack = "import shutil, sys; shutil.unpack_archive(sys.argv[1], sys.argv[2])";
        let unpacked = Command::new("python3")
            .args(["-c", unpack])
            .arg(&archive)
            .arg(folder.path())
            .output()?;
        ensure!(unpacked.status.success(), "{unpacked:?}");
        for file in pages.into_iter().chain(["LICENSE"]) {
            ensure!(folder.path().join(file).exists(), "{archive:?} has no {file}");
        }
        let program = fs::read_to_string(folder.path().join(bin))?;
        found.push((platform["selector"]["matchLabels"]["os"].clone(), program));
    }
    let expected = [
        ("linux", "linux-amd64"),
        ("darwin", "darwin-arm64"),
        ("windows", "windows-amd64.exe"),
    ];
    assert_eq!(
        found,
        expected.map(|(os, program)| (os.into(), program.to_owned()))
    );
    Ok(())
}
