//! Texts of others before they go into logs, spans, Events or a terminal: such a text may be of any length and content.

use std::borrow::Cow;

/// The largest length of a text, in bytes.
const MAX_BYTES: usize = 1_000;

/// The text on one line: hidden characters are escaped ([`is_hidden`]), and it is cut to 1,000 bytes.
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

/// The text with its hidden characters escaped ([`is_hidden`]). It changes no other line of a log or a terminal, and texts that differ
/// look different.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_printable(&mut escaped, character);
    }
    Cow::Owned(escaped)
}

/// Whether a reader cannot see a character: control characters, and those of Unicode that have no shape or change the order of the
/// characters around them. With these, two different texts look equal.
///
/// The list has the general categories Cf, Zl and Zp and the property `Default_Ignorable_Code_Point` of Unicode 17.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn push_printable(text: &mut String, character: char) {
    if is_hidden(character) {
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

    // In a terminal, the first of these images looks like `registry.example/web:1`.
    #[test]
    fn different_texts_look_different() {
        let reversed = "registry.example/\u{202e}1:bew";
        assert_eq!(printable(reversed), "registry.example/\\u{202e}1:bew");
        assert_eq!(printable("web\u{200b}:1"), "web\\u{200b}:1");
        let hidden = [
            0x7f, 0x85, 0x9b, 0xad, 0x61c, 0x200b, 0x200d, 0x200e, 0x200f, 0x2028, 0x202a, 0x202e, 0x2060,
            0x2066, 0x2069, 0x3164, 0xfe0f, 0xfeff, 0xe0041,
        ];
        for code in hidden {
            let character = char::from_u32(code).expect("a character");
            assert!(is_hidden(character), "{code:x}");
            assert_eq!(in_short(&character.to_string()), format!("\\u{{{code:x}}}"));
        }
        for visible in "aä\u{301}„“→…░█✗\u{a0}漢字فارسی".chars() {
            assert!(!is_hidden(visible), "{visible:?}");
        }
    }
}
