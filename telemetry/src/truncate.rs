//! Limits error texts from other servers before they go into logs, spans and Events: such a text may be of any length and content.

/// The largest length of a text, in bytes.
const MAX_BYTES: usize = 1_000;

/// The text on one line: control characters are escaped, and it is cut to 1,000 bytes.
#[must_use]
pub fn in_short(text: &str) -> String {
    let mut short = String::with_capacity(text.len().min(MAX_BYTES));
    for character in text.chars() {
        let before = short.len();
        if character.is_control() {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
        if short.len() > MAX_BYTES {
            short.truncate(before);
            short.push('…');
            break;
        }
    }
    short
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
}
