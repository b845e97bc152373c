//! What a figure was measured on.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use procfs::Current as _;
use serde::{Deserialize, Serialize};

/// The machine and the sources that a section was measured with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processors' model.
    pub processor: String,
    /// How many of them this program may use.
    pub processors: usize,
    /// Memory, in GB (10^9 bytes).
    pub memory_gb: u64,
    /// Version of the Linux kernel.
    pub kernel: String,
    /// The commit that was measured, with a `+` where files differ from it.
    pub commit: String,
    /// The day.
    pub date: String,
}

impl Machine {
    /// This one, now.
    ///
    /// # Errors
    /// It does not say, or the sources are in no git repository.
    pub fn here() -> Result<Self> {
        let cpus = procfs::CpuInfo::current().context("/proc/cpuinfo")?;
        let memory = procfs::Meminfo::current().context("/proc/meminfo")?;
        let kernel = procfs::sys::kernel::Version::current().context("the kernel's version")?;
        let differs = !git(&[
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            ".",
            ":!docs",
        ])?
        .is_empty();
        let commit = git(&["rev-parse", "--short", "HEAD"])?;
        Ok(Self {
            processor: cpus.model_name(0).unwrap_or("of unknown model").to_owned(),
            processors: std::thread::available_parallelism()?.get(),
            memory_gb: memory.mem_total / 1_000_000_000,
            kernel: format!("{}.{}.{}", kernel.major, kernel.minor, kernel.patch),
            commit: format!("{commit}{}", if differs { "+" } else { "" }),
            date: jiff::Zoned::now().date().to_string(),
        })
    }
}

fn git(args: &[&str]) -> Result<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = Command::new("git").args(args).current_dir(root).output();
    let output = output.context("running git")?;
    ensure!(output.status.success(), "git {} failed", args.join(" "));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_says_what_it_is() -> Result<()> {
        let machine = Machine::here()?;
        assert!(machine.processors > 0 && machine.memory_gb > 0, "{machine:?}");
        assert!(machine.commit.len() >= 7, "{machine:?}");
        Ok(())
    }
}
