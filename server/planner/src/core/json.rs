//! JSON as its text, in the form in which upstream writes it (chapter 9, D-58): the bytes decide whether upstream knows a
//! revision again.
//!
//! Templates and revisions stay texts, since a tree of one takes many times its bytes: they are read into this form without
//! a tree, compared as bytes, and what becomes of them is written part by part.
//!
//! Strings are written here and not by serde_json because its member order depends on a feature that any crate of the
//! build may switch on, and because Go escapes more characters.

mod part;
mod read;

use std::fmt::{self, Write as _};

use serde_json::Value;

pub(crate) use part::Part;

/// A JSON text: compact, with members sorted by the bytes of their keys and strings escaped as Go's encoder does. So equal
/// values are equal texts.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a tree, for whoever wants to look around in it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // The text is JSON.
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

    /// A text that is of this form.
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

/// Writes a string.
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
            // The three that would matter inside HTML, and the two line ends of JavaScript.
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                append(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes a number or the like.
pub(crate) fn append(out: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(arguments);
}

/// An object while it is written. Its members are to come in the order of their keys.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    separator: char,
}

impl<'a> Object<'a> {
    pub(crate) fn begin(out: &'a mut String) -> Self {
        Self { out, separator: '{' }
    }

    /// Begins a member; its value is to be written next.
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

/// Writes an object anew: `change` writes the members of these keys, which are sorted, or does not, and is told what they
/// were; all others stay. What is no object has no members.
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

/// Writes a list.
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
