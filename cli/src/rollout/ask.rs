//! Asks before a change.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use nodewise_telemetry::printable;

use super::args::ChangeArgs;

/// Whether the change is to be made. The question is on standard error, so that standard output has only results.
///
/// # Errors
/// Nobody can be asked, because standard input is no terminal.
pub(super) fn confirm(args: &ChangeArgs, question: &str) -> anyhow::Result<bool> {
    if args.yes || args.dry_run {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        bail!("{question} Standard input is no terminal, so nobody can answer; give --yes or --dry-run");
    }
    let mut error = anstream::stderr();
    write!(error, "{} [y/N] ", printable(question)).context("cannot ask")?;
    error.flush().context("cannot ask")?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
