//! The machine and commit of a measurement.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use procfs::Current as _;
use serde::{Deserialize, Serialize};

/// The machine and commit of a section's measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor model.
    pub processor: String,
    /// The number of processors that this program may use.
    pub processors: usize,
    /// Memory, in GB (10^9 bytes).
    pub memory_gb: u64,
    /// The version of the Linux kernel.
    pub kernel: String,
    /// The measured commit, followed by `+` if the working tree differs from it.
    pub commit: String,
    /// The date.
    pub date: String,
}

impl Machine {
    /// Describes this machine now.
    ///
    /// # Errors
    /// The information is not available, or the sources are not in a git repository.
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
    fn machine_is_described() -> Result<()> {
        let machine = Machine::here()?;
        assert!(machine.processors > 0 && machine.memory_gb > 0, "{machine:?}");
        assert!(machine.commit.len() >= 7, "{machine:?}");
        Ok(())
    }
}
