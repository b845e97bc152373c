//! A started program: its log, its signals and its end.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::wait::eventually;
use crate::workdir::Workdir;

/// The text before the address in a program's log line.
const LISTENING: &str = "listening on ";

/// How many log lines an error shows.
const TAIL_LINES: usize = 25;

/// A started program. It ends at the latest when this value is dropped.
///
/// Standard output and standard error go to one log file, standard input is empty.
pub struct Process {
    name: String,
    log: PathBuf,
    pid: Pid,
    child: Mutex<Child>,
    workdir: Arc<Workdir>,
    /// Whether a panicking test prints the end of the log.
    under_test: bool,
}

impl Process {
    /// Starts `command` with its own temporary folder.
    ///
    /// # Errors
    /// The program does not exist or cannot be started.
    pub fn spawn(name: &str, command: Command) -> Result<Self> {
        Self::spawn_in(&Workdir::new()?, name, command)
    }

    /// Starts `command` in the process group of `workdir`, with its log there as `logs/NAME.log` (or
    /// `NAME.2.log` and so on, when the name was used before).
    ///
    /// The standard streams and the process group of the command are replaced.
    ///
    /// # Errors
    /// The program does not exist or cannot be started.
    pub fn spawn_in(workdir: &Arc<Workdir>, name: &str, mut command: Command) -> Result<Self> {
        let (log, file) =
            new_log(&workdir.logs(), name).with_context(|| format!("making the log of {name}"))?;
        let errors = file
            .try_clone()
            .with_context(|| format!("sharing the log of {name}"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(workdir.group())
            .spawn()
            .with_context(|| format!("starting {name} ({})", command.get_program().display()))?;
        let pid = Pid::from_child(&child);
        let child = Mutex::new(child);
        Ok(Self {
            name: name.to_owned(),
            log,
            pid,
            child,
            workdir: Arc::clone(workdir),
            under_test: true,
        })
    }

    /// Marks the process as part of the environment: its log is not printed when a test fails.
    pub(crate) fn into_environment(mut self) -> Self {
        self.under_test = false;
        self
    }

    /// The name given at the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// The temporary folder of the process.
    #[must_use]
    pub fn workdir(&self) -> &Arc<Workdir> {
        &self.workdir
    }

    /// The file with its output.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The output so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last lines of the output.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// The exit status, or `None` while it runs.
    ///
    /// # Errors
    /// The system call fails.
    pub fn exit_status(&self) -> Result<Option<ExitStatus>> {
        self.child()
            .try_wait()
            .with_context(|| format!("looking after {}", self.name))
    }

    /// Fails if the process has ended; the error has the end of its log.
    ///
    /// # Errors
    /// The process has ended.
    pub fn check_running(&self) -> Result<()> {
        match self.exit_status()? {
            None => Ok(()),
            Some(status) => Err(Ended {
                name: self.name.clone(),
                status,
                log_tail: self.log_tail(),
            }
            .into()),
        }
    }

    /// Waits for a line that contains `pattern`, starting at the first line, and returns the line.
    ///
    /// # Errors
    /// The program ended without printing the line, or the deadline passed; the error has the end of the log.
    pub async fn wait_for_log_line(&self, pattern: &str, deadline: Duration) -> Result<String> {
        let what = format!("a line with {pattern:?} from {}", self.name);
        let mut reader = BufReader::new(File::open(&self.log).context("opening a log")?);
        let mut line = Vec::new();
        let found = eventually(deadline, what, async || {
            // Read before the log, so that output from just before the end counts.
            let ended = self.exit_status()?;
            loop {
                reader.read_until(b'\n', &mut line)?;
                // A partial line from the last read is complete once the process has ended.
                let is_whole = line.last() == Some(&b'\n') || ended.is_some();
                if line.is_empty() || !is_whole {
                    break;
                }
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if text.contains(pattern) {
                    return Ok(Some(text));
                }
            }
            if ended.is_some() {
                return Ok(None);
            }
            bail!("the end of its log:\n{}", self.log_tail())
        })
        .await?;
        match found {
            Some(line) => Ok(line),
            None => self
                .check_running()
                .and_then(|()| bail!("{} printed no {pattern:?}", self.name)),
        }
    }

    /// Waits for a line such as `listening on 127.0.0.1:7443` and returns the address.
    ///
    /// # Errors
    /// As for [`Process::wait_for_log_line`], or the line has no address.
    pub async fn listening_on(&self, deadline: Duration) -> Result<SocketAddr> {
        let line = self.wait_for_log_line(LISTENING, deadline).await?;
        address_in(&line).with_context(|| format!("no address in {line:?}"))
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// The deadline passed; the error has the end of the log.
    pub async fn wait_for_exit(&self, deadline: Duration) -> Result<ExitStatus> {
        eventually(
            deadline,
            format!("the end of {}", self.name),
            async || match self.exit_status()? {
                Some(status) => Ok(status),
                None => bail!("it still runs; the end of its log:\n{}", self.log_tail()),
            },
        )
        .await
    }

    /// Sends SIGKILL and waits for the end.
    ///
    /// # Errors
    /// The system call fails.
    pub fn kill9(&self) -> Result<()> {
        let mut child = self.child();
        child
            .kill()
            .and_then(|()| child.wait())
            .with_context(|| format!("killing {}", self.name))?;
        Ok(())
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// The process still runs at the deadline.
    pub async fn terminate(&self, deadline: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.wait_for_exit(deadline).await
    }

    /// Sends SIGSTOP and waits until all threads have stopped. Connections stay open, but nothing answers.
    ///
    /// # Errors
    /// The process no longer runs.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        // On a busy machine the threads would continue for a while. NOWAIT leaves an exit status for a later call.
        let looked = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(self.pid), looked))
            .with_context(|| format!("waiting until {} has stopped", self.name))?;
        self.check_running()
    }

    /// Resumes the process (SIGCONT) after [`Process::pause`].
    ///
    /// # Errors
    /// The process no longer runs.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // A child is reaped only under this lock, so the process id cannot belong to another process.
        let mut child = self.child();
        if let Some(status) = child.try_wait()? {
            bail!("{} has already ended ({status})", self.name);
        }
        kill_process(self.pid, signal).with_context(|| format!("sending {signal:?} to {}", self.name))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This fails only if the process has already ended.
        let _ = self.kill9();
        if self.under_test && std::thread::panicking() {
            eprintln!("--- the end of the log of {}:\n{}", self.name, self.log_tail());
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("name", &self.name)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// The error that a program has ended which should run.
#[derive(Debug)]
struct Ended {
    name: String,
    status: ExitStatus,
    log_tail: String,
}

impl Ended {
    /// Whether the program could not listen because another process took the port first.
    fn port_was_taken(&self) -> bool {
        self.log_tail.contains("address already in use")
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has ended ({}); the end of its log:\n{}",
            self.name, self.status, self.log_tail
        )
    }
}

impl std::error::Error for Ended {}

/// Whether a program ended because another process took its port first.
pub(crate) fn port_was_taken(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Ended>().is_some_and(Ended::port_was_taken)
}

/// The address in a log line, in any log format.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let end = rest.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c)));
    rest[..end.unwrap_or(rest.len())]
        .trim_end_matches(':')
        .parse()
        .ok()
}

/// Creates the first log file for `name` that does not exist yet.
fn new_log(folder: &Path, name: &str) -> std::io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let file = if number == 1 {
            format!("{name}.log")
        } else {
            format!("{name}.{number}.log")
        };
        let path = folder.join(file);
        match File::options().append(true).create_new(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            other => return other.map(|file| (path, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_addresses_in_any_log_format() {
        for (line, address) in [
            ("listening on 127.0.0.1:7443", Some("127.0.0.1:7443")),
            (
                "INFO listening on 127.0.0.1:7443: plain text addr=x",
                Some("127.0.0.1:7443"),
            ),
            (
                r#"{"message":"health and metrics: listening on [::1]:80"}"#,
                Some("[::1]:80"),
            ),
            ("listening on nothing", None),
            ("ready", None),
        ] {
            let expected = address.map(|address| address.parse().expect("an address"));
            assert_eq!(address_in(line), expected, "{line}");
        }
    }
}
