//! Writes to standard output and standard error. A closed pipe, for example to `head`, is not an error.

use std::io::{self, Write};

use anyhow::Context as _;
use nodewise_telemetry::printable;
use serde::Serialize;

use crate::text::ERROR;

/// Prints a page. Colours are removed unless standard output is a terminal.
pub(crate) fn text(page: &str) -> anyhow::Result<()> {
    finish(anstream::stdout().lock().write_all(page.as_bytes()))
}

/// Prints a file as it is.
pub(crate) fn bytes(file: &[u8]) -> anyhow::Result<()> {
    finish(io::stdout().lock().write_all(file))
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    finish(io::stdout().lock().write_all(json_text(value)?.as_bytes()))
}

/// A value as indented JSON.
pub(crate) fn json_text(value: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write the answer as JSON")?;
    text.push('\n');
    Ok(text)
}

/// Prints a value as JSON in one line, for streams of values.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(value).context("cannot write the answer as JSON")?;
    text.push('\n');
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

/// Prints a value as a YAML document, for streams of values.
pub(crate) fn yaml_document(value: &impl Serialize) -> anyhow::Result<()> {
    finish(io::stdout().lock().write_all(b"---\n"))?;
    yaml(value)
}

/// Prints a value as YAML.
pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(value).context("cannot write the answer as YAML")?;
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

/// Standard output. A closed pipe is not an error.
#[derive(Debug)]
pub(crate) struct Writer;

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match io::stdout().lock().write_all(bytes) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match io::stdout().lock().flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

fn finish(written: io::Result<()>) -> anyhow::Result<()> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints a hint to standard error.
pub(crate) fn note(note: &str) {
    // An error on standard error cannot be reported.
    let _ = writeln!(anstream::stderr(), "note: {}", printable(note));
}

/// Prints an error in one line to standard error.
pub(crate) fn error(error: &anyhow::Error) {
    let text = format!("{error:#}").replace('\n', " ");
    let text = printable(&text);
    let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {text}");
}
