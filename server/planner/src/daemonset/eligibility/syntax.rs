//! The syntax of label keys, label values and numbers in Kubernetes (D-13, D-14, D-17).

/// The most bytes of a key or value in a message. The apiserver accepts no longer ones.
const WORD_BYTES: usize = 317;

/// Longest label value, and longest name part of a key, in bytes.
const MAX_NAME: usize = 63;
/// Longest prefix of a key, in bytes.
const MAX_PREFIX: usize = 253;

/// Whether this is a label key: an optional DNS-1123 subdomain and `/`, then a name.
pub(super) fn is_qualified_name(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether this is a label value: empty, or a name.
pub(super) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

/// Parses an int64: `0`, or an optional minus and digits without a leading zero.
pub(super) fn canonical_int64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = text == "0" || digits.starts_with(|first: char| ('1'..='9').contains(&first));
    if canonical { text.parse().ok() } else { None }
}

/// At most 63 characters of `[-A-Za-z0-9_.]`; the first and the last one of `[A-Za-z0-9]`.
fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && has_alphanumeric_ends(name)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= MAX_PREFIX
        && name.split('.').all(|part| {
            has_alphanumeric_ends(part)
                && part
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        })
}

fn has_alphanumeric_ends(name: &str) -> bool {
    let bytes = name.as_bytes();
    [bytes.first(), bytes.last()]
        .iter()
        .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
}

/// A key or a value for a message, cut to [`WORD_BYTES`].
pub(super) fn word(text: &str) -> &str {
    &text[..text.floor_char_boundary(WORD_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_14_keys_and_values() {
        let (name, prefix) = ("n".repeat(63), "p".repeat(253));
        let keys = [
            ("a", true),
            ("A-b_c.9", true),
            ("example.com/a", true),
            (&format!("{prefix}/{name}"), true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a b", false),
            ("é", false),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("Example.com/a", false),
            ("exa_mple/a", false),
            ("a..b/c", false),
            ("-a.b/c", false),
            (&format!("{prefix}p/{name}"), false),
            (&format!("{name}n"), false),
        ];
        for (key, valid) in keys {
            assert_eq!(is_qualified_name(key), valid, "key {key:?}");
        }
        let values = [
            ("", true),
            (&*name, true),
            ("5", true),
            ("-5", false),
            ("a b", false),
            ("a/b", false),
        ];
        for (value, valid) in values {
            assert_eq!(is_label_value(value), valid, "value {value:?}");
        }
        assert!(!is_label_value(&format!("{name}n")));
    }

    #[test]
    fn d_17_canonical_numbers() {
        let max = i64::MAX.to_string();
        let min = i64::MIN.to_string();
        let table = [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-7", Some(-7)),
            (&*max, Some(i64::MAX)),
            (&*min, Some(i64::MIN)),
            ("", None),
            ("-", None),
            ("-0", None),
            ("+7", None),
            ("07", None),
            ("-07", None),
            ("7 ", None),
            ("1_000", None),
            ("9223372036854775808", None),
        ];
        for (text, expected) in table {
            assert_eq!(canonical_int64(text), expected, "{text:?}");
        }
    }
}
