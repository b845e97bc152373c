//! A temporary folder, and the process group that ends with it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The environment variable with a folder in which the logs of every workdir are kept:
/// `NODEWISE_TESTBED_KEEP_LOGS=/some/folder`.
const KEEP_LOGS: &str = "NODEWISE_TESTBED_KEEP_LOGS";

/// Keeps a process group alive until its standard input ends.
const HOLDER: &str = "trap '' HUP INT TERM; read -r _";

/// Waits until the owner ends, kills the process group `$1` and removes the folder `$2`.
///
/// The removal is retried for a while, because a process that was just killed may still complete a write.
const GUARD: &str = r#"
trap '' HUP INT TERM
read -r _
kill -s KILL -- "-$1"
tries=0
until rm -rf -- "$2" || [ "$tries" -ge 100 ]; do tries=$((tries + 1)); sleep 0.05; done
"#;

/// A temporary folder and a process group. Both end with the last owner of this value.
///
/// Two small shells ensure that, even if the owner is killed with SIGKILL and no destructor runs. Each reads from a
/// pipe that only the owner holds open, and the kernel closes the pipe when the owner ends. One shell only keeps the
/// process group alive, so that new processes can join it. The other, outside the group, kills the group and removes
/// the folder. (`PR_SET_PDEATHSIG` does not work, because it kills a child when the *thread* that started it ends, and
/// the threads of a test's runtime do.) A normal drop uses the same mechanism, so that every test exercises it.
///
/// If the environment variable `NODEWISE_TESTBED_KEEP_LOGS` names a folder, the logs are copied there first.
#[derive(Debug)]
pub struct Workdir {
    dir: TempDir,
    holder: Child,
    guard: Child,
}

impl Workdir {
    /// Creates a folder in the system's temporary folder (`TMPDIR`).
    ///
    /// # Errors
    /// The folder cannot be created, or there is no `sh`.
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

    /// The folder of the logs, with one file per process.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// The process group that ends with this folder.
    pub(crate) fn group(&self) -> i32 {
        self.holder.id().cast_signed()
    }

    /// Copies the logs to the folder in the environment variable, if set.
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
        // Closing the pipes ends both shells. Errors are ignored, because the shells are gone then.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Starts a shell that reads from a pipe of this process. It has its own process group, so that a Ctrl-C in the
/// terminal reaches only the owner and not the cleanup.
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
