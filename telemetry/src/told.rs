//! What a server says in words, before it goes into logs, spans and Events: a wrong one may say anything, at any length.

/// Most bytes of a text.
const MOST: usize = 1_000;

/// The text on one line, without control characters, cut to 1,000 bytes.
#[must_use]
pub fn in_short(text: &str) -> String {
    let mut short = String::with_capacity(text.len().min(MOST));
    for character in text.chars() {
        let before = short.len();
        if character.is_control() {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
        if short.len() > MOST {
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
    fn texts_stay_on_a_line_and_are_short() {
        assert_eq!(in_short("as it is: „ä“"), "as it is: „ä“");
        assert_eq!(
            in_short("one\nlevel=INFO two\u{1b}[2J"),
            "one\\nlevel=INFO two\\u{1b}[2J"
        );
        let long = in_short(&"ä".repeat(1_000_000));
        assert_eq!(long, "ä".repeat(MOST / 2) + "…");
    }
}
