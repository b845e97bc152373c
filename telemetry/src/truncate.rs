//! Texts of others before they go into logs, spans, Events or a terminal: such a text may be of any length and content.

use std::borrow::Cow;

/// The largest length of a text, in bytes.
const MAX_BYTES: usize = 1_000;

/// The text on one line: control characters are escaped, and it is cut to 1,000 bytes.
#[must_use]
pub fn in_short(text: &str) -> String {
    let mut short = String::with_capacity(text.len().min(MAX_BYTES));
    for character in text.chars() {
        let before = short.len();
        push_printable(&mut short, character);
        if short.len() > MAX_BYTES {
            short.truncate(before);
            short.push('…');
            break;
        }
    }
    short
}

/// The text with its control characters escaped, so that it changes no other line of a log or a terminal.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_printable(&mut escaped, character);
    }
    Cow::Owned(escaped)
}

fn push_printable(text: &mut String, character: char) {
    if character.is_control() {
        text.extend(character.escape_default());
    } else {
        text.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_on_one_line() {
        assert_eq!(in_short("as it is: „ä“"), "as it is: „ä“");
        assert_eq!(
            in_short("one\nlevel=INFO two\u{1b}[2J"),
            "one\\nlevel=INFO two\\u{1b}[2J"
        );
        let long = in_short(&"ä".repeat(1_000_000));
        assert_eq!(long, "ä".repeat(MAX_BYTES / 2) + "…");
    }

    #[test]
    fn a_text_for_a_terminal_has_no_control_characters() {
        assert!(matches!(printable("web ä"), Cow::Borrowed("web ä")));
        assert_eq!(printable("one\ntwo\u{1b}[2J"), "one\\ntwo\\u{1b}[2J");
        assert_eq!(printable(&"x\n".repeat(1_000)).len(), 3_000, "it is whole");
    }
}
