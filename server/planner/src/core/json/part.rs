//! Read access to the members and items of a canonical JSON text.

use std::borrow::Cow;

/// A value within a [`Json`](super::Json). The text is in canonical form; the methods rely on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a>(&'a str);

impl<'a> Part<'a> {
    /// An object without members.
    pub(crate) const EMPTY: Part<'static> = Part("{}");

    pub(super) fn of(text: &'a str) -> Self {
        Self(text)
    }

    pub(crate) fn text(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    pub(crate) fn is_list(self) -> bool {
        self.0.starts_with('[')
    }

    /// The quoted text of a string; for any other value an empty quoted string.
    pub(crate) fn string_text(self) -> &'a str {
        if self.0.starts_with('"') { self.0 } else { "\"\"" }
    }

    /// The members of an object, sorted by key; none for any other value.
    pub(crate) fn members(self) -> Members<'a> {
        Members(self.inside('{', '}'))
    }

    /// The items of a list; none for any other value.
    pub(crate) fn items(self) -> Items<'a> {
        Items(self.inside('[', ']'))
    }

    /// The member with a key.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        self.members()
            .find(|(found, _)| found == key)
            .map(|(_, value)| value)
    }

    /// The member with a key if it is an object, else an empty object.
    pub(crate) fn object(self, key: &str) -> Self {
        self.get(key)
            .filter(|value| value.is_object())
            .unwrap_or(Self::EMPTY)
    }

    fn inside(self, open: char, close: char) -> &'a str {
        self.0
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .unwrap_or_default()
    }
}

/// Iterates over the members of an object.
pub(crate) struct Members<'a>(&'a str);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Part<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let (key, rest) = self.0.split_at(length(self.0));
        let (value, rest) = first(rest.strip_prefix(':').unwrap_or_default());
        self.0 = rest;
        Some((plain(key), value))
    }
}

/// Iterates over the items of a list.
pub(crate) struct Items<'a>(&'a str);

impl<'a> Iterator for Items<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let (item, rest) = first(self.0);
        self.0 = rest;
        Some(item)
    }
}

/// Splits a text after its first value: the value, and the text after the comma.
fn first(text: &str) -> (Part<'_>, &str) {
    let (value, rest) = text.split_at(length(text));
    (Part(value), rest.strip_prefix(',').unwrap_or(rest))
}

/// The length of the first value of a text, in bytes.
pub(super) fn length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            // A number or a literal ends at the next comma or at the end of the text.
            _ if depth == 0 => {
                let end = text[at..].find(',');
                return end.map_or(text.len(), |end| at + end);
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The index of the closing quote of the string that begins at `begin`.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// The content of a quoted string, without quotes and escapes.
pub(super) fn plain(string: &str) -> Cow<'_, str> {
    if string.contains('\\') {
        // The text is valid JSON, so this never fails.
        serde_json::from_str::<String>(string).unwrap_or_default().into()
    } else {
        string
            .get(1..string.len().saturating_sub(1))
            .unwrap_or_default()
            .into()
    }
}
