//! The data of a revision as text (D-58), and variants of it. Independent of the planner's own serializer.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The form of a revision's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As upstream writes it.
    Canonical,
    /// With unescaped `<`, `>`, `&` and line separators. An apiserver would serve the canonical text.
    Unescaped,
    /// As a controller before 1.34 wrote it, with a null creation time (D-65).
    Dated,
    /// With the members of all objects in reverse order.
    Reordered,
    /// With spaces.
    Spaced,
}

/// The data of a revision with this `template`.
pub(super) fn data(template: &Value, form: Form) -> String {
    let mut patch = template.clone();
    patch["$patch"] = "replace".into();
    if form == Form::Dated {
        patch["metadata"]["creationTimestamp"] = Value::Null;
    }
    let data = json!({ "spec": { "template": patch } });
    let mut text = String::with_capacity(1024);
    write_value(&mut text, &data, form);
    text
}

fn write_value(text: &mut String, value: &Value, form: Form) {
    match value {
        Value::String(string) => write_string(text, string, form),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, item, form);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_bytes());
            if form == Form::Reordered {
                members.reverse();
            }
            text.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(text, name, form);
                text.push_str(if form == Form::Spaced { " : " } else { ":" });
                write_value(text, value, form);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            text.push_str(&value.to_string());
        }
    }
}

fn write_string(text: &mut String, string: &str, form: Form) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if letter < ' ' || (form != Form::Unescaped && is_escaped(letter)) => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => text.push(letter),
        }
    }
    text.push('"');
}

/// Characters that Go escapes in addition to those that JSON requires.
fn is_escaped(letter: char) -> bool {
    matches!(letter, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::case::Case;
    use crate::generate::census::Situation;

    /// All forms of data that equal the template's data as JSON values.
    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("a revision with unescaped HTML", |case| {
            texts(case).any(|data| data.contains('<'))
        }),
        ("a revision of before 1.34", |case| {
            texts(case).any(|data| data.contains("\"creationTimestamp\":null"))
        }),
        ("a revision in another order", |case| {
            texts(case).any(|data| data.starts_with(r#"{"spec":{"template":{"spec""#))
        }),
        ("a revision with blanks", |case| {
            texts(case).any(|data| data.starts_with(r#"{"spec" : {"#))
        }),
        ("a revision with an escaped line separator", |case| {
            texts(case).any(|data| data.contains("\\u2028"))
        }),
    ];

    fn texts(case: &Case) -> impl Iterator<Item = &str> {
        case.revisions.iter().map(|revision| revision.data.as_str())
    }

    #[test]
    fn writes_what_upstream_writes() {
        let template = json!({
            "spec": {"z": [1, true, {}], "a": "<a>&b"},
            "metadata": {"annotations": {"b": "\u{8}\u{c}\n\r\t\u{1}\u{7f}/\"\\", "a/b": "é\u{2028}"}},
        });
        let expected = concat!(
            r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"a/b":"é\u2028","#,
            r#""b":"\b\f\n\r\t\u0001"#,
            "\u{7f}",
            r#"/\"\\"}},"spec":{"a":"\u003ca\u003e\u0026b","z":[1,true,{}]}}}}"#
        );
        assert_eq!(data(&template, Form::Canonical), expected);
    }

    #[test]
    fn all_forms_but_dated_have_the_same_value() {
        let template = json!({"metadata": {"labels": {"a": "<", "b": "\u{2029}"}}, "spec": {}});
        let value = |form| serde_json::from_str::<Value>(&data(&template, form)).expect("it is JSON");
        for form in [Form::Unescaped, Form::Reordered, Form::Spaced] {
            assert_eq!(value(form), value(Form::Canonical));
            assert_ne!(data(&template, form), data(&template, Form::Canonical));
        }
        assert_ne!(value(Form::Dated), value(Form::Canonical));
    }
}
