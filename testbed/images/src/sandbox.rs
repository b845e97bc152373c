//! Runs the program of an image.

use std::{env::consts::ARCH, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use nodewise_testbed::Tool;

use crate::Image;

/// The emulator's file name in an image for another architecture.
const EMULATOR: &str = "emulator";

impl Image {
    /// The command that runs the image's program with these arguments.
    ///
    /// The program sees the image's files (read-only) and the network: no `/proc`, no `/dev`, no `/tmp`, and no
    /// environment variables except those of the command.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let settings = &self.config().config;
        let (user, group) = settings.user.split_once(':').context("a user and a group")?;
        let mut command = Command::new(Tool::Bwrap.path()?);
        command
            .env_clear()
            .args(["--unshare-all", "--share-net", "--cap-drop", "ALL"])
            .args(["--uid", user, "--gid", group])
            .arg("--ro-bind")
            .arg(self.root())
            .arg("/");
        match (ARCH, self.config().architecture.as_str()) {
            ("x86_64", "amd64") | ("aarch64", "arm64") => {}
            (_, "arm64") => {
                // A bind mount, not a copy: if this process had the file open for writing, a child process that another
                // test starts at that moment would inherit it, and the system does not execute a file that is open for
                // writing.
                fs::write(self.root().join(EMULATOR), "").context("making a place for the emulator")?;
                let there = Path::new("/").join(EMULATOR);
                command
                    .arg("--ro-bind")
                    .arg(Tool::QemuAarch64.path()?)
                    .arg(&there);
                command.arg(&there);
            }
            (here, there) => bail!("no way is known to run what is for {there} on {here}"),
        }
        command.args(&settings.entrypoint).args(arguments);
        Ok(command)
    }

    /// Copies this file into the image's files, as a volume would provide it.
    pub fn add(&self, file: &Path, name: &Path) -> Result<()> {
        let place = self.root().join(name);
        fs::create_dir_all(place.parent().context("the root")?).context("making a folder")?;
        fs::copy(file, place).with_context(|| format!("copying {}", file.display()))?;
        Ok(())
    }
}
