//! Text output: lines that are wrapped to the width of the terminal, with colours.

pub(crate) mod explain;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod status;
pub(crate) mod table;

use std::{borrow::Cow, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use nodewise_proto::v1;
use nodewise_telemetry::printable;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const ADD: Style = AnsiColor::Green.on_default();
pub(crate) const CHANGE: Style = AnsiColor::Yellow.on_default();
pub(crate) const REMOVE: Style = AnsiColor::Red.on_default();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();

/// The smallest width of lines, also on narrower terminals.
const NARROWEST: usize = 40;

/// A text under construction. It always contains styles; `print` removes them if the output is not a terminal.
pub(crate) struct Page {
    text: String,
    /// The column to wrap lines at. `None`: lines are not wrapped.
    width: Option<usize>,
}

impl Page {
    pub(crate) fn new(width: Option<usize>) -> Self {
        Self {
            text: String::new(),
            width: width.map(|width| width.max(NARROWEST)),
        }
    }

    /// The width in columns. `None`: unlimited.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Adds a line of parts with styles. It is not wrapped.
    pub(crate) fn row(&mut self, parts: &[(Style, &str)]) {
        for (style, part) in parts {
            let part = printable(part);
            write!(self.text, "{style}{part}{style:#}").expect("writing to a string cannot fail");
        }
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a line with one style. Continuation lines have the same indentation.
    pub(crate) fn line(&mut self, indent: usize, style: Style, text: &str) {
        self.marked(indent, "", PLAIN, style, text);
    }

    /// Adds a line that begins with a marker. Continuation lines are indented to the text behind the marker.
    pub(crate) fn marked(
        &mut self,
        indent: usize,
        marker: &str,
        marker_style: Style,
        style: Style,
        text: &str,
    ) {
        let behind = if marker.is_empty() {
            indent
        } else {
            indent + columns(marker) + 1
        };
        let room = self.width.map_or(usize::MAX, |width| {
            width.saturating_sub(behind).max(NARROWEST / 2)
        });
        let mut lead = if marker.is_empty() {
            " ".repeat(indent)
        } else {
            format!("{}{marker_style}{marker}{marker_style:#} ", " ".repeat(indent))
        };
        for line in wrap(&printable(text), room) {
            writeln!(self.text, "{lead}{style}{line}{style:#}").expect("writing to a string cannot fail");
            lead = " ".repeat(behind);
        }
    }
}

/// The width of the terminal in columns. `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The width of a text in columns. Every character counts as one: Kubernetes names are ASCII, and the signs used here are narrow.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a line at spaces. A word that is longer than `room` gets a line of its own.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// `1 pod`, `2 pods`, `3 batches`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ch") => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// Replaces the names of node and pods in a sentence with "the node" and "the pod", and the number of a slot, so that equal sentences can
/// be grouped.
pub(crate) fn impersonal<'a>(sentence: &str, node: &str, pods: impl IntoIterator<Item = &'a str>) -> String {
    let sentence = pods.into_iter().fold(sentence.to_owned(), |sentence, pod| {
        replace_name(&sentence, pod, "the pod")
    });
    let sentence = replace_name(&sentence, node, "the node")
        .replace("pod the pod", "the pod")
        .replace("node the node", "the node");
    any_slot(&sentence).unwrap_or(sentence)
}

/// `… (slot 2 of 3)` is `… (one of 3 slots)`.
fn any_slot(sentence: &str) -> Option<String> {
    let (before, slot) = sentence.split_once("(slot ")?;
    let (_, limit) = slot.split_once(" of ")?;
    let (limit, after) = limit.split_once(')')?;
    Some(format!("{before}(one of {limit} slots){after}"))
}

/// Replaces a name where it is a whole word.
fn replace_name(text: &str, name: &str, by: &str) -> String {
    let words = text.split(' ').map(|word| {
        let alone = word.trim_matches(|sign| ".,;:()\"'".contains(sign)) == name && !name.is_empty();
        if alone {
            Cow::Owned(word.replacen(name, by, 1))
        } else {
            Cow::Borrowed(word)
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Adds the warnings of a plan.
pub(crate) fn render_warnings<'a>(
    page: &mut Page,
    warnings: impl Iterator<Item = &'a v1::Warning>,
    more: u32,
) {
    for v1::Warning { kind, name, message } in warnings {
        page.marked(
            2,
            "!",
            CHANGE,
            PLAIN,
            &format!("warning: {kind} {name}: {message}"),
        );
    }
    if more > 0 {
        page.marked(
            2,
            "!",
            CHANGE,
            PLAIN,
            &format!("and {}", count(more as usize, "more warning")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_behind_their_marker() {
        let mut page = Page::new(Some(40));
        page.marked(
            2,
            "+",
            ADD,
            PLAIN,
            "create 250 pods (node-001 … node-250): the node has no pod",
        );
        page.line(4, DIM, "in slow-start batches");
        let text = anstream::adapter::strip_str(&page.into_text()).to_string();
        assert_eq!(
            text,
            "  + create 250 pods (node-001 …\n    node-250): the node has no pod\n    in slow-start batches\n"
        );
    }

    #[test]
    fn nothing_wraps_without_a_terminal() {
        let mut page = Page::new(None);
        page.line(0, PLAIN, &"word ".repeat(100));
        assert_eq!(page.into_text().lines().count(), 1);
    }

    #[test]
    fn names_are_replaced_as_words() {
        for (text, expected) in [
            ("node-1 has no pod", "X has no pod"),
            ("pod a on node-1.", "pod a on X."),
            (
                "pod node-1-abc on node-10 (node-1)",
                "pod node-1-abc on node-10 (X)",
            ),
        ] {
            assert_eq!(replace_name(text, "node-1", "X"), expected);
        }
        assert_eq!(replace_name("a  b", "", "X"), "a  b");
        assert_eq!(
            impersonal("a-b on node-1 is outdated (slot 2 of 3)", "node-1", ["a-b"]),
            "the pod on the node is outdated (one of 3 slots)"
        );
        assert_eq!(
            impersonal("pod a-b runs on node-1", "node-1", ["a-b"]),
            "the pod runs on the node"
        );
    }

    #[test]
    fn nouns_are_counted() {
        assert_eq!(count(0, "pod"), "0 pods");
        assert_eq!(count(1, "batch"), "1 batch");
        assert_eq!(count(2, "batch"), "2 batches");
    }
}
