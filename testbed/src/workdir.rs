//! A temporary folder that takes its processes with it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Names a folder that keeps the logs of every workdir: `NODEWISE_TESTBED_KEEP_LOGS=/some/folder`.
const KEEP_LOGS: &str = "NODEWISE_TESTBED_KEEP_LOGS";

/// Keeps a process group in existence: it does nothing until its standard input ends.
const HOLDER: &str = "trap '' HUP INT TERM; read -r _";

/// Waits for the owner's end, then ends the group `$1` and removes the folder `$2`.
///
/// Removal is tried again for a while, because a process that was just killed may still be in the middle of
/// a last write.
const GUARD: &str = r#"
trap '' HUP INT TERM
read -r _
kill -s KILL -- "-$1"
tries=0
until rm -rf -- "$2" || [ "$tries" -ge 100 ]; do tries=$((tries + 1)); sleep 0.05; done
"#;

/// A temporary folder and a process group, both gone when the last owner of this value is.
///
/// Two tiny shells make that hold even when the owner is killed with SIGKILL and no destructor runs. Each
/// reads from a pipe that only the owner holds open, and the kernel closes it whichever way the owner ends.
/// One shell only keeps the process group alive, so that a new process can join it; the other, outside the
/// group, kills the group and removes the folder. (`PR_SET_PDEATHSIG` would end a child already when the
/// *thread* that started it ends, which a test's runtime does.) Dropping takes the same way, so that it is
/// proven every time.
///
/// With the environment variable `NODEWISE_TESTBED_KEEP_LOGS` naming a folder, the logs are copied there
/// before they go.
#[derive(Debug)]
pub struct Workdir {
    dir: TempDir,
    holder: Child,
    guard: Child,
}

impl Workdir {
    /// Makes a new folder under the system's temporary one (`TMPDIR`).
    ///
    /// # Errors
    /// The folder cannot be made, or there is no `sh`.
    pub fn new() -> Result<Arc<Self>> {
        let dir = tempfile::Builder::new()
            .prefix("nodewise-testbed-")
            .tempdir()
            .context("making a temporary folder")?;
        fs::create_dir(dir.path().join("logs")).context("making the folder of the logs")?;
        let holder = shell(HOLDER, [""; 0]).context("starting `sh` to hold a process group")?;
        let group = holder.id().to_string();
        let guard = shell(GUARD, [OsStr::new(&group), dir.path().as_os_str()])
            .context("starting `sh` to guard a process group")?;
        Ok(Arc::new(Self { dir, holder, guard }))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder of the logs, one file per process.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// The process group that ends with this folder.
    pub(crate) fn group(&self) -> i32 {
        self.holder.id().cast_signed()
    }

    /// Copies the logs to where the environment asks for them.
    fn keep_logs(&self) -> io::Result<()> {
        let Some(keep) = std::env::var_os(KEEP_LOGS) else {
            return Ok(());
        };
        let name = self.path().file_name().unwrap_or(OsStr::new("logs"));
        let target = Path::new(&keep).join(name);
        fs::create_dir_all(&target)?;
        for log in fs::read_dir(self.logs())? {
            let log = log?;
            fs::copy(log.path(), target.join(log.file_name()))?;
        }
        eprintln!("testbed: logs are kept in {}", target.display());
        Ok(())
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if let Err(error) = self.keep_logs() {
            eprintln!(
                "testbed: the logs of {} are not kept: {error}",
                self.path().display()
            );
        }
        // The pipes close, so that both shells go on to their ends; nothing is left to do if they are gone.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Starts a shell that reads from a pipe of ours, in a process group of its own: a Ctrl-C in the terminal is
/// for the owner, not for those that clean up after it.
fn shell<S: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = S>) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", script, "nodewise-testbed-guard"])
        .args(args)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}
