//! Programs of an earlier version of Nodewise, for tests of version skew. They are built once, from this repository's own history.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};

use crate::tools::Toolbox;

/// The commit that the programs are built from: the first one whose executor runs all three kinds. A release replaces it by its
/// predecessor.
const COMMIT: &str = "2942b4cf4a80d1de19fd11600af4c74d0613e8bd";
const PROGRAMS: [&str; 2] = ["nodewise-server", "nodewise-executor"];

/// The paths of an earlier version's programs.
#[derive(Clone, Debug)]
pub struct EarlierPrograms {
    /// `nodewise-server`.
    pub server: PathBuf,
    /// `nodewise-executor`.
    pub executor: PathBuf,
}

impl EarlierPrograms {
    /// The programs, which are built first if necessary: some ten minutes on two cores, once.
    ///
    /// # Errors
    /// The repository has no history (a shallow clone), or the build fails.
    pub fn built() -> Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        built(&Toolbox::default(), &repository, COMMIT)
    }
}

fn built(toolbox: &Toolbox, repository: &Path, commit: &str) -> Result<EarlierPrograms> {
    let folder = toolbox.bin().join(format!("nodewise-{}", &commit[..12]));
    let [server, executor] = PROGRAMS.map(|name| folder.join(name));
    let programs = EarlierPrograms { server, executor };
    if folder.exists() {
        return Ok(programs);
    }
    check_history(repository, commit)?;
    fs::create_dir_all(toolbox.bin()).with_context(|| format!("making {}", toolbox.bin().display()))?;
    let lock = toolbox.lock()?;
    // Another process may have built them in the meantime.
    if !folder.exists() {
        build(toolbox.bin(), repository, commit, &folder)?;
    }
    drop(lock);
    Ok(programs)
}

/// Fails if the repository does not have the commit, and says why.
fn check_history(repository: &Path, commit: &str) -> Result<()> {
    let object = format!("{commit}^{{commit}}");
    let found = git(repository)
        .args(["cat-file", "-e", &object])
        .stderr(Stdio::null())
        .status();
    let found = found
        .context("running `git`: the earlier version's programs are built from this repository's history")?;
    ensure!(
        found.success(),
        "{} has no commit {commit}, from which the earlier version's programs are built: it is a shallow clone, or no clone; \
         run `git fetch --unshallow`",
        repository.display()
    );
    Ok(())
}

fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).stdin(Stdio::null());
    git
}

fn build(bin: &Path, repository: &Path, commit: &str, folder: &Path) -> Result<()> {
    eprintln!(
        "testbed: building Nodewise {} (some ten minutes the first time)",
        &commit[..12]
    );
    let began = Instant::now();
    // Sources and compiled crates are removed at the end, also after a failure.
    let scratch = tempfile::tempdir_in(bin).context("making a folder for the sources")?;
    let (sources, target) = (scratch.path().join("sources"), scratch.path().join("target"));
    unpack(repository, commit, scratch.path(), &sources)?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--locked", "--quiet", "--bins"]);
    for program in PROGRAMS {
        command.args(["-p", program]);
    }
    // What Cargo sets for a test is not for this build.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text.starts_with("NODEWISE_")
        {
            command.env_remove(&name);
        }
    }
    let status = command
        .current_dir(&sources)
        .env("CARGO_TARGET_DIR", &target)
        .envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "false")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("running `cargo`")?;
    ensure!(
        status.success(),
        "building Nodewise {commit} failed ({status}); what `cargo` said is above"
    );
    // Moved at once, so that a folder with the final name is always complete.
    let complete = scratch.path().join("complete");
    fs::create_dir(&complete).context("making the folder of the programs")?;
    for program in PROGRAMS {
        let built = target.join("debug").join(program);
        fs::rename(&built, complete.join(program)).with_context(|| format!("moving {}", built.display()))?;
    }
    fs::rename(&complete, folder).with_context(|| format!("moving {} into place", folder.display()))?;
    eprintln!(
        "testbed: built Nodewise {} in {:.0?}",
        &commit[..12],
        began.elapsed()
    );
    Ok(())
}

/// Unpacks the files of a commit.
fn unpack(repository: &Path, commit: &str, scratch: &Path, sources: &Path) -> Result<()> {
    let archive = scratch.join("sources.tar");
    let output = git(repository)
        .args(["archive", "--format=tar", "--output"])
        .arg(&archive)
        .arg(commit)
        .output()
        .context("running `git archive`")?;
    ensure!(
        output.status.success(),
        "git archive: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::create_dir(sources).context("making the folder of the sources")?;
    let status = Command::new("tar")
        .arg("--extract")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(sources)
        .status()
        .context("running `tar`")?;
    ensure!(status.success(), "tar: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_without_the_commit_says_what_to_do() -> Result<()> {
        let here = tempfile::tempdir()?;
        let status = Command::new("git")
            .args(["init", "--quiet"])
            .arg(here.path())
            .status()?;
        ensure!(status.success(), "git init: {status}");
        let error = check_history(here.path(), COMMIT).expect_err("it has no commit");
        ensure!(
            error.to_string().contains("run `git fetch --unshallow`"),
            "{error}"
        );
        Ok(())
    }
}
