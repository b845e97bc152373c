//! Upstream's own controller: a Go program that is asked over its standard input and output.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::outcome::Outcome;

/// Longest wait for an answer: some hundred syncs of a small cluster take a few hundred milliseconds.
const PATIENCE: Duration = Duration::from_mins(2);

/// In which order upstream's caches hand out objects that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// As the case lists them.
    Given,
    /// At random, from the case's seed.
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

/// The running program.
#[derive(Debug)]
pub struct Upstream {
    process: Child,
    input: Option<BufWriter<ChildStdin>>,
    answers: Receiver<std::io::Result<String>>,
}

impl Upstream {
    /// Starts it. It leaves its coverage data in `coverage`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, coverage: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .env("GOCOVERDIR", coverage)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
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

    /// The distinct outcomes of so many syncs of `case`.
    ///
    /// # Errors
    /// The program refuses the case, dies or does not answer.
    pub fn sync(&mut self, case: &Case, runs: u32, order: Order) -> Result<Vec<Outcome>> {
        let mut line = serde_json::to_vec(&Request { case, runs, order })?;
        line.push(b'\n');
        let input = self.input.as_mut().context("the program was stopped")?;
        input
            .write_all(&line)
            .and_then(|()| input.flush())
            .context("writing to upstream's controller")?;
        let answer = match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => line.context("reading from upstream's controller")?,
            Err(RecvTimeoutError::Timeout) => {
                bail!("upstream's controller did not answer within {PATIENCE:?}")
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("upstream's controller ended: {:?}", self.process.wait())
            }
        };
        let answer: Answer = serde_json::from_str(&answer)
            .with_context(|| format!("the answer of upstream's controller: {answer}"))?;
        match answer.refused {
            Some(why) => bail!("upstream's controller cannot read the case: {why}"),
            None => Ok(answer.outcomes),
        }
    }

    /// Ends it in peace, so that its coverage is written.
    ///
    /// # Errors
    /// It ends with an error.
    pub fn stop(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.process.wait().context("waiting for upstream's controller")?;
        if !status.success() {
            bail!("upstream's controller ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if self.input.is_some() {
            // Nothing can be done about a process that is gone already.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
