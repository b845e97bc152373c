//! Programs from Debian packages, without installation and without root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The commands of Debian's package manager.
#[derive(Clone, Debug)]
pub(super) struct Apt {
    /// `apt-get`, for downloads.
    pub(super) get: PathBuf,
    /// `dpkg-deb`, for unpacking.
    pub(super) unpack: PathBuf,
}

impl Default for Apt {
    fn default() -> Self {
        Self {
            get: "apt-get".into(),
            unpack: "dpkg-deb".into(),
        }
    }
}

impl Apt {
    /// Downloads `package` in the version of this machine's Debian, and unpacks it to `folder`. The folder exists only
    /// once it is complete.
    ///
    /// If the system's package lists are missing or out of date, lists are downloaded to a temporary folder, because
    /// only root can write the system's lists.
    pub(super) fn unpack(&self, package: &str, folder: &Path) -> Result<()> {
        let advice = || format!("install {package}, so that its programs are in PATH");
        let bin = folder.parent().context("a folder without a parent")?;
        let scratch = tempfile::Builder::new()
            .prefix(".debian-")
            .tempdir_in(bin)
            .context("making a folder for a download")?;
        let downloads = scratch.path().join("downloads");
        fs::create_dir(&downloads).context("making a folder for a download")?;
        if self.download(package, &downloads, &[]).is_err() {
            let own = own_lists(scratch.path())?;
            self.update(&downloads, &own)
                .and_then(|()| self.download(package, &downloads, &own))
                .with_context(advice)?;
        }
        let deb = fs::read_dir(&downloads)
            .context("looking for the download")?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|it| it == "deb"))
            .with_context(|| format!("`apt-get download {package}` left no package"))?;
        let unpacked = scratch.path().join("unpacked");
        let mut unpack = Command::new(&self.unpack);
        unpack.arg("-x").arg(deb).arg(&unpacked);
        run(unpack).with_context(advice)?;
        fs::rename(&unpacked, folder).with_context(|| format!("moving {package} into place"))
    }

    fn download(&self, package: &str, into: &Path, options: &[String]) -> Result<()> {
        let mut command = self.apt_get(into, options);
        command.args(["download", package]);
        run(command)
    }

    fn update(&self, folder: &Path, options: &[String]) -> Result<()> {
        let mut command = self.apt_get(folder, options);
        command.arg("update");
        run(command)
    }

    fn apt_get(&self, folder: &Path, options: &[String]) -> Command {
        let mut command = Command::new(&self.get);
        command
            .current_dir(folder)
            .arg("--quiet=2")
            // If run by root, apt would download as another user, who cannot write to this folder.
            .arg("--option=APT::Sandbox::User=root")
            .args(options);
        command
    }
}

/// Creates folders for package lists. Returns the options that select them.
fn own_lists(scratch: &Path) -> Result<Vec<String>> {
    let (lists, cache) = (scratch.join("lists"), scratch.join("cache"));
    for folder in [&lists, &cache] {
        fs::create_dir_all(folder.join("partial")).context("making the folders for lists of packages")?;
    }
    Ok(vec![
        format!("--option=Dir::State::lists={}", lists.display()),
        format!("--option=Dir::Cache={}", cache.display()),
    ])
}

/// Runs a command whose output matters only if it fails.
fn run(mut command: Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {program}"))?;
    ensure!(
        output.status.success(),
        "{program} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
