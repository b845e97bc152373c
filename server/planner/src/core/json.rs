//! JSON kept as text, in the canonical form that upstream writes (D-58). Upstream recognizes a revision by its bytes.
//!
//! Templates and revisions are kept as text because a tree of [`Value`]s takes many times the memory. They are parsed, compared
//! and edited without building a tree.
//!
//! This module writes objects and strings itself instead of using serde_json: the order of members in serde_json depends on a
//! feature that any crate of the build can enable, and Go escapes more characters.

mod part;
mod read;

use std::fmt::{self, Write as _};

use serde_json::Value;

pub(crate) use part::Part;

/// A JSON text in canonical form: compact, members sorted by the bytes of their keys, strings escaped as Go's encoder does.
/// Equal values are equal texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a serde_json tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // The text is valid JSON, so this never fails.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Whether this is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.part().is_object()
    }

    pub(crate) fn part(&self) -> Part<'_> {
        Part::of(&self.0)
    }

    /// Wraps a text that is in canonical form.
    pub(crate) fn written(text: String) -> Self {
        Self(text.into())
    }
}

/// `null`.
impl Default for Json {
    fn default() -> Self {
        Self("null".into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        serde::Deserialize::deserialize(value).unwrap_or_default()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

/// Writes a JSON string, escaped.
pub(crate) fn write_string(out: &mut String, string: &str) {
    out.push('"');
    for character in string.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Go also escapes the three characters that are special in HTML and the two line separators of JavaScript.
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                append(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes formatted text.
pub(crate) fn append(out: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(arguments);
}

/// Writes an object. The caller must write members in the order of their keys.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    separator: char,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut String) -> Self {
        Self { out, separator: '{' }
    }

    /// Writes the key of a member. The caller writes the value next.
    pub(crate) fn member(&mut self, key: &str) -> &mut String {
        self.out.push(self.separator);
        self.separator = ',';
        write_string(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(crate) fn end(self) {
        if self.separator == '{' {
            self.out.push('{');
        }
        self.out.push('}');
    }
}

/// Copies an object and replaces the members with these keys. `keys` must be sorted. `change` gets each key with its old value,
/// and writes a new member or none. All other members are copied. A value that is not an object counts as an empty one.
pub(crate) fn rewrite(
    out: &mut String,
    object: Part<'_>,
    keys: &[&str],
    mut change: impl FnMut(&mut Object<'_>, &str, Option<Part<'_>>),
) {
    let mut keys = keys.iter().copied().peekable();
    let mut written = Object::begin(out);
    for (key, value) in object.members() {
        while let Some(absent) = keys.next_if(|next| **next < *key) {
            change(&mut written, absent, None);
        }
        if let Some(present) = keys.next_if(|next| **next == *key) {
            change(&mut written, present, Some(value));
        } else {
            written.member(&key).push_str(value.text());
        }
    }
    for absent in keys {
        change(&mut written, absent, None);
    }
    written.end();
}

/// Writes a list; `write` writes each item.
pub(crate) fn write_list<I: IntoIterator>(
    out: &mut String,
    items: I,
    mut write: impl FnMut(&mut String, I::Item),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests;
