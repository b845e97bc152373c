//! Quotes texts for a command that people copy into a shell. Anyone who may write a status chooses its names and texts. Each must stay
//! one word of the command.

use std::borrow::Cow;

use nodewise_telemetry::printable;

/// A text as one word of a command for a shell, quoted if it needs to be.
pub(crate) fn word(text: &str) -> String {
    // What is shown is what is copied, so hidden characters are written out first. After that it has no NUL, which no word can have.
    let text = printable(text);
    shlex::try_quote(&text).map(Cow::into_owned).unwrap_or_default()
}

/// Whether a text can be a digest: the planner writes digests in hexadecimal digits.
pub(super) fn is_digest(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_one_word() {
        for plain in ["agent", "daemonset/agent", "agent-1.x", "4e5"] {
            assert_eq!(word(plain), plain);
        }
        for odd in [
            "",
            "a b",
            "'; rm -rf ~; '",
            "$(reboot)",
            "`reboot`",
            "a\\'b\"c",
            "!!",
            "^a^b",
            "a;b",
            "~",
        ] {
            let quoted = word(odd);
            assert_ne!(quoted, odd);
            assert_eq!(shlex::split(&quoted), Some(vec![odd.to_owned()]), "{quoted}");
        }
        let patch = r#"[{"op":"test"}]"#;
        assert_eq!(word(patch), format!("'{patch}'"));
        for hidden in ["a\nreboot", "a\0b", "a\u{202e}b"] {
            let quoted = word(hidden);
            assert_eq!(printable(&quoted), quoted, "it is shown as it is");
            assert_eq!(shlex::split(&quoted).map(|words| words.len()), Some(1));
        }
    }

    #[test]
    fn a_digest_has_only_hexadecimal_digits() {
        assert!(is_digest("0123456789abcdef"));
        for odd in ["", "4e5 x", "$(reboot)", "4e5;", "xyz"] {
            assert!(!is_digest(odd), "{odd}");
        }
    }
}
