//! Writes to standard output and standard error. A closed pipe, for example to `head`, is not an error.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write},
};

use anyhow::Context as _;
use nodewise_telemetry::{is_hidden, printable};
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

/// A value as indented JSON for standard output.
pub(crate) fn json_text(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("cannot write the answer as JSON")?;
    Ok(for_output(&text) + "\n")
}

/// Prints a value as JSON in one line, for streams of values.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(value).context("cannot write the answer as JSON")?;
    finish(
        io::stdout()
            .lock()
            .write_all((for_output(&text) + "\n").as_bytes()),
    )
}

/// JSON as it is, or for people if standard output is a terminal.
fn for_output(json: &str) -> String {
    if io::stdout().is_terminal() {
        visible(json)
    } else {
        json.to_owned()
    }
}

/// The same value without characters that control a terminal or hide others. JSON needs no escapes for most of them.
fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // Between values there are no hidden characters but line feeds, and in strings there are no line feeds.
        if character == '\n' || !is_hidden(character) {
            text.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(text, "\\u{unit:04x}").expect("writing to a string cannot fail");
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_terminal_is_the_same_value_without_hidden_characters() {
        let value = serde_json::json!({"\u{9b}2J": ["a\u{85}\u{7f}b", "\u{202e}x", "\u{e0041}", "ä„漢\t\n"]});
        for json in [
            serde_json::to_string(&value).expect("JSON"),
            serde_json::to_string_pretty(&value).expect("JSON"),
        ] {
            let visible = visible(&json);
            assert!(
                !visible.contains(|sign| is_hidden(sign) && sign != '\n'),
                "{visible:?}"
            );
            for part in [
                r"\u009b2J",
                r"a\u0085\u007fb",
                r"\u202ex",
                r"\udb40\udc41",
                "ä„漢",
            ] {
                assert!(visible.contains(part), "no {part} in {visible}");
            }
            let read: serde_json::Value = serde_json::from_str(&visible).expect("JSON");
            assert_eq!(read, value);
        }
    }
}
