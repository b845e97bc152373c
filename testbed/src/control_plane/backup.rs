//! Backups of etcd, and restores from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::ControlPlane;
use super::builder::Component;

/// A copy of etcd's data.
#[derive(Debug)]
pub struct EtcdBackup(TempDir);

impl ControlPlane {
    /// Copies etcd's data while the etcd process is paused (SIGSTOP). The copy is what a crash would leave.
    ///
    /// # Errors
    /// etcd does not run, or its data cannot be copied.
    pub fn back_up_etcd(&self) -> Result<EtcdBackup> {
        let backup = tempfile::Builder::new()
            .prefix("etcd-backup-")
            .tempdir_in(&self.layout.dir)
            .context("making the folder of a backup")?;
        let processes = self.processes();
        let etcd = processes
            .get(&std::cmp::Reverse(Component::Etcd))
            .context("etcd does not run")?;
        etcd.pause()?;
        let copied = copy_folder(&self.layout.etcd_data(), backup.path());
        etcd.resume()?;
        copied.map(|()| EtcdBackup(backup))
    }

    /// Kills all components, replaces etcd's data by the backup, and starts all components again on the same ports, as
    /// Kubernetes' documentation requires for a restore. Resource versions continue from the backup.
    ///
    /// # Errors
    /// A component does not run or cannot be started again, or the data cannot be replaced.
    pub async fn restore_etcd(&self, backup: &EtcdBackup) -> Result<()> {
        for &component in self.builder.components.iter().rev() {
            self.kill(component)?;
        }
        let data = self.layout.etcd_data();
        fs::remove_dir_all(&data).context("removing the data of etcd")?;
        copy_folder(backup.0.path(), &data)?;
        // The apiserver waits for etcd.
        self.start(Component::Etcd)?;
        self.start(Component::Apiserver)?;
        self.wait_until_ready().await?;
        self.start_the_others()
    }
}

/// Copies a folder recursively.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target).with_context(|| format!("copying {}", source.display()))?;
        }
    }
    Ok(())
}
