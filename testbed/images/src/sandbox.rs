//! Starts what is in an image.

use std::{env::consts::ARCH, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use nodewise_testbed::Tool;

use crate::Image;

/// The emulator's name among the files of an image for another architecture.
const EMULATOR: &str = "emulator";

impl Image {
    /// The command that starts its program with these arguments.
    ///
    /// It sees the image's files, which it cannot change, and the network: no `/proc`, no `/dev`, no `/tmp`, no variables but those that
    /// the command is given.
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
                // Not a copy: while it is written, a child that another test is just starting would hold it open, too, and the
                // system does not run a file that is being written.
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

    /// Puts a copy of this file among the image's, as a volume would.
    pub fn add(&self, file: &Path, name: &Path) -> Result<()> {
        let place = self.root().join(name);
        fs::create_dir_all(place.parent().context("the root")?).context("making a folder")?;
        fs::copy(file, place).with_context(|| format!("copying {}", file.display()))?;
        Ok(())
    }
}
