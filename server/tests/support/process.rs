//! The server binary as a process.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::eventually;

/// A server process, killed on drop.
pub struct Process {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Process {
    /// Starts a server with these flags and variables. It inherits no `NODEWISE_` and `OTEL_` variables.
    pub fn start(flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise-server"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OTEL_") || text.starts_with("NODEWISE_") {
                command.env_remove(&name);
            }
        }
        let mut child = command
            .args(flags)
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    /// Reads the log up to the first line for which `find` returns a value.
    pub fn line<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.log.read_line(&mut line).unwrap() > 0,
                "the log ends without it:\n{seen}"
            );
            if let Some(found) = find(line.trim_end()) {
                return found;
            }
            seen.push_str(&line);
        }
    }

    /// The URL that the server listens on.
    pub fn url(&mut self) -> String {
        self.line(|line| {
            let address = line.split("listening on ").nth(1)?.split(' ').next()?;
            Some(format!("http://{address}"))
        })
    }

    /// The address of health and metrics, if the process serves them. Must be called before [`Self::url`].
    pub fn http(&mut self) -> String {
        self.line(|line| {
            let address = line.split("health and metrics: listening on ").nth(1)?;
            Some(address.split(' ').next()?.to_owned())
        })
    }

    /// The peak resident memory so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line
            .and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok())
            .expect("a number of kB");
        kib << 10
    }

    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process is there");
    }

    /// Waits for the end of the process. Other tasks, such as clients, run meanwhile.
    pub async fn ended(&mut self) -> ExitStatus {
        eventually("the process ends", || {
            let status = self.child.try_wait().expect("the process is ours");
            async move { status }
        })
        .await
    }

    /// The unread rest of the log of a process that has ended.
    pub fn rest_of_log(&mut self) -> String {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).expect("text");
        rest
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The raw response to an HTTP GET request.
pub async fn get(address: &str, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
