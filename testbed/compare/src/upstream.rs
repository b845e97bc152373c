//! Upstream's own controller: a Go program with requests on standard input and responses on standard output.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::outcome::Outcome;

/// How long to wait for a response. Hundreds of syncs of a small cluster take a few hundred milliseconds.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// The order in which upstream's caches list objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// The order in the case.
    Given,
    /// A random order from the case's seed.
    Shuffled,
}

#[derive(Serialize)]
struct Request<'a> {
    case: &'a Case,
    runs: u32,
    order: Order,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    #[serde(default)]
    outcomes: Vec<Outcome>,
    #[serde(default)]
    refused: Option<String>,
}

/// Upstream's program. It is started by the first request, and again after an error.
#[derive(Debug)]
pub struct Upstream {
    program: PathBuf,
    arguments: Vec<OsString>,
    coverage: PathBuf,
    time_limit: Duration,
    running: Option<Running>,
}

impl Upstream {
    /// A program that writes its coverage data to `coverage`.
    #[must_use]
    pub fn new(program: &Path, coverage: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arguments: Vec::new(),
            coverage: coverage.to_owned(),
            time_limit: TIME_LIMIT,
            running: None,
        }
    }

    /// The distinct outcomes of `runs` syncs of `case`.
    ///
    /// # Errors
    /// The program cannot be started, rejects the case, ends or does not answer; the error has the case's seed.
    pub fn sync(&mut self, case: &Case, runs: u32, order: Order) -> Result<Vec<Outcome>> {
        let asked = self.ask(&Request { case, runs, order });
        asked.with_context(|| format!("asking upstream's controller about seed {}", case.seed))
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<Vec<Outcome>> {
        // A program that has not answered in time is not used again, because its late response would be taken for the
        // next one.
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let answer = running.ask(request, self.time_limit)?;
        self.running = Some(running);
        let answer: Answer =
            serde_json::from_str(&answer).with_context(|| format!("reading its answer: {answer}"))?;
        match answer.refused {
            Some(why) => bail!("it cannot read the case: {why}"),
            None => Ok(answer.outcomes),
        }
    }

    fn start(&self) -> Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env("GOCOVERDIR", &self.coverage);
        Running::start(&mut command).with_context(|| format!("starting {}", self.program.display()))
    }

    /// Ends the program regularly, so that it writes its coverage data.
    ///
    /// # Errors
    /// The program ends with an error.
    pub fn stop(self) -> Result<()> {
        self.running.map_or(Ok(()), Running::stop)
    }
}

/// The running program. It is killed on drop.
#[derive(Debug)]
struct Running {
    process: Child,
    input: Option<BufWriter<ChildStdin>>,
    answers: Receiver<std::io::Result<String>>,
}

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take().map(BufWriter::new);
        let output = process.stdout.take().context("the program has no output")?;
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            process,
            input,
            answers,
        })
    }

    /// The response line to a request.
    fn ask(&mut self, request: &Request<'_>, time_limit: Duration) -> Result<String> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let input = self.input.as_mut().context("it was stopped")?;
        input
            .write_all(&line)
            .and_then(|()| input.flush())
            .context("writing the request")?;
        match self.answers.recv_timeout(time_limit) {
            Ok(line) => line.context("reading its answer"),
            Err(RecvTimeoutError::Timeout) => bail!("no answer within {time_limit:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("it ended with {}", self.process.wait().context("waiting for it")?)
            }
        }
    }

    fn stop(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.process.wait().context("waiting for upstream's controller")?;
        if !status.success() {
            bail!("upstream's controller ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.input.is_some() {
            // The process may already have ended.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A program that answers its first request only after the second request. Responses contain the number of the
    /// process and of the request.
    const LATE: &str = r#"
        answer() { echo '{"outcomes": [{"error": "'$1'", "calls": [], "sequence": [], "events": [], "requeue": [], "backoff": []}]}'; }
        read -r _
        if [ ! -e "$GOCOVERDIR/started" ]; then
            : > "$GOCOVERDIR/started"
            read -r _ && answer first.1 && answer first.2
        else
            answer second.1
            read -r _ && answer second.2
        fi"#;

    fn script(text: &str, coverage: &Path, time_limit: Duration) -> Upstream {
        Upstream {
            arguments: vec!["-c".into(), text.into()],
            time_limit,
            ..Upstream::new(Path::new("/bin/sh"), coverage)
        }
    }

    fn case(seed: u64) -> Case {
        let case =
            json!({"seed": seed, "now": "2026-01-01T00:00:00Z", "daemonSets": [], "burst": 1, "echo": true});
        serde_json::from_value(case).expect("a case")
    }

    /// The program's response to a case.
    fn asked(upstream: &mut Upstream, seed: u64) -> Result<String, String> {
        let outcomes = upstream.sync(&case(seed), 1, Order::Given);
        outcomes
            .map(|outcomes| outcomes[0].error.clone().unwrap_or_default())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn late_response_is_not_used_for_the_next_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut upstream = script(LATE, folder.path(), Duration::from_millis(1));
        // The first process may be killed before it has started; then the next one is the first.
        while !folder.path().join("started").exists() {
            assert_eq!(
                asked(&mut upstream, 41).expect_err("no answer"),
                "asking upstream's controller about seed 41: no answer within 1ms"
            );
        }
        upstream.time_limit = TIME_LIMIT;
        assert_eq!(asked(&mut upstream, 42).as_deref(), Ok("second.1"));
        assert_eq!(asked(&mut upstream, 43).as_deref(), Ok("second.2"));
        upstream.stop().expect("it ends in peace");
    }

    #[test]
    fn ended_program_is_restarted() {
        let folder = tempfile::tempdir().expect("a folder");
        let dies = r#"
            read -r _
            [ -e "$GOCOVERDIR/died" ] || { : > "$GOCOVERDIR/died"; exit 3; }
            echo '{"outcomes": [{"calls": [], "sequence": [], "events": [], "requeue": [], "backoff": []}]}'"#;
        let mut upstream = script(dies, folder.path(), TIME_LIMIT);
        let error = asked(&mut upstream, 7).expect_err("it dies");
        assert_eq!(
            error,
            "asking upstream's controller about seed 7: it ended with exit status: 3"
        );
        assert_eq!(asked(&mut upstream, 8).as_deref(), Ok(""));
    }
}
