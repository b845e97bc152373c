//! Files that commands write. Only a file that the same command wrote before is replaced: a mistyped name must not cost a manifest.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
};

use anyhow::{Context as _, ensure};

/// What a command writes.
pub(crate) struct OutputFile<'a> {
    pub(crate) path: &'a Path,
    /// The flag that names the file.
    pub(crate) flag: &'static str,
    /// What is written: `a kept plan`.
    pub(crate) what: &'static str,
    /// Whether a file has such content.
    pub(crate) is_own: fn(&mut dyn BufRead) -> bool,
}

impl OutputFile<'_> {
    /// Refuses a file that has other content. Commands call this before their work begins, too. An empty file has nothing to lose, nor has a
    /// pipe or a device.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let name = self.path.display();
        let metadata = match fs::metadata(self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.with_context(|| format!("{name}: cannot be read"))?,
        };
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(());
        }
        let file = File::open(self.path).with_context(|| format!("{name}: cannot be read"))?;
        let (flag, what) = (self.flag, self.what);
        ensure!(
            (self.is_own)(&mut BufReader::new(file)),
            "{flag} {name}: the file exists and is not {what}, so it is not replaced; name another file, or remove this one first"
        );
        Ok(())
    }

    /// Writes the file.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        self.check()?;
        fs::write(self.path, text).with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_same_kind_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let output = OutputFile {
            path: &path,
            flag: "--out",
            what: "a greeting",
            is_own: |file| {
                let mut line = String::new();
                file.read_line(&mut line).is_ok_and(|_| line.starts_with("hello"))
            },
        };
        for before in [None, Some(""), Some("hello you")] {
            if let Some(before) = before {
                fs::write(&path, before).expect("written");
            }
            output.write("hello").expect("it may be replaced");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "hello");
        }
        fs::write(&path, "kind: DaemonSet\n").expect("written");
        let error = output.write("hello").expect_err("a manifest").to_string();
        assert_eq!(
            error,
            format!(
                "--out {}: the file exists and is not a greeting, so it is not replaced; name another file, or remove this one first",
                path.display()
            )
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), "kind: DaemonSet\n");
    }
}
