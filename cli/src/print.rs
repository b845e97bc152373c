//! Standard output and standard error. A reader that went away, such as `head`, is no error.

use std::io::{self, Write};

use anyhow::Context as _;
use serde::Serialize;

use crate::text::ERROR;

/// Prints a page. Colours go to terminals only.
pub(crate) fn text(page: &str) -> anyhow::Result<()> {
    finish(anstream::stdout().lock().write_all(page.as_bytes()))
}

/// Prints a value as JSON over several lines.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write the answer as JSON")?;
    text.push('\n');
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

fn finish(written: io::Result<()>) -> anyhow::Result<()> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// A hint beside the answer.
pub(crate) fn note(note: &str) {
    // Nobody can be told that telling failed.
    let _ = writeln!(anstream::stderr(), "note: {note}");
}

/// One line about what went wrong.
pub(crate) fn error(error: &anyhow::Error) {
    let text = format!("{error:#}").replace('\n', " ");
    let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {text}");
}
